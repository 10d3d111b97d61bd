/*
 * What the files of dwarf.c share: the sections as they were had, spans of addresses, units with
 * their functions, line tables. libdw sees a file that we made up, of these sections alone, so
 * there is nothing that would lead it to another file; and of its calls only those are used that
 * look for no split unit (dwarf_units.c says which do).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "sideband/dwarf/dwarf.h"

/* --- Sections --- */

/* clang-format off */
enum dwarf_section_kind {
	DWARF_INFO, DWARF_ABBREV, DWARF_LINE, DWARF_STR, DWARF_LINE_STR, DWARF_RANGES,
	DWARF_RNGLISTS, DWARF_ADDR, DWARF_STR_OFFSETS,
	DWARF_N_SECTIONS
};
/* clang-format on */

struct dwarf_section {
	const uint8_t *bytes;
	size_t size; /* 0: there is none */
	void *owned; /* it was unpacked into this; NULL: it lies in the file */
};

struct dwarf_sections {
	struct dwarf_section of[DWARF_N_SECTIONS];
	uint64_t *room; /* as in elf_bytes */
	uint64_t taken; /* from ROOM */
};

/* 0, -ENOMEM, DWARF_NONE, DWARF_LARGE. *RET is to be freed in any case. What can be read goes on
 * for DWARF_TAIL bytes behind each section: libdw reads some. */
#define DWARF_TAIL 16u
int dwarf_sections_read(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			struct dwarf_sections *ret);
void dwarf_sections_free(struct dwarf_sections *s);
/* The same for libdw. */
struct dwarf_shown;
/* 0, -ENOMEM, DWARF_NONE. */
int dwarf_shown_new(const struct dwarf_sections *sections, struct dwarf_shown **ret);
void dwarf_shown_free(struct dwarf_shown *s);
Dwarf *dwarf_shown_dwarf(const struct dwarf_shown *s);

/* --- Spans --- */

/* [BEGIN, END) belongs to VALUE. */
struct dwarf_span {
	uint64_t begin, end;
	uint64_t reach; /* the largest END up to here, once sorted */
	uint64_t value;
};

struct dwarf_spans {
	struct dwarf_span *items;
	size_t n, capacity;
};

/* An empty one is left out. 0 or -ENOMEM. */
int dwarf_spans_add(struct dwarf_spans *s, uint64_t begin, uint64_t end, uint64_t value);
void dwarf_spans_sort(struct dwarf_spans *s);
/* The smallest one around ADDRESS, of those that begin closest before it; NULL: there is none. */
const struct dwarf_span *dwarf_spans_find(const struct dwarf_spans *s, uint64_t address);

/* --- Units --- */

struct dwarf_unit {
	uint64_t die;		      /* where in .debug_info its first entry lies */
	struct dwarf_spans functions; /* value: where the function's entry lies */
	struct dwarf_lines *lines;    /* NULL: none, or not read */
	bool walked, lined;	      /* functions, lines were looked for */
};

struct dwarf_file {
	struct dwarf_sections sections;
	struct dwarf_shown *shown;
	Dwarf *dwarf;
	struct dwarf_unit *units;
	size_t n_units, units_capacity;
	struct dwarf_spans spans; /* value: the unit's number */
	const struct dwarf_limits *limits;
	/* What is left of what one file may cost. */
	uint64_t steps, until_asked;
	unsigned widest; /* attributes of an abbreviation */
	size_t n_functions, n_rows, n_names;
	/* Of memory: the heap before what was not counted yet, and how much that may be. */
	uint64_t heap, pending;
	uint64_t n_asked;
};

/* --- Room --- */

/* Before libdw reads of a unit, which it may do for the first time. False: it could be too much. */
bool dwarf_room_for_unit(struct dwarf_file *f);
/* Counts what was taken since. */
void dwarf_room_settle(struct dwarf_file *f);
/* How many things of SIZE bytes in a list that grows there may be, at most MAX. */
size_t dwarf_room_for_list(const struct dwarf_file *f, size_t size, size_t max);
/* So many bytes were taken for such, until F is freed. */
void dwarf_room_take(struct dwarf_file *f, uint64_t bytes);

/* --- Steps --- */

/* N more bytes are looked at; false: it was enough. */
bool dwarf_step(struct dwarf_file *f, uint64_t n);
/* The table at OFFSET of .debug_abbrev, before libdw sees it. False: it is none that a compiler
 * makes, and may make each entry costly. */
bool dwarf_abbrevs_measure(struct dwarf_file *f, uint64_t offset);

/* From DIE to the one behind it and all that is below it. False: it was the last one, or enough. */
bool dwarf_next(struct dwarf_file *f, Dwarf_Die *die);
/* The text of attribute WHICH of DIE: NULL: it has none, or an empty one. */
const char *dwarf_text(const struct dwarf_file *f, Dwarf_Die *die, unsigned which);
/* 0, -ENOMEM, DWARF_NONE or DWARF_LARGE. */
int dwarf_units_index(struct dwarf_file *f);
/* The unit around ADDRESS with its functions; NULL: there is none. */
struct dwarf_unit *dwarf_units_find(struct dwarf_file *f, uint64_t address);
/* Whether the ranges of DIE hold ADDRESS; *ret_any: it has ranges at all. */
bool dwarf_has_address(struct dwarf_file *f, Dwarf_Die *die, uint64_t address, bool *ret_any);

/* --- The chain --- */

/* The functions at ADDRESS within the function at DIE, as dwarf_file_find(); files by LINES. */
size_t dwarf_chain_find(struct dwarf_file *f, uint64_t die, uint64_t address,
			struct dwarf_lines *lines, struct dwarf_frame *ret, size_t max);

/* --- Lines --- */

/* Those of the unit at DIE. NULL: there are none. */
struct dwarf_lines *dwarf_lines_read(struct dwarf_file *f, uint64_t die);
void dwarf_lines_free(struct dwarf_lines *l);
/* Fills file, line and column; false: nothing is known. */
bool dwarf_lines_find(struct dwarf_lines *l, uint64_t address, struct dwarf_frame *ret);
/* File number INDEX; NULL: unknown. Borrowed as long as L. */
const char *dwarf_lines_file(struct dwarf_lines *l, uint64_t index);
