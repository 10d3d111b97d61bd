/*
 * What the files that make intervals of timing packets share: timing.c (segments, questions),
 * timing_chain.c (MTCs), timing_cycles.c (CYCs), timing_swing.c (their clock), timing_read.c
 * (packets), timing_run.c (many packets).
 */
#pragma once

#include "decoder/time/timing.h"
#include "proto/base.h"

/* Larger than any difference of TSC values that means something; sums of two do not overflow. */
#define TIMING_TICKS_MAX (UINT64_MAX / 4)

/* VALUE * NUM / DEN, at most TIMING_TICKS_MAX. DEN is not 0. */
static inline uint64_t timing_scaled(uint64_t value, uint64_t num, uint64_t den)
{
	unsigned __int128 product;
	uint64_t small;

	/* Mostly so, and a good deal faster. */
	if (!__builtin_mul_overflow(value, num, &small))
		return MIN_OF(small / den, TIMING_TICKS_MAX);
	product = (unsigned __int128)value * num / den;
	return product > TIMING_TICKS_MAX ? TIMING_TICKS_MAX : (uint64_t)product;
}

/* A + B, or all ones. */
static inline uint64_t timing_plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A - B, or 0. */
static inline uint64_t timing_minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* timing_read.c */
/* Passes by packets that tell of branches, of no time; most are of that kind. True: there were any.
 */
bool timing_skip_branches(struct packet_cursor *c);
/* The size of a packet that begins with BYTE and tells of branches, of no time; 0: of another. */
size_t timing_branch_size(uint8_t byte);
/* The same of a long TNT at POS, of LEFT bytes. */
size_t timing_long_tnt_size(const uint8_t *pos, size_t left);
/* Also by short CYCs. */
void timing_skip_cycles(struct packet_cursor *c);
enum timing_step { TIMING_PACKET, TIMING_LOSS, TIMING_END };
/* The next packet; LOSS: bytes up to the next PSB are none. */
enum timing_step timing_next_packet(struct packet_cursor *c, struct packet *p);

/* timing_run.c */
/* The run that begins at the cursor; it may go on behind what there is room for. False: there is
 * none. */
bool timing_run_read(struct timing_run *r, const uint8_t *trace, const struct packet_cursor *c);
/* The first MTC at OFFSET, which lies in the run and does not fall from call to call, or behind.
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

/* timing_chain.c */
/* A TSC begins a chain of MTCs; a TMA says where the CTC stood at it. Without the numbers that an
 * MTC needs to tell a time there is no TMA. */
void timing_chain_tsc(struct timing_chain *c, uint64_t tsc);
void timing_chain_tma(struct timing_chain *c, const struct timing_config *config,
		      const struct packet *p);
/* True: an MTC with this payload tells a time. */
bool timing_chain_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload,
		      uint64_t *ret_lo, uint64_t *ret_hi);
/* The usual case of that, for speed: the MTC comes a period behind the last one. */
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
/* Behind the TMA of S: whether its MTCs, up to where packets are lost, all come before the next
 * TSC. *ret_through: all of them do, with less than 256 periods missing in all: a lost MTC more
 * would make the last one that much too early. */
bool timing_chain_holds(struct timing *t, struct timing_scan s, bool *ret_through);

/* timing_cycles.c */
/* The time of a CYC that comes CYCLES cycles behind the segment's base. */
void timing_bound(const struct timing *t, uint64_t cycles, uint64_t *ret_lo, uint64_t *ret_hi);
/* The speed that the segment shows, when it is over. */
void timing_measure(struct timing *t);
/* What CBR and anchors say of each other in a segment that is pinned, when its end is known. */
void timing_check_speed(struct timing *t);
/* To be called before timing_bound is for what lies in the segment: most are never asked about. */
void timing_settle(struct timing *t);

/* timing_swing.c */
/* By how many ticks the core clock is ahead or behind of one of constant speed at most. Needs the
 * ratio. */
uint64_t timing_swing(const struct timing *t);
/* More of the trace would not say more of it. */
bool timing_swing_known(const struct timing *t);
/* An anchor that has a CYC, from which cycles are counted; and one so many cycles behind it. */
void timing_swing_restart(struct timing *t, uint64_t tsc);
void timing_swing_point(struct timing *t, uint64_t tsc, uint64_t cycles, uint64_t offset);
