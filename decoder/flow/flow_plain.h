/*
 * Plain packets: what flow_nodes.c (to the hot loop) and flow_back.c (back from it) share. Part of
 * the walk (flow_private.h).
 */
#pragma once

#include "decoder/flow/flow_private.h"

#define FLOW_MARGIN 16u /* bytes that the hot loop may look at behind its limit */

struct flow_room {
	size_t steps, times, walks;
};

struct flow_plain {
	struct node_walk walk;
	uint64_t context; /* of the return addresses */
	uint8_t mode;
	bool known;	/* there are any */
	uint64_t until; /* the last time that was asked for holds up to there */
	struct flow_time time;
	/* The batch's. */
	size_t n_steps, n_times, n_walks;
	/* Room, and for one step and one time more: there is, a batch that is not open takes, and
	 * this one. */
	struct flow_room has, few, max;
	/* Its steps: these, or those of pieces (flow_ahead.c); NULL: none yet. */
	const uint32_t *base;
	uint32_t *steps;
	struct flow_time *times;
	struct flow_walk *walks;
	struct node_point *points;
};

/* flow_back.c */
/* What p->walk came to, which began in code of PLACE: the walk goes on from there, and the batch
 * has it. */
void flow_take_walk(struct flow *f, struct flow_plain *p, uint32_t place);
