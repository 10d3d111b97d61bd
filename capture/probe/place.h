/*
 * Places in an ELF file: symbols and static probes (USDT), as offsets in the file.
 *
 * The file is a stranger's. It is read by pread() in pieces of fixed size, every number is checked
 * before use, and what is too large for a sensible file is refused. If the file changes meanwhile,
 * the result is some offset in this file or an error.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Limits: bytes of one symbol table, of its names, of the notes of static probes. */
#define PLACE_MAX_SYMBOLS (256u << 20)
#define PLACE_MAX_NAMES	  (512u << 20)
#define PLACE_MAX_NOTES	  (4u << 20)

/*
 * Finds SYMBOL or SYMBOL+OFFSET in .symtab, or else in .dynsym: a function, or a label without
 * type. A global symbol goes before a weak one, and that before a local one and an old version.
 * *ret is an offset in the file FD, in an executable segment.
 *
 * 0, or an error with a sentence about FD in *ret_error, which the caller frees: -EINVAL: TEXT has
 * no such form, or the offset is outside the symbol; -ENOENT; -ENOTUNIQ; -EOPNOTSUPP: the symbol is
 * an IFUNC, whose address is that of the code that chooses the function; -EBADMSG: not an ELF file
 * for x86-64, or malformed; -E2BIG: a limit; -errno of reading.
 */
int place_symbol(int fd, const char *text, uint64_t *ret, char **ret_error);

struct place_usdt {
	uint64_t offset;
	uint64_t semaphore; /* offset of the counter by which the program knows of the probe; 0:
			       none */
};

/* Finds the places of PROVIDER:NAME in .note.stapsdt. Returns how many of at most MAX places;
 * -E2BIG if there are more; other errors as above. */
int place_usdt(int fd, const char *text, struct place_usdt *ret, size_t max, char **ret_error);
