/*
 * Shared by the four files that make intervals of timing packets (timing.h names them).
 */
#pragma once

#include "decoder/time/timing.h"
#include "proto/base.h"

/* Larger than any meaningful difference of TSC values. The sum of two of them does not overflow. */
#define TIMING_TICKS_MAX (UINT64_MAX / 4)

/* VALUE * NUM / DEN, at most TIMING_TICKS_MAX. DEN is not 0. */
static inline uint64_t timing_scaled(uint64_t value, uint64_t num, uint64_t den)
{
	unsigned __int128 product;
	uint64_t small;

	/* The usual case, and much faster. */
	if (!__builtin_mul_overflow(value, num, &small))
		return MIN_OF(small / den, TIMING_TICKS_MAX);
	product = (unsigned __int128)value * num / den;
	return product > TIMING_TICKS_MAX ? TIMING_TICKS_MAX : (uint64_t)product;
}

/* A + B, or UINT64_MAX if that overflows. */
static inline uint64_t timing_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A - B, or 0 if B is larger. */
static inline uint64_t timing_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* --- timing_read.c --- */

/* Skips packets of branches, which are most packets. Returns whether there were any. */
bool timing_skip_branches(struct packet_cursor *c);
/* Skips packets of branches and short CYCs. */
void timing_skip_cycles(struct packet_cursor *c);
enum timing_step { TIMING_PACKET, TIMING_LOSS, TIMING_END };
/* Reads the next packet. TIMING_LOSS: invalid bytes, skipped up to the next PSB. */
enum timing_step timing_next_packet(struct packet_cursor *c, struct packet *p);

/* Finds the run that begins at the cursor, or as much of the run as R has room for. False: there is
 * no run. */
bool timing_run_read(struct timing_run *r, const uint8_t *trace, const struct packet_cursor *c);
/* The first MTC at or behind OFFSET, which lies in the run and does not decrease from call to call.
 * False: there is none. */
static inline bool timing_run_mtc(struct timing_run *r, uint64_t offset, uint64_t *ret)
{
	uint64_t at = offset - r->from;

	while (r->next < r->n && r->mtcs[r->next] < at)
		r->next++;
	if (r->next == r->n)
		return false;
	*ret = r->from + r->mtcs[r->next++];
	return true;
}

/* --- timing_chain.c --- */

/* A TSC begins a chain of MTCs. A TMA says where the CTC stood at the TSC; it is ignored if the
 * configuration lacks the numbers that turn MTCs into times. */
void timing_chain_tsc(struct timing_chain *c, uint64_t tsc);
void timing_chain_tma(struct timing_chain *c, const struct timing_config *config,
		      const struct packet *p);
/* Takes an MTC. Returns whether the MTC tells a time. */
bool timing_chain_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload,
		      uint64_t *ret_lo, uint64_t *ret_hi);
/* The usual case, for speed: the MTC comes one period behind the last MTC. */
static inline bool timing_chain_next(struct timing_chain *c, const struct timing_config *config,
				     uint8_t payload, uint64_t *ret_lo)
{
	if (!c->mtc || payload != (uint8_t)(c->last + 1))
		return false;
	c->last = payload;
	c->passed += c->period;
	c->rest += c->period_rest;
	if (c->rest >= config->tsc_art_den) {
		c->passed++;
		c->rest -= config->tsc_art_den;
	}
	c->passed = MIN_OF(c->passed, TIMING_TICKS_MAX);
	*ret_lo = c->base + c->passed;
	return true;
}
/* Looks ahead from the TMA of S. Returns whether the times of all MTCs up to a loss of packets are
 * before the next TSC. *ret_through: so are all MTCs up to that TSC, and less than 256 periods are
 * missing, so that no wrap of the MTC's payload was lost. */
bool timing_chain_holds(struct timing *t, struct timing_scan s, bool *ret_through);

/* --- timing_cycles.c --- */

/* The interval of a CYC that comes CYCLES cycles behind the segment's base. */
void timing_bound(const struct timing *t, uint64_t cycles, uint64_t *ret_lo, uint64_t *ret_hi);
/* Measures the core clock's speed at the end of the segment. */
void timing_measure(struct timing *t);
/* Decides whether the segment, whose end is known, is pinned, and checks CBR and speed by its
 * anchors. */
void timing_check_speed(struct timing *t);
/* To be called before timing_bound() for a CYC in the segment. Most segments are never asked about.
 */
void timing_settle(struct timing *t);

/* By how many ticks at most the core clock is ahead of or behind a clock of constant speed.
 * max_nonturbo_ratio must be known. */
uint64_t timing_swing(const struct timing *t);
/* Whether more of the trace would not add to that. */
bool timing_swing_known(const struct timing *t);
/* Takes an anchor with a CYC, from which cycles are counted; and another one, CYCLES cycles behind.
 */
void timing_swing_restart(struct timing *t, uint64_t tsc);
void timing_swing_point(struct timing *t, uint64_t tsc, uint64_t cycles, uint64_t offset);
