/*
 * The gaps among the calls of an order: which of them are told, and several as one.
 *
 * A recording may have thousands of gaps in a row. Those of one kind, and of one thread (or of one
 * CPU, where the thread is not known), become one gap if no call lies between them. A gap waits
 * until the next call; at most GAPS_MAX different ones wait.
 *
 * Where calls are selected, a gap is told only if it touches one that is told: if such a call lasts
 * until the gap (of the same thread; of any thread where the gap's is not known), or if the next
 * one begins before the gap ends. All others are counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/calls/order.h"

#define GAPS_MAX 64u

/* Gaps as one. */
struct gaps_run {
	struct order_call gap; /* the first one, until the end of the last; GAPS is their number */
	struct order_call spare; /* the last one that touched no call before it */
	bool has_spare;
};

struct gaps {
	/* Settings: which gaps must touch a call; zero: none. */
	bool choose_of_threads, choose_of_cpus;
	/* Takes a call or gap, borrowed. 0; another value is the result of gaps_take(). */
	int (*fn)(void *userdata, const struct order_call *call);
	void *userdata;

	/* Results. */
	uint64_t n, left_out; /* gaps taken; and those of them that were not told */

	/* Private. */
	struct gaps_run runs[GAPS_MAX];
	size_t n_runs;
	uint64_t *ends; /* owned; by thread, of calls that were told; 0: of all */
	size_t n_ends;
};

/* Takes a call or a gap as an order tells it. 0; the result of fn if that was not 0; -ENOMEM. */
int gaps_take(struct gaps *g, const struct order_call *call);
/* Tells what waits; no call follows. 0 or the result of fn. */
int gaps_finish(struct gaps *g);
void gaps_done(struct gaps *g);
