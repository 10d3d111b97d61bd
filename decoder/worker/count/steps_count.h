/*
 * How much walks executed: instructions and branches, for the flow's statistics. Each kind
 * of step is looked through once.
 */
#pragma once

#include "decoder/worker/count/steps_table.h"
#include "decoder/worker/replay/replay.h"

struct steps_count {
	const struct nodes *nodes; /* whose steps these are */
	struct steps_table table;
};

void steps_count_done(struct steps_count *c);
/* Tells the flow of S what its walks executed. 0 or -ENOMEM. */
int steps_count_stretch(struct steps_count *c, const struct replay_stretch *s);
