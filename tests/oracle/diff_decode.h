/*
 * Decodes one input with our decoder and with libipt's instruction decoder, and compares the
 * results.
 */
#pragma once

#include "decoder/code/insn.h"
#include "tests/oracle/diff_input.h"

/* The instructions from a PSB up to an error or the end. */
struct diff_segment {
	uint64_t psb;	 /* offset */
	size_t first, n; /* instructions */
	bool failed;	 /* ended by a fault or an error, not by the trace's end */
	int why;	 /* enum fault, or enum pt_error_code */
	uint64_t offset; /* approximate offset of the end */
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
	/* The trace ends within a packet, or between packets that belong together. Decoders may
	 * stop at different places there. */
	bool ragged;
	bool strict; /* set by the caller: a failure of ours where libipt succeeds counts as a
		      * difference */
};

struct diff_difference {
	char signature[160]; /* equal for differences of the same probable kind */
	char text[400];
	const char *known; /* the known reason for the difference; NULL: unknown */
};

/* The "why" of a segment that was not followed to its end because it was too long; nothing behind
 * is compared. */
#define DIFF_ENOUGH (-1)

/* False: the input has packets that libipt 2.0 does not know. */
bool diff_decode(const struct diff_input *in, struct diff_result *ret);
/* True: the results differ; *ret (may be NULL) says how. */
bool diff_compare(const struct diff_input *in, const struct diff_result *r,
		  struct diff_difference *ret);

/* The reason why A and B, which begin at the same PSB, differ at instruction AT; NULL: unknown. */
const char *diff_explain(const struct diff_input *in, const struct diff_result *r,
			 const struct diff_segment *a, const struct diff_segment *b, size_t at);
/* The enum insn_class of the instruction at IP; negative: invalid instruction. */
int diff_class_at(const struct diff_input *in, uint64_t ip, enum insn_mode mode);
/* Whether packets of this type may stand between any two others. */
bool diff_is_aside(uint8_t type);
