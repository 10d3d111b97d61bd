/*
 * Code compiled for the walk: blocks folded into nodes. A node is what executes between two things
 * that a trace tells: straight code with the direct calls and jumps in it, up to a conditional or
 * an indirect branch. Where it leads is kept as links: by one decision, and by three at once.
 *
 * A node belongs to code by content and not by address: a library that lies in several address
 * spaces is compiled once. Content is a piece of bytes as the code function gave it; where it lies
 * in an address space is a place. Nodes do not cross the end of a piece.
 *
 * Used by the hot loop (node_walk.c) and by who reads its steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/graph.h"
#include "decoder/code/item.h"

enum node_kind {
	NODE_NEW,      /* not compiled yet */
	NODE_COND,     /* ends with a conditional branch */
	NODE_RET,      /* ... a near return */
	NODE_JUMP_IND, /* ... an indirect jump */
	NODE_CALL_IND, /* ... an indirect call */
	NODE_GO,       /* ... a direct branch or nothing: it would be too long */
	NODE_STOP,     /* here the stepping walk has to go on; nothing of it is executed */
	NODE_CALLS,    /* of a link: one of those but NODE_COND and NODE_GO, in which a call is */
};

/* Parts of a node at most: what a step can cost. */
#define NODE_PARTS 6u
#define NODE_PLAIN 0xffu /* of a part: it ends with no branch */

/* Straight code of a node. Offsets are from the beginning of its code. */
struct node_part {
	uint32_t start, last; /* its first instruction, its last one: the branch */
	uint16_t insns;
	uint8_t kind;  /* enum flow_kind of the branch; it goes to the next part's start */
	uint8_t flags; /* FLOW_ZERO_LENGTH */
};

/* What a node executes. */
struct node_info {
	uint32_t code;	  /* number of its content */
	uint32_t next;	  /* behind its last instruction; of NODE_GO: where it goes on */
	uint32_t target;  /* NODE_COND */
	uint32_t insns;	  /* in all */
	uint8_t kind;	  /* enum node_kind, never NODE_CALLS */
	uint8_t mode;	  /* enum insn_mode */
	uint8_t n_parts;  /* the last one ends with the branch that the node ends with */
	uint8_t n_direct; /* branches of the parts but the one that the node ends with */
	struct node_part parts[];
};

/* A step of the walk: a node and how it went on: NUMBER << 4 and one of
 *   0001	by a TIP to the next step's node; of NODE_GO without anything,
 *   001d	by the decision d; of a return by a compressed one,
 *   01dd	by two decisions, the older one first: the node that the first leads to went on by
 *the second, 1ddd	by three; 0000	no step: what follows is in code of the place NUMBER. */
#define NODE_STEP_BITS	 4u
#define NODE_STEP_PLACE	 0u
#define NODE_STEP_TARGET 1u

static inline uint32_t node_of_step(uint32_t step)
{
	return step >> NODE_STEP_BITS;
}

/* How many decisions; not of NODE_STEP_PLACE. */
static inline unsigned int node_decisions(uint32_t step)
{
	return 31u - (unsigned int)__builtin_clz(step & 15u);
}

struct nodes;

/* For the hot loop: an edge is LINK << 32 | NUMBER << 5 | enum node_kind << 2 | decisions: to node
 * NUMBER, by so many decisions (0: not known yet), with the call on its way that returns to node
 * LINK (0: there is none). */
#define NODE_EDGE_KIND(e)   ((uint32_t)(e) >> 2 & 7u)
#define NODE_EDGE_NUMBER(e) ((uint32_t)(e) >> 5)
#define NODE_EDGE_CALL(e)   ((uint32_t)((e) >> 32))

struct node {
	uint64_t self;	  /* the edge that leads here, without decisions and call */
	uint64_t link[2]; /* NODE_COND: by decision; NODE_GO: [0] */
	struct node_info *info;
	uint32_t code, offset;
	uint32_t call;	      /* the node behind the call in it; 0: none */
	uint32_t return_node; /* NODE_CALL_IND: the node behind it */
	uint8_t mode;	      /* enum insn_mode */
};

struct node_table {
	_Alignas(64) uint64_t edges[8]; /* by three decisions, the oldest one first */
};

/* Where a piece of code lies in an address space. */
struct node_place {
	uint64_t context, address, size;
	uint32_t code;
	bool changing; /* as struct flow_code has it */
};

struct nodes {
	struct node *list;	   /* [0] is none */
	struct node_table *tables; /* of the same numbers */
	struct node_place *places;
	uint32_t n, max, n_places;
	bool changing; /* some code of them may have changed */
	/* There are none of code that reaches farther; the user may set it lower. */
	uint64_t ip_end;
	struct nodes_inside *inside;
};

/* GRAPH is borrowed: its blocks are what nodes are made of. MAX_BYTES: of all memory; when that is
 * used up there are no new nodes. NULL: no memory. */
struct nodes *nodes_new(struct graph *graph, size_t max_bytes);
void nodes_free(struct nodes *n);
/* The node at IP, its number and place. 0; NODES_NONE: there cannot be one, or no more; -ENOMEM. */
#define NODES_NONE 1
int nodes_at(struct nodes *n, uint64_t context, uint8_t mode, uint64_t ip, uint32_t *ret_number,
	     uint32_t *ret_place);
/* Compiles node NUMBER, of code that lies at PLACE, unless it is; its `self` then is complete.
 * Results as above. May end the life of the graph's blocks. */
int nodes_compile(struct nodes *n, uint32_t number, uint32_t place);
/* Where several threads use them nodes are made, and asked for, between these two (graph_lock). */
void nodes_lock(struct nodes *n, bool known);
void nodes_unlock(struct nodes *n);
bool nodes_unlock_and_ask(struct nodes *n);

/* The edge that leads to node NUMBER; what is behind it can be read as far as its kind says. */
static inline uint64_t nodes_self(const struct nodes *n, uint32_t number)
{
	return __atomic_load_n(&n->list[number].self, __ATOMIC_ACQUIRE);
}

/* What node NUMBER executes; compiled before. Lives as long as the nodes. */
static inline const struct node_info *nodes_info(const struct nodes *n, uint32_t number)
{
	return n->list[number].info;
}

/* The node behind NUMBER, a NODE_COND, by a decision that was met before; 0: it was not. */
static inline uint32_t nodes_next(const struct nodes *n, uint32_t number, bool taken)
{
	return NODE_EDGE_NUMBER(__atomic_load_n(&n->list[number].link[taken], __ATOMIC_ACQUIRE));
}

/* Where the code of a place begins in its address space. */
static inline uint64_t nodes_place_address(const struct nodes *n, uint32_t place)
{
	return n->places[place].address;
}

/* How many places there are, at least: another thread may find more. */
static inline uint32_t nodes_count_places(const struct nodes *n)
{
	return __atomic_load_n(&n->n_places, __ATOMIC_ACQUIRE);
}

/* One more than the largest number of a node that there is. */
static inline uint32_t nodes_count(const struct nodes *n)
{
	return __atomic_load_n(&n->n, __ATOMIC_ACQUIRE);
}
