/*
 * When a thread had no CPU: a call stream against a truth directory.
 *
 * The truth says when user code ran. Between two stretches of a thread another thread may have run
 * on the CPU that the first one left; then the thread was off the CPU by the other's begin. In the
 * same way it came back behind the end of what ran before it there. Otherwise, the thread may or
 * may not have been off the CPU, but only between the two stretches. A time without a CPU stands
 * between the calls that it lies between. It may stand between two other stretches if the intervals
 * of all steps from here to there hold the whole of it, so that the trace does not say better.
 */
#pragma once

#include "tests/support/call_lines.h"
#include "tests/support/truth_clock.h"
#include "tests/support/truth_stack.h"

struct truth_turn {
	uint32_t cpu;
	uint64_t begin, end; /* TSC */
	const struct truth_life *life;
};

/* The stretches of all threads by CPU and begin. */
struct truth_offs {
	const struct truth_clock *clock;
	struct truth_turn *turns;
	size_t n;
};

struct truth_offs_counts {
	uint64_t checked; /* times without a CPU */
	uint64_t certain; /* those that another thread proves */
	uint64_t moved;	  /* those that stand between other stretches */
	uint64_t ns;	  /* how long they were, by the stream */
};

/* S and CLOCK are borrowed. */
void truth_offs_init(struct truth_offs *o, const struct truth_stack *s,
		     const struct truth_clock *clock);
void truth_offs_done(struct truth_offs *o);
/* PAIRS: for each step of L the step of T, or CALL_LINES_NONE. NULL, or what is wrong, with the
 * number of the stretch behind it in *ret_stretch. */
const char *truth_offs_check(const struct truth_offs *o, const struct truth_life *l,
			     const struct call_thread *t, const uint32_t *pairs,
			     struct truth_offs_counts *counts, size_t *ret_stretch);
