/*
 * Which code of a dump lay at an address at a time.
 *
 * The ends of all pieces of code divide the addresses into cells. A tree over the cells has each
 * piece in the few nodes that together make up its cells, in order of time. The piece that a cell
 * had at a time is the newest of those in the nodes above the cell, so a question takes log^2 n
 * steps, whatever the dump says.
 *
 * Only pieces that replace others begin a new version, and only if that was late enough to matter:
 * a place that never had other code needs no time.
 */
#include "sideband/symbols/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

/* A piece of code that is asked for has at most so many cells on each side of the address. */
#define MAX_CELLS 64u
#define NONE	  UINT32_MAX

struct jitcode {
	const struct jitdump_load *loads;
	uint32_t n;
	uint32_t *versions; /* of each load; never falls */
	uint64_t *lo, *hi;  /* when version I + 1 began, perf ns */
	uint32_t n_versions;
	uint32_t doubted; /* loads before this one have versions that say too little */
	uint64_t *ends;	  /* of the cells: cell I is [ENDS[I], ENDS[I + 1]) */
	uint32_t n_cells;
	/* Node I has the loads [FIRST[I], FIRST[I + 1]) of LISTS. The nodes of the cells come
	 * behind N_CELLS others. */
	uint32_t *first, *lists;
	uint32_t end; /* as of jitcode_end */
	bool whole;
};

/* --- The tree --- */

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int make_cells(struct jitcode *c)
{
	uint32_t n = 0;

	c->ends = calloc(2 * (size_t)c->n + 1, sizeof(*c->ends));
	if (!c->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		c->ends[2 * i] = c->loads[i].address;
		c->ends[2 * i + 1] = c->loads[i].address + c->loads[i].size;
	}
	qsort(c->ends, 2 * (size_t)c->n, sizeof(*c->ends), by_number);
	for (uint32_t i = 0; i < 2 * c->n; i++)
		if (n == 0 || c->ends[n - 1] != c->ends[i])
			c->ends[n++] = c->ends[i];
	c->n_cells = n > 0 ? n - 1 : 0;
	return 0;
}

/* NONE: before all cells, or behind them. */
static uint32_t cell_at(const struct jitcode *c, uint64_t address)
{
	uint32_t n = c->n_cells > 0 ? FIRST_WHERE(i, c->n_cells + 1, c->ends[i] > address) : 0;

	return n == 0 || n > c->n_cells ? NONE : n - 1;
}

/* The nodes of LOAD. Returns how many; at most 64. */
static unsigned nodes_of(const struct jitcode *c, uint32_t load, uint32_t ret[static 64])
{
	const struct jitdump_load *l = &c->loads[load];
	uint32_t a = cell_at(c, l->address) + c->n_cells;
	uint32_t b = cell_at(c, l->address + l->size - 1) + c->n_cells + 1;
	unsigned n = 0;

	for (; a < b; a /= 2, b /= 2) {
		if (a & 1)
			ret[n++] = a++;
		if (b & 1)
			ret[n++] = --b;
	}
	return n;
}

static int make_tree(struct jitcode *c)
{
	const size_t n_nodes = 2 * (size_t)c->n_cells;
	CLEANUP_FREE uint32_t *at = calloc(n_nodes + 2, sizeof(*at));
	uint32_t nodes[64];

	c->first = calloc(n_nodes + 2, sizeof(*c->first));
	if (!c->first || !at)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++)
		for (unsigned k = nodes_of(c, i, nodes); k-- > 0;)
			c->first[nodes[k] + 1]++;
	for (size_t i = 0; i <= n_nodes; i++)
		c->first[i + 1] += c->first[i];
	memcpy(at, c->first, (n_nodes + 1) * sizeof(*at));
	c->lists = calloc((size_t)c->first[n_nodes] + 1, sizeof(*c->lists));
	if (!c->lists)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++)
		for (unsigned k = nodes_of(c, i, nodes); k-- > 0;)
			c->lists[at[nodes[k]]++] = i;
	return 0;
}

/* --- Versions --- */

/* The oldest load of each cell, and then of each node, in *RET. */
static int find_oldest(const struct jitcode *c, uint32_t **ret)
{
	uint32_t *oldest = calloc(2 * (size_t)c->n_cells + 2, sizeof(*oldest));

	if (!oldest)
		return -ENOMEM;
	for (uint32_t i = 1; i < 2 * c->n_cells; i++) {
		uint32_t own = c->first[i] < c->first[i + 1] ? c->lists[c->first[i]] : NONE;

		oldest[i] = i > 1 ? MIN_OF(oldest[i / 2], own) : own;
	}
	for (uint32_t i = c->n_cells; i-- > 1;)
		oldest[i] = MIN_OF(oldest[2 * i], oldest[2 * i + 1]);
	*ret = oldest;
	return 0;
}

/* Whether an older load has a cell of LOAD. */
static bool replaces(const struct jitcode *c, const uint32_t *oldest, uint32_t load)
{
	uint32_t nodes[64];

	for (unsigned k = nodes_of(c, load, nodes); k-- > 0;)
		if (oldest[nodes[k]] < load)
			return true;
	return false;
}

static int make_versions(struct jitcode *c, const struct jitcode_clock *clock)
{
	CLEANUP_FREE uint32_t *oldest = NULL;
	CLEANUP_FREE uint8_t *begins = calloc((size_t)c->n + 1, 1);
	uint32_t n = 0, skip;
	uint64_t lo, hi;

	if (!begins || find_oldest(c, &oldest) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		clock->ns(clock->userdata, c->loads[i].time, &lo, &hi);
		begins[i] = hi > clock->begin && (!c->whole || replaces(c, oldest, i));
		n += begins[i];
	}
	skip = n > JITCODE_MAX_VERSIONS ? n - JITCODE_MAX_VERSIONS : 0;
	c->versions = calloc((size_t)c->n + 1, sizeof(*c->versions));
	c->lo = calloc((size_t)n + 1, sizeof(*c->lo));
	c->hi = calloc((size_t)n + 1, sizeof(*c->hi));
	if (!c->versions || !c->lo || !c->hi)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		if (begins[i] && skip > 0) {
			skip--;
			c->doubted = i + 1;
		} else if (begins[i]) {
			clock->ns(clock->userdata, c->loads[i].time, &c->lo[c->n_versions],
				  &c->hi[c->n_versions]);
			c->n_versions++;
		}
		c->versions[i] = c->n_versions;
	}
	return 0;
}

/* Behind the last record there may be others, which the compiler had not written yet. */
static void find_end(struct jitcode *c, const struct jitdump *dump,
		     const struct jitcode_clock *clock)
{
	uint64_t lo, hi;

	c->end = JITCODE_FOREVER;
	if (clock->complete || jitdump_is_closed(dump))
		return;
	clock->ns(clock->userdata, jitdump_last(dump), &lo, &hi);
	/* A version of its own: nothing begins there, but all before it is known. */
	c->lo[c->n_versions] = lo;
	c->hi[c->n_versions] = hi;
	c->end = ++c->n_versions;
}

int jitcode_new(const struct jitdump *dump, const struct jitcode_clock *clock, struct jitcode **ret)
{
	struct jitcode *c = calloc(1, sizeof(*c));
	size_t n;
	int r;

	if (!c)
		return -ENOMEM;
	c->loads = jitdump_loads(dump, &n);
	c->n = (uint32_t)n;
	c->whole = jitdump_is_whole(dump);
	r = make_cells(c);
	if (r == 0)
		r = make_tree(c);
	if (r == 0)
		r = make_versions(c, clock);
	if (r < 0) {
		jitcode_free(c);
		return r;
	}
	find_end(c, dump, clock);
	*ret = c;
	return 0;
}

void jitcode_free(struct jitcode *c)
{
	if (!c)
		return;
	free(c->versions);
	free(c->lo);
	free(c->hi);
	free(c->ends);
	free(c->first);
	free(c->lists);
	free(c);
}

uint32_t jitcode_versions(const struct jitcode *c)
{
	return c->n_versions + 1;
}

uint32_t jitcode_at(const struct jitcode *c, uint64_t time)
{
	return FIRST_WHERE(i, c->n_versions, c->lo[i] + (c->hi[i] - c->lo[i]) / 2 > time);
}

void jitcode_within(const struct jitcode *c, uint64_t lo, uint64_t hi, uint32_t *ret_first,
		    uint32_t *ret_last)
{
	*ret_first = FIRST_WHERE(i, c->n_versions, c->hi[i] > lo);
	*ret_last = FIRST_WHERE(i, c->n_versions, c->lo[i] > hi);
	*ret_last = MAX_OF(*ret_first, *ret_last);
}

uint32_t jitcode_end(const struct jitcode *c)
{
	return c->end;
}

/* --- Questions --- */

/* What CELL has in a version. */
struct found {
	uint32_t load; /* NONE: nothing */
	uint32_t since, until;
};

static struct found find_in_cell(const struct jitcode *c, uint32_t version, uint32_t cell)
{
	struct found f = {NONE, 0, JITCODE_FOREVER};
	uint32_t oldest = NONE, next = NONE;

	for (uint32_t i = cell + c->n_cells; i > 0; i /= 2) {
		const uint32_t *list = c->lists + c->first[i];
		uint32_t n = c->first[i + 1] - c->first[i];
		uint32_t at = FIRST_WHERE(k, n, c->versions[list[k]] > version);

		if (n > 0)
			oldest = MIN_OF(oldest, list[0]);
		if (at > 0 && (f.load == NONE || list[at - 1] > f.load))
			f.load = list[at - 1];
		if (at < n)
			next = MIN_OF(next, list[at]);
	}
	/* Before the first code there was none, so whatever ran there is the first. */
	if (f.load == NONE && c->whole && oldest != NONE) {
		f.load = oldest;
		next = NONE;
		for (uint32_t i = cell + c->n_cells; i > 0; i /= 2) {
			const uint32_t *list = c->lists + c->first[i];
			uint32_t n = c->first[i + 1] - c->first[i];
			uint32_t at = FIRST_WHERE(k, n, list[k] > oldest);

			if (at < n)
				next = MIN_OF(next, list[at]);
		}
	}
	if (f.load == NONE)
		return f;
	f.since = c->whole && f.load == oldest ? 0 : c->versions[f.load];
	f.until = next == NONE ? JITCODE_FOREVER : c->versions[next];
	if (f.load < c->doubted && f.load != oldest)
		f.until = 0; /* never certain */
	return f;
}

static bool are_alike(struct found a, struct found b)
{
	return a.load == b.load && a.since == b.since && a.until == b.until;
}

bool jitcode_find(const struct jitcode *c, uint32_t version, uint64_t address,
		  struct jitcode_piece *ret)
{
	uint32_t cell = cell_at(c, address), first, last;
	struct found f;

	if (cell == NONE)
		return false;
	f = find_in_cell(c, version, cell);
	if (f.load == NONE)
		return false;
	for (first = cell; first > 0 && cell - first < MAX_CELLS;) {
		if (!are_alike(f, find_in_cell(c, version, first - 1)))
			break;
		first--;
	}
	for (last = cell; last + 1 < c->n_cells && last - cell < MAX_CELLS; last++)
		if (!are_alike(f, find_in_cell(c, version, last + 1)))
			break;
	*ret = (struct jitcode_piece){
		.load = &c->loads[f.load],
		.begin = c->ends[first],
		.end = c->ends[last + 1],
		.since = f.since,
		.until = f.until,
		.newest = f.until == JITCODE_FOREVER,
	};
	return true;
}

void jitcode_gap(const struct jitcode *c, uint32_t version, uint64_t address, uint64_t *ret_begin,
		 uint64_t *ret_end)
{
	uint32_t cell = cell_at(c, address), first = cell, last = cell;

	*ret_begin = 0;
	*ret_end = UINT64_MAX;
	if (c->n_cells == 0)
		return;
	if (cell == NONE && address < c->ends[0]) {
		*ret_end = c->ends[0];
	} else if (cell == NONE) {
		*ret_begin = c->ends[c->n_cells];
	} else {
		while (first > 0 && cell - first < MAX_CELLS &&
		       find_in_cell(c, version, first - 1).load == NONE)
			first--;
		while (last + 1 < c->n_cells && last - cell < MAX_CELLS &&
		       find_in_cell(c, version, last + 1).load == NONE)
			last++;
		*ret_begin = c->ends[first];
		*ret_end = c->ends[last + 1];
	}
}
