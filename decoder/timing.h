/*
 * Time along a trace: for a place between packets, an interval of TSC values.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet.h"

struct timing_config {
	uint32_t mtc_period;		   /* log2 of CTC ticks; UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* TSC = CTC * num / den; 0: unknown */
	uint64_t end_tsc;		   /* nothing in the trace happened later; 0: unknown */
};

/* A timing packet: what stands behind it happened at LO or later, what stands before it at HI or
 * earlier. */
struct timing_point {
	uint64_t offset, lo, hi;
};

#define TIMING_POINTS 1024

/* Embedded; needs no memory beyond itself. */
struct timing {
	struct timing_config config;
	const uint8_t *trace;
	struct packet_cursor scan; /* ahead of the queries */
	/* The MTCs since the last TSC with TMA. */
	bool have_tsc, have_tma, have_mtc;
	uint64_t tsc;	   /* of the last TSC packet */
	uint64_t ctc_base; /* TSC at the CTC edge that the TMA names */
	uint64_t ctc;	   /* ticks since that edge */
	uint32_t ctc_last; /* TMA: its CTC; MTC: its payload */
	/* The CYCs since the last anchor, in TSC ticks. */
	uint64_t anchor_lo, cyc_lo, cyc_all;
	bool cyc_near;	/* a CYC stands directly before */
	bool cyc_whole; /* the next CYC counts from the anchor on, not from before it */
	bool cyc_lost;	/* overflow: the counts since the anchor are not complete */
	uint32_t cbr, cbr_before;
	/* [head, tail) lie ahead of the last query. */
	size_t head, tail;
	uint64_t lo; /* of the last point passed */
	struct timing_point points[TIMING_POINTS];
};

/* Time for the bytes of TRACE from OFFSET on. */
void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config);
/* The interval of what lies at OFFSET: from the last timing packet before it to the first one
 * behind it, or end_tsc; 0 and UINT64_MAX where there is none. Offsets must not fall from call to
 * call. */
void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi);
