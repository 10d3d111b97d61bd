/*
 * DWARF for tests, written byte by byte: entries of a few fixed shapes, one after another, and one
 * line table.
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

/* The shapes, by their number in .debug_abbrev. All texts are in place, all references are of four
 * bytes within the unit, all code from an address with a size. */
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
	SHAPE_SKELETON,	    /* as one of DWARF 5 */
	SHAPE_BARE,	    /* a unit that says nothing; children */
	SHAPE_ELSEWHERE,    /* origin by address in .debug_info, begin, size */
	SHAPE_SPACE,	    /* a namespace: name; children */
	SHAPE_LINKED,	    /* a unit: line table; children */
};

enum dwarf_packing { DWARF_PLAIN, DWARF_ZLIB, DWARF_ZSTD, DWARF_OLD /* .zdebug */ };

struct dwarf_maker {
	struct dwarf_bytes info, abbrev, line;
	size_t unit; /* where the unit begins */
	enum dwarf_packing packing;
	uint64_t claimed;	  /* what is packed says to be so large; 0: as large as it is */
	const char *further;	  /* name of one more section; NULL: none */
	const char *further_text; /* its bytes, and zeros after them */
};

/* .debug_abbrev, and the head of a unit, which is of VERSION 4, or of 5 with TYPE. */
void dwarf_maker_init(struct dwarf_maker *m, unsigned version, unsigned type);
/* The next entry has such a shape: where it lies in the unit. */
uint32_t dwarf_maker_entry(struct dwarf_maker *m, enum dwarf_shape shape);
/* Entries with all that is in them. */
void dwarf_maker_unit(struct dwarf_maker *m, uint64_t begin, uint64_t size);
void dwarf_maker_function(struct dwarf_maker *m, const char *name, uint64_t begin, uint64_t size);
void dwarf_maker_inlined(struct dwarf_maker *m, uint32_t origin, uint64_t begin, uint64_t size,
			 unsigned line);
uint32_t dwarf_maker_abstract(struct dwarf_maker *m, const char *name, const char *linkage);
/* The unit's length. */
void dwarf_maker_end_unit(struct dwarf_maker *m);
/* The head of a line table of DWARF 4 with directory "sub" (1), files "a.c" (1, of none), "b.h" (2,
 * of 1), "/c.h" (3), and after it its length. */
size_t dwarf_maker_lines(struct dwarf_maker *m);
void dwarf_maker_end_lines(struct dwarf_maker *m, size_t begin);
/* Opcodes: the row (a run's beginning when ADDRESS is not 0), and the end SIZE further on. */
void dwarf_maker_row(struct dwarf_maker *m, uint64_t address, unsigned advance, unsigned file,
		     int line_more);
void dwarf_maker_end_run(struct dwarf_maker *m, unsigned advance);
/* All of it as a file, malloc'ed. */
uint8_t *dwarf_maker_file(const struct dwarf_maker *m, size_t *ret_size);
