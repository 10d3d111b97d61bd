/*
 * When the pieces of a walk's steps were executed: the interval that the stepping walk would give
 * each branch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/count/steps.h"

struct steps_when {
	uint64_t lo, hi;
};

struct steps_clock {
	const struct nodes *nodes;
	const uint32_t *steps;		     /* the batch's */
	const struct flow_time *time, *last; /* the one that holds, the walk's last one */
	uint32_t end;			     /* of the walk's steps */
	bool begun;			     /* a decision or target of that time was used */
	struct steps_when direct, first, rest;
};

/* NODE_GO: nothing tells of it. */
static inline bool steps_is_go(const struct nodes *nodes, uint32_t step)
{
	return (step & 15u) == NODE_STEP_TARGET &&
	       NODE_EDGE_KIND(nodes_self(nodes, node_of_step(step))) == NODE_GO;
}

/* In front of the step at AT (index into the batch's steps), one of WALK's. */
void steps_clock_begin(struct steps_clock *c, const struct nodes *nodes,
		       const struct flow_batch *batch, const struct flow_walk *walk, uint32_t at);
/* The next time holds from here on. There is one. */
void steps_clock_next(struct steps_clock *c);

/* The step that holds no more. */
static inline uint32_t steps_clock_until(const struct steps_clock *c)
{
	return c->time == c->last ? c->end : c->time[1].step;
}

/* Of a branch of a step for which the time holds, as in struct steps_piece. */
static inline const struct steps_when *steps_clock_when(const struct steps_clock *c,
							unsigned int decided, bool direct)
{
	if (c->begun || decided > 1)
		return &c->rest;
	if (direct)
		return decided == 0 ? &c->direct : &c->rest;
	return &c->first;
}
