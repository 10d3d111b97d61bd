/*
 * One ELF file in memory, by libelf: build id, symbols, and where in the file they lie. Parses what
 * strangers wrote: only ever linked into the sandboxed worker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_symbol {
	uint64_t offset;  /* in the file */
	uint64_t size;	  /* bytes; 0: up to the next symbol */
	const char *name; /* borrowed, as long as the elf_file and the image's bytes */
};

struct elf_file;

/* BYTES (borrowed until elf_file_free). 0; ELF_NOT: not an ELF file of a kind we know; -ENOMEM. */
#define ELF_NOT 1
int elf_file_new(const uint8_t *bytes, size_t size, struct elf_file **ret);
/* The same of a file of which not all is there: before any of it is read NEED is asked for it. What
 * it does not bring, and what goes beyond 64 MiB in all, is left out; it may be read as zeros. */
struct elf_bytes {
	const uint8_t *bytes; /* all SIZE of them may be read */
	size_t size;
	bool (*need)(void *userdata, uint64_t offset, uint64_t size); /* NULL: all is there */
	void *userdata;
	/* What may be unpacked, of all files that have the same counter: counted down, and up again
	 * when it is freed; as long as the file. NULL: only each one's own limits count. */
	uint64_t *room;
};
enum elf_wanted { ELF_NAMES, ELF_BUILD_ID /* nothing else */ };
int elf_file_open(const struct elf_bytes *bytes, enum elf_wanted wanted, struct elf_file **ret);
void elf_file_free(struct elf_file *f);
/* The names of DEBUG (as of elf_file_open(); borrowed as long as F), which has the same build id,
 * are F's too: a file of which only the symbols and the DWARF were kept. What elf_file_symbols()
 * gave before is void. 0; ELF_NOT: it is no ELF file, or another build's; -ENOMEM. */
int elf_file_add_names(struct elf_file *f, const struct elf_bytes *debug);
/* The GNU build id; *ret_size 0: none. */
const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *ret_size);
/* Function symbols of .symtab, .dynsym and .gnu_debugdata (a small symbol table, packed by xz),
 * sorted by offset, duplicates at one offset reduced to the best (global before local, sized before
 * unsized); PLT entries named "NAME@plt". */
const struct elf_symbol *elf_file_symbols(const struct elf_file *f, size_t *ret_n);
/* The address, as the file counts them, of what lies at OFFSET; false: no segment brings it there.
 */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret);
/* The section with code (or, where a file has no sections, the segment) around OFFSET: false when
 * there is none. */
bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *ret_begin,
		   uint64_t *ret_end);
