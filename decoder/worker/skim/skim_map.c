/*
 * The table of cells behind the map, and rankings of its cells.
 *
 * Consecutive samples are mostly in the same cell or in one of a few: the table is looked into less
 * often than once a sample. The first cell counts the samples that have no place in the table, and
 * "cut" says how many they are.
 */
#include "decoder/worker/skim/skim_private.h"

#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "proto/base.h"

#define FIRST_CAPACITY 1024u

static uint32_t *find_slot(struct skim_map *m, const struct skim_cell *key)
{
	uint64_t h = (uint64_t)(uintptr_t)key->thread * 0x9e3779b97f4a7c15ull;
	size_t mask = m->n_slots - 1, i;

	h ^= ((uint64_t)key->function << 32 | key->slice) * 0xff51afd7ed558ccdull;
	h = (h ^ ((uint64_t)key->cpu << 1 | key->some)) * 0xc4ceb9fe1a85ec53ull;
	for (i = (size_t)(h ^ h >> 31) & mask; m->slots[i] != 0; i = (i + 1) & mask) {
		const struct skim_cell *c = &m->cells[m->slots[i] - 1];

		if (c->function == key->function && c->thread == key->thread &&
		    c->slice == key->slice && c->cpu == key->cpu && c->some == key->some)
			break;
	}
	return &m->slots[i];
}

static int grow(struct skim_map *m)
{
	size_t capacity = m->capacity ? 2 * m->capacity : FIRST_CAPACITY;
	uint32_t *slots;

	if (ARRAY_FIT(m->cells, capacity) < 0)
		return -ENOMEM;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(m->slots);
	m->slots = slots;
	m->n_slots = 2 * capacity;
	m->capacity = capacity;
	for (size_t i = 0; i < m->n_cells; i++)
		*find_slot(m, &m->cells[i]) = (uint32_t)i + 1;
	return 0;
}

static int find_cell(struct skim_map *m, const struct skim_cell *key, size_t *ret)
{
	uint32_t *slot = find_slot(m, key);

	if (*slot == 0 && m->n_cells == SKIM_MAX_CELLS) {
		m->refused++;
		*ret = 0;
		return 0;
	}
	if (*slot == 0) {
		if (m->n_cells == m->capacity) {
			if (grow(m) < 0)
				return -ENOMEM;
			slot = find_slot(m, key);
		}
		m->cells[m->n_cells] = *key;
		*slot = (uint32_t)++m->n_cells;
	}
	*ret = *slot - 1;
	return 0;
}

int skim_map_init(struct skim_map *m, const struct replay *r, uint64_t first, uint64_t last)
{
	const struct skim_cell rest = {.slice = SKIM_NO_SLICE};
	size_t at;

	*m = (struct skim_map){.first = first, .last = last, .at = SIZE_MAX, .round = 1};
	if (functions_init(&m->functions, r) < 0)
		return -ENOMEM;
	return grow(m) < 0 ? -ENOMEM : find_cell(m, &rest, &at);
}

void skim_map_done(struct skim_map *m)
{
	functions_done(&m->functions);
	free(m->cells);
	free(m->slots);
	*m = (struct skim_map){0};
}

/* The ticks of a slice. */
static uint64_t width(const struct skim_map *m)
{
	return (m->last - m->first) / SKIM_SLICES + 1;
}

uint64_t skim_map_slice(const struct skim_map *m, uint32_t i)
{
	return m->first + i * width(m);
}

/* Sets thread, CPU and slice of the sample; begins a new round if one of them changes. */
static void take_round(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		       const struct skim_owner *owner)
{
	const struct timeline_thread *thread = owner->thread ? owner->thread : owner->process;
	uint32_t some = !owner->thread && owner->process;

	if (thread == m->now.thread && some == m->now.some && cpu == m->now.cpu &&
	    s->tsc_lo >= m->slice_from && s->tsc_lo < m->slice_until)
		return;
	m->now.thread = thread;
	m->now.some = some;
	m->now.cpu = (uint32_t)cpu;
	m->now.slice = SKIM_NO_SLICE;
	m->slice_from = m->slice_until = 0;
	if (m->first != 0 && s->tsc_lo != 0) {
		/* A time outside, as times may jump, is counted in the first or last slice. */
		uint64_t within = MAX_OF(MIN_OF(s->tsc_lo, m->last), m->first);

		m->now.slice = (uint32_t)((within - m->first) / width(m));
		if (within == s->tsc_lo) {
			m->slice_from = skim_map_slice(m, m->now.slice);
			m->slice_until = skim_map_slice(m, m->now.slice + 1);
		}
	}
	m->round++;
}

int skim_map_add(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		 const struct skim_owner *owner)
{
	struct functions_span *span = &m->span;
	struct skim_recent *recent;
	int r = 0;

	skim_map_end(m, s->offset);
	m->since = s->offset;
	/* Where tracing is off, no code runs. */
	if (!s->has_ip)
		return 0;
	take_round(m, cpu, s, owner);
	m->now.function = 0;
	if (!owner->guest) {
		if (owner->context != span->context || s->ip < span->lo || s->ip >= span->hi)
			r = functions_find(&m->functions, owner->context, s->ip, span);
		m->now.function = span->function;
	}
	if (r < 0)
		return r;
	/* A thread is in few functions at a time, so their cells are remembered. */
	recent = &m->recent[m->now.function & (SKIM_RECENT - 1)];
	m->at = recent->cell;
	if (recent->round != m->round || recent->function != m->now.function) {
		r = find_cell(m, &m->now, &m->at);
		if (r < 0)
			return r;
		/* The first cell is not remembered: find_cell() must count each sample there as
		 * refused. */
		if (m->at != 0)
			*recent = (struct skim_recent){m->round, m->now.function, (uint32_t)m->at};
	}
	m->cells[m->at].samples++;
	return 0;
}

void skim_map_end(struct skim_map *m, uint64_t offset)
{
	if (m->at < m->n_cells && offset > m->since)
		m->cells[m->at].bytes += offset - m->since;
	m->at = SIZE_MAX;
}

/* --- Rankings: sorted by key, then by bytes within each group, then by group --- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_keys(const struct skim_cell *a, const struct skim_cell *b, unsigned int by)
{
	int r = 0;

	if ((by & SKIM_BY_SLICE) != 0)
		r = compare_u64(a->slice, b->slice);
	if (r == 0 && (by & SKIM_BY_CPU) != 0)
		r = compare_u64(a->cpu, b->cpu);
	if (r == 0 && (by & SKIM_BY_THREAD) != 0)
		r = tally_compare_threads(a->thread, b->thread);
	if (r == 0 && (by & SKIM_BY_THREAD) != 0)
		r = compare_u64(a->some, b->some);
	if (r == 0 && (by & SKIM_BY_FUNCTION) != 0)
		r = compare_u64(a->function, b->function);
	return r;
}

struct order {
	unsigned int group, row;
};

static int by_key(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	int r = compare_keys(a, b, o->group);

	return r != 0 ? r : compare_keys(a, b, o->row);
}

/* The greatest first. */
static int compare_sums(const struct skim_cell *a, const struct skim_cell *b)
{
	return a->bytes != b->bytes ? compare_u64(b->bytes, a->bytes)
				    : compare_u64(b->samples, a->samples);
}

static int by_bytes(const void *a, const void *b, void *order)
{
	const struct order *o = order;
	int r = compare_sums(a, b);

	return r != 0 ? r : compare_keys(a, b, o->row);
}

static int groups_by_bytes(const void *a, const void *b, void *order)
{
	const struct skim_group *x = a, *y = b;
	const struct order *o = order;
	bool placed = (o->group & (SKIM_BY_SLICE | SKIM_BY_CPU)) != 0;
	int r = placed ? 0 : compare_sums(&x->sum, &y->sum);

	return r != 0 ? r : compare_keys(&x->sum, &y->sum, o->group);
}

static void add(struct skim_cell *to, const struct skim_cell *c)
{
	to->samples += c->samples;
	to->bytes += c->bytes;
}

/* Adds up the rows with the same key. */
static void merge_rows(struct skim_ranking *r, struct order *order)
{
	size_t n = 0;

	qsort_r(r->rows, r->n_rows, sizeof(r->rows[0]), by_key, order);
	for (size_t i = 0; i < r->n_rows; i++) {
		if (n > 0 && by_key(&r->rows[n - 1], &r->rows[i], order) == 0)
			add(&r->rows[n - 1], &r->rows[i]);
		else
			r->rows[n++] = r->rows[i];
	}
	r->n_rows = n;
}

int skim_rank(const struct skim_map *m, unsigned int group, unsigned int row,
	      struct skim_ranking *ret)
{
	struct order order = {group, row};
	struct skim_group *g = NULL;

	*ret = (struct skim_ranking){0};
	ret->rows = calloc(m->n_cells + 1, sizeof(*ret->rows));
	if (!ret->rows)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_cells; i++)
		if (m->cells[i].samples > 0)
			ret->rows[ret->n_rows++] = m->cells[i];
	merge_rows(ret, &order);
	/* There are mostly far fewer rows than cells. */
	(void)ARRAY_FIT(ret->rows, ret->n_rows);
	ret->groups = calloc(ret->n_rows + 1, sizeof(*ret->groups));
	if (!ret->groups)
		return -ENOMEM;
	for (size_t i = 0; i < ret->n_rows; i++) {
		if (!g || compare_keys(&g->sum, &ret->rows[i], group) != 0) {
			g = &ret->groups[ret->n_groups++];
			*g = (struct skim_group){.sum = ret->rows[i], .first = i, .n = 1};
		} else {
			add(&g->sum, &ret->rows[i]);
			g->n++;
		}
	}
	for (size_t i = 0; i < ret->n_groups; i++)
		qsort_r(ret->rows + ret->groups[i].first, ret->groups[i].n, sizeof(ret->rows[0]),
			by_bytes, &order);
	qsort_r(ret->groups, ret->n_groups, sizeof(ret->groups[0]), groups_by_bytes, &order);
	return 0;
}

void skim_ranking_done(struct skim_ranking *r)
{
	free(r->rows);
	free(r->groups);
	*r = (struct skim_ranking){0};
}
