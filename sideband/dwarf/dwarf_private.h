/*
 * The inside of struct dwarf_file: sections, spans of addresses, units, line tables, limits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <elfutils/libdw.h>

#include "sideband/dwarf/dwarf.h"

/* --- Sections: dwarf_section.c --- */

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
	void *owned; /* the unpacked bytes; NULL: the bytes lie in the file */
};

struct dwarf_sections {
	struct dwarf_section of[DWARF_N_SECTIONS];
	uint64_t *room; /* as in elf_bytes */
	uint64_t taken; /* bytes taken from ROOM */
};

/* libdw may read so many bytes behind a section. They can be accessed. */
#define DWARF_TAIL 16u
/* Reads the sections. *RET must be freed in any case. 0, -ENOMEM, DWARF_NONE, DWARF_LARGE. */
int dwarf_sections_read(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			struct dwarf_sections *ret);
void dwarf_sections_free(struct dwarf_sections *s);

/* An ELF file in memory that has the sections of DWARF and nothing else, opened by libdw. */
struct dwarf_stub;
/* Borrows the SECTIONS. 0, -ENOMEM, DWARF_NONE. */
int dwarf_stub_new(const struct dwarf_sections *sections, struct dwarf_stub **ret);
void dwarf_stub_free(struct dwarf_stub *s);
Dwarf *dwarf_stub_dwarf(const struct dwarf_stub *s);

/* --- Spans of addresses: dwarf_unit.c --- */

/* [BEGIN, END) belongs to VALUE. */
struct dwarf_span {
	uint64_t begin, end;
	uint64_t reach; /* after sorting: the largest END up to here */
	uint64_t value;
};

/* Spans may nest, and overlap where the linker folded code or left code out. */
struct dwarf_spans {
	struct dwarf_span *items;
	size_t n, capacity;
};

/* Leaves out an empty span. 0 or -ENOMEM. */
int dwarf_spans_add(struct dwarf_spans *s, uint64_t begin, uint64_t end, uint64_t value);
void dwarf_spans_sort(struct dwarf_spans *s);
/* The smallest span around ADDRESS, among those that begin closest before ADDRESS; NULL: none. */
const struct dwarf_span *dwarf_spans_find(const struct dwarf_spans *s, uint64_t address);

/* --- Units and entries: dwarf_unit.c --- */

struct dwarf_unit {
	uint64_t die;		      /* offset of its first entry in .debug_info */
	struct dwarf_spans functions; /* value: offset of the function's entry */
	struct dwarf_lines *lines;    /* NULL: none, or not read */
	bool functions_read, lines_read;
};

struct dwarf_file {
	struct dwarf_sections sections;
	struct dwarf_stub *stub;
	Dwarf *dwarf;
	struct dwarf_unit *units;
	size_t n_units, units_capacity;
	struct dwarf_spans spans; /* value: the unit's index */
	const struct dwarf_limits *limits;
	/* Time: bytes that may still be looked at, and those looked at since LIMITS was asked. */
	uint64_t budget, since_asked;
	unsigned widest; /* the largest number of attributes of an abbreviation */
	size_t n_functions, n_rows, n_name_bytes;
	/* Memory: the heap before the costs that are not measured yet, and the most they can be. */
	uint64_t heap, pending;
	uint64_t n_finds;
};

/* Builds the index of all units. 0, -ENOMEM, DWARF_NONE or DWARF_LARGE. */
int dwarf_units_index(struct dwarf_file *f);
/* The unit around ADDRESS with its functions; NULL: none. */
struct dwarf_unit *dwarf_units_find(struct dwarf_file *f, uint64_t address);
/* Goes from DIE to its sibling, past all entries below DIE. False: DIE was the last one, or a limit
 * is reached. */
bool dwarf_next(struct dwarf_file *f, Dwarf_Die *die);
/* The text of attribute WHICH of DIE; NULL: none, or empty. */
const char *dwarf_text(const struct dwarf_file *f, Dwarf_Die *die, unsigned which);
/* True: the ranges of DIE contain ADDRESS. *ret_any: DIE has ranges. */
bool dwarf_has_address(struct dwarf_file *f, Dwarf_Die *die, uint64_t address, bool *ret_any);

/* --- Limits: dwarf_limits.c --- */

/* Pays for N bytes that are looked at. False: the budget is spent, or LIMITS said enough. */
bool dwarf_pay(struct dwarf_file *f, uint64_t n);
/* Pays for N bytes of entries: each byte may be an entry with as many attributes as any has. */
bool dwarf_pay_entries(struct dwarf_file *f, uint64_t n);
/* Asks LIMITS, after what may have taken long. */
void dwarf_ask_limits(struct dwarf_file *f);
/* This many attributes cost no more than the entry that has them. */
#define DWARF_PLAIN_WIDTH 16u
/* Checks the table at OFFSET of .debug_abbrev before libdw sees it. False: no compiler makes such a
 * table, and each of its entries may be costly. */
bool dwarf_abbrevs_check(struct dwarf_file *f, uint64_t offset);

/* Reserves memory before libdw reads of a unit, maybe for the first time. False: the unit could
 * take too much. */
bool dwarf_memory_for_unit(struct dwarf_file *f);
/* Measures what was taken since, and counts it. */
void dwarf_memory_settle(struct dwarf_file *f);
/* The number of items of SIZE bytes that a growing list may have, at most MAX. */
size_t dwarf_memory_for_list(const struct dwarf_file *f, size_t size, size_t max);
/* Counts BYTES that a list took until F is freed. */
void dwarf_memory_take(struct dwarf_file *f, uint64_t bytes);

/* --- Lines: dwarf_lines.c --- */

/* The lines of the unit at DIE; the caller's. NULL: none. */
struct dwarf_lines *dwarf_lines_read(struct dwarf_file *f, uint64_t die);
void dwarf_lines_free(struct dwarf_lines *l);
/* Fills file, line and column; false: nothing is known. */
bool dwarf_lines_find(struct dwarf_lines *l, uint64_t address, struct dwarf_frame *ret);
/* File number INDEX; NULL: unknown. Borrowed from L. */
const char *dwarf_lines_file(struct dwarf_lines *l, uint64_t index);

/* --- The header of a line table: dwarf_line_header.c --- */

struct dwarf_reader;

/* Texts are borrowed from the sections; NULL: unknown. */
struct dwarf_line_file {
	const char *name;
	uint32_t directory;
	char *joined; /* owned: the name with its directory, once it was asked for */
};

struct dwarf_line_header {
	unsigned version, address_size, offset_size;
	unsigned instruction; /* minimum_instruction_length */
	unsigned line_range, opcode_base;
	int line_base;
	const uint8_t *lengths;	     /* standard_opcode_lengths, opcode_base - 1 of them */
	const char *compilation_dir; /* NULL: unknown */
	const char **directories;    /* number 0 is the compilation directory */
	size_t n_directories, directories_capacity;
	struct dwarf_line_file *files; /* by number */
	size_t n_files, files_capacity;
	size_t max_names; /* the most directories, and the most files */
};

/* Reads the header at which TABLE begins. TABLE ends with the section; afterwards it is the
 * program. *RET must be freed in any case. False: the header cannot be read, or no memory. */
bool dwarf_line_header_read(const struct dwarf_file *f, struct dwarf_reader *table,
			    struct dwarf_line_header *ret);
/* The bytes of memory that H takes. */
uint64_t dwarf_line_header_bytes(const struct dwarf_line_header *h);
void dwarf_line_header_free(struct dwarf_line_header *h);
/* Adds a file that the program defines (DW_LNE_define_file). False: no memory, or too many. */
bool dwarf_line_add_file(struct dwarf_line_header *h, const char *name, uint64_t directory);
/* The name of file INDEX with its directory; NULL: unknown. *ret_size: bytes allocated for it. */
const char *dwarf_line_join(struct dwarf_line_header *h, uint64_t index, size_t *ret_size);

/* --- Reading bytes, never beyond their end --- */

/* Once something was missing, BAD is set, all further values are zero, and no bytes are left. */
struct dwarf_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline size_t dwarf_left(const struct dwarf_reader *r)
{
	return (size_t)(r->end - r->at);
}

static inline bool dwarf_skip(struct dwarf_reader *r, uint64_t n)
{
	if (n > dwarf_left(r)) {
		r->at = r->end;
		r->bad = true;
		return false;
	}
	r->at += n;
	return true;
}

/* A number of SIZE (at most 8) bytes, little-endian. */
static inline uint64_t dwarf_fixed(struct dwarf_reader *r, size_t size)
{
	const uint8_t *at = r->at;
	uint64_t value = 0;

	if (dwarf_skip(r, size))
		memcpy(&value, at, size);
	return value;
}

static inline uint8_t dwarf_byte(struct dwarf_reader *r)
{
	return (uint8_t)dwarf_fixed(r, 1);
}

/* A LEB128 number; bits beyond 64 are lost. *ret_bits: the number of bits; *ret_last: the last
 * byte. */
static inline uint64_t dwarf_leb(struct dwarf_reader *r, unsigned *ret_bits, uint8_t *ret_last)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = dwarf_byte(r);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += shift < 64 ? 7 : 0;
	} while (byte & 0x80);
	*ret_bits = shift;
	*ret_last = byte;
	return value;
}

static inline uint64_t dwarf_unsigned(struct dwarf_reader *r)
{
	unsigned bits;
	uint8_t last;

	return dwarf_leb(r, &bits, &last);
}

static inline int64_t dwarf_signed(struct dwarf_reader *r)
{
	unsigned bits;
	uint8_t last;
	uint64_t value = dwarf_leb(r, &bits, &last);

	if (bits < 64 && (last & 0x40))
		value |= UINT64_MAX << bits;
	return (int64_t)value;
}

/* A string; NULL: it has no end. */
static inline const char *dwarf_string(struct dwarf_reader *r)
{
	const char *text = (const char *)r->at;
	const uint8_t *end = memchr(r->at, 0, dwarf_left(r));

	if (!dwarf_skip(r, end ? (uint64_t)(end - r->at) + 1 : UINT64_MAX))
		return NULL;
	return text;
}
