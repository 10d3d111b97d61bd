/*
 * Which lane a stretch belongs to. Used by tally.c and the summary; the report sorts them.
 */
#include "decoder/worker/count/lanes.h"

#include <stdlib.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

#define FIRST_CAPACITY 16u

static size_t hash_thread(const struct timeline_thread *thread)
{
	return (size_t)(((uint64_t)(uintptr_t)thread >> 4) * 0x9e3779b97f4a7c15ull >> 32);
}

static uint32_t *find_slot(struct tally *t, const struct timeline_thread *thread)
{
	size_t mask = t->n_slots - 1, i = hash_thread(thread) & mask;

	for (; t->slots[i] != 0; i = (i + 1) & mask) {
		const struct tally_lane *lane = t->lanes[t->slots[i] - 1];

		if (lane->thread == thread)
			break;
	}
	return &t->slots[i];
}

static int grow(struct tally *t)
{
	size_t i, capacity = t->capacity ? 2 * t->capacity : FIRST_CAPACITY;
	uint32_t *slots;

	if (ARRAY_FIT(t->lanes, capacity) < 0)
		return -ENOMEM;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->n_slots = 2 * capacity;
	t->capacity = capacity;
	for (i = 0; i < t->n_lanes; i++)
		*find_slot(t, t->lanes[i]->thread) = (uint32_t)i + 1;
	return 0;
}

static int add(struct tally *t, const struct timeline_thread *thread)
{
	struct tally_lane *lane;

	if (t->n_lanes == t->capacity && grow(t) < 0)
		return -ENOMEM;
	lane = calloc(1, sizeof(*lane));
	if (lane == NULL)
		return -ENOMEM;
	lane->thread = thread;
	lane->hash = HASH_BASIS;
	lane->function = TALLY_NO_FUNCTION;
	calls_init(&lane->calls);
	*find_slot(t, thread) = (uint32_t)t->n_lanes + 1;
	t->lanes[t->n_lanes++] = lane;
	return 0;
}

int lanes_find(struct tally *t, const struct timeline_thread *thread, struct tally_lane **ret)
{
	uint32_t slot = t->n_slots > 0 ? *find_slot(t, thread) : 0;

	if (slot == 0 && t->n_lanes == TALLY_MAX_LANES) {
		t->lanes_refused++;
		slot = 1;
	}
	if (slot == 0) {
		if (add(t, thread) < 0)
			return -ENOMEM;
		slot = (uint32_t)t->n_lanes;
	}
	*ret = t->lanes[slot - 1];
	return 0;
}

void lanes_done(struct tally *t)
{
	size_t i;

	for (i = 0; i < t->n_lanes; i++) {
		calls_done(&t->lanes[i]->calls);
		free(t->lanes[i]);
	}
	free(t->lanes);
	free(t->slots);
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int lanes_compare_threads(const struct timeline_thread *a, const struct timeline_thread *b)
{
	if (a == b)
		return 0;
	if (a == NULL || b == NULL)
		return a == NULL ? -1 : 1;
	if (a->tid != b->tid)
		return compare_u64(a->tid, b->tid);
	return a->begin != b->begin ? compare_u64(a->begin, b->begin) : compare_u64(a->pid, b->pid);
}

static int compare_lanes(const void *a, const void *b)
{
	const struct tally_lane *x = *(struct tally_lane *const *)a;
	const struct tally_lane *y = *(struct tally_lane *const *)b;

	return lanes_compare_threads(x->thread, y->thread);
}

void lanes_sort(struct tally *t)
{
	/* The table by hash speaks of places; after this nothing is looked up any more. */
	free(t->slots);
	t->slots = NULL;
	t->n_slots = 0;
	qsort(t->lanes, t->n_lanes, sizeof(struct tally_lane *), compare_lanes);
}
