/*
 * From a walk's times to those of branches. Used by the tally in ptsnap-decode.
 */
#include "decoder/worker/count/steps_clock.h"

#include "proto/base.h"

/* Whether what is told first from the step at AT on is a target; those have but one time. */
static bool begins_with_target(const struct steps_clock *c, uint32_t at)
{
	for (; at < c->end; at++) {
		uint32_t step = c->steps[at];

		if ((step & 15u) != NODE_STEP_PLACE && !steps_is_go(c->nodes, step))
			return (step & 15u) == NODE_STEP_TARGET;
	}
	return false;
}

/* PAST: how early what was told before may have been. */
static void begin_time(struct steps_clock *c, uint64_t past)
{
	const struct flow_time *t = c->time;
	uint64_t hi = t->first_hi;

	if (hi != t->hi && begins_with_target(c, t->step))
		hi = t->hi;
	c->begun = false;
	c->direct = (struct steps_when){MIN_OF(past, hi), hi};
	c->first = (struct steps_when){t->lo, hi};
	c->rest = (struct steps_when){t->lo, t->hi};
}

void steps_clock_next(struct steps_clock *c)
{
	uint64_t past = c->time->lo;

	c->time++;
	begin_time(c, past);
}

void steps_clock_begin(struct steps_clock *c, const struct nodes *nodes,
		       const struct flow_batch *batch, const struct flow_walk *walk, uint32_t at)
{
	const struct flow_time *first = batch->times + walk->first_time;
	uint32_t i;

	*c = (struct steps_clock){
		.nodes = nodes,
		.steps = batch->steps,
		.time = first + walk->n_times - 1,
		.last = first + walk->n_times - 1,
		.end = walk->first + walk->n,
	};
	while (c->time > first && c->time->step > at)
		c->time--;
	begin_time(c, c->time > first ? c->time[-1].lo : walk->before);
	for (i = c->time->step; i < at && !c->begun; i++)
		c->begun =
			(c->steps[i] & 15u) != NODE_STEP_PLACE && !steps_is_go(nodes, c->steps[i]);
}
