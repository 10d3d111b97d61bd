/*
 * Code compiled for the hot loop, the hot loop itself, and threads that walk ahead.
 *
 * A node is what executes between two things that a trace tells: straight code with the direct
 * calls and jumps in it, up to a conditional or an indirect branch. Links say where a node leads:
 * by one decision, and by three at once. nodes.c stores nodes, node_make.c compiles them from
 * blocks. The hot loop (node_walk.c, and node_rare.c for what is rare) goes over plain packets and
 * writes steps. ahead.c has threads walk segments of a trace ahead (ahead_walk.c), on threads that
 * exist before they are needed (crew.c).
 *
 * Decisions that govern the room:
 * - A node belongs to code by content and not by address: a library that lies in several address
 *   spaces is compiled once. Content is a piece of bytes as the code function gave it; where it
 *   lies in an address space is a place. Nodes do not cross the end of a piece.
 * - The hot loop depends on nothing but its own struct and code, so other threads can run it. In
 *   front of any packet but TNT, TIP, PAD and packets of time, and at every doubt, it stops and the
 *   stepping walk goes on.
 * - Threads guess what the walk will have at a PSB, and keep the state before and behind each
 * piece. The walk takes a piece only where its own state is the one before the piece, so a wrong
 * guess costs time and nothing else.
 * - Nodes are read without a lock and made under the graph's lock. Numbers, infos and places never
 *   move. Only the caller's thread asks for code; for other threads unknown code ends a segment.
 * - Trace and code are hostile: the search for a node, the cost of a node and the memory of all are
 *   bounded. Segments that are ahead are few for each thread, so memory does not grow with the
 *   trace.
 *
 * A struct nodes borrows its graph. Flows that share code share nodes and threads.
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
	NODE_GO,       /* ... a direct branch or no branch, as the node would be too long */
	NODE_STOP,     /* the stepping walk has to go on here; nothing of the node is executed */
	NODE_CALLS,    /* of a link: another kind than NODE_COND and NODE_GO, with a call in it */
};

/* Most parts of a node: what a step can cost. */
#define NODE_PARTS 6u
#define NODE_PLAIN 0xffu /* kind of a part that ends with no branch */

/* Straight code of a node. Offsets are from the beginning of its code. */
struct node_part {
	uint32_t start, last; /* the first instruction, and the last one: the branch */
	uint16_t insns;
	uint8_t kind;  /* enum flow_kind of the branch; it goes to the next part's start */
	uint8_t flags; /* FLOW_ZERO_LENGTH */
};

/* The code that a node executes. */
struct node_info {
	uint32_t code;	  /* number of its content */
	uint32_t next;	  /* behind the last instruction; of NODE_GO: where execution goes on */
	uint32_t target;  /* NODE_COND */
	uint32_t insns;	  /* in all */
	uint8_t kind;	  /* enum node_kind, never NODE_CALLS */
	uint8_t mode;	  /* enum insn_mode */
	uint8_t n_parts;  /* the last one ends with the branch that the node ends with */
	uint8_t n_direct; /* branches of the parts but the one that the node ends with */
	struct node_part parts[];
};

/* A step of the walk is a node and how execution went on: NUMBER << 4 and one of
 *   0001  by a TIP to the next step's node; of NODE_GO, without a packet
 *   001d  by decision d; of a return, by a compressed return
 *   01dd  by two decisions, the older one first: the node that the first decision leads to went on
 * by the second one 1ddd  by three decisions 0000  no step: what follows is in code of the place
 * NUMBER */
#define NODE_STEP_BITS	 4u
#define NODE_STEP_PLACE	 0u
#define NODE_STEP_TARGET 1u

static inline uint32_t node_of_step(uint32_t step)
{
	return step >> NODE_STEP_BITS;
}

/* The number of decisions of a step, which must not be NODE_STEP_PLACE. */
static inline unsigned int node_decisions(uint32_t step)
{
	return 31u - (unsigned int)__builtin_clz(step & 15u);
}

struct nodes;

/* An edge, for the hot loop: CALL << 32 | NUMBER << 5 | enum node_kind << 2 | decisions. It leads
 * to node NUMBER by so many decisions (0: not known yet). On the way is a call that returns to node
 * CALL (0: there is none). */
#define NODE_EDGE_KIND(e)   ((uint32_t)(e) >> 2 & 7u)
#define NODE_EDGE_NUMBER(e) ((uint32_t)(e) >> 5)
#define NODE_EDGE_CALL(e)   ((uint32_t)((e) >> 32))

struct node {
	uint64_t self;	  /* the edge that leads here, without decisions and call */
	uint64_t link[2]; /* NODE_COND: by decision; NODE_GO: [0] */
	struct node_info *info;
	uint32_t code, offset;
	uint32_t call;	      /* the node behind the call in this node; 0: none */
	uint32_t return_node; /* NODE_CALL_IND: the node behind that call */
	uint8_t mode;	      /* enum insn_mode */
};

struct node_table {
	_Alignas(64) uint64_t edges[8]; /* by three decisions, the oldest one first */
};

/* Where a piece of code lies in an address space. */
struct node_place {
	uint64_t context, address, size;
	uint32_t code;
	uint8_t changing; /* as struct flow_code has it */
};

struct nodes {
	struct node *list;	   /* [0] is none */
	struct node_table *tables; /* of the same numbers */
	struct node_place *places;
	uint32_t n, max, n_places;
	bool changing;	 /* some code may have changed */
	uint64_t ip_end; /* code that reaches farther has no nodes; the user may set it lower */
	struct nodes_inside *inside;
};

/* GRAPH (borrowed) has the blocks that nodes are made of. MAX_BYTES: of all memory; when it is used
 * up no new nodes are made. NULL: no memory. */
struct nodes *nodes_new(struct graph *graph, size_t max_bytes);
void nodes_free(struct nodes *n);
/* The node at IP, its number and place. 0; NODES_NONE: there cannot be a node there, or no more of
 * them; -ENOMEM. */
#define NODES_NONE 1
int nodes_at(struct nodes *n, uint64_t context, uint8_t mode, uint64_t ip, uint32_t *ret_number,
	     uint32_t *ret_place);
/* Compiles node NUMBER, of code that lies at PLACE, unless it is compiled already; its `self` is
 * complete then. Results as of nodes_at. May end the life of the graph's blocks. */
int nodes_compile(struct nodes *n, uint32_t number, uint32_t place);
/* With several threads the two functions above must be called between these (as graph_lock). */
void nodes_lock(struct nodes *n, bool known);
void nodes_unlock(struct nodes *n);
bool nodes_unlock_and_ask(struct nodes *n);

/* The edge that leads to node NUMBER; the node can be read as far as the edge's kind says. */
static inline uint64_t nodes_self(const struct nodes *n, uint32_t number)
{
	return __atomic_load_n(&n->list[number].self, __ATOMIC_ACQUIRE);
}

/* The code that node NUMBER, which must be compiled, executes. Lives as long as the nodes. */
static inline const struct node_info *nodes_info(const struct nodes *n, uint32_t number)
{
	return n->list[number].info;
}

/* The node behind NUMBER, a NODE_COND, by a decision; 0: the decision was never met. */
static inline uint32_t nodes_next(const struct nodes *n, uint32_t number, bool taken)
{
	return NODE_EDGE_NUMBER(__atomic_load_n(&n->list[number].link[taken], __ATOMIC_ACQUIRE));
}

/* Where the code of a place begins in its address space. */
static inline uint64_t nodes_place_address(const struct nodes *n, uint32_t place)
{
	return n->places[place].address;
}

/* The number of places, at least: another thread may find more. */
static inline uint32_t nodes_count_places(const struct nodes *n)
{
	return __atomic_load_n(&n->n_places, __ATOMIC_ACQUIRE);
}

/* One more than the largest number of a node. */
static inline uint32_t nodes_count(const struct nodes *n)
{
	return __atomic_load_n(&n->n, __ATOMIC_ACQUIRE);
}
