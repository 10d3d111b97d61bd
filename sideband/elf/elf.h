/*
 * One ELF file for x86 in memory, read by libelf: build id, function symbols, addresses.
 *
 * The decoder names functions with this room. elf.c opens a file and knows its build id, its
 * segments and its code sections. elf_bytes.c decides which bytes of the file may be read, and
 * checks the headers before libelf sees the file. elf_symbols.c collects the function symbols of
 * the file itself, of the small file packed within it (MiniDebugInfo) and of the debug file apart,
 * and chooses the best at each place. elf_plt.c names PLT entries. elf_unwind.c has the bounds of
 * functions that have no symbol, from the unwind table that stripped files keep.
 *
 * Decisions that govern the room:
 * - Every byte is untrusted, so the room is linked only into the sandboxed decoder. Tables,
 * symbols, names, requested bytes and unpacked bytes are limited in number; what is beyond a limit
 * is left out.
 * - Symbols are kept by file offset, which is the same wherever the file is mapped. The program
 *   headers lead from the addresses in symbol tables to offsets, for static, position-independent
 *   and shared files alike. The symbols of a packed or separate file have addresses of the mapped
 *   file.
 * - Often only some pages of a file are at hand. The user brings bytes on request (elf_bytes.need),
 *   and the room asks before it reads.
 * - A debug file counts only with the same build id.
 *
 * The caller owns a struct elf_file; the file borrows the bytes. Names and symbols are borrowed
 * from the struct elf_file and from the bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_symbol {
	uint64_t offset; /* in the file */
	uint64_t size;	 /* bytes; 0: up to the next symbol */
	/* Borrowed, valid as long as the struct elf_file and the bytes. NULL: only the bounds are
	 * known, from the unwind table. */
	const char *name;
};

struct elf_file;

/* The bytes that a file is read from. */
struct elf_bytes {
	const uint8_t *bytes; /* borrowed until elf_file_free(); all SIZE of them may be accessed */
	size_t size;
	/* Brings bytes that are about to be read. False: they cannot be had, and are left out.
	 * After 64 MiB in all the room asks for no more. NULL: all bytes are there. */
	bool (*need)(void *userdata, uint64_t offset, uint64_t size);
	void *userdata;
	/* The number of bytes that may still be unpacked, by all files that share the counter:
	 * lowered when bytes are unpacked, raised when they are freed. Must outlive the file. NULL:
	 * only the limits of each file count. */
	uint64_t *room;
};

enum elf_wanted { ELF_NAMES, ELF_BUILD_ID /* nothing else */ };

/* Not an ELF file for x86, or one that is damaged. */
#define ELF_NOT 1

/* Opens a file; *ret is the caller's. 0, ELF_NOT, -ENOMEM. */
int elf_file_open(const struct elf_bytes *bytes, enum elf_wanted wanted, struct elf_file **ret);
/* The same for BYTES (borrowed until elf_file_free()) that are all there. */
int elf_file_new(const uint8_t *bytes, size_t size, struct elf_file **ret);
void elf_file_free(struct elf_file *f);
/* Adds the names of DEBUG to F. DEBUG, which F borrows like the bytes of elf_file_open(), must have
 * the same build id: a file of which only symbols and DWARF were kept. Invalidates the result of
 * elf_file_symbols(). May be called once. 0, -ENOMEM, or ELF_NOT: no ELF file, or another build id.
 */
int elf_file_add_names(struct elf_file *f, const struct elf_bytes *debug);
/* The GNU build id; *ret_size 0: none. */
const uint8_t *elf_file_build_id(const struct elf_file *f, size_t *ret_size);
/* The functions of .symtab, .dynsym, .gnu_debugdata (a small symbol table packed by xz) and
 * .eh_frame (bounds without names), sorted by offset. If several symbols have one offset, only the
 * best is there: a global symbol before a local one, one with a size before one without. PLT
 * entries are named "NAME@plt". */
const struct elf_symbol *elf_file_symbols(const struct elf_file *f, size_t *ret_n);
/* The address at which the program headers load the byte at OFFSET. False: no segment loads it. */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret);
/* A section that takes bytes of the file. */
struct elf_section {
	const char *name;      /* "": none */
	uint64_t offset, size; /* in the file */
	bool within;	       /* it ends within the file */
	bool compressed;       /* SHF_COMPRESSED */
};
/* Calls FN for each section in the order of their headers, if their names can be had. */
void elf_file_foreach_section(struct elf_file *f,
			      void (*fn)(void *userdata, const struct elf_section *s),
			      void *userdata);
/* The bounds in the file of the code section around OFFSET, or, if the file has no sections, of the
 * segment. False: none. */
bool elf_file_code(const struct elf_file *f, uint64_t offset, uint64_t *ret_begin,
		   uint64_t *ret_end);
