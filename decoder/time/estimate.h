/*
 * An estimate of the time at a place of a trace: one number, as libipt computes it.
 *
 * The estimate rests on guesses; timing.h has the interval that surely holds the time. This is for
 * the views that show what libipt's tools show. Facts: SDM volume 3 (edition 083), 33.4.2 TSC, TMA,
 * MTC, CYC, CBR, and 33.8.3 "Time"; the algorithm is libipt's (pt_time.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

struct estimate_config {
	uint32_t mtc_period;		   /* log2 of CTC ticks; above 15: unknown, used as 0 */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* TSC = CTC * num / den; 0: unknown */
	bool cyc_lost_at_psb;		   /* erratum SKL168 */
	bool no_calibration;		   /* the length of a cycle stays unknown */
	bool no_cyc;			   /* CYC packets are ignored */
	bool keep_calibration;		   /* the calibration survives an overflow */
};

enum estimate_fault {
	ESTIMATE_OK = 0,
	ESTIMATE_NO_TIME,     /* nothing is known yet */
	ESTIMATE_BAD_PACKET,  /* the packet contradicts those before it */
	ESTIMATE_BAD_CONTEXT, /* the packet is not valid at its place */
	ESTIMATE_BAD_CONFIG,  /* a ratio that the packet needs is unknown */
	ESTIMATE_OVERFLOW,    /* the numbers are too large */
};

/* The faults met with one packet. */
struct estimate_faults {
	uint8_t length;	     /* getting the length of a cycle for a CYC: enum estimate_fault */
	uint8_t calibration; /* measuring that length: enum estimate_fault */
	uint8_t point;	     /* moving the time on: enum estimate_fault */
	bool uncalibrated;   /* a CYC was ignored, as the length of a cycle is unknown */
};

#define ESTIMATE_SHIFT 8 /* lengths of a cycle are in 1/256 of a TSC tick */

struct estimate {
	struct estimate_config config;
	bool in_psb; /* between PSB and PSBEND */
	/* The point: the TSC now, and (base) at the last packet other than CYC. */
	bool have_tsc, have_tma, have_mtc, have_cbr;
	uint64_t tsc, base, fast; /* fast: TSC ticks of the CYCs since then */
	uint32_t ctc, ctc_cyc;	  /* CTC at the last MTC, and at the MTC where CYCs began */
	uint32_t lost_mtc, lost_cyc;
	uint8_t cbr;
	/* The length of a cycle. */
	struct {
		uint64_t length, min, max; /* min above max: unknown */
		uint64_t tsc;		   /* at the last TSC packet */
		uint64_t cyc_tsc, cyc_mtc; /* cycles since the last TSC, MTC */
		uint32_t ctc, lost_mtc;
		bool have_mtc, first_after_psb;
	} cal;
};

void estimate_init(struct estimate *e, const struct estimate_config *config);
/* Forgets everything but the configuration, after an error in the trace. */
void estimate_reset(struct estimate *e);
/* Takes the next packet. The caller must give all timing packets of a trace, in order, and may give
 * other packets. */
struct estimate_faults estimate_packet(struct estimate *e, const struct packet *p);
/* 0; or ESTIMATE_NO_TIME, and *ret is the sum of the relative packets. */
enum estimate_fault estimate_tsc(const struct estimate *e, uint64_t *ret);
/* 0, or ESTIMATE_NO_TIME: not calibrated. */
enum estimate_fault estimate_length(const struct estimate *e, uint64_t *ret);
/* The fault in libipt's words. */
const char *estimate_text(enum estimate_fault fault);
