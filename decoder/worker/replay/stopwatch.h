/*
 * How long the flows took: processor time and time, from packets to batches and for finding out
 * whose code it is, without what is made of the branches.
 */
#pragma once

#include <stdint.h>

/* All ns. */
struct stopwatch {
	uint64_t cpu, wall;		/* so far */
	uint64_t cpu_since, wall_since; /* of the start */
};

/* W may be NULL: nothing is measured. */
void stopwatch_start(struct stopwatch *w);
void stopwatch_stop(struct stopwatch *w);
