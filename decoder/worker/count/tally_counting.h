/*
 * A walk that is being counted: tally_steps.c (all of it), tally_quick.c (what nearly all steps
 * are).
 */
#pragma once

#include "decoder/worker/count/steps_clock.h"
#include "decoder/worker/count/tally_cache.h"
#include "decoder/worker/count/tally_private.h"

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

/* The time that holds for the step at AT. */
static inline void counting_reach(struct counting *c, uint32_t at)
{
	while (steps_clock_until(&c->clock) <= at) {
		steps_clock_next(&c->clock);
		c->settled = false;
	}
}

/* Behind STEP, which is no NODE_STEP_PLACE, nor the walk's last one. */
static inline void counting_pass(struct counting *c, uint32_t step)
{
	if (!c->clock.begun)
		c->clock.begun = !steps_is_go(c->nodes, step);
}

/* tally_steps.c: tells the time of items in the function that runs: BEFORE of them before the
 * first decision or target, which is one if FIRST says so. The lane knows of that function. */
void counting_tell(struct counting *c, unsigned int items, unsigned int before, bool first);

/* tally_quick.c: counts the steps from *AT up to END; *AT then is the first one that it knows
 * nothing of. There is a step at END. */
void tally_quick(struct counting *c, uint32_t *at, uint32_t end);
