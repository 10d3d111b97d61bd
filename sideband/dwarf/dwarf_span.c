/*
 * Spans of addresses in order, of units, of functions and of runs of lines. They may lie in one
 * another, and over one another where something was folded or left out by the linker. Part of
 * dwarf.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* So many that begin before an address are looked at. */
#define MAX_LOOKED 256u

int dwarf_spans_add(struct dwarf_spans *s, uint64_t begin, uint64_t end, uint64_t value)
{
	if (begin >= end)
		return 0;
	if (ARRAY_RESERVE(s->items, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	s->items[s->n++] = (struct dwarf_span){begin, end, 0, value};
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct dwarf_span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

void dwarf_spans_sort(struct dwarf_spans *s)
{
	uint64_t reach = 0;

	if (s->n > 1)
		qsort(s->items, s->n, sizeof(*s->items), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		reach = MAX_OF(reach, s->items[i].end);
		s->items[i].reach = reach;
	}
}

/* The number of those that begin at or before ADDRESS. */
static size_t count_before(const struct dwarf_spans *s, uint64_t address)
{
	return FIRST_WHERE(i, s->n, s->items[i].begin > address);
}

const struct dwarf_span *dwarf_spans_find(const struct dwarf_spans *s, uint64_t address)
{
	size_t n = count_before(s, address);
	size_t last = n > MAX_LOOKED ? n - MAX_LOOKED : 0;
	const struct dwarf_span *best = NULL;

	for (size_t i = n; i > last && s->items[i - 1].reach > address; i--) {
		const struct dwarf_span *x = &s->items[i - 1];

		if (x->end > address && (!best || x->end - x->begin <= best->end - best->begin))
			best = x;
	}
	return best;
}
