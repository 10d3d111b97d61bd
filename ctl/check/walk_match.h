/*
 * Compares the branches of one ptsnap-walk with the model. The trace may begin and break off
 * anywhere: the next complete beginning of a round shows the seed and the number of the round, and
 * from there every branch must be that of the model.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/check/walk_model.h"

/* A taken branch, as it was decoded. FROM or TO is outside the program where the thread left the
 * program or came back: at system calls, interrupts and context switches. */
struct walk_line {
	uint64_t from, to;
	uint64_t lo, hi; /* TSC; 0 and UINT64_MAX: not known */
	uint64_t offset; /* of the packet, in the CPU's trace */
};

struct walk_tally {
	uint64_t branches;	    /* equal ones, including those that are not taken */
	uint64_t rounds;	    /* complete rounds among them */
	uint64_t skipped;	    /* taken branches before the first round, or after a gap */
	uint64_t interrupts;	    /* between two instructions */
	uint64_t width_sum, widths; /* intervals of equal branches: sum in TSC ticks, number */
	uint64_t differences;
};

struct walk_difference {
	bool known; /* false: no difference yet */
	struct walk_branch expected;
	struct walk_line got;
	uint64_t seed;
	uint32_t round;
};

/* The number of taken branches that show the seed and the number of a round. */
#define WALK_MATCH_HEAD (2 * WALK_SHOWN_BITS + 1)

enum walk_match_state { WALK_MATCH_LOST = 0, WALK_MATCH_HEADING, WALK_MATCH_ON };

struct walk_match {
	uint64_t seed; /* its lowest byte 0 */
	int own;       /* the lowest byte of this walk's seed; -1: not known yet */
	bool may_jump; /* code may be missing without a gap */
	enum walk_match_state state;
	bool away; /* the thread left the program with branch LEFT */
	struct walk_line left;
	uint64_t at; /* ON: the target of the last branch */
	struct walk_line head[WALK_MATCH_HEAD];
	unsigned n_head, n_bits;
	bool zero; /* the current bit was shown as 0 */
	uint64_t shown;
	struct walk_difference first;
	struct walk_model model;
};

/* SEED is that of all walks; the lowest byte of this walk's seed is OWN, or -1 if the first round
 * is to tell. */
void walk_match_init(struct walk_match *m, uint64_t seed, int own);
/* Compares the next taken branch of the thread, and counts in TALLY. After a difference, the
 * comparison goes on with the next round. */
void walk_match_line(struct walk_match *m, const struct walk_line *line, struct walk_tally *tally);
/* Code is missing here. */
void walk_match_gap(struct walk_match *m);
