/*
 * The worker's side of the timeline: all records of a bundle, put in order of time and applied with
 * history. The bytes are a stranger's: what does not parse is skipped, and what it may make us
 * remember is limited.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "sideband/timeline/timeline_private.h"

/* A fork copies the parent's mappings, so memory is not in proportion to the records. */
#define MEMORY_LIMIT ((size_t)512 << 20)

struct place {
	uint64_t time;
	uint64_t since; /* of a LOST record: when the lost ones begin; else NOT_LOST */
	size_t offset;
	bool later;
};

#define NOT_LOST UINT64_MAX

/* What was last met of one CPU's rings. */
struct place_cpu {
	uint64_t time; /* of its last record */
	size_t loss;   /* the place of its LOST record, when that was the last; else NO_LOSS */
};

#define NO_LOSS SIZE_MAX

struct places {
	struct place *items;
	size_t n, capacity;
	struct place_cpu *cpus;
	size_t n_losses;
};

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->later != y->later)
		return x->later ? 1 : -1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static struct place *add_place(struct places *p, const struct perfrecord *r, size_t offset)
{
	if (ARRAY_RESERVE(p->items, p->capacity, p->n + 1) < 0)
		return NULL;
	p->items[p->n] = (struct place){.time = r->time,
					.since = NOT_LOST,
					.offset = offset,
					.later = timeline_is_later(r->type, r->time)};
	return &p->items[p->n++];
}

/* A LOST record of a CPU may be stamped a little later than the record that it precedes
 * (kernel/events/ring_buffer.c, __perf_output_begin(), writes it when that one has its time). */
static void follow_loss(struct places *p, struct place_cpu *cpu, uint64_t time)
{
	struct place *loss = &p->items[cpu->loss];

	if (time >= loss->since)
		loss->time = MIN_OF(loss->time, time);
	cpu->loss = NO_LOSS;
}

/* Bounds what was lost by its neighbours of the same CPU. The PT event's own records do not count:
 * they may have come through another ring. */
static void note_neighbours(struct places *p, const struct perfrecord *r, struct place *place)
{
	struct place_cpu *cpu = r->cpu < TIMELINE_MAX_CPUS ? &p->cpus[r->cpu] : NULL;

	if (r->type == PERF_RECORD_LOST && r->u.lost.lost > 0) {
		p->n_losses++;
		place->since = cpu ? MIN_OF(cpu->time, r->time) : 0;
		if (cpu)
			cpu->loss = p->n - 1;
		return;
	}
	if (!cpu || r->time == 0 || r->type == PERF_RECORD_LOST || r->type == PERF_RECORD_AUX ||
	    r->type == PERF_RECORD_ITRACE_START)
		return;
	if (cpu->loss != NO_LOSS)
		follow_loss(p, cpu, r->time);
	cpu->time = r->time;
}

/* Where the records are that parse, in order of arrival. */
static int find_places(const uint8_t *bytes, size_t size, struct places *ret, uint64_t *ret_bad)
{
	struct perfrecord r;
	struct place *place;
	int result;

	for (size_t at = 0; at < size; at += r.size) {
		result = perfrecord_parse(bytes + at, size - at, &r);
		*ret_bad += result < 0;
		/* Without a size there is no next one. */
		if (r.size == 0)
			return 0;
		if (result < 0)
			continue;
		place = add_place(ret, &r, at);
		if (!place)
			return -ENOMEM;
		note_neighbours(ret, &r, place);
	}
	return 0;
}

static void sort(struct places *p)
{
	for (size_t i = 1; i < p->n; i++)
		if (by_time(&p->items[i - 1], &p->items[i]) > 0) {
			qsort(p->items, p->n, sizeof(*p->items), by_time);
			return;
		}
}

static int prepare_trust(struct state *s, const uint8_t *bytes, size_t size, const struct places *p)
{
	CLEANUP_FREE struct silence *silences = calloc(p->n_losses + 1, sizeof(*silences));
	struct perfrecord r;
	size_t n = 0;

	if (!silences)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		const struct place *at = &p->items[i];

		if (at->since == NOT_LOST)
			continue;
		(void)perfrecord_parse(bytes + at->offset, size - at->offset, &r);
		silences[n++] = (struct silence){at->since, at->time, r.cpu};
	}
	return trust_prepare(s, silences, n);
}

static int apply_place(struct state *s, const uint8_t *bytes, size_t size, const struct place *at)
{
	struct perfrecord r;

	/* It parsed before. */
	(void)perfrecord_parse(bytes + at->offset, size - at->offset, &r);
	if (at->since == NOT_LOST)
		return state_apply(s, &r);
	r.time = at->time;
	return state_lose(s, &r, at->since);
}

static int apply_places(struct state *s, const uint8_t *bytes, size_t size, const struct places *p,
			uint64_t *ret_bad)
{
	int result = prepare_trust(s, bytes, size, p);

	if (result < 0)
		return result;
	for (size_t i = 0; i < p->n; i++) {
		result = apply_place(s, bytes, size, &p->items[i]);
		if (result == -ENOMEM && !s->pool.exceeded)
			return -ENOMEM;
		*ret_bad += result < 0;
	}
	return 0;
}

/* One thread started tracing on a CPU and nothing was ever switched there: it has the CPU for
 * itself. */
static void settle_cpus(struct state *s)
{
	for (size_t i = 0; i < s->n_cpus; i++) {
		struct stretch *first = s->cpus[i].stretches.items;

		if (first && !first->uncertain && s->cpus[i].n_switches == 0 &&
		    s->cpus[i].n_starts == 1)
			first->time = 0;
	}
}

static int load(struct timeline *t, const void *records, size_t size, uint64_t *ret_bad)
{
	struct places places = {.cpus = calloc(TIMELINE_MAX_CPUS, sizeof(*places.cpus))};
	int r = places.cpus ? 0 : -ENOMEM;

	for (size_t i = 0; i < TIMELINE_MAX_CPUS && !r; i++)
		places.cpus[i].loss = NO_LOSS;
	if (!r)
		r = find_places(records, size, &places, ret_bad);
	if (!r)
		sort(&places);
	if (!r)
		r = apply_places(&t->state, records, size, &places, ret_bad);
	free(places.items);
	free(places.cpus);
	settle_cpus(&t->state);
	trust_settle(&t->state);
	return r;
}

int timeline_load(const void *records, size_t size, struct timeline **ret, uint64_t *ret_bad)
{
	CLEANUP(timeline_freep) struct timeline *t = calloc(1, sizeof(*t));
	uint64_t bad = 0;

	if (!t)
		return -ENOMEM;
	t->horizon = MANIFEST_ABSENT;
	state_init(&t->state, true, MEMORY_LIMIT);
	if (load(t, records, size, &bad) < 0)
		return -ENOMEM;
	*ret_bad = bad;
	*ret = TAKE_PTR(t);
	return 0;
}
