/*
 * The branches of one ptsnap-walk, as a trace shows them, against the model. The trace may begin
 * and break off anywhere: where it is, the next whole beginning of a round tells, and from there
 * every branch must be the model's. Fed by check_trace_lines.c, thread by thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/check/walk_model.h"

/* A taken branch as it was decoded. FROM or TO is outside the program where the thread left it or
 * came back: system calls, interrupts, other threads' turns. */
struct walk_line {
	uint64_t from, to;
	uint64_t lo, hi; /* TSC; 0 and UINT64_MAX: not known */
	uint64_t offset; /* of the packet, in the CPU's trace */
};

struct walk_tally {
	uint64_t branches;   /* equal, those not taken included */
	uint64_t rounds;     /* whole ones among them */
	uint64_t skipped;    /* taken ones before the first round was found, or after a gap */
	uint64_t interrupts; /* between two instructions */
	uint64_t width_sum, widths; /* of the intervals of equal branches, TSC; how many had one */
	uint64_t differences;
};

struct walk_difference {
	bool known; /* there is one */
	struct walk_branch expected;
	struct walk_line got;
	uint64_t seed;
	uint32_t round;
};

/* Taken branches that tell a round's seed and number. */
#define WALK_MATCH_HEAD (2 * WALK_SHOWN_BITS + 1)

enum walk_match_state { WALK_MATCH_LOST = 0, WALK_MATCH_HEADING, WALK_MATCH_ON };

struct walk_match {
	uint64_t seed; /* its lowest byte 0 */
	int own;       /* that byte, which all its rounds must show; -1: not known yet */
	bool may_jump; /* parts of the thread's life may be missing unsaid */
	enum walk_match_state state;
	bool away; /* left the program with branch LEFT */
	struct walk_line left;
	uint64_t at; /* ON: where it is since the last branch */
	struct walk_line head[WALK_MATCH_HEAD];
	unsigned n_head, n_bits;
	bool zero; /* the bit at hand was shown as 0 */
	uint64_t shown;
	struct walk_difference first;
	struct walk_model model;
};

/* SEED: all walks' but for the lowest byte, which is OWN, or -1: the first round tells. */
void walk_match_init(struct walk_match *m, uint64_t seed, int own);
/* The next taken branch of the thread; counted in TALLY. After a difference it looks for the next
 * round. */
void walk_match_line(struct walk_match *m, const struct walk_line *line, struct walk_tally *tally);
/* Something is missing here. */
void walk_match_gap(struct walk_match *m);
