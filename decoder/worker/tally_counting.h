/*
 * A walk that is being counted: tally_steps.c (all of it), tally_quick.c (what nearly all steps
 * are).
 */
#pragma once

#include "decoder/worker/steps_clock.h"
#include "decoder/worker/tally_cache.h"
#include "decoder/worker/tally_private.h"

struct counting {
	struct tally *t;
	struct tally_lane *lane;
	const struct replay_stretch *s;
	struct tally_cache *cache;
	const struct nodes *nodes;
	const uint32_t *steps; /* the batch's */
	struct steps_clock clock;
	bool settled; /* branches at the time that holds now tell nothing new */
	uint32_t place, view;
	uint64_t base;	/* where the place begins */
	uint64_t insns; /* of the function that runs; neither it nor the lane was told */
	uint64_t items; /* of the walk */
	bool open;	/* the next piece goes on with a run */
	bool returned;	/* the stack has not been told of the last branch, a return */
};

/* Where STEP begins. */
static inline uint64_t counting_start(const struct counting *c, uint32_t step)
{
	return c->base + c->nodes->list[node_of_step(step)].offset;
}

/* tally_quick.c: counts the steps from *AT up to END, of one time that is settled; *AT then is the
 * first one that it knows nothing of. */
void tally_quick(struct counting *c, uint32_t *at, uint32_t end);
