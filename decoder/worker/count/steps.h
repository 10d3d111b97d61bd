/*
 * What a step of a walk executes (decoder/hot/nodes.h): straight pieces of code, each up to a
 * branch that was taken or a place where none was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/hot/nodes.h"

/* Offsets are from the beginning of the code. */
struct steps_piece {
	uint32_t start, last; /* its first instruction, its last one: the branch */
	uint32_t to;	      /* where it goes, unless ELSEWHERE */
	uint16_t insns;
	uint8_t kind;	 /* enum flow_kind of a branch that was taken; STEPS_ON */
	uint8_t flags;	 /* FLOW_ZERO_LENGTH */
	uint8_t decided; /* by how many decisions and targets of the step, its own included */
	bool direct;	 /* no packet tells of it */
	bool elsewhere;	 /* it goes to where the next step is */
};
#define STEPS_ON NODE_PLAIN /* none was taken: the run goes on with the next piece */

/* Pieces of a step at most. */
#define STEPS_MAX_PIECES 64u

/* The pieces of STEP, which is no NODE_STEP_PLACE, in order; TO has room for STEPS_MAX_PIECES.
 * Their number. */
size_t steps_pieces(const struct nodes *nodes, uint32_t step, struct steps_piece *to);
/* How many of them end with a branch that was taken: items. */
unsigned int steps_items(const struct nodes *nodes, uint32_t step);
/* Where the step behind the one at AT of WALK begins; STEPS are the batch's, BASE is where the
 * place of the one at AT does. */
uint64_t steps_behind(const struct nodes *nodes, const uint32_t *steps,
		      const struct flow_walk *walk, uint32_t at, uint64_t base);
