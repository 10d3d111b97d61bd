/*
 * One input through our decoder and through libipt's instruction decoder, and what is different.
 */
#pragma once

#include "decoder/code/insn.h"
#include "tests/oracle/diff_input.h"

/* From a PSB up to an error, or to the end. */
struct diff_segment {
	uint64_t psb;	 /* offset */
	size_t first, n; /* instructions */
	bool failed;	 /* not ended, but with a fault or an error: */
	int why;	 /* enum fault, or enum pt_error_code */
	uint64_t offset; /* about there */
};

#define DIFF_INSNS_MAX	  200000u
#define DIFF_SEGMENTS_MAX 4096u

struct diff_stream {
	uint64_t ips[DIFF_INSNS_MAX];
	size_t n;
	struct diff_segment segments[DIFF_SEGMENTS_MAX];
	size_t n_segments;
};

struct diff_result {
	struct diff_stream ours, ipt;
	/* The trace ends within a packet, or between packets that belong together: where that ends
	 * is nobody's error. */
	bool ragged;
	bool strict; /* set by the caller: that we fail where libipt does not is a difference */
};

struct diff_difference {
	char signature[160]; /* equal for what is likely the same kind */
	char text[400];
	const char *known; /* why they differ; NULL: not known */
};

/* Segments that were not followed to their end have this for a reason: nothing is compared behind.
 */
#define DIFF_ENOUGH (-1)

/* False: the input has packets that libipt 2.0 does not know. */
bool diff_decode(const struct diff_input *in, struct diff_result *ret);
/* True: they differ, *ret (which may be NULL). */
bool diff_compare(const struct diff_input *in, const struct diff_result *r,
		  struct diff_difference *ret);

/* Why A and B, which begin at the same PSB, differ at their instruction AT; NULL: it is not known.
 */
const char *diff_explain(const struct diff_input *in, const struct diff_result *r,
			 const struct diff_segment *a, const struct diff_segment *b, size_t at);
/* The enum insn_class of the instruction at IP; negative: it is none. */
int diff_class_at(const struct diff_input *in, uint64_t ip, enum insn_mode mode);
/* Packets that may stand between any two others. */
bool diff_is_aside(uint8_t type);
