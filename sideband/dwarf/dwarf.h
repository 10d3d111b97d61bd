/*
 * The DWARF of one ELF file, read by libdw: source lines, and functions inlined at an address.
 *
 * The decoder asks this room where a report wants source lines. dwarf.c opens a file and finds the
 * chain of inlined functions at an address. dwarf_section.c finds the sections of DWARF, unpacks
 * them, and hands them to libdw. dwarf_unit.c finds the unit and the function around an address.
 * dwarf_line_header.c and dwarf_lines.c read the line table of a unit without libdw. dwarf_limits.c
 * counts what reading costs in time and in memory.
 *
 * Decisions that govern the room:
 * - Every byte is untrusted, so the room is linked only into the sandboxed decoder. Bytes that are
 *   looked at, memory, functions, rows and names are counted; beyond a limit nothing more is found.
 * - No other file is opened. libdw sees an ELF file of our making that has the sections of DWARF
 *   and nothing else, so nothing leads it to another file. The room therefore knows only the lines
 *   of split DWARF (.dwo), and nothing of a common file (.gnu_debugaltlink). libdw calls
 *   realpath(3) once for each file; a program that must not look at paths defines a realpath() that
 *   does not.
 * - The room calls only functions of libdw that look for no split unit (dwarf_unit.c names the
 *   others).
 * - libdw ends the process if it runs out of memory. Memory is therefore counted before libdw is
 *   asked.
 * - The index of units and functions is ours, as .debug_aranges is often missing or incomplete.
 * - The line program is executed here: libdw would mix the rows of a function that the linker left
 *   out with the rows of others, and would take a hundred bytes for each byte of the program.
 *
 * The caller owns a struct dwarf_file; the file borrows the bytes. Texts are borrowed from both.
 * One thread at a time may use a file and the limits that several files share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/elf/elf.h"

struct dwarf_file;

/* Texts are borrowed, valid as long as the dwarf_file and its bytes. */
struct dwarf_frame {
	/* The linkage name, or else the name in the source; NULL: unknown. */
	const char *function;
	/* As the compiler was told. A relative name is joined with its directory, and a relative
	 * directory with the compilation directory. NULL: unknown. */
	const char *file;
	uint32_t line;	 /* 0: unknown */
	uint32_t column; /* 0: unknown */
};

/* The longest chain of inlined functions; the rest is cut. */
#define DWARF_MAX_FRAMES 32u
/* The most bytes that the sections of one file may have, unpacked. */
#define DWARF_MAX_BYTES (UINT64_C(256) << 20)

/* Limits that several files share; must outlive them. */
struct dwarf_limits {
	uint64_t left; /* bytes that may still be requested (elf_bytes.need); counted down */
	/* Asked now and then. True: stop, and nothing more is found. NULL: never. */
	bool (*enough)(void *userdata);
	void *userdata;
};

#define DWARF_NONE  1 /* there is no DWARF, or none that can be read */
#define DWARF_LARGE 2 /* more than DWARF_MAX_BYTES, elf_bytes.room, or what is left of LIMITS */

/* Opens the DWARF of BYTES (as of elf_file_open(), borrowed until dwarf_file_free()) and requests
 * the bytes that it needs; *ret is the caller's. 0, -ENOMEM, DWARF_NONE or DWARF_LARGE. */
int dwarf_file_open(const struct elf_bytes *bytes, struct dwarf_file **ret);
/* The same within LIMITS; NULL: only those of each file. */
int dwarf_file_open_within(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			   struct dwarf_file **ret);
void dwarf_file_free(struct dwarf_file *f);
/* Finds the functions at ADDRESS, as the file counts addresses. ret[0] is the innermost function
 * with the line of ADDRESS; each further frame is the function into which the one before was
 * inlined, with the line of the call. Returns the number of frames, at most MAX; 0: unknown. */
size_t dwarf_file_find(struct dwarf_file *f, uint64_t address, struct dwarf_frame *ret, size_t max);
