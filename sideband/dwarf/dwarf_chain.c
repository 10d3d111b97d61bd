/*
 * What was inlined at an address: the way from a function down to the innermost piece of it that
 * holds the address, and the names of the functions on that way. Part of dwarf.c.
 */
#include <string.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* Blocks and inlined functions in one another; blocks that say nothing, which are gone through
 * without knowing what comes of it. */
#define MAX_DEPTH 256u
#define MAX_BLIND 8u
/* From an inlined function to its declaration, and on. */
#define MAX_HOPS 16u

struct chain {
	Dwarf_Die dies[MAX_DEPTH + 1]; /* the outermost one first */
	size_t n;
};

/* --- Names --- */

static bool follow(Dwarf_Die *die, unsigned which, Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, which, &a) && dwarf_formref_die(&a, ret);
}

/* What the function at DIE was made of says its name: a function that is inlined says where it is
 * itself, and a method what declares it. */
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

/* --- The way down --- */

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

/* Whether a child of DIE holds ADDRESS; then it is on the way, and so are those below it. */
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
		/* A block may leave it to what it holds to say where that is. */
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

/* Where the function at DIE was inlined. */
static void fill_call(Dwarf_Die *die, struct dwarf_lines *lines, struct dwarf_frame *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word file;

	ret->line = number_of(die, DW_AT_call_line);
	ret->column = number_of(die, DW_AT_call_column);
	if (lines && dwarf_attr(die, DW_AT_call_file, &a) && dwarf_formudata(&a, &file) == 0)
		ret->file = dwarf_lines_file(lines, file);
}

size_t dwarf_chain_find(struct dwarf_file *f, uint64_t die, uint64_t address,
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
		ret[n] = (struct dwarf_frame){.function = name_of(f, &chain.dies[i])};
		if (n > 0)
			fill_call(&chain.dies[i + 1], lines, &ret[n]);
	}
	return n;
}
