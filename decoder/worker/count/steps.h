/*
 * Steps of a walk (decoder/hot/nodes.h): which code they execute, and when.
 *
 * A step executes straight pieces of code, each up to a branch that was taken or to a place where
 * no branch was taken. steps_pieces() gives them, a steps_clock gives each of their branches its
 * interval of time, a steps_table holds what a counter knows of each kind of step, and a
 * steps_count adds up instructions and branches, and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/hot/nodes.h"
#include "decoder/worker/replay/replay.h"

/* --- Pieces --- */

/* Offsets are from the beginning of the code. */
struct steps_piece {
	uint32_t start, last; /* the first instruction; the last one: the branch */
	uint32_t to;	      /* where the branch goes, unless ELSEWHERE */
	uint16_t insns;
	uint8_t kind;	 /* enum flow_kind of a branch that was taken; STEPS_ON */
	uint8_t flags;	 /* FLOW_ZERO_LENGTH */
	uint8_t decided; /* decisions and targets of the step so far, including the branch's own */
	bool direct;	 /* no packet tells of the branch */
	bool elsewhere;	 /* the branch goes to where the next step begins */
};
#define STEPS_ON NODE_PLAIN /* no branch was taken: the run goes on with the next piece */

/* A step has at most this many pieces. */
#define STEPS_MAX_PIECES 64u

/* Writes the pieces of STEP, which is no NODE_STEP_PLACE, to TO in order; TO has room for
 * STEPS_MAX_PIECES. Returns their number. */
size_t steps_pieces(const struct nodes *nodes, uint32_t step, struct steps_piece *to);
/* How many of the pieces end with a branch that was taken: items. */
unsigned int steps_items(const struct nodes *nodes, uint32_t step);
/* Where the step behind the step at AT of WALK begins. STEPS are the batch's; BASE is the address
 * of the place of the step at AT. */
uint64_t steps_behind(const struct nodes *nodes, const uint32_t *steps,
		      const struct flow_walk *walk, uint32_t at, uint64_t base);
/* The step is of a NODE_GO, of which no packet tells. */
static inline bool steps_is_go(const struct nodes *nodes, uint32_t step)
{
	return (step & 15u) == NODE_STEP_TARGET &&
	       NODE_EDGE_KIND(nodes_self(nodes, node_of_step(step))) == NODE_GO;
}

/* --- Time: for each branch the interval that the stepping walk would give it --- */

struct steps_when {
	uint64_t lo, hi;
};

struct steps_clock {
	const struct nodes *nodes;
	const uint32_t *steps;		     /* the batch's */
	const struct flow_time *time, *last; /* the current one; the walk's last one */
	uint32_t end;			     /* of the walk's steps */
	bool begun;			     /* a decision or target of the current time was used */
	struct steps_when direct, first, rest;
};

/* Sets the clock to the step at AT (index into the batch's steps), a step of WALK. */
void steps_clock_begin(struct steps_clock *c, const struct nodes *nodes,
		       const struct flow_batch *batch, const struct flow_walk *walk, uint32_t at);
/* Moves on to the walk's next time, which must exist. */
void steps_clock_next(struct steps_clock *c);

/* The first step behind those of the current time. */
static inline uint32_t steps_clock_until(const struct steps_clock *c)
{
	return c->time == c->last ? c->end : c->time[1].step;
}

/* When a branch of a step of the current time was executed; DECIDED and DIRECT as in struct
 * steps_piece. */
static inline const struct steps_when *steps_clock_when(const struct steps_clock *c,
							unsigned int decided, bool direct)
{
	if (c->begun || decided > 1)
		return &c->rest;
	if (direct)
		return decided == 0 ? &c->direct : &c->rest;
	return &c->first;
}

/* --- Tables with a record for each kind of step; bounded, as nodes are --- */

struct steps_table {
	void *records;	/* by step, for all nodes and places below N_NODES; zero at first */
	size_t n_nodes; /* 0: there are no records */
	size_t size;	/* of a record */
};

/* Makes room for all steps of NODES, which may move the records. 0 or -ENOMEM. */
int steps_table_reserve(struct steps_table *t, const struct nodes *nodes);
/* Sets all records to zero. */
void steps_table_clear(struct steps_table *t);
void steps_table_done(struct steps_table *t);

/* --- Sums: instructions and branches, for the flow's statistics --- */

struct steps_count {
	const struct nodes *nodes; /* whose steps the table has */
	struct steps_table table;
};

void steps_count_done(struct steps_count *c);
/* Adds what the walks of S executed to the statistics of its flow. 0 or -ENOMEM. */
int steps_count_stretch(struct steps_count *c, const struct replay_stretch *s);
