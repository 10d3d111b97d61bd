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
};
enum elf_wanted { ELF_NAMES, ELF_BUILD_ID /* nothing else */ };
int elf_file_open(const struct elf_bytes *bytes, enum elf_wanted wanted, struct elf_file **ret);
void elf_file_free(struct elf_file *f);
/* The GNU build id; *ret_size 0: none. */
const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *ret_size);
/* Function symbols of .symtab and .dynsym, sorted by offset, duplicates at one offset reduced to
 * the best (global before local, sized before unsized); PLT entries named "NAME@plt". */
const struct elf_symbol *elf_file_symbols(const struct elf_file *f, size_t *ret_n);
/* The section with code (or, where a file has no sections, the segment) around OFFSET: false when
 * there is none. */
bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *ret_begin,
		   uint64_t *ret_end);
