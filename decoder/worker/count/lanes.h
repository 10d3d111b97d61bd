/*
 * The table of lanes inside a tally.
 */
#pragma once

#include <stddef.h>

#include "decoder/worker/count/tally.h"

/* The lane of THREAD, new or known; the first one made is the one that all share when there are too
 * many. 0 or -ENOMEM. */
int lanes_find(struct tally *t, const struct timeline_thread *thread, struct tally_lane **ret);
void lanes_done(struct tally *t);
/* By tid, then when they began; NULL first. The same in each run of the program, wherever threads
 * lie in memory. */
int lanes_compare_threads(const struct timeline_thread *a, const struct timeline_thread *b);
/* In order of tid, that of no thread first; after this nothing is found any more. */
void lanes_sort(struct tally *t);
