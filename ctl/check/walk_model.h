/*
 * The model of ptsnap-walk: the branches that the program executes, in order, computed from the
 * program's SEED and the number of a round. The model knows nothing of traces. The self-test
 * compares traces with it, and tests compute packets from it.
 *
 *	struct walk_model m;
 *	struct walk_branch b;
 *
 *	walk_model_init(&m, seed, round);
 *	do
 *		walk_model_next(&m, &b);
 *	while (b.from != WALK_AGAIN_AT);	// one round; the next ones follow
 *
 * A process that was started as `ptsnap-walk SEED' executes the rounds 0, 1, 2 ... from WALK_ROUND
 * on; before that it runs some instructions that are not modelled. All code is 64-bit and user's.
 *
 * Packets: a conditional branch (WALK_KIND_TAKEN, _NOT_TAKEN) is a TNT bit. WALK_KIND_JUMP and
 * _CALL have no packet. WALK_KIND_JUMP_IND, _CALL_IND and _RET are a TIP to TO. A _RET to the
 * instruction behind the last open call (FROM + SIZE of the call) may be compressed to a TNT bit; a
 * _CALL whose TO is FROM + SIZE does not count as a call there (SDM volume 3, edition 083,
 * 33.4.2.2, "RET Compression"). WALK_KIND_SYSCALL leaves user mode at FROM (TIP.PGD) and returns to
 * TO (TIP.PGE).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/check/walk_layout.h"

/* The addresses of the labels. */
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

/* No round has more branches. */
#define WALK_ROUND_MAX 16384u

/* Several hundred KiB: do not put one on the stack. */
struct walk_model {
	uint64_t seed;
	uint32_t round;	    /* of BRANCHES */
	uint64_t generator; /* while a round is computed */
	size_t n, next;	    /* BRANCHES of this round; the one to give next */
	struct walk_branch branches[WALK_ROUND_MAX];
};

/* The next branch is the first of ROUND. */
void walk_model_init(struct walk_model *m, uint64_t seed, uint32_t round);
/* Gives the branch that is executed next. Rounds follow without end. */
void walk_model_next(struct walk_model *m, struct walk_branch *ret);
/* The number that the first WALK_SHOWN_BITS conditional branches at WALK_BIT_AT of a round show,
 * highest bit first. A branch that is not taken is a 1. */
uint64_t walk_model_shown(uint64_t seed, uint32_t round);
/* Whether IP is in the program's near or far text. */
int walk_model_has(uint64_t ip);
