/*
 * What a unit's table of abbreviations may cost, before libdw reads it: for each entry libdw goes
 * through all attributes of its abbreviation, while the entry itself may be a single byte; and it
 * looks abbreviations up in a table where numbers can be chosen so that they all collide. Part of
 * dwarf.c. DWARF 5 section 7.5.3.
 */
#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_line.h"

/* Compilers make no more than 40 attributes, and number abbreviations one after another. */
#define MAX_WIDTH  256u
#define MAX_SPARSE 65536u
/* As libdw reads them: of longer ones the rest would be something else to it. */
#define MAX_LEB 10u

static uint64_t number(struct dwarf_reader *r)
{
	const uint8_t *begin = r->at;
	uint64_t value = dwarf_unsigned(r);

	if (r->at - begin > (ptrdiff_t)MAX_LEB)
		r->bad = true;
	return value;
}

/* The attributes of one abbreviation: their number, 0 too where they cannot be read. */
static unsigned width_of(struct dwarf_reader *r)
{
	for (unsigned n = 0; n <= MAX_WIDTH; n++) {
		uint64_t name = number(r), form = number(r);

		if (form == DW_FORM_implicit_const)
			number(r);
		if (r->bad || (name == 0 && form == 0))
			return n;
		/* Not all agree whether that is the end. */
		if (name == 0 || form == 0 || name > UINT32_MAX || form > UINT32_MAX)
			break;
	}
	r->bad = true;
	return 0;
}

/* False: it is none that a compiler makes. */
static bool read_table(struct dwarf_reader *r, unsigned *ret_widest)
{
	uint64_t n = 0, code, largest = 0;
	unsigned width;

	while (dwarf_left(r) > 0 && (code = number(r)) != 0) {
		largest = MAX_OF(largest, code);
		number(r); /* tag */
		dwarf_byte(r);
		width = width_of(r);
		*ret_widest = MAX_OF(*ret_widest, width);
		n++;
	}
	return !r->bad && largest <= n + MAX_SPARSE;
}

bool dwarf_abbrevs_measure(struct dwarf_file *f, uint64_t offset)
{
	const struct dwarf_section *s = &f->sections.of[DWARF_ABBREV];
	struct dwarf_reader r;

	if (offset > s->size)
		return false;
	r = (struct dwarf_reader){s->bytes + offset, s->bytes + s->size, false};
	if (!read_table(&r, &f->widest))
		return false;
	dwarf_step(f, (uint64_t)(r.at - s->bytes) - offset);
	return true;
}
