/*
 * A made-up processor with Intel PT: it executes at known times, and writes packets by the rules of
 * the SDM (volume 3, edition 083, chapter 33), independently of the decoder.
 *
 * The rules that matter here:
 * - TSC comes in each PSB+, behind each stop of the clocks, and when TraceEn goes from 0 to 1
 *   (33.4.2, TSC); TMA comes with each TSC if there are MTCs. CBR comes in each PSB+, after a
 *   change of frequency, after a sleep, and when TraceEn goes from 0 to 1.
 * - MTCs come at each edge of the CTC while TriggerEn is set, whether ContextEn is or not.
 * - The cycle counter counts while TriggerEn is set, whether ContextEn is or not; it is reset where
 *   TriggerEn is cleared, and stands still while the core sleeps (33.3.6.1).
 * - A CYC stands before a packet that is eligible, if as many cycles have passed as the threshold
 *   says, at most one each cycle (33.3.6.2, 33.3.6.3).
 * - A PSB+ has a FUP only if PacketEn is set (33.3.7). Where TraceEn goes from 0 to 1, PSB+ comes
 *   before or behind TIP.PGE, or not at all (table "Packet Generation under Different Enable
 *   Conditions", cases 2b to 2e).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/time/timing.h"

/* Events that may happen to the processor. Chances are per 10000 steps. */
struct clocked_world {
	bool mtc, cyc;
	bool user_only;	     /* the kernel is not traced: ContextEn goes off and on */
	bool spread;	     /* the clock is a spread spectrum clock */
	bool lone_cyc;	     /* the cycle counter has 12 bits, and a CYC comes when it is full */
	bool cyc_before_psb; /* PSB is eligible for a CYC */
	bool cyc_before_tsc; /* so is TSC */
	bool no_ratio;	     /* the decoder is not told the ratio of TSC and bus */
	bool through_loss;   /* a CYC behind an OVF also counts the cycles of CYCs that were lost */
	uint32_t period;     /* of MTCs: log2 of CTC ticks */
	uint32_t threshold;  /* of CYCs, in cycles */
	uint32_t psb_bytes;  /* between PSBs */
	uint32_t pause;	     /* the longest time between two events, ticks */
	uint32_t kernel, off, sleep, speed, overflow, lost_mtcs, psb;
};

/* An event that a packet at OFFSET tells of. A TNT tells of events from FIRST to LAST. */
struct clocked_event {
	uint64_t offset, first, last; /* TSC */
};

struct clocked {
	struct clocked_world world;
	struct timing_config config; /* what the decoder is told */
	const uint8_t *bytes;
	size_t size;
	const struct clocked_event *events;
	size_t n;
};

/* Makes a world of SEED, in which everything is random. */
void clocked_any_world(uint64_t seed, struct clocked_world *ret);
/* Makes a trace of about STEPS steps. The trace belongs to the caller, until clocked_free(). */
void clocked_make(uint64_t seed, const struct clocked_world *world, unsigned int steps,
		  struct clocked *ret);
void clocked_free(struct clocked *c);
