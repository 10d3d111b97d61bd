/*
 * Finds the unit around an address, and the functions of the unit.
 *
 * All units are indexed once; the functions of a unit are read when the unit is first asked for.
 *
 * The room never calls the functions of libdw that look for a split unit by its path:
 * dwarf_attr_integrate() and dwarf_hasattr_integrate(), what is built on them (dwarf_diename(),
 * dwarf_decl_line()), dwarf_cu_info(), dwarf_get_units(), and dwarf_getlocation(). The other
 * functions look for a split unit only from a unit that is itself split, and find none there
 * (elfutils 0.188, libdw/libdw_find_split_unit.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* libdw takes about a kilobyte for each unit. */
#define MAX_UNITS     (1u << 18)
#define MAX_SPANS     (1u << 20)
#define MAX_FUNCTIONS (2u << 20)
/* Nested namespaces and classes. */
#define MAX_DEPTH 32u
/* Costs in looked-at bytes (dwarf_pay()). */
#define RANGE_COST 16u
#define UNIT_COST  256u
#define END_COST   65536u
/* The most bytes of a unit: libdw may look through all of a unit in one call. */
#define MAX_AT_ONCE (UINT64_C(1) << 27)
/* Longer texts count as none. */
#define MAX_TEXT 65536u
/* The number of spans before an address that a search looks at. */
#define MAX_LOOKED 256u

/* --- Spans --- */

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

const struct dwarf_span *dwarf_spans_find(const struct dwarf_spans *s, uint64_t address)
{
	size_t n = FIRST_WHERE(i, s->n, s->items[i].begin > address);
	size_t last = n > MAX_LOOKED ? n - MAX_LOOKED : 0;
	const struct dwarf_span *best = NULL;

	for (size_t i = n; i > last && s->items[i - 1].reach > address; i--) {
		const struct dwarf_span *x = &s->items[i - 1];

		if (x->end > address && (!best || x->end - x->begin <= best->end - best->begin))
			best = x;
	}
	return best;
}

/* --- Entries --- */

bool dwarf_next(struct dwarf_file *f, Dwarf_Die *die)
{
	Dwarf_Die next;
	bool more = dwarf_siblingof(die, &next) == 0;
	/* libdw leaves in NEXT how far it went, unless it went to the end of the unit. */
	uint64_t n = next.addr ? (uint64_t)((const uint8_t *)next.addr - (const uint8_t *)die->addr)
			       : END_COST;

	*die = next;
	return dwarf_pay_entries(f, n) && more;
}

const char *dwarf_text(const struct dwarf_file *f, Dwarf_Die *die, unsigned which)
{
	const struct dwarf_section *info = &f->sections.of[DWARF_INFO];
	Dwarf_Attribute a;
	const char *text;

	if (!dwarf_attr(die, which, &a))
		return NULL;
	/* Nobody has looked for the end of this kind of text yet: neither libdw nor
	 * dwarf_section.c. */
	if (dwarf_whatform(&a) == DW_FORM_string &&
	    !memchr(a.valp, 0, MIN_OF((size_t)(info->bytes + info->size - a.valp), MAX_TEXT)))
		return NULL;
	text = dwarf_formstring(&a);
	return text && text[0] && strnlen(text, MAX_TEXT) < MAX_TEXT ? text : NULL;
}

/* --- Ranges --- */

/* Calls dwarf_ranges(), which goes through a list without ranges in one call. dwarf_ranges() keeps
 * the list's base address in BASE between calls. */
static ptrdiff_t next_range(struct dwarf_file *f, Dwarf_Die *die, ptrdiff_t at, Dwarf_Addr *base,
			    Dwarf_Addr *begin, Dwarf_Addr *end)
{
	ptrdiff_t next = 0;

	if (dwarf_pay_entries(f, RANGE_COST))
		next = dwarf_ranges(die, at, base, begin, end);
	if (next > 1 || (next <= 0 && at == 0 && dwarf_hasattr(die, DW_AT_ranges)))
		dwarf_ask_limits(f);
	return next;
}

/* Adds the ranges of DIE until TO has MAX spans. 0 or -ENOMEM. */
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

/* Adds the functions below DIE. 0 or -ENOMEM. */
static int add_functions(struct dwarf_file *f, struct dwarf_unit *u, Dwarf_Die *die, unsigned depth)
{
	const size_t room = dwarf_memory_for_list(f, sizeof(*u->functions.items), MAX_FUNCTIONS);
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

/* If memory runs out, the unit has the functions that were found before. */
static void read_functions(struct dwarf_file *f, struct dwarf_unit *u)
{
	Dwarf_Die die;

	u->functions_read = true;
	if (dwarf_offdie(f->dwarf, u->die, &die))
		(void)add_functions(f, u, &die, 0);
	f->n_functions += u->functions.n;
	dwarf_memory_take(f, u->functions.capacity * sizeof(*u->functions.items));
	dwarf_spans_sort(&u->functions);
}

/* --- Units --- */

/* Adds the unit whose first entry is at OFFSET, with the spans of its code. 0 or -ENOMEM. */
static int index_unit(struct dwarf_file *f, uint64_t offset)
{
	size_t number = f->n_units, before = f->spans.n;
	struct dwarf_unit *u;
	Dwarf_Die die;
	int tag, r;

	if (!dwarf_offdie(f->dwarf, offset, &die))
		return 0;
	tag = dwarf_tag(&die);
	if (tag != DW_TAG_compile_unit && tag != DW_TAG_skeleton_unit)
		return 0;
	if (ARRAY_RESERVE(f->units, f->units_capacity, f->n_units + 1) < 0)
		return -ENOMEM;
	u = &f->units[f->n_units++];
	*u = (struct dwarf_unit){.die = offset};
	r = add_ranges(f, &die, &f->spans, number, MAX_SPANS);
	if (r < 0 || f->spans.n > before)
		return r;
	/* A unit without ranges of its own has the ranges of its functions. */
	read_functions(f, u);
	for (size_t i = 0; r == 0 && i < u->functions.n && f->spans.n < MAX_SPANS; i++)
		r = dwarf_spans_add(&f->spans, u->functions.items[i].begin,
				    u->functions.items[i].end, number);
	return r;
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
		/* All or nothing: references could lead into units that were left out. */
		if (n == MAX_UNITS || !dwarf_pay(f, UNIT_COST) || !dwarf_memory_for_unit(f))
			r = DWARF_LARGE;
		else if (!dwarf_abbrevs_check(f, abbrevs))
			r = DWARF_NONE;
		else if ((next - at) * (1 + f->widest / DWARF_PLAIN_WIDTH) > MAX_AT_ONCE)
			r = DWARF_LARGE;
		else
			r = index_unit(f, at + header);
		at = next;
	}
	dwarf_memory_settle(f);
	dwarf_spans_sort(&f->spans);
	return r;
}

struct dwarf_unit *dwarf_units_find(struct dwarf_file *f, uint64_t address)
{
	const struct dwarf_span *span = dwarf_spans_find(&f->spans, address);
	struct dwarf_unit *u = span ? &f->units[span->value] : NULL;

	if (u && !u->functions_read) {
		if (!dwarf_memory_for_unit(f))
			return NULL;
		read_functions(f, u);
	}
	return u;
}
