/*
 * The clocks of a bundle: TSC ticks and the perf clock's nanoseconds, and the shift between the two
 * that leaves no address of the trace unmapped, found once, before decoding.
 *
 * A stretch of user code, as packets alone show it (scan.h), contradicts the sideband where no
 * thread that had the CPU then has code at its address. Lost records cause such contradictions,
 * too; then another shift would explain nothing. A shift is applied only where it explains the
 * contradictions of many turns, and makes hardly any new ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/turns/turns.h"
#include "proto/bundle/bundle.h"
#include "sideband/timeline/timeline.h"

/* --- TSC ticks and nanoseconds (clocks.c) --- */

/* By the numbers that the kernel gives in perf_event_mmap_page (include/uapi/linux/perf_event.h,
 * cap_user_time_zero). */
struct tscmap {
	bool known;
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;
	int64_t ahead; /* the shift: the perf clock is so far ahead of these numbers, ns; 0 at first
			*/
	/* A TSC of the time of the snapshot, all 64 bits; 0: unknown. A TSC packet has 56 bits, so
	 * the TSC of a host that is up for months (278 days at 3 GHz) is the one nearest to this.
	 */
	uint64_t near;
	uint64_t doubt; /* by how much `ahead` may be too much or too little, ns */
};

void tscmap_init(struct tscmap *map, const struct manifest *m);
/* The perf time of TSC, as packets have it; 0 is no packet's, and earlier than all.
 * MANIFEST_ABSENT: no clock is known, or the result does not fit. */
uint64_t tscmap_ns(const struct tscmap *map, uint64_t tsc);
/* The TSC at perf time NS as a packet has it, rounded down; MANIFEST_ABSENT: none. */
uint64_t tscmap_tsc(const struct tscmap *map, uint64_t ns);
/* A place between packets is known to a tick, and times are rounded to ns on both sides. */
#define TSCMAP_SLACK_TICKS 2u
#define TSCMAP_SLACK_NS	   1u
/* The perf time that an event at TSC is not before, or not after; 0 and UINT64_MAX where nothing is
 * known. */
uint64_t tscmap_not_before(const struct tscmap *map, uint64_t tsc);
uint64_t tscmap_not_after(const struct tscmap *map, uint64_t tsc);
/* The length of TICKS in ns; MANIFEST_ABSENT: no clock is known, or the result does not fit. */
uint64_t tscmap_span(const struct tscmap *map, uint64_t ticks);

/* --- The shift --- */

#define SHIFT_MAX	  20000000 /* ns, either way */
#define SHIFT_MAX_SAMPLES 20000u   /* of a CPU, the newest */
/* A shift must explain at least TURNS turns, and TIMES as many as it contradicts instead. */
#define SHIFT_TURNS 8u
#define SHIFT_TIMES 8u

/* A stretch that began at IP on CPU (index), entered and left within these times. Perf ns, as the
 * clock says without a shift; wide enough for all rounding. */
struct shift_sample {
	uint64_t enter_lo, enter_hi, leave_lo;
	uint64_t ip;
	uint32_t cpu;
};

struct shift_cpu {
	int64_t ns;			 /* as in struct shift, of this CPU's trace */
	uint64_t doubt;			 /* shifts so much larger or smaller explain as much, ns */
	uint64_t samples, before, after; /* as in struct shift */
};

struct shift {
	bool found;
	/* The sideband's times are so much later than those of the trace, so a record is applied so
	 * much earlier. It holds for the CPUs that have no shift of their own. */
	int64_t ns;
	uint64_t doubt;		/* as in struct shift_cpu */
	uint64_t samples;	/* of all CPUs, */
	uint64_t before, after; /* of which so many contradict without the shift and with it */
	struct shift_cpu *cpus; /* n_cpus of them, by index */
	size_t n_cpus;
	bool differ; /* some CPU has a shift of its own */
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
/* The most turns of CPU that can contradict samples at TIME (perf ns) or later. */
size_t shift_turns_since(const struct turns_cpu *cpu, uint64_t time);
/* Whether sample S contradicts the sideband with a shift of NS. */
bool shift_contradicts(const struct shift_question *q, const struct shift_sample *s, int64_t ns);

/* When the trace of CPU (index) begins, or a little earlier, perf ns; 0: not known. */
uint64_t shift_begin_of(const struct bundle *bundle, size_t cpu, const struct tscmap *clock);
/* Sets CLOCK, for all CPUs, and makes the clocks of N CPUs, *ret_clocks (freed by the caller in any
 * case), as S says. 0 or -ENOMEM. */
int shift_tell(const struct shift *s, size_t n, struct tscmap *clock, struct tscmap **ret_clocks);
/* Finds the shift of BUNDLE and applies it: to CLOCK, and to *ret_clocks, one for each CPU (freed
 * by the caller in any case). No shift is looked for where there is no clock, or where the offset
 * of the sideband was given. 0 or -ENOMEM. */
int shift_clocks(const struct bundle *bundle, const struct turns *turns,
		 const struct timeline *timeline, struct tscmap *clock, struct shift *ret,
		 struct tscmap **ret_clocks);
