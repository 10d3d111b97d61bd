/*
 * Time along a trace: for each place between packets, an interval of TSC values.
 *
 * This room knows timing packets and nothing about code. timing.c divides a trace into segments and
 * answers questions about places; timing_chain.c makes times of MTCs, timing_cycles.c of CYCs;
 * timing_read.c finds timing packets among many others, quickly. timing_private.h is what these
 * share. estimate.c makes one estimated number of the same packets, as libipt does, for the views
 * that show what libipt's tools show.
 *
 * Decisions that govern the room:
 * - The interval surely holds the true time, as far as the packets are true; it is as narrow as
 *   the packets allow. A branch that a packet tells of lies between the timing packets around
 *   that packet, MTCs or CYCs. A branch that no packet tells of (direct jumps and calls) lies
 *   between the timing packet before the last branch with a packet and the timing packet behind
 *   the next one, because nothing says on which side of the timing packets in between it
 *   executed.
 * - Intervals from CYCs are widened by how far a spread spectrum clock may be off, up to 25 ns at
 *   each end, until the trace has shown that its clock does not swing.
 * - A cycle counter that wraps without a CYC (33.3.6.1) cannot be told from one that does not,
 * unless the speed would contradict the CBR: where a processor wraps silently, an interval may be
 * too early. The trace has nothing that tells.
 * - A time that contradicts others is not used. Numbers are a stranger's: nothing overflows, and
 *   nothing is divided by 0.
 * - Time is read ahead of the walk, and bytes up to three times, so reading is tuned for speed.
 *   The usual case (branches and MTCs) has fast paths that give the same answers as the general
 *   code.
 *
 * struct timing and struct estimate are values: they need no memory beyond themselves, may be
 * copied, and borrow the bytes of the trace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

struct timing_config {
	uint32_t mtc_period;		   /* log2 of CTC ticks between MTCs; UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* TSC = CTC * num / den; 0: unknown */
	uint64_t end_tsc;		   /* nothing in the trace happened later; 0: unknown */
	uint8_t quirks;			   /* of struct packet_cursor */
	bool skl168; /* erratum: a CYC, with its MTC, may be missing before a PSB */
};

/* CYCLES core cycles take LO to HI ticks of the TSC. Cycles 0: unknown. */
struct timing_rate {
	uint64_t lo, hi, cycles;
};

struct timing_point {
	uint64_t tsc, cycles;
};

/* How far the trace shows the core clock to be off a clock of constant speed. */
struct timing_swing {
	struct timing_point points[2]; /* the last anchors that have CYCs */
	unsigned int n;
	unsigned int seen; /* triples of anchors that are conclusive */
	uint64_t worst;	   /* ticks */
	uint64_t until;	   /* the offset up to which look_for_swing() has counted them */
	bool looked;	   /* look_for_swing() was called */
};

/* The MTCs since the last TSC with a TMA. */
struct timing_chain {
	bool tsc, tma, mtc; /* which of these packets were there */
	bool through;	    /* the chain goes on behind lost packets */
	uint64_t base;	    /* the TSC at the CTC edge that the TMA names */
	uint64_t passed;    /* ticks of the TSC since that edge, rounded down, */
	uint64_t rest;	    /* and the remainder, in parts of tsc_art_den */
	uint32_t last;	    /* the CTC of the TMA, or the payload of the last MTC */
	/* A period of MTCs in ticks of the TSC, and the remainder, as above. */
	uint64_t period, period_rest;
};

/* Bytes [from, to) of a trace, which hold only packets of branches, MTCs and PADs. */
#define TIMING_RUN_MTCS 1024u
struct timing_run {
	uint64_t from, to;
	uint32_t n, next;		/* the number of MTCs; the next one to return */
	uint16_t mtcs[TIMING_RUN_MTCS]; /* where they begin, counted from `from` */
};

/* The reader that goes from anchor to anchor, ahead of the questions. */
struct timing_scan {
	struct packet_cursor cursor;
	struct timing_chain chain;
	bool in_psb;
	bool near; /* a CYC stands directly before the cursor */
	uint32_t cbr;
};

/* A CYC packet, whose time is that of the packet directly behind it. */
struct timing_cyc {
	uint64_t offset, end; /* of its first byte, and behind its last byte */
	uint64_t cycles;      /* since the segment's base */
	uint64_t lo, hi;
};

/* From one anchor (a packet that tells a time) to the next. */
struct timing_segment {
	uint64_t end;	   /* the offset of the second anchor; UINT64_MAX: none */
	uint64_t lo;	   /* time of the first anchor */
	uint64_t b_lo, hi; /* time of the second anchor, from b_lo to hi */
	bool whole;	   /* no packets are missing */
	bool steady;	   /* whole, and the core clock ran at one speed */
	bool stopped;	   /* steady, but for a stop of the clock at the end */
	bool near;	   /* a CYC stands directly before the second anchor */
	bool cycs;	   /* there are CYCs */
	uint64_t total;	   /* cycles from the base to the last CYC */
	uint64_t sure;	   /* so many of them, from the base on, passed before any stop */
	uint32_t fastest;  /* CBR; 0: unknown */
	/* The base, from which the first CYC counts: a CYC, or an anchor with a CYC before it. */
	bool counted;	/* the base is known; else it is the first anchor or before */
	bool base_near; /* the base is the first anchor */
	bool pinned;	/* the base and the last CYC are the anchors */
	uint64_t base_lo, base_hi;
	uint64_t first_hi, first_count; /* not counted: of the first anchor, and of the first CYC */
	uint64_t sag; /* pinned: how many ticks the core clock is off between the anchors at most */
};

struct timing {
	struct timing_config config;
	const uint8_t *trace;
	bool begun;
	bool ratio_wrong; /* the trace contradicts the bounds from CBR */
	bool peeking;	  /* this is a copy that looks ahead */
	struct timing_scan scan;
	struct timing_run run; /* around the scan, ahead of it, or behind it */
	bool cycs;	       /* the trace has had a CYC */
	struct timing_segment segment;
	/* The CYCs before and behind the last question, and the reader that finds them. */
	struct packet_cursor walk;
	bool have_cyc, have_next;
	struct timing_cyc cyc, next;
	uint64_t first_hi; /* for timing_first() */
	uint64_t until;	   /* for timing_until() */
	/* The speed of the core clock since CBR changed, and where its measurement began. */
	struct timing_rate rate;
	bool measuring;
	uint64_t measure_lo, measure_hi, measure_cycles;
	struct timing_swing swing;
};

/* Prepares for questions about the bytes of TRACE (borrowed) from OFFSET on. */
void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config);
/* Returns the interval in which the event of the packet at OFFSET happened: no earlier than the
 * last timing packet before OFFSET, and no later than the first timing packet behind OFFSET or
 * end_tsc. A packet directly behind a CYC has the CYC's time, except for the later branches of a
 * TNT. A bound without a timing packet is 0 or UINT64_MAX. Offsets must not decrease from call to
 * call. */
void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi);
/* The latest time of the first branch of a TNT, for the last question. */
uint64_t timing_first(const struct timing *t);
/* The offset up to which, inclusive, timing_at() and timing_first() would return the last answer
 * again; at least the offset of the last question. A caller that asks about packet after packet
 * need not ask again before that offset is passed. UINT64_MAX: to the end of the trace. */
uint64_t timing_until(const struct timing *t);
