/*
 * Inside of the tally: what tally.c (items), tally_instances.c (the stack), tally_steps.c (walks of
 * steps and their last branches) and tally_quick.c (most steps) share.
 */
#pragma once

#include "decoder/worker/count/steps.h"
#include "decoder/worker/count/tally.h"
#include "proto/base.h"

/* --- Functions and time: tally.c --- */

static inline void tally_activate(struct tally *t, struct tally_counters *counters,
				  uint32_t function)
{
	struct function *f;

	if (function == TALLY_NO_FUNCTION)
		return;
	f = &t->functions.list[function];
	if (f->active++ > 0)
		return;
	f->total_insns -= counters->insns;
	f->total_ticks -= counters->ticks;
}

static inline void tally_deactivate(struct tally *t, struct tally_counters *counters,
				    uint32_t function)
{
	struct function *f;

	if (function == TALLY_NO_FUNCTION)
		return;
	f = &t->functions.list[function];
	if (--f->active > 0)
		return;
	f->total_insns += counters->insns;
	f->total_ticks += counters->ticks;
}

/* So many functions in a row that do not return, but jump to the next one, are nested. */
#define TALLY_MAX_JUMPS 8u

/* --- Waits: tally_waits.c --- */

/* The thread goes on at TO (TSC), with nothing executed since counters->last_tsc. ASYNC: it was
 * interrupted then, and did not call the kernel. */
void tally_waited(struct tally *t, struct tally_counters *counters, uint64_t to, bool async);
/* The ticks of waits that ended behind TSC; less than there were if these are more than
 * TALLY_WAITS.
 */
uint64_t tally_waited_since(const struct tally_waits *w, uint64_t tsc);

/* An instance of FUNCTION that began at BEGIN, and ends now, took time. 0 or -ENOMEM. */
int tally_took(struct tally *t, const struct tally_counters *counters, uint32_t function,
	       struct calls_begin begin);

/* Tell the watch, if there is one: 0 or its error. */
static inline int tally_tell_begin(const struct tally *t, struct tally_counters *counters,
				   enum tally_begin how)
{
	return t->watch ? t->watch->begin(t->watch->userdata, counters, how) : 0;
}
static inline int tally_tell_end(const struct tally *t, struct tally_counters *counters,
				 enum tally_end how)
{
	if (!t->watch || counters->function == TALLY_NO_FUNCTION)
		return 0;
	return t->watch->end(t->watch->userdata, counters, how);
}

/* The running instance of F, which began at BEGIN, jumped to one that ends now, and ends
 * with it. */
static inline void tally_count_left(struct function *f, const struct calls_begin *begin)
{
	f->left += begin->tsc != 0;
}

/* The running instance ends now. 0 or -ENOMEM. */
static inline int tally_leave(struct tally *t, struct tally_counters *counters)
{
	tally_deactivate(t, counters, counters->function);
	if (counters->begin.tsc != 0 && counters->last_tsc > counters->begin.tsc)
		return tally_took(t, counters, counters->function, counters->begin);
	return 0;
}

/* An instance of FUNCTION begins. CALL: by a call, or by a jump to its first instruction. */
static inline void tally_begin(struct tally *t, struct tally_counters *counters, uint32_t function,
			       bool call)
{
	struct function *f = &t->functions.list[function];

	f->calls += call;
	f->unended += call && counters->last_tsc == 0;
	counters->function = function;
	counters->begin = (struct calls_begin){call ? counters->last_tsc : 0, counters->ticks};
	tally_activate(t, counters, function);
}

/* Execution went on in FUNCTION, another one than the running one, without a call. ENTRY: at its
 * first instruction, and by a jump. 0 or -ENOMEM. */
int tally_jump(struct tally *t, struct tally_counters *counters, uint32_t function, bool entry);

/* Nothing ran, and now FUNCTION does: tells the watch. 0 or its error. */
int tally_tell_first(const struct tally *t, struct tally_counters *counters, bool called);

/* FUNCTION runs. ENTRY: execution jumped to its first instruction, and did not just run into it. 0
 * or -ENOMEM. */
static inline int tally_enter(struct tally *t, struct tally_counters *counters, uint32_t function,
			      bool entry)
{
	bool called = counters->called;

	counters->called = false;
	if (counters->function == function && !called)
		return 0;
	if (counters->function != TALLY_NO_FUNCTION)
		return tally_jump(t, counters, function, entry || called);
	tally_begin(t, counters, function, called);
	return t->watch ? tally_tell_first(t, counters, called) : 0;
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

/* A branch happened on CPU at NOW: the time up to NOW goes to the function of the branch's run. */
void tally_time(struct tally *t, struct tally_counters *counters, struct tally_cpu *cpu,
		uint64_t now);
/* Counts N instructions of a run from START to LAST. If counters->cut is set, START continues a run
 * and enters no function. 0 or -ENOMEM. */
int tally_run(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s,
	      uint64_t start, uint64_t last, size_t n);

/* --- Instances: tally_instances.c --- */

/* Does to the stack what the branch ITEM does. 0 or -ENOMEM. */
int tally_calls(struct tally *t, struct tally_counters *counters, const struct flow_item *item);
/* Forgets the stack; nobody knows when its instances ended. HOW is for the watch. 0 or its error.
 */
int tally_forget(struct tally *t, struct tally_counters *counters, enum tally_end how);
/* The calls that are on the stack at the end of the trace have no end. The stack stays. */
void tally_forget_open(struct tally *t, struct tally_counters *counters);

/* --- Walks: tally_steps.c --- */

/* Counts walk number WALK of the stretch's batch, also in the flow's statistics. 0 or -ENOMEM. */
int tally_walk(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s,
	       uint32_t walk);
/* At the end of a stretch: writes the last branches of its walks to counters->last, unless later
 * branches have replaced them. */
void tally_last(struct tally *t, struct tally_counters *counters, const struct replay_stretch *s);

/* A walk that is being counted. */
struct counting {
	struct tally *t;
	struct tally_counters *counters;
	const struct replay_stretch *s;
	struct tally_cache *cache;
	const struct nodes *nodes;
	const uint32_t *steps; /* the batch's */
	struct steps_clock clock;
	bool settled; /* more branches at the current time do not change the counted time */
	uint32_t place, naming;
	uint64_t base;	/* address at which the place begins */
	uint64_t insns; /* of the running function; not yet added to it, nor to the counters */
	uint64_t items; /* of the walk */
	bool open;	/* the next piece goes on with a run */
	int error;	/* -ENOMEM; or 0 */
	bool returned;	/* the last branch was a return that the stack does not know yet */
};

/* Where STEP begins. */
static inline uint64_t counting_start(const struct counting *c, uint32_t step)
{
	return c->base + c->nodes->list[node_of_step(step)].offset;
}

/* Moves the clock on to the time of the step at AT. */
static inline void counting_reach(struct counting *c, uint32_t at)
{
	while (steps_clock_until(&c->clock) <= at) {
		steps_clock_next(&c->clock);
		c->settled = false;
	}
}

/* STEP is counted. STEP is no NODE_STEP_PLACE, nor the walk's last step. */
static inline void counting_pass(struct counting *c, uint32_t step)
{
	if (!c->clock.begun)
		c->clock.begun = !steps_is_go(c->nodes, step);
}

/* Counts the time of ITEMS in the running function: BEFORE of them come before the first decision
 * or target, and FIRST says whether that one is an item. counters->function is the running
 * function. */
void counting_time(struct counting *c, unsigned int items, unsigned int before, bool first);

/* tally_quick.c: counts the steps from *AT up to END, or up to the first step that needs
 * tally_steps.c; sets *AT to the step where it stopped. There is a step at END. 0 or
 * -ENOMEM. */
int tally_quick(struct counting *c, uint32_t *at, uint32_t end);
