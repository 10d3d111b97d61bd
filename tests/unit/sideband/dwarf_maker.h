/*
 * Makes DWARF for tests, byte by byte: entries of a few fixed shapes in order, and one line table.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef DWARF_MAKER_BYTES
#define DWARF_MAKER_BYTES (48u << 10)
#endif

struct dwarf_bytes {
	uint8_t bytes[DWARF_MAKER_BYTES];
	size_t n;
};

void dwarf_put(struct dwarf_bytes *b, uint64_t value, size_t size);
void dwarf_put_unsigned(struct dwarf_bytes *b, uint64_t value);
void dwarf_put_signed(struct dwarf_bytes *b, int64_t value);
void dwarf_put_text(struct dwarf_bytes *b, const char *text);

/* Shapes of entries; the values are the numbers of their abbreviations. Texts are in the entry
 * itself, references have four bytes and lead within the unit, and code has a begin and a size. */
enum dwarf_shape {
	SHAPE_END,
	SHAPE_UNIT,	    /* name, directory, begin, size, line table; children */
	SHAPE_FUNCTION,	    /* name, begin, size; children */
	SHAPE_INLINED,	    /* origin, begin, size, file, line, column; children */
	SHAPE_ABSTRACT,	    /* name, linkage name */
	SHAPE_BLOCK,	    /* children */
	SHAPE_CLONE,	    /* origin, begin, size; children */
	SHAPE_ORIGIN,	    /* origin */
	SHAPE_APART,	    /* name and origin in a common file, begin, size; children */
	SHAPE_OLD_SKELETON, /* name of the split unit, its id, begin, size, line table */
	SHAPE_SKELETON,	    /* the same in DWARF 5 */
	SHAPE_BARE,	    /* a unit without attributes; children */
	SHAPE_ELSEWHERE,    /* origin by its offset in .debug_info, begin, size */
	SHAPE_SPACE,	    /* a namespace: name; children */
	SHAPE_LINKED,	    /* a unit: line table; children */
};

enum dwarf_packing { DWARF_PLAIN, DWARF_ZLIB, DWARF_ZSTD, DWARF_OLD /* .zdebug */ };

struct dwarf_maker {
	struct dwarf_bytes info, abbrev, line;
	size_t unit; /* offset of the unit in INFO */
	enum dwarf_packing packing;
	uint64_t claimed;    /* unpacked size in the headers of packed sections; 0: the true size */
	const char *further; /* name of one more section; NULL: none */
	const char *further_text; /* its bytes; zeros follow */
};

/* Begins with .debug_abbrev and the header of a unit of VERSION 4, or 5 with the unit type TYPE. */
void dwarf_maker_init(struct dwarf_maker *m, unsigned version, unsigned type);
/* Begins an entry and returns its offset in the unit. */
uint32_t dwarf_maker_entry(struct dwarf_maker *m, enum dwarf_shape shape);
/* Complete entries. */
void dwarf_maker_unit(struct dwarf_maker *m, uint64_t begin, uint64_t size);
void dwarf_maker_function(struct dwarf_maker *m, const char *name, uint64_t begin, uint64_t size);
void dwarf_maker_inlined(struct dwarf_maker *m, uint32_t origin, uint64_t begin, uint64_t size,
			 unsigned line);
uint32_t dwarf_maker_abstract(struct dwarf_maker *m, const char *name, const char *linkage);
/* Writes the length of the unit. */
void dwarf_maker_end_unit(struct dwarf_maker *m);
/* The header of a line table of DWARF 4 with directory "sub" (1) and files "a.c" (1, in no
 * directory), "b.h" (2, in directory 1) and "/c.h" (3). The end writes the table's length. */
size_t dwarf_maker_lines(struct dwarf_maker *m);
void dwarf_maker_end_lines(struct dwarf_maker *m, size_t begin);
/* Opcodes: a row (the first of a sequence if ADDRESS is not 0), and the end of a sequence. Both go
 * ADVANCE bytes further first. */
void dwarf_maker_row(struct dwarf_maker *m, uint64_t address, unsigned advance, unsigned file,
		     int line_more);
void dwarf_maker_end_sequence(struct dwarf_maker *m, unsigned advance);
/* The ELF file with all of this, the caller's to free. */
uint8_t *dwarf_maker_file(const struct dwarf_maker *m, size_t *ret_size);
