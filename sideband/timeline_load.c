/*
 * The worker's side of the timeline: all records of a bundle, put in order of time and applied with
 * history. The bytes are a stranger's: what does not parse is skipped, and what it may make us
 * remember is limited.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "proto/manifest.h"
#include "sideband/timeline_private.h"

/* A fork copies the parent's mappings, so memory is not in proportion to the records. */
#define MEMORY_LIMIT ((size_t)512 << 20)

struct place {
	uint64_t time;
	size_t offset;
};

struct places {
	struct place *items;
	size_t n, capacity;
};

static int by_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int add_place(struct places *p, uint64_t time, size_t offset)
{
	if (p->n == p->capacity) {
		size_t more = p->capacity ? 2 * p->capacity : 1024;
		struct place *grown = reallocarray(p->items, more, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		p->items = grown;
		p->capacity = more;
	}
	p->items[p->n++] = (struct place){.time = time, .offset = offset};
	return 0;
}

/* Where the records are that parse, in order of arrival. */
static int find_places(const uint8_t *bytes, size_t size, struct places *ret, uint64_t *ret_bad)
{
	struct perfrecord r;
	int result;

	for (size_t at = 0; at < size; at += r.size) {
		result = perfrecord_parse(bytes + at, size - at, &r);
		*ret_bad += result < 0;
		/* Without a size there is no next one. */
		if (r.size == 0)
			return 0;
		if (result == 0 && add_place(ret, r.time, at) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool is_sorted(const struct places *p)
{
	for (size_t i = 1; i < p->n; i++)
		if (p->items[i].time < p->items[i - 1].time)
			return false;
	return true;
}

static int apply_places(struct timeline *t, const uint8_t *bytes, size_t size,
			const struct places *p, uint64_t *ret_bad)
{
	struct perfrecord r;
	int result;

	for (size_t i = 0; i < p->n; i++) {
		size_t at = p->items[i].offset;

		/* It parsed before. */
		(void)perfrecord_parse(bytes + at, size - at, &r);
		result = state_apply(&t->state, &r);
		if (result == -ENOMEM && !t->state.pool.exceeded)
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

		if (first && s->cpus[i].n_switches == 0 && s->cpus[i].n_starts == 1)
			first->time = 0;
	}
}

static int load(struct timeline *t, const void *records, size_t size, uint64_t *ret_bad)
{
	struct places places = {0};
	int r = find_places(records, size, &places, ret_bad);

	if (r == 0 && places.n > 0) {
		if (!is_sorted(&places))
			qsort(places.items, places.n, sizeof(*places.items), by_time);
		r = apply_places(t, records, size, &places, ret_bad);
	}
	free(places.items);
	settle_cpus(&t->state);
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
