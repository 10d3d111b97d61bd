/*
 * What DWARF takes of memory, against what it may (elf_bytes.room). libdw makes of each byte of
 * abbreviations many of its own, for each unit anew, and where there is no memory it ends the
 * process. So there has to be room for the worst before it is asked for a unit, and what it took is
 * looked for in the heap afterwards. Part of dwarf.c.
 */
#include <malloc.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* Bytes of the heap that libdw makes at most of one of abbreviations: each of five bytes or more
 * becomes an entry of a list, and two places in a table that doubles (measured: below nine). */
#define ABBREV_COST 12u
/* Of a unit, besides: libdw's, ours, and spans. */
#define UNIT_COST 2048u
/* The heap is looked through for no less. */
#define MUCH (UINT64_C(1) << 20)
/* A list that grows is twice as large as it need be, and there twice while it does. */
#define GROWING 4u

static uint64_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

bool dwarf_room_for_unit(struct dwarf_file *f)
{
	uint64_t cost = f->sections.of[DWARF_ABBREV].size * ABBREV_COST + UNIT_COST;

	if (!f->sections.room)
		return true;
	if (f->pending > 0 && f->pending + cost > MUCH)
		dwarf_room_settle(f);
	if (f->pending == 0)
		f->heap = heap_bytes();
	f->pending += cost;
	return f->pending <= *f->sections.room;
}

void dwarf_room_settle(struct dwarf_file *f)
{
	uint64_t heap = f->pending > 0 ? heap_bytes() : 0, taken;

	if (f->pending == 0)
		return;
	f->pending = 0;
	taken = heap > f->heap ? MIN_OF(heap - f->heap, *f->sections.room) : 0;
	*f->sections.room -= taken;
	f->sections.taken += taken;
}

size_t dwarf_room_for_list(const struct dwarf_file *f, size_t size, size_t max)
{
	return f->sections.room ? (size_t)MIN_OF(max, *f->sections.room / (GROWING * size)) : max;
}

void dwarf_room_take(struct dwarf_file *f, uint64_t bytes)
{
	if (!f->sections.room)
		return;
	/* It is none of what libdw took. */
	f->heap += bytes;
	bytes = MIN_OF(bytes, *f->sections.room);
	*f->sections.room -= bytes;
	f->sections.taken += bytes;
}
