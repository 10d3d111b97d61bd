/*
 * Inside of the room: the store of nodes (nodes.c, node_make.c), what the hot loop has done
 * elsewhere (node_walk.c, node_rare.c), and walking ahead (ahead.c, ahead_walk.c).
 */
#pragma once

#include "decoder/hot/ahead.h"
#include "decoder/hot/node_walk.h"
#include "decoder/hot/nodes.h"
#include "decoder/packet/event.h"

/* --- The store of nodes --- */

/* Content, as large as its mapping, told by where its bytes are read, whatever is read so far. */
struct node_code {
	uintptr_t begin;
	uint64_t size;
	uint8_t changing; /* as struct flow_code has it */
	bool ends;
};

#define NODE_CHUNK_BYTES ((size_t)256 << 10)

/* Memory for infos. */
struct node_chunk {
	struct node_chunk *next;
	size_t used;
	_Alignas(16) uint8_t bytes[NODE_CHUNK_BYTES];
};

/* A slot of the hash table; it has the offset, as nodes lie anywhere in memory. */
struct node_slot {
	uint32_t number, offset; /* number 0: free */
};

struct nodes_inside {
	struct graph *graph;
	struct node_code *codes;
	uint32_t n_codes;
	uint32_t *code_slots;	 /* number + 1 */
	struct node_slot *slots; /* of nodes */
	size_t n_slots;		 /* power of two */
	uint32_t *by_address;	 /* places sorted by context and address */
	struct node_chunk *chunks;
	size_t info_bytes, max_info_bytes;
	uint32_t writable; /* nodes that have memory */
	bool full;
};

/* The node at OFFSET of CODE, made if it is new. 0, NODES_NONE, -ENOMEM. */
int nodes_get(struct nodes *n, uint32_t code, uint32_t offset, uint8_t mode, uint32_t *ret);

/* --- node_rare.c: what the hot loop does seldom --- */

#define NODE_STRIDE 3u /* most decisions of an edge of a table */

/* Compiles the node that the walk stands at; w->edge then says its kind. 0, NODES_NONE, -ENOMEM. */
int node_walk_make(struct node_walk *w);
/* Makes *EDGE, an edge of the table of the conditional branch that the walk stands at: by up to
 * three decisions in hand, as long as conditional branches follow one another without a second
 * call. Nothing is made where too few decisions are in hand to know. 0 or -ENOMEM. */
int node_walk_edge(struct node_walk *w, uint64_t *edge);
/* Finds the node at TO. 0; NODES_NONE: left to the stepping walk; -ENOMEM. */
int node_walk_target(struct node_walk *w, uint64_t to, struct node_target *ret);
/* Passes a packet that says nothing about branches. False: another packet is in front. */
bool node_walk_pass(struct node_walk *w);

/* --- Walking ahead --- */

#define AHEAD_PIECES	   256u
#define AHEAD_RETURNS	   8192u
#define AHEAD_STEPS	   (64u << 10)
#define AHEAD_POINTS	   4096u
#define AHEAD_BYTES	   8192u       /* of the trace in a piece, about */
#define AHEAD_PIECE_STEPS  (24u << 10) /* room that a piece must have */
#define AHEAD_PIECE_POINTS 1024u       /* most of a piece */

/* A part of a trace that one thread walks at once: from a PSB to another one. */
struct ahead_segment {
	struct ahead_segment *next; /* in the list of spare segments */
	const uint8_t *begin, *end;
	uint64_t context;
	uint8_t rule;	   /* enum retstack_rule */
	bool dropped;	   /* its pieces will not be taken any more (atomic) */
	bool done;	   /* (atomic) */
	uint32_t n;	   /* pieces (atomic); they and what they hold do not change */
	const uint8_t *at; /* where the next piece begins (atomic) */
	size_t n_steps, n_points, n_returns;
	struct ahead_piece pieces[AHEAD_PIECES];
	struct retstack_entry returns[AHEAD_RETURNS];
	struct node_point points[AHEAD_POINTS + 1];
	uint32_t steps[AHEAD_STEPS + 1];
};

/* The state of one thread that walks ahead. */
struct ahead_walker {
	struct nodes *nodes;
	struct event_reader reader;
	struct retstack returns;
	struct ahead_returns listed; /* as a list of the segment; n > PT_RET_STACK: none */
	uint64_t context;	     /* of the targets, */
	uint64_t last_ip;
	uint32_t node, place; /* where execution stands */
	uint8_t mode;
	bool known; /* if there are any */
	struct node_target targets[NODE_TARGETS];
};

/* ahead_walk.c */
/* Fills S with pieces, as far as they can be guessed. */
void ahead_run(struct ahead_walker *w, const struct ahead_config *config, struct ahead_segment *s);
