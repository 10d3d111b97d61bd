/*
 * Whether the sideband and the trace mean the same by time: the shift of the one against the other
 * that leaves no address of the trace unmapped, found once, before decoding. Called by replay.c.
 *
 * A stretch of user code, as packets alone show it (shift_samples.c), contradicts the sideband
 * where no thread that had the CPU then has code at its address. That happens where records were
 * lost, too; then another shift would explain nothing. A shift is taken instead of none only where
 * it explains the contradictions of many turns, and makes hardly any new ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/turns/tscmap.h"
#include "decoder/worker/turns/turns.h"
#include "proto/bundle/bundle.h"
#include "sideband/timeline/timeline.h"

#define SHIFT_MAX	  20000000 /* ns, either way */
#define SHIFT_MAX_SAMPLES 20000u   /* of a CPU, the newest */
/* So many turns must be explained, and so many times as many as are contradicted instead. */
#define SHIFT_TURNS 8u
#define SHIFT_TIMES 8u

/* A stretch: on CPU (index) at IP, which it entered and left within these times. Perf ns, as the
 * clock says without a shift; wide enough for all rounding. */
struct shift_sample {
	uint64_t enter_lo, enter_hi, leave_lo;
	uint64_t ip;
	uint32_t cpu;
};

struct shift_cpu {
	int64_t ns;	/* as below, of this CPU's trace */
	uint64_t doubt; /* shifts that are so much larger or smaller explain as much, ns */
	uint64_t samples, before, after;
};

struct shift {
	bool found;
	/* The sideband's times are so much later than those of the trace: a record is applied so
	 * much earlier. Where each CPU has its own: of those that do not. */
	int64_t ns;
	uint64_t doubt;			 /* as above */
	uint64_t samples, before, after; /* and those that contradict without it and with it */
	struct shift_cpu *cpus;		 /* n_cpus of them, by index */
	size_t n_cpus;
	bool differ; /* not all CPUs have that of all */
};

struct shift_question {
	const struct turns *turns;
	const struct timeline *timeline;
	const struct shift_sample *samples; /* in order of CPU and time */
	size_t n;
};

/* 0 or -ENOMEM; shift_done in any case. Work is bounded by N times a constant. */
int shift_find(const struct shift_question *q, struct shift *ret);
void shift_done(struct shift *s);
/* By how many turns of CPU samples at TIME (perf ns) or later may be contradicted, at most. */
size_t shift_turns_since(const struct turns_cpu *cpu, uint64_t time);
/* Whether sample S contradicts the sideband with a shift of NS. */
bool shift_contradicts(const struct shift_question *q, const struct shift_sample *s, int64_t ns);

/* The clocks of N CPUs, *ret_clocks (freed by the caller in any case), and that of all, CLOCK, as S
 * says. 0 or -ENOMEM. */
int shift_tell(const struct shift *s, size_t n, struct tscmap *clock, struct tscmap **ret_clocks);
/* All of it: the shift of BUNDLE, with which CLOCK then counts, and so do *ret_clocks, one for each
 * CPU (freed by the caller in any case). None is looked for where there is no clock, or the offset
 * of the sideband was given. 0 or -ENOMEM. */
int shift_clocks(const struct bundle *bundle, const struct turns *turns,
		 const struct timeline *timeline, struct tscmap *clock, struct shift *ret,
		 struct tscmap **ret_clocks);
