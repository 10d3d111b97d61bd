/*
 * What dwarf_lines.c and dwarf_line_header.c share: bytes read one after another, never beyond
 * their end, and the header of a line table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sideband/dwarf/dwarf_private.h"

/* --- Bytes --- */

/* After something was not there, all that is read is zero, and nothing is left. */
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

/* SIZE (at most 8) bytes, little-endian. */
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

/* LEB128; bits beyond 64 are lost. RET_BITS: how many there were, RET_LAST: the byte they end with.
 */
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

/* NULL: it does not end. */
static inline const char *dwarf_string(struct dwarf_reader *r)
{
	const char *text = (const char *)r->at;
	const uint8_t *end = memchr(r->at, 0, dwarf_left(r));

	if (!dwarf_skip(r, end ? (uint64_t)(end - r->at) + 1 : UINT64_MAX))
		return NULL;
	return text;
}

/* --- The header --- */

/* Texts are borrowed from the sections; NULL: unknown. */
struct dwarf_line_file {
	const char *name;
	uint32_t directory;
	char *joined; /* owned: with its directory, once somebody asked */
};

struct dwarf_line_header {
	unsigned version, address_size, offset_size;
	unsigned instruction, line_range, opcode_base;
	int line_base;
	const uint8_t *lengths;	  /* of opcode_base - 1 */
	const char *compiled_in;  /* NULL: unknown */
	const char **directories; /* number 0 is the one compiled in */
	size_t n_directories, directories_capacity;
	struct dwarf_line_file *files; /* by number */
	size_t n_files, files_capacity;
	size_t max_names; /* directories, and files */
};

/* TABLE begins at the header, and ends with the section; afterwards it is the program's. False: it
 * is none that can be read, or there is no memory. *RET is to be freed in any case. */
bool dwarf_line_header_read(const struct dwarf_file *f, struct dwarf_reader *table,
			    struct dwarf_line_header *ret);
/* Of memory. */
uint64_t dwarf_line_header_bytes(const struct dwarf_line_header *h);
void dwarf_line_header_free(struct dwarf_line_header *h);
/* One that the program brings (DW_LNE_define_file). */
bool dwarf_line_add_file(struct dwarf_line_header *h, const char *name, uint64_t directory);
/* The file's name with its directory, *ret_size bytes of which were got for it; NULL: unknown. */
const char *dwarf_line_join(struct dwarf_line_header *h, uint64_t index, size_t *ret_size);
