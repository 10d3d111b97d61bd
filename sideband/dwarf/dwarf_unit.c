/*
 * Which unit holds an address, and which function of it: all units are looked at once, a unit's
 * functions when it is first asked for. Part of dwarf.c.
 *
 * Of libdw what looks for a split unit by its path is not called here or elsewhere:
 * dwarf_attr_integrate() and dwarf_hasattr_integrate() and what stands on them (dwarf_diename(),
 * dwarf_decl_line()), dwarf_cu_info(), dwarf_get_units(), dwarf_getlocation(). What remains does so
 * only from a unit that is itself split, which leads to none
 * (elfutils 0.188, libdw/libdw_find_split_unit.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* libdw has about a kilobyte for each. */
#define MAX_UNITS     (1u << 18)
#define MAX_SPANS     (1u << 20)
#define MAX_FUNCTIONS (2u << 20)
/* Namespaces and classes in one another. */
#define MAX_DEPTH 32u
/* In bytes that are looked at. */
#define RANGE_COST 16u
#define UNIT_COST  256u
#define END_COST   65536u
/* So many attributes of an entry cost no more than the entry. */
#define PLAIN_WIDTH 16u
/* libdw may look through all of a unit at once, and nobody can stop it. */
#define MAX_AT_ONCE (UINT64_C(1) << 27)
/* Somebody else is asked whether it was enough. */
#define ASK_EACH (UINT64_C(1) << 16)
/* Names are no longer. */
#define MAX_TEXT 65536u

/* After what may have taken long. */
static void dwarf_ask_limits(struct dwarf_file *f)
{
	f->until_asked = 0;
	if (f->limits && f->limits->enough && f->limits->enough(f->limits->userdata))
		f->steps = 0;
}

bool dwarf_step(struct dwarf_file *f, uint64_t n)
{
	f->steps -= MIN_OF(f->steps, n);
	f->until_asked += n;
	if (f->until_asked >= ASK_EACH)
		dwarf_ask_limits(f);
	return f->steps > 0;
}

/* So, of entries: each byte of them may be as many attributes as there are in any. */
static bool dwarf_step_entries(struct dwarf_file *f, uint64_t n)
{
	return dwarf_step(f, n * (1 + f->widest / PLAIN_WIDTH));
}

bool dwarf_next(struct dwarf_file *f, Dwarf_Die *die)
{
	Dwarf_Die next;
	bool more = dwarf_siblingof(die, &next) == 0;
	/* Where it ends it says how far it went, unless that was to the end of the unit. */
	uint64_t n = next.addr ? (uint64_t)((const uint8_t *)next.addr - (const uint8_t *)die->addr)
			       : END_COST;

	*die = next;
	return dwarf_step_entries(f, n) && more;
}

const char *dwarf_text(const struct dwarf_file *f, Dwarf_Die *die, unsigned which)
{
	const struct dwarf_section *info = &f->sections.of[DWARF_INFO];
	Dwarf_Attribute a;
	const char *text;

	if (!dwarf_attr(die, which, &a))
		return NULL;
	/* The one kind of text that libdw does not look for the end of, and we did not. */
	if (dwarf_whatform(&a) == DW_FORM_string &&
	    !memchr(a.valp, 0, MIN_OF((size_t)(info->bytes + info->size - a.valp), MAX_TEXT)))
		return NULL;
	text = dwarf_formstring(&a);
	return text && text[0] && strnlen(text, MAX_TEXT) < MAX_TEXT ? text : NULL;
}

/* --- Ranges --- */

/* As dwarf_ranges(), which goes through all of a list that says nothing at once. dwarf_ranges()
 * keeps the list's base address in BASE from one call to the next. */
static ptrdiff_t next_range(struct dwarf_file *f, Dwarf_Die *die, ptrdiff_t at, Dwarf_Addr *base,
			    Dwarf_Addr *begin, Dwarf_Addr *end)
{
	ptrdiff_t next = 0;

	if (dwarf_step_entries(f, RANGE_COST))
		next = dwarf_ranges(die, at, base, begin, end);
	if (next > 1 || (next <= 0 && at == 0 && dwarf_hasattr(die, DW_AT_ranges)))
		dwarf_ask_limits(f);
	return next;
}

/* 0 or -ENOMEM. */
static int add_ranges(struct dwarf_file *f, Dwarf_Die *die, struct dwarf_spans *to, uint64_t value,
		      size_t max)
{
	Dwarf_Addr base = 0, begin, end;
	ptrdiff_t at = 0;

	while (to->n < max && (at = next_range(f, die, at, &base, &begin, &end)) > 0)
		if (dwarf_spans_add(to, begin, end, value) < 0)
			return -ENOMEM;
	return 0;
}

bool dwarf_has_address(struct dwarf_file *f, Dwarf_Die *die, uint64_t address, bool *ret_any)
{
	Dwarf_Addr base = 0, begin, end;
	ptrdiff_t at = 0;

	*ret_any = false;
	while ((at = next_range(f, die, at, &base, &begin, &end)) > 0) {
		*ret_any = true;
		if (begin <= address && address < end)
			return true;
	}
	return false;
}

/* --- Functions --- */

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subprogram: return true;
	default: return false;
	}
}

/* Those below DIE. 0 or -ENOMEM. */
static int add_functions(struct dwarf_file *f, struct dwarf_unit *u, Dwarf_Die *die, unsigned depth)
{
	const size_t room = dwarf_room_for_list(f, sizeof(*u->functions.items), MAX_FUNCTIONS);
	const size_t max = room - MIN_OF(room, f->n_functions);
	Dwarf_Die child;
	bool more = dwarf_child(die, &child) == 0;
	int r = 0;

	for (; r == 0 && more; more = dwarf_next(f, &child)) {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			r = add_ranges(f, &child, &u->functions, dwarf_dieoffset(&child), max);
		if (r == 0 && depth < MAX_DEPTH && may_hold_functions(tag))
			r = add_functions(f, u, &child, depth + 1);
	}
	return r;
}

/* Without memory, with what there is. */
static void walk(struct dwarf_file *f, struct dwarf_unit *u)
{
	Dwarf_Die die;

	u->walked = true;
	if (dwarf_offdie(f->dwarf, u->die, &die))
		(void)add_functions(f, u, &die, 0);
	f->n_functions += u->functions.n;
	dwarf_room_take(f, u->functions.capacity * sizeof(*u->functions.items));
	dwarf_spans_sort(&u->functions);
}

/* --- Units --- */

static struct dwarf_unit *add_unit(struct dwarf_file *f, uint64_t die)
{
	if (ARRAY_RESERVE(f->units, f->units_capacity, f->n_units + 1) < 0)
		return NULL;
	f->units[f->n_units] = (struct dwarf_unit){.die = die};
	return &f->units[f->n_units++];
}

/* One that does not say where its code lies has it where its functions are. 0 or -ENOMEM. */
static int add_spans(struct dwarf_file *f, struct dwarf_unit *u, Dwarf_Die *die)
{
	size_t before = f->spans.n, number = (size_t)(u - f->units);
	int r = add_ranges(f, die, &f->spans, number, MAX_SPANS);

	if (r < 0 || f->spans.n > before)
		return r;
	walk(f, u);
	for (size_t i = 0; r == 0 && i < u->functions.n && f->spans.n < MAX_SPANS; i++)
		r = dwarf_spans_add(&f->spans, u->functions.items[i].begin,
				    u->functions.items[i].end, number);
	return r;
}

static int index_unit(struct dwarf_file *f, uint64_t offset)
{
	struct dwarf_unit *u;
	Dwarf_Die die;
	int tag;

	if (!dwarf_offdie(f->dwarf, offset, &die))
		return 0;
	tag = dwarf_tag(&die);
	if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
		return 0;
	u = add_unit(f, offset);
	return u ? add_spans(f, u, &die) : -ENOMEM;
}

int dwarf_units_index(struct dwarf_file *f)
{
	Dwarf_Off at = 0, next, abbrevs;
	size_t header;
	int r = 0;

	for (size_t n = 0; r == 0; n++) {
		if (dwarf_next_unit(f->dwarf, at, &next, &header, NULL, &abbrevs, NULL, NULL, NULL,
				    NULL) != 0)
			break;
		/* What remained could be reached by references. */
		if (n == MAX_UNITS || !dwarf_step(f, UNIT_COST) || !dwarf_room_for_unit(f))
			r = DWARF_LARGE;
		else if (!dwarf_abbrevs_measure(f, abbrevs))
			r = DWARF_NONE;
		else if ((next - at) * (1 + f->widest / PLAIN_WIDTH) > MAX_AT_ONCE)
			r = DWARF_LARGE;
		else
			r = index_unit(f, at + header);
		at = next;
	}
	dwarf_room_settle(f);
	dwarf_spans_sort(&f->spans);
	return r;
}

struct dwarf_unit *dwarf_units_find(struct dwarf_file *f, uint64_t address)
{
	const struct dwarf_span *span = dwarf_spans_find(&f->spans, address);
	struct dwarf_unit *u = span ? &f->units[span->value] : NULL;

	if (u && !u->walked && !dwarf_room_for_unit(f))
		return NULL;
	if (u && !u->walked)
		walk(f, u);
	return u;
}
