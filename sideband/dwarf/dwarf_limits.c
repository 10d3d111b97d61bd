/*
 * Limits what reading untrusted DWARF costs in time and in memory.
 *
 * Time is counted in bytes that are looked at. Memory counts against elf_bytes.room.
 */
#include <dwarf.h>
#include <malloc.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* --- Time --- */

/* Looked-at bytes between two calls of dwarf_limits.enough(). */
#define ASK_EACH (UINT64_C(1) << 16)

void dwarf_ask_limits(struct dwarf_file *f)
{
	f->since_asked = 0;
	if (f->limits && f->limits->enough && f->limits->enough(f->limits->userdata))
		f->budget = 0;
}

bool dwarf_pay(struct dwarf_file *f, uint64_t n)
{
	f->budget -= MIN_OF(f->budget, n);
	f->since_asked += n;
	if (f->since_asked >= ASK_EACH)
		dwarf_ask_limits(f);
	return f->budget > 0;
}

bool dwarf_pay_entries(struct dwarf_file *f, uint64_t n)
{
	return dwarf_pay(f, n * (1 + f->widest / DWARF_PLAIN_WIDTH));
}

/* --- Abbreviations (DWARF 5 section 7.5.3) ---
 *
 * For each entry libdw goes through all attributes of its abbreviation, while the entry itself may
 * be a single byte. libdw looks abbreviations up in a hash table, and their numbers can be chosen
 * to collide. */

/* Compilers use at most 40 attributes, and number abbreviations one after another. */
#define MAX_WIDTH  256u
#define MAX_SPARSE 65536u
/* The longest number that libdw reads; it would take the rest of a longer one for something else.
 */
#define MAX_LEB 10u

static uint64_t number(struct dwarf_reader *r)
{
	const uint8_t *begin = r->at;
	uint64_t value = dwarf_unsigned(r);

	if (r->at - begin > (ptrdiff_t)MAX_LEB)
		r->bad = true;
	return value;
}

/* Skips the attributes of one abbreviation and returns their number; 0 if they cannot be read. */
static unsigned skip_attributes(struct dwarf_reader *r)
{
	for (unsigned n = 0; n <= MAX_WIDTH; n++) {
		uint64_t name = number(r), form = number(r);

		if (form == DW_FORM_implicit_const)
			number(r);
		if (r->bad || (name == 0 && form == 0))
			return n;
		/* Readers do not agree whether a single zero is the end. */
		if (name == 0 || form == 0 || name > UINT32_MAX || form > UINT32_MAX)
			break;
	}
	r->bad = true;
	return 0;
}

bool dwarf_abbrevs_check(struct dwarf_file *f, uint64_t offset)
{
	const struct dwarf_section *s = &f->sections.of[DWARF_ABBREV];
	uint64_t n = 0, code, largest = 0;
	struct dwarf_reader r;

	if (offset > s->size)
		return false;
	r = (struct dwarf_reader){s->bytes + offset, s->bytes + s->size, false};
	while (dwarf_left(&r) > 0 && (code = number(&r)) != 0) {
		unsigned width;

		largest = MAX_OF(largest, code);
		number(&r);	/* tag */
		dwarf_byte(&r); /* children */
		width = skip_attributes(&r);
		f->widest = MAX_OF(f->widest, width);
		n++;
	}
	if (r.bad || largest > n + MAX_SPARSE)
		return false;
	dwarf_pay(f, (uint64_t)(r.at - s->bytes) - offset);
	return true;
}

/* --- Memory ---
 *
 * libdw makes many bytes of each byte of abbreviations, for each unit again, and ends the process
 * if there is no memory. There must therefore be room for the worst case before libdw is asked for
 * a unit. The size of the heap afterwards shows how much libdw really took. */

/* The most bytes of heap that libdw makes of one byte of abbreviations: each abbreviation has five
 * bytes or more and becomes an entry of a list and two places in a table that doubles (measured:
 * below nine). */
#define ABBREV_COST 12u
/* The other bytes that a unit costs, libdw's, ours and spans. */
#define UNIT_COST 2048u
/* Measuring the heap takes time: it is done when at least so many bytes are pending. */
#define MUCH (UINT64_C(1) << 20)
/* A growing list is up to twice as large as needed, and exists twice while it grows. */
#define GROWING 4u

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

bool dwarf_memory_for_unit(struct dwarf_file *f)
{
	uint64_t cost = f->sections.of[DWARF_ABBREV].size * ABBREV_COST + UNIT_COST;

	if (!f->sections.room)
		return true;
	if (f->pending > 0 && f->pending + cost > MUCH)
		dwarf_memory_settle(f);
	if (f->pending == 0)
		f->heap = heap_bytes();
	f->pending += cost;
	return f->pending <= *f->sections.room;
}

void dwarf_memory_settle(struct dwarf_file *f)
{
	uint64_t heap = f->pending > 0 ? heap_bytes() : 0, taken;

	if (f->pending == 0)
		return;
	f->pending = 0;
	taken = heap > f->heap ? MIN_OF(heap - f->heap, *f->sections.room) : 0;
	*f->sections.room -= taken;
	f->sections.taken += taken;
}

size_t dwarf_memory_for_list(const struct dwarf_file *f, size_t size, size_t max)
{
	return f->sections.room ? (size_t)MIN_OF(max, *f->sections.room / (GROWING * size)) : max;
}

void dwarf_memory_take(struct dwarf_file *f, uint64_t bytes)
{
	if (!f->sections.room)
		return;
	/* dwarf_memory_settle() must not count BYTES among those that libdw took. */
	f->heap += bytes;
	bytes = MIN_OF(bytes, *f->sections.room);
	*f->sections.room -= bytes;
	f->sections.taken += bytes;
}
