/*
 * Opens the DWARF of a file, and finds the functions and the line at an address.
 *
 * A search finds the unit, the function of the unit, and then the way down from the function
 * through inlined functions to the innermost one around the address.
 */
#include "sideband/dwarf/dwarf.h"

#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* The budget of looked-at bytes: opening looks at each byte several times, and each search gets
 * some more bytes. The worst file takes some seconds for the whole budget. */
#define MAX_BUDGET (UINT64_C(1) << 27)
#define PER_SEARCH (UINT64_C(1) << 16)
/* Measuring the heap takes time: it is done once in so many searches. */
#define COUNT_EACH 64u
/* Nested blocks and inlined functions. */
#define MAX_DEPTH 256u
/* Nested blocks without ranges, which are searched without knowing whether they hold the address.
 */
#define MAX_BLIND 8u
/* References from an inlined function to its declaration, and on. */
#define MAX_HOPS 16u

/* --- The file --- */

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
	f->budget = MAX_BUDGET;
	f->limits = limits;
	r = dwarf_sections_read(bytes, limits, &f->sections);
	if (r == 0)
		r = dwarf_stub_new(&f->sections, &f->stub);
	if (r == 0) {
		f->dwarf = dwarf_stub_dwarf(f->stub);
		r = dwarf_units_index(f);
	}
	if (r == 0 && f->spans.n == 0)
		r = DWARF_NONE;
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
	dwarf_stub_free(f->stub);
	dwarf_sections_free(&f->sections);
	free(f);
}

/* --- Names --- */

static bool follow(Dwarf_Die *die, unsigned which, Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, which, &a) && dwarf_formref_die(&a, ret);
}

/* The name of the function at DIE; NULL: unknown. An inlined function refers to the function
 * itself, and a method to its declaration, for the name. */
static const char *name_of(const struct dwarf_file *f, const Dwarf_Die *die)
{
	const char *plain = NULL, *linkage = NULL;
	Dwarf_Die at = *die, next;

	for (unsigned i = 0; i < MAX_HOPS && !linkage; i++) {
		linkage = dwarf_text(f, &at, DW_AT_linkage_name);
		if (!linkage)
			linkage = dwarf_text(f, &at, DW_AT_MIPS_linkage_name);
		if (!plain)
			plain = dwarf_text(f, &at, DW_AT_name);
		if (!follow(&at, DW_AT_abstract_origin, &next) &&
		    !follow(&at, DW_AT_specification, &next))
			break;
		at = next;
	}
	return linkage ? linkage : plain;
}

/* --- The chain of inlined functions --- */

struct chain {
	Dwarf_Die dies[MAX_DEPTH + 1]; /* outermost first */
	size_t n;
};

static bool is_block(int tag)
{
	switch (tag) {
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt: return true;
	default: return false;
	}
}

/* Adds the inlined functions below DIE that contain ADDRESS to CHAIN. True: a child of DIE contains
 * ADDRESS. */
static bool descend(struct dwarf_file *f, Dwarf_Die *die, uint64_t address, unsigned depth,
		    unsigned blind, struct chain *chain)
{
	Dwarf_Die child;
	bool more = depth < MAX_DEPTH && dwarf_child(die, &child) == 0;

	for (; more; more = dwarf_next(f, &child)) {
		int tag = dwarf_tag(&child);
		bool inlined = tag == DW_TAG_inlined_subroutine, any, here;

		if (!inlined && !is_block(tag))
			continue;
		here = dwarf_has_address(f, &child, address, &any);
		if (here && inlined)
			chain->dies[chain->n++] = child;
		if (here) {
			descend(f, &child, address, depth + 1, blind, chain);
			return true;
		}
		/* A block without ranges may contain entries that have ranges. */
		if (!any && !inlined && blind < MAX_BLIND &&
		    descend(f, &child, address, depth + 1, blind + 1, chain))
			return true;
	}
	return false;
}

/* --- Frames --- */

static uint32_t number_of(Dwarf_Die *die, unsigned which)
{
	Dwarf_Attribute a;
	Dwarf_Word n;

	if (!dwarf_attr(die, which, &a) || dwarf_formudata(&a, &n) != 0 || n > UINT32_MAX)
		return 0;
	return (uint32_t)n;
}

/* Finds the functions at ADDRESS within the function at DIE, as dwarf_file_find() returns them,
 * with the lines of calls. LINES: NULL if there are none. */
static size_t find_chain(struct dwarf_file *f, uint64_t die, uint64_t address,
			 struct dwarf_lines *lines, struct dwarf_frame *ret, size_t max)
{
	struct chain chain = {.n = 0};
	size_t n = 0;

	if (!dwarf_offdie(f->dwarf, die, &chain.dies[0]))
		return 0;
	chain.n = 1;
	descend(f, &chain.dies[0], address, 0, 0, &chain);
	max = MIN_OF(max, (size_t)DWARF_MAX_FRAMES);
	for (size_t i = chain.n; i-- > 0 && n < max; n++) {
		Dwarf_Die *inlined = n > 0 ? &chain.dies[i + 1] : NULL;
		Dwarf_Attribute a;
		Dwarf_Word file;

		ret[n] = (struct dwarf_frame){.function = name_of(f, &chain.dies[i])};
		if (!inlined)
			continue;
		ret[n].line = number_of(inlined, DW_AT_call_line);
		ret[n].column = number_of(inlined, DW_AT_call_column);
		if (lines && dwarf_attr(inlined, DW_AT_call_file, &a) &&
		    dwarf_formudata(&a, &file) == 0)
			ret[n].file = dwarf_lines_file(lines, file);
	}
	return n;
}

size_t dwarf_file_find(struct dwarf_file *f, uint64_t address, struct dwarf_frame *ret, size_t max)
{
	/* Names may lie in other units, which also take memory. */
	bool room = max > 0 && (f->n_finds++ % COUNT_EACH != 0 || dwarf_memory_for_unit(f));
	struct dwarf_unit *u = room ? dwarf_units_find(f, address) : NULL;
	const struct dwarf_span *function;
	bool known;
	size_t n;

	if (!u)
		return 0;
	f->budget = MIN_OF(f->budget + PER_SEARCH, MAX_BUDGET);
	if (!u->lines_read)
		u->lines = dwarf_lines_read(f, u->die);
	u->lines_read = true;
	function = dwarf_spans_find(&u->functions, address);
	ret[0] = (struct dwarf_frame){0};
	n = function ? find_chain(f, function->value, address, u->lines, ret, max) : 0;
	known = u->lines && dwarf_lines_find(u->lines, address, &ret[0]);
	return known && n == 0 ? 1 : n;
}
