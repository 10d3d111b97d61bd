/*
 * The walk's state, shared by the files that are the walk: flow.c (the door), flow_walk.c
 * (code), flow_event.c (what happens between instructions, gaps), flow_try.c (trials).
 */
#pragma once

#include "decoder/event.h"
#include "decoder/flow.h"
#include "decoder/graph.h"
#include "decoder/retstack.h"
#include "decoder/timing.h"

#define FLOW_ITEMS	 4096u
#define FLOW_STEP_ITEMS	 4u /* a step adds at most so many items */
#define FLOW_GRAPH_BYTES ((size_t)256 << 20)

/* When something happened, and the packet that says so. */
struct flow_when {
	uint64_t lo, hi, offset;
};

struct flow {
	struct flow_config config;
	struct flow_stats stats;
	struct event_reader reader;
	struct graph *graph;  /* its own, unless it shares */
	struct flow *scratch; /* of flow_try; NULL: not needed yet */
	struct retstack returns;

	/* Where execution stands. */
	bool enabled;
	bool within;  /* behind a gap: still the same stay in user code as before it */
	bool resumed; /* behind a gap: the next address is where it goes on */
	bool in_tx, done, started;
	uint8_t mode; /* enum insn_mode */
	uint64_t context;
	uint64_t ip;		   /* next instruction */
	struct graph_block *block; /* at ip; NULL: to be looked up */
	struct graph_block **link; /* where to note it then; NULL: nowhere */
	uint64_t link_generation;
	uint64_t run_start;
	uint32_t run_insns;
	uint64_t offset; /* of the last item */

	/* What comes next: branch decisions in hand, then an event. A deferred TIP may be read
	 * while decisions are left. */
	uint64_t tnt_bits;
	unsigned int tnt_n;
	struct flow_when tnt_when;
	bool have_event;
	struct event event;
	struct flow_when event_when;
	struct flow_when past; /* of the packet that was used last */
	uint64_t branch_lo;    /* lower bound at the last packet that shows branches */

	/* Endless loop detection (Brent): an address met again without a packet in between. */
	uint64_t loop_mark;
	uint32_t loop_steps, loop_limit;

	/* The batch. */
	bool full;
	bool later; /* the context function does not know yet */
	uint32_t max_items;
	struct flow_item left; /* of flow_left */
	bool have_left;
	bool asked; /* context() has answered for the event in hand */
	uint64_t asked_context;
	uint8_t run_mode; /* of the batch's runs */
	size_t n_items, n_gaps;
	struct flow_item items[FLOW_ITEMS];
	struct flow_gap gaps[FLOW_ITEMS];

	struct timing timing;
};

/* flow_event.c */
/* Reads an event into f->event, which must be free. */
void flow_read_event(struct flow *f);
/* Makes sure that there are decisions or an event. */
void flow_load(struct flow *f);
/* Adds an item with the run so far, and begins a run at its TO. */
struct flow_item *flow_push(struct flow *f, enum flow_kind kind, uint64_t from, uint64_t to,
			    const struct flow_when *when);
/* The event in hand is done with. */
void flow_use_event(struct flow *f);
/* Execution goes on at IP, of which no block is known. */
void flow_go(struct flow *f, uint64_t ip);
/* Takes over the event's mode; the batch ends where it changes. */
void flow_take_mode(struct flow *f, uint8_t mode);
/* The walk cannot go on from ADDRESS: a gap from the next unused packet to where it can. */
void flow_fail(struct flow *f, enum fault fault, uint64_t address);
/* A step while tracing is off. */
void flow_step_off(struct flow *f);
/* While tracing is on and no decisions are left: whether the event in hand takes place wherever
 * the walk stands, and then does it. */
bool flow_step_at_once(struct flow *f);
/* Tracing ends with the item that was pushed last. */
void flow_leave(struct flow *f);
/* The walk has come to the event's FROM. */
void flow_arrive(struct flow *f);
/* The trace ends with the walk at FROM. */
void flow_end(struct flow *f, uint64_t from);

/* flow_walk.c */
/* A step while tracing is on: events, or a block. 0 or -ENOMEM. */
int flow_step_on(struct flow *f);
