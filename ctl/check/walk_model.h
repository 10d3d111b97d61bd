/*
 * What ptsnap-walk does: the branches that it executes, in order, computed from its SEED and the
 * number of a round alone. Knows nothing of traces: it is what they are compared with
 * (check_trace), and what a test may compute the packets of a trace from.
 *
 *	struct walk_model m;
 *	struct walk_branch b;
 *
 *	walk_model_init(&m, seed, round);
 *	do
 *		walk_model_next(&m, &b);
 *	while (b.from != WALK_AGAIN_AT);	// round after round, without end
 *
 * A process that was started as `ptsnap-walk SEED' executes the rounds 0, 1, 2 ... from WALK_ROUND
 * on; before that it runs some instructions that are not modelled. All code is 64-bit and user's.
 *
 * For packets: a conditional branch, WALK_KIND_TAKEN or _NOT_TAKEN, is a TNT bit.
 * WALK_KIND_JUMP and _CALL are nothing. WALK_KIND_JUMP_IND, _CALL_IND and _RET are a TIP to TO; but
 * a _RET that goes behind the last call not yet returned from (FROM + SIZE of that) may be
 * compressed to a TNT bit, for which a _CALL whose TO is FROM + SIZE does not count as one (SDM
 * volume 3, edition 083, 33.4.2.2, "RET Compression"). WALK_KIND_SYSCALL leaves user mode at FROM
 * (TIP.PGD) and comes back at TO (TIP.PGE).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/check/walk_layout.h"

/* The labels' addresses. */
enum walk_label {
#define X(name, offset) WALK_##name = WALK_TEXT + (offset),
	WALK_LABELS(X)
#undef X
};
#define X(name, offset) static const uint64_t WALK_##name = WALK_FAR_TEXT + (offset);
WALK_FAR_LABELS(X)
#undef X

enum walk_kind {
	WALK_KIND_TAKEN = 0, /* conditional */
	WALK_KIND_NOT_TAKEN,
	WALK_KIND_JUMP, /* direct */
	WALK_KIND_JUMP_IND,
	WALK_KIND_CALL, /* direct */
	WALK_KIND_CALL_IND,
	WALK_KIND_RET,
	WALK_KIND_SYSCALL,
};

struct walk_branch {
	uint8_t kind; /* enum walk_kind */
	uint8_t size; /* bytes of the instruction */
	uint64_t from, to;
};

/* More branches than any round has. */
#define WALK_ROUND_MAX 16384u

/* Some hundred KiB: nothing for a stack. */
struct walk_model {
	uint64_t seed;
	uint32_t round;	    /* of the branches in hand */
	uint64_t generator; /* while a round is made */
	size_t n, next;	    /* of the round in hand; the one to give */
	struct walk_branch branches[WALK_ROUND_MAX];
};

/* The next branch is the first of ROUND. */
void walk_model_init(struct walk_model *m, uint64_t seed, uint32_t round);
/* The branch that is executed next; never ends. */
void walk_model_next(struct walk_model *m, struct walk_branch *ret);
/* What SEED and ROUND look like in the first WALK_SHOWN_BITS conditional branches at WALK_BIT_AT of
 * a round, highest bit first; a 1 is not taken. */
uint64_t walk_model_shown(uint64_t seed, uint32_t round);
/* Whether IP is in one of the two parts of the program. */
int walk_model_has(uint64_t ip);
