/*
 * Code compiled to nodes for bench_walk: straight runs, with direct jumps and calls folded in, up
 * to the branch that the trace decides.
 *
 * A link is a node's number, shifted left by one, plus the bit LINK_MORE. LINK_MORE says that
 * following the link takes more work: calls must be pushed, the next node is no conditional branch,
 * or the target is not compiled yet.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/code/insn.h"
#include "tests/bench/code.h"

#define LINK_MORE 1u /* alone: not compiled, or no conditional branch */

enum node_kind { NODE_COND, NODE_RET, NODE_INDIRECT, NODE_END };

struct node {
	uint32_t next[2]; /* links: not taken, taken; both LINK_MORE if it is no NODE_COND */
};

/* The part of a node that the loop reads only where a link says LINK_MORE. */
struct node_more {
	uint64_t address;
	uint64_t targets[2];	 /* of NODE_COND */
	uint32_t calls, n_calls; /* oldest first, index into nodes->calls */
	uint32_t instructions;
	uint8_t kind;
};

/* A call's return address. Its node is looked up at the first return. */
struct node_call {
	uint64_t address;
	uint32_t link; /* 0: not known yet */
};

struct node_slot {
	uint64_t address;
	uint32_t link; /* 0: empty */
};

struct nodes {
	const struct code *code; /* borrowed */
	struct insn_reader *reader;
	struct node *nodes; /* number 0 is unused; likewise in more */
	struct node_more *more;
	struct node_call *calls;
	struct node_slot *slots; /* open hash, a power of two */
	uint32_t n, n_calls, n_slots;
};

/* 0 or -ENOMEM. */
int nodes_init(struct nodes *n, const struct code *code);
void nodes_done(struct nodes *n);
/* The link to ADDRESS; compiles the node if necessary. */
uint32_t nodes_link(struct nodes *n, uint64_t address);
