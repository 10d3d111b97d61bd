/*
 * The DWARF of one ELF file, by libdw: source lines, and what was inlined around an address. Parses
 * what strangers wrote: only ever linked into the sandboxed worker. It opens no other file: of
 * split DWARF (.dwo) only lines are known, and of what lies in a common file (.gnu_debugaltlink)
 * nothing is. libdw calls realpath(3) once a file: who must not look at paths brings one that does
 * not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/elf/elf.h"

struct dwarf_file;

/* FUNCTION: its linkage name, or that of the source; NULL: unknown. FILE: as the compiler was told,
 * joined with the directory where it has none, and that with the one compiled in; NULL: unknown.
 * All borrowed, as long as the dwarf_file and the file's bytes. */
struct dwarf_frame {
	const char *function;
	const char *file;
	uint32_t line;	 /* 0: unknown */
	uint32_t column; /* 0: unknown */
};

/* A chain of inlined functions is cut to so many. */
#define DWARF_MAX_FRAMES 32u
/* Of the sections so many bytes are taken at most, unpacked ones counted unpacked. */
#define DWARF_MAX_BYTES (UINT64_C(256) << 20)

/* BYTES as of elf_file_open(), borrowed until dwarf_file_free; what is needed of the file is asked
 * for here. 0, -ENOMEM, or: */
#define DWARF_NONE  1 /* there is none, or none that can be read */
#define DWARF_LARGE 2 /* more than DWARF_MAX_BYTES, than BYTES.room, than is left of limits */
int dwarf_file_open(const struct elf_bytes *bytes, struct dwarf_file **ret);
/* What several files share, valid as long as they. */
struct dwarf_limits {
	uint64_t left; /* bytes that are brought (BYTES.need), counted down: none is brought beyond
			*/
	/* Asked now and then; true: nothing more is found. NULL: nobody to ask. */
	bool (*enough)(void *userdata);
	void *userdata;
};
/* So, within LIMITS; NULL: none but those of one file. */
int dwarf_file_open_within(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			   struct dwarf_file **ret);
void dwarf_file_free(struct dwarf_file *f);
/* What lies at ADDRESS, as the file counts addresses: ret[0] the innermost function and ADDRESS's
 * own line, each further one that into which the one before was inlined, and the line of that call.
 * The number of frames, at most MAX; 0: nothing is known of it. */
size_t dwarf_file_find(struct dwarf_file *f, uint64_t address, struct dwarf_frame *ret, size_t max);
