/*
 * The DWARF of one file: opened for symbols_lines.c, which asks for the functions and lines at an
 * address. The unit around the address is found in an index of all units, the function in one of
 * the unit's functions; both are ours, as .debug_aranges is often not there, or not whole.
 *
 * Every byte is a stranger's: the bytes that are looked at, functions, rows and names are counted,
 * and beyond what is reasonable nothing more is found.
 */
#include "sideband/dwarf/dwarf.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* Bytes of entries that are looked at: each several times at first, and then some for each address
 * that is asked for. What is as large as a whole unit is known once. The worst file takes some
 * seconds for them. */
#define MAX_STEPS  (UINT64_C(1) << 27)
#define MORE_STEPS (UINT64_C(1) << 16)
/* Looking through the heap takes its time. */
#define COUNT_EACH 64u

static int open_file(struct dwarf_file *f, const struct elf_bytes *bytes,
		     struct dwarf_limits *limits)
{
	int r = dwarf_sections_read(bytes, limits, &f->sections);

	if (r == 0)
		r = dwarf_shown_new(&f->sections, &f->shown);
	if (r != 0)
		return r;
	f->dwarf = dwarf_shown_dwarf(f->shown);
	r = dwarf_units_index(f);
	if (r == 0 && f->spans.n == 0)
		r = DWARF_NONE;
	return r;
}

int dwarf_file_open(const struct elf_bytes *bytes, struct dwarf_file **ret)
{
	return dwarf_file_open_within(bytes, NULL, ret);
}

int dwarf_file_open_within(const struct elf_bytes *bytes, struct dwarf_limits *limits,
			   struct dwarf_file **ret)
{
	struct dwarf_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->steps = MAX_STEPS;
	f->limits = limits;
	r = open_file(f, bytes, limits);
	if (r != 0) {
		dwarf_file_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void dwarf_file_free(struct dwarf_file *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_units; i++) {
		free(f->units[i].functions.items);
		dwarf_lines_free(f->units[i].lines);
	}
	free(f->units);
	free(f->spans.items);
	dwarf_shown_free(f->shown);
	dwarf_sections_free(&f->sections);
	free(f);
}

static struct dwarf_lines *lines_of(struct dwarf_file *f, struct dwarf_unit *u)
{
	if (!u->lined)
		u->lines = dwarf_lines_read(f, u->die);
	u->lined = true;
	return u->lines;
}

size_t dwarf_file_find(struct dwarf_file *f, uint64_t address, struct dwarf_frame *ret, size_t max)
{
	/* Names may lie in other units. */
	bool any = max > 0 && (f->n_asked++ % COUNT_EACH != 0 || dwarf_room_for_unit(f));
	struct dwarf_unit *u = any ? dwarf_units_find(f, address) : NULL;
	const struct dwarf_span *function;
	struct dwarf_lines *lines;
	bool known;
	size_t n;

	if (!u)
		return 0;
	f->steps = MIN_OF(f->steps + MORE_STEPS, MAX_STEPS);
	lines = lines_of(f, u);
	function = dwarf_spans_find(&u->functions, address);
	ret[0] = (struct dwarf_frame){0};
	n = function ? dwarf_chain_find(f, function->value, address, lines, ret, max) : 0;
	known = lines && dwarf_lines_find(lines, address, &ret[0]);
	return known && n == 0 ? 1 : n;
}
