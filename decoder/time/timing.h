/*
 * Time along a trace: for a place between packets, an interval of TSC values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

struct timing_config {
	uint32_t mtc_period;		   /* log2 of CTC ticks; UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* TSC = CTC * num / den; 0: unknown */
	uint64_t end_tsc;		   /* nothing in the trace happened later; 0: unknown */
	uint8_t quirks;			   /* as packet_cursor has them */
	bool skl168; /* the erratum: a CYC, with its MTC, may be missing before a PSB */
};

/* CYCLES core cycles last LO to HI ticks of the TSC; cycles 0: nothing is known. */
struct timing_rate {
	uint64_t lo, hi, cycles;
};

struct timing_point {
	uint64_t tsc, cycles;
};

/* How far the core clock was seen to be off one of constant speed. */
struct timing_swing {
	struct timing_point points[2]; /* the last anchors that have CYCs */
	unsigned int n;
	unsigned int seen; /* triples of anchors that say something */
	uint64_t worst;	   /* ticks */
	uint64_t until;	   /* offset up to which they were counted ahead */
	bool looked;
};

/* MTCs since the last TSC that had a TMA. */
struct timing_chain {
	bool tsc, tma, mtc; /* what there was of them */
	bool through;	    /* it goes on behind lost packets */
	uint64_t base;	    /* TSC at the CTC edge that the TMA names */
	uint64_t passed;    /* ticks of the TSC since that edge, rounded down, */
	uint64_t rest;	    /* and what that leaves, in parts of tsc_art_den */
	uint32_t last;	    /* TMA: its CTC; MTC: its payload */
	/* A period of MTCs in ticks of the TSC, as `passed` and `rest`. */
	uint64_t period, period_rest;
};

/* Bytes [from, to) of a trace, all of packets that tell of branches, MTCs and PADs: offsets. */
#define TIMING_RUN_MTCS 1024u
struct timing_run {
	uint64_t from, to;
	uint32_t n, next;		/* MTCs; the first one that was not asked for */
	uint16_t mtcs[TIMING_RUN_MTCS]; /* they begin so far behind `from` */
};

/* Runs ahead of the questions, from anchor to anchor. */
struct timing_scan {
	struct packet_cursor cursor;
	struct timing_chain chain;
	bool in_psb;
	bool near; /* a CYC stands directly before */
	uint32_t cbr;
};

/* A CYC packet: its own time, that of what follows it directly. */
struct timing_cyc {
	uint64_t offset, end; /* of its first byte, behind its last one */
	uint64_t cycles;      /* since the segment's base */
	uint64_t lo, hi;
};

/* From an anchor, a packet that tells a time, to the next one. */
struct timing_segment {
	uint64_t end;	   /* offset of the second anchor; UINT64_MAX: there is none */
	uint64_t lo;	   /* of the first one */
	uint64_t b_lo, hi; /* of the second one */
	bool whole;	   /* no packets are missing */
	bool steady;	   /* whole, and the core clock ran at one speed */
	bool stopped;	   /* steady but for a stop of the clock at its end */
	bool near;	   /* a CYC stands directly before the second anchor */
	bool cycs;	   /* there are CYCs */
	uint64_t total;	   /* cycles from the base to the last CYC */
	uint32_t fastest;  /* CBR; 0: unknown */
	/* Where its first CYC counts from: a CYC or an anchor that has one. */
	bool counted;	/* that is known, else from the first anchor or before it */
	bool base_near; /* the base is the first anchor */
	bool pinned;	/* the base and the last CYC are the anchors */
	uint64_t base_lo, base_hi;
	uint64_t first_hi, first_count; /* not counted: the first anchor, the first CYC */
	uint64_t sag; /* pinned: ticks that the core clock is off between the anchors, at most */
};

/* Embedded; needs no memory beyond itself, and may be copied. */
struct timing {
	struct timing_config config;
	const uint8_t *trace;
	bool begun;
	bool ratio_wrong; /* the CBR's bounds were seen to fail */
	bool peeking;	  /* a copy that looks for the speed */
	struct timing_scan scan;
	struct timing_run run; /* around the scan or ahead of it, or passed already */
	bool cycs;	       /* there was a CYC */
	struct timing_segment segment;
	/* The CYCs around the last question, and the reader that finds them. */
	struct packet_cursor walk;
	bool have_cyc, have_next;
	struct timing_cyc cyc, next;
	uint64_t first_hi; /* of timing_first */
	uint64_t until;	   /* of timing_until */
	/* The speed of the core clock since the CBR changed, and where its measurement began. */
	struct timing_rate rate;
	bool measuring;
	uint64_t measure_lo, measure_hi, measure_cycles;
	struct timing_swing swing;
};

/* Time for the bytes of TRACE from OFFSET on. */
void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config);
/* When that happened which the packet at OFFSET tells of. It is no earlier than the last timing
 * packet before and no later than the first one behind it, or end_tsc; what stands directly behind
 * a CYC happened at the time of that one, but for the later branches of a TNT. 0 and UINT64_MAX
 * where there is none. Offsets must not fall from call to call. */
void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi);
/* And the first branch of a TNT there, no later than. */
uint64_t timing_first(const struct timing *t);
/* Up to which offset, this included, timing_at (and timing_first) would answer the same as it last
 * did; no less than the offset that it was asked about. Whoever asks about packet after packet need
 * not ask again before that is passed. UINT64_MAX: for the rest of the trace. */
uint64_t timing_until(const struct timing *t);
