/*
 * Numbers the states of address spaces: one number for each space, its generation, what of its
 * memory is known to be unchanged, and which versions of a dump's code may hold. There are no more
 * of them than mapping records in the sideband, images of memory, and versions of dumps; where the
 * time of a stretch is vague, no more than stretches.
 */
#include "decoder/worker/replay/replay.h"

#include <stdlib.h>

#include "proto/base.h"

#define FIRST_CAPACITY 128u

static bool same_versions(struct context_versions a, struct context_versions b)
{
	return a.likely == b.likely && a.first == b.first && a.last == b.last;
}

static uint32_t *find_slot(struct contexts *c, const struct space *space, uint64_t generation,
			   uint64_t since, struct context_versions versions)
{
	size_t mask = c->n_slots - 1, i;
	uint64_t h = space_id(space) * 0x9e3779b97f4a7c15ull ^ generation ^ since << 20 ^
		     ((uint64_t)versions.likely << 42) ^ ((uint64_t)versions.first << 21) ^
		     (uint64_t)versions.last << 10;

	h *= 0xff51afd7ed558ccdull;
	i = (size_t)(h ^ h >> 32) & mask;

	for (; c->slots[i] != 0; i = (i + 1) & mask) {
		const struct context *at = &c->list[c->slots[i]];

		if (at->space == space && at->generation == generation && at->since == since &&
		    same_versions(at->versions, versions))
			break;
	}
	return &c->slots[i];
}

static int grow(struct contexts *c)
{
	size_t capacity = c->capacity ? 2 * c->capacity : FIRST_CAPACITY;
	uint32_t *slots;

	if (capacity > UINT32_MAX / 2)
		return -ENOMEM;
	if (ARRAY_FIT(c->list, capacity) < 0)
		return -ENOMEM;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(c->slots);
	c->slots = slots;
	c->n_slots = 2 * capacity;
	c->capacity = capacity;
	for (size_t i = 1; i < c->n; i++)
		*find_slot(c, c->list[i].space, c->list[i].generation, c->list[i].since,
			   c->list[i].versions) = (uint32_t)i;
	return 0;
}

int contexts_init(struct contexts *c)
{
	*c = (struct contexts){0};
	if (grow(c) < 0) {
		contexts_done(c);
		return -ENOMEM;
	}
	c->list[c->n++] = (struct context){0};
	return 0;
}

void contexts_done(struct contexts *c)
{
	free(c->list);
	free(c->slots);
	*c = (struct contexts){0};
}

int contexts_intern(struct contexts *c, const struct space *space, uint64_t time, uint64_t since,
		    struct context_versions versions, uint32_t *ret)
{
	uint64_t generation = space_generation(space, time);
	uint32_t *slot = find_slot(c, space, generation, since, versions);

	if (*slot == 0) {
		if (c->n == c->capacity) {
			if (grow(c) < 0)
				return -ENOMEM;
			slot = find_slot(c, space, generation, since, versions);
		}
		c->list[c->n] = (struct context){
			.space = space,
			.generation = generation,
			.since = since,
			.versions = versions,
			.time = time,
		};
		*slot = (uint32_t)c->n++;
	}
	*ret = *slot;
	return 0;
}
