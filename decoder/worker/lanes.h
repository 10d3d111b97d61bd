/*
 * The table of lanes inside a tally.
 */
#pragma once

#include <stddef.h>

#include "decoder/worker/tally.h"

/* The lane of THREAD on CPU (index), new or known; the first one made is the one that all share
 * when there are too many. 0 or -ENOMEM. */
int lanes_find(struct tally *t, const struct timeline_thread *thread, size_t cpu,
	       struct tally_lane **ret);
void lanes_done(struct tally *t);
/* The lanes of one thread that executed anything, newest last: *ret_end is beyond its last; LANES
 * is sorted by lanes_sort. */
void lanes_sort(struct tally *t);
