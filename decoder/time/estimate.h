/*
 * One number for the time at a place of a trace: what libipt estimates. It can be wrong by what its
 * guesses are wrong; timing.h has the interval that the time surely lies in. Kept for the views
 * that show what libipt's tools show.
 *
 * Facts: SDM volume 3 (edition 083), 33.4.2 TSC, TMA, MTC, CYC, CBR, and 33.8.3 "Time"; how they
 * are put together is libipt's (pt_time.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

struct estimate_config {
	uint32_t mtc_period;		   /* log2 of CTC ticks; above 15: unknown, as 0 */
	uint32_t max_nonturbo_ratio;	   /* 0: unknown */
	uint32_t tsc_art_num, tsc_art_den; /* TSC = CTC * num / den; 0: unknown */
	bool cyc_lost_at_psb;		   /* erratum SKL168 */
	bool no_calibration;		   /* the length of a cycle stays unknown */
	bool no_cyc;			   /* CYC packets are not looked at */
	bool keep_calibration;		   /* over an overflow */
};

enum estimate_fault {
	ESTIMATE_OK = 0,
	ESTIMATE_NO_TIME,     /* nothing is known yet */
	ESTIMATE_BAD_PACKET,  /* the packet contradicts those before it */
	ESTIMATE_BAD_CONTEXT, /* it may not stand there */
	ESTIMATE_BAD_CONFIG,  /* a ratio that it needs is unknown */
	ESTIMATE_OVERFLOW,    /* the numbers are beyond reason */
};

/* What went wrong with one packet. */
struct estimate_faults {
	uint8_t length;	     /* of a cycle, asked for by a CYC: enum estimate_fault */
	uint8_t calibration; /* measuring it anew */
	uint8_t point;	     /* moving the time on */
	bool uncalibrated;   /* a CYC was lost for want of its length */
};

#define ESTIMATE_SHIFT 8 /* lengths of a cycle are in 1/256 of a TSC tick */

struct estimate {
	struct estimate_config config;
	bool in_psb; /* between PSB and PSBEND */
	/* The point: the TSC, and at the last packet but CYC. */
	bool have_tsc, have_tma, have_mtc, have_cbr;
	uint64_t tsc, base, fast; /* fast: TSC ticks that the CYCs since then make */
	uint32_t ctc, ctc_cyc;	  /* CTC at the last MTC, and at the one where CYCs began */
	uint32_t lost_mtc, lost_cyc;
	uint8_t cbr;
	/* The length of a cycle. */
	struct {
		uint64_t length, min, max; /* min above max: none yet */
		uint64_t tsc;		   /* at the last TSC packet */
		uint64_t cyc_tsc, cyc_mtc; /* cycles since the last TSC, MTC */
		uint32_t ctc, lost_mtc;
		bool have_mtc, first_after_psb;
	} cal;
};

void estimate_init(struct estimate *e, const struct estimate_config *config);
/* Everything forgotten but the configuration: at an error of the trace. */
void estimate_reset(struct estimate *e);
/* The packet that follows the one before; all of a trace have to be given, others than timing
 * packets do no harm. */
struct estimate_faults estimate_packet(struct estimate *e, const struct packet *p);
/* 0, or ESTIMATE_NO_TIME; then *ret is what the relative packets add up to. */
enum estimate_fault estimate_tsc(const struct estimate *e, uint64_t *ret);
/* 0, or ESTIMATE_NO_TIME: not calibrated. */
enum estimate_fault estimate_length(const struct estimate *e, uint64_t *ret);
/* In libipt's words. */
const char *estimate_text(enum estimate_fault fault);
