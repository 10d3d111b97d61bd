/*
 * The table of cells behind the map. Filled by skim.c, read by skim_rank.c. Consecutive samples are
 * mostly in the same cell or in one of a few, so that the table is looked into less than once a
 * sample. Bounded: what exceeds the table is counted in its first cell and said.
 */
#include "decoder/worker/skim/skim_map.h"

#include <stdlib.h>

#include "proto/base.h"

#define FIRST_CAPACITY 1024u

static uint64_t mix(const struct skim_cell *c)
{
	uint64_t h = (uint64_t)(uintptr_t)c->thread * 0x9e3779b97f4a7c15ull;

	h ^= ((uint64_t)c->function << 32 | c->slice) * 0xff51afd7ed558ccdull;
	h = (h ^ ((uint64_t)c->cpu << 1 | c->some)) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 31;
}

static bool is_same(const struct skim_cell *a, const struct skim_cell *b)
{
	return a->function == b->function && a->thread == b->thread && a->slice == b->slice &&
	       a->cpu == b->cpu && a->some == b->some;
}

static uint32_t *find_slot(struct skim_map *m, const struct skim_cell *key)
{
	size_t mask = m->n_slots - 1, i = (size_t)mix(key) & mask;

	for (; m->slots[i] != 0; i = (i + 1) & mask)
		if (is_same(&m->cells[m->slots[i] - 1], key))
			break;
	return &m->slots[i];
}

static int grow(struct skim_map *m)
{
	size_t i, capacity = m->capacity ? 2 * m->capacity : FIRST_CAPACITY;
	uint32_t *slots;

	if (ARRAY_FIT(m->cells, capacity) < 0)
		return -ENOMEM;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(m->slots);
	m->slots = slots;
	m->n_slots = 2 * capacity;
	m->capacity = capacity;
	for (i = 0; i < m->n_cells; i++)
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

/* The cell at hand, remembering: a thread is in few functions at a time. */
static int find_now(struct skim_map *m, size_t *ret)
{
	struct skim_recent *recent = &m->recent[m->now.function & (SKIM_RECENT - 1)];
	int r;

	*ret = recent->cell;
	if (recent->round == m->round && recent->function == m->now.function)
		return 0;
	r = find_cell(m, &m->now, ret);
	/* What is counted elsewhere is said each time. */
	if (r == 0 && *ret != 0)
		*recent = (struct skim_recent){m->round, m->now.function, (uint32_t)*ret};
	return r;
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

/* Ticks a slice. */
static uint64_t width(const struct skim_map *m)
{
	return (m->last - m->first) / SKIM_SLICES + 1;
}

uint64_t skim_map_slice(const struct skim_map *m, uint32_t i)
{
	return m->first + i * width(m);
}

/* What is outside, as times may jump, is counted at the edge. */
static void take_slice(struct skim_map *m, uint64_t tsc)
{
	uint64_t within = MAX_OF(MIN_OF(tsc, m->last), m->first);

	m->now.slice = SKIM_NO_SLICE;
	m->slice_from = m->slice_until = 0;
	if (m->first == 0 || tsc == 0)
		return;
	m->now.slice = (uint32_t)((within - m->first) / width(m));
	if (tsc < m->first || tsc > m->last)
		return;
	m->slice_from = skim_map_slice(m, m->now.slice);
	m->slice_until = skim_map_slice(m, m->now.slice + 1);
}

/* What S and what was at hand before have in common may be remembered. */
static void take_round(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		       const struct skim_owner *owner)
{
	const struct timeline_thread *thread =
		owner->thread != NULL ? owner->thread : owner->process;
	uint32_t some = owner->thread == NULL && owner->process != NULL;

	if (thread == m->now.thread && some == m->now.some && cpu == m->now.cpu &&
	    s->tsc_lo >= m->slice_from && s->tsc_lo < m->slice_until)
		return;
	m->now.thread = thread;
	m->now.some = some;
	m->now.cpu = (uint32_t)cpu;
	take_slice(m, s->tsc_lo);
	m->round++;
}

static int take_function(struct skim_map *m, const struct skim_sample *s,
			 const struct skim_owner *owner)
{
	struct functions_span *span = &m->span;
	int r = 0;

	m->now.function = 0;
	if (owner->guest)
		return 0;
	if (owner->context != span->context || s->ip < span->lo || s->ip >= span->hi)
		r = functions_find(&m->functions, owner->context, s->ip, span);
	m->now.function = span->function;
	return r;
}

int skim_map_add(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		 const struct skim_owner *owner)
{
	int r;

	skim_map_end(m, s->offset);
	m->since = s->offset;
	/* Where tracing is off, nobody is anywhere. */
	if (!s->has_ip)
		return 0;
	take_round(m, cpu, s, owner);
	r = take_function(m, s, owner);
	if (r == 0)
		r = find_now(m, &m->at);
	if (r == 0)
		m->cells[m->at].samples++;
	return r;
}

void skim_map_end(struct skim_map *m, uint64_t offset)
{
	if (m->at < m->n_cells && offset > m->since)
		m->cells[m->at].bytes += offset - m->since;
	m->at = SIZE_MAX;
}
