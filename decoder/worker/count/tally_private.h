/*
 * Inside of the tally: tally.c (items, which are the definition of all counting), tally_steps.c
 * (walks of steps, which come to the same), tally_last.c (the last branches of a walk).
 */
#pragma once

#include "decoder/worker/count/tally.h"
#include "proto/base.h"

static inline void tally_activate(struct tally *t, struct tally_lane *lane, uint32_t function)
{
	struct function *f;

	if (function == TALLY_NO_FUNCTION)
		return;
	f = &t->functions.list[function];
	if (f->active++ > 0)
		return;
	f->began_insns = lane->insns;
	f->began_ticks = lane->ticks;
}

static inline void tally_deactivate(struct tally *t, struct tally_lane *lane, uint32_t function)
{
	struct function *f;

	if (function == TALLY_NO_FUNCTION)
		return;
	f = &t->functions.list[function];
	if (--f->active > 0)
		return;
	f->total_insns += lane->insns - f->began_insns;
	f->total_ticks += lane->ticks - f->began_ticks;
}

/* FUNCTION runs. ENTRY: execution jumped to its first instruction, and did not just run into it. */
static inline void tally_enter(struct tally *t, struct tally_lane *lane, uint32_t function,
			       bool entry)
{
	bool called = lane->called;

	lane->called = false;
	if (lane->function == function && !called)
		return;
	if (called || (entry && lane->function != TALLY_NO_FUNCTION))
		t->functions.list[function].calls++;
	tally_deactivate(t, lane, lane->function);
	lane->function = function;
	tally_activate(t, lane, function);
}

/* One instant for an interval: its middle. 0: unknown. */
static inline uint64_t tally_instant(uint64_t lo, uint64_t hi)
{
	if (lo == 0)
		return hi == UINT64_MAX ? 0 : hi;
	if (hi == UINT64_MAX || hi < lo)
		return lo;
	return lo + (hi - lo) / 2;
}

/* A branch happened on CPU at NOW: the time up to there goes to the function of its run. */
void tally_time(struct tally *t, struct tally_lane *lane, struct tally_cpu *cpu, uint64_t now);
/* Counts N instructions of a run from START to LAST; what begins with START is no run where
 * lane->cut says so. 0 or -ENOMEM. */
int tally_run(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s,
	      uint64_t start, uint64_t last, size_t n);
/* What a branch does to the stack. 0 or -ENOMEM. */
int tally_calls(struct tally *t, struct tally_lane *lane, const struct flow_item *item);

/* tally_steps.c: counts walk number WALK of the stretch's batch, in the flow's statistics, too. 0
 * or -ENOMEM. */
int tally_walk(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s,
	       uint32_t walk);
/* tally_last.c: at the end of a stretch: the last branches of its walks, as far as they are among
 * the lane's. */
void tally_last(struct tally *t, struct tally_lane *lane, const struct replay_stretch *s);
