/*
 * The walk's state, and what the files of the room call of each other. Each part of the state is a
 * struct of its own, with the file that owns it.
 */
#pragma once

#include "decoder/code/graph.h"
#include "decoder/code/retstack.h"
#include "decoder/flow/flow.h"
#include "decoder/hot/ahead.h"
#include "decoder/hot/node_walk.h"
#include "decoder/packet/event.h"
#include "decoder/time/timing.h"

#define FLOW_ITEMS	 4096u
#define FLOW_STEP_ITEMS	 16u /* most items that a step adds */
#define FLOW_MARGIN	 16u /* bytes that the hot loop may look at behind its limit */
#define FLOW_HELD	 8u  /* marks that wait for a branch */
#define FLOW_GRAPH_BYTES ((size_t)128 << 20)
#define FLOW_NODES_BYTES ((size_t)256 << 20)

/* When something happened, and the packet that says so. */
struct flow_when {
	uint64_t lo, hi, offset;
};

/* The version of the kernel's code at IP that the walk met last. */
struct flow_version {
	uint64_t ip;
	uint32_t version; /* 0: free */
};

/* The pieces between the seams of a trace (flow_seam.c). config.size is the end of the piece at
 * hand, and config.cut says whether that piece was cut off. */
struct flow_pieces {
	size_t next;	   /* index into config.seams: where the piece ends */
	size_t size, stop; /* of the whole trace */
	bool cut;	   /* the whole trace was */
};

/* Where execution stands. Written by the whole walk. */
struct flow_at {
	bool enabled; /* tracing is on */
	bool within;  /* behind a gap: still the same stay in user code as before the gap */
	bool resumed; /* behind a gap: the next address is where execution goes on */
	bool doubt;   /* code that may have changed was walked since the last PSB or gap */
	bool guest;   /* a virtual machine runs */
	bool in_tx;
	uint8_t missing; /* enum fault: since the last PSB code was missing, so calls are not known
			  */
	uint8_t mode;	 /* enum insn_mode */
	uint64_t context;
	uint64_t ip;		   /* next instruction */
	struct graph_block *block; /* at ip; NULL: to be looked up */
	struct graph_block **link; /* where to note the block when it is looked up; NULL: nowhere */
	uint64_t link_generation;
	uint64_t run_start;
	uint32_t run_insns;
	uint64_t offset; /* of the last item */
};

/* Packets in hand: branch decisions, then an event (flow_event.c, flow_back.c). A deferred TIP may
 * be read while decisions are left. */
struct flow_in {
	uint64_t tnt_bits;
	unsigned int tnt_n;
	struct flow_when tnt_when; /* of the next decision */
	uint64_t tnt_hi;	   /* of the decisions behind the packet's first one */
	bool tnt_begun;		   /* the first one was taken */
	bool have_event;
	bool branched;	  /* since the last decision or target no other packet was used */
	uint64_t decided; /* the branch that this decision or target was about */
	struct event event;
	struct flow_when event_when;
	uint64_t event_first_hi; /* of the first decision, if the event is a TNT */
	struct flow_when past;	 /* of the packet that was used last; lo: of one with a place */
};

/* Marks (flow_mark.c). */
struct flow_held {
	struct flow_mark list[FLOW_HELD]; /* they stand behind the branch at hand */
	uint8_t n;
	bool holding;  /* one was held in this step */
	bool tick;     /* the decisions in hand have a tick */
	bool tick_due; /* the branch that was just done has a tick */
};

/* Looking for where decoding can go on (flow_gap.c). */
struct flow_sync {
	bool on;	     /* GAP is to be pushed where decoding goes on */
	bool lost_bits;	     /* decisions were thrown away in the gap */
	struct flow_gap gap; /* while ON */
	uint64_t end;	     /* of the last gap: the offset behind it */
};

/* Endless loop detection (Brent): an address met again without a packet in between (flow_walk.c).
 */
struct flow_loop {
	uint64_t mark;
	uint32_t steps, limit;
};

/* The batch (flow.c). */
struct flow_out {
	bool full;
	bool later;	    /* the context function does not know yet */
	uint8_t run_mode;   /* of the batch's runs */
	uint32_t max_items; /* room */
	uint32_t few_items; /* what a batch takes that is not open */
	size_t n_items, n_gaps, n_marks;
};

/* Questions that are asked together (flow.c). */
struct flow_group {
	bool open; /* questions are asked within the batch up to the packets at UNTIL */
	uint64_t until, asked_at;
	uint32_t n_firm; /* the batch's items that are no plain branches of user code */
	bool parted;	 /* the batch ended as the context function wanted (flow_split) */
};

/* The context function: its question and its answer (flow_event.c, flow_kernel.c). */
struct flow_ask {
	bool asked;	/* it has answered CONTEXT for the event in hand */
	bool changes;	/* the next batch is code of NEXT */
	bool returning; /* within it: execution comes back from the kernel's code */
	bool switched;	/* within it: another thread has the CPU */
	bool splits;	/* it wants a new batch */
	bool have_left;
	uint64_t context, next;
	struct flow_item left; /* of flow_left */
};

/* A trial of versions of the kernel's code (flow_kernel.c). */
struct flow_trying {
	uint64_t ip; /* the place that the trial is about, */
	uint32_t version;
	bool late;  /* and at other places in doubt the newest version */
	uint32_t n; /* trials so far */
};

/* Which returns pop the return stack (flow_returns.c). */
struct flow_rule {
	uint8_t rule; /* enum retstack_rule */
	/* The two rules differ in what lies below the addresses in f->returns: ALL and COMPRESSED
	 * have that, as addresses. */
	bool parted;
	struct retstack all, compressed;
	bool lost; /* since the last PSB a gap may have had calls: an empty stack tells nothing */
	uint32_t trials;
};

/* The version of the kernel's code at each place that changes (flow_kernel.c): a hash table. */
struct flow_versions {
	struct flow_version *list;
	size_t n, n_max;
};

/* Threads that walk ahead (flow_nodes.c). */
struct flow_ahead {
	struct ahead *threads; /* of the flow that keeps the code; NULL: there are none */
	struct ahead_trace *trace;
	bool tried;
	uint64_t steps; /* used of other threads; tests read this */
};

/* Plain packets, over nodes: to the hot loop (flow_nodes.c) and back from it (flow_back.c). */
struct flow_room {
	size_t steps, times, walks;
};

struct flow_plain {
	struct node_walk walk;
	uint64_t context; /* of the return addresses */
	uint8_t mode;
	bool known;	/* CONTEXT and MODE are set */
	uint64_t until; /* TIME holds up to this offset */
	struct flow_time time;
	size_t n_steps, n_times, n_walks; /* of the batch */
	/* Room, and one step and one time more: what there is, what a batch that is not open takes,
	 * and what this batch takes. */
	struct flow_room has, few, max;
	const uint32_t
		*base; /* the batch's steps: STEPS, or other threads' pieces; NULL: none yet */
	uint32_t *steps;
	struct flow_time *times;
	struct flow_walk *walks;
	struct node_point *points;
};

struct flow {
	struct flow_config config;
	struct flow_stats stats;
	struct event_reader reader;
	struct graph *graph;  /* its own, unless it shares */
	struct flow *scratch; /* of flow_try; NULL: not needed yet */
	struct retstack returns;
	struct errata errata;
	bool trial;	   /* this flow is a trial, whose items are not given (flow_try.c) */
	bool guests_known; /* config.guests was looked at */
	bool done, started;
	struct flow_pieces pieces;
	struct flow_at at;
	struct flow_in in;
	struct flow_held held;
	struct flow_sync sync;
	struct flow_loop loop;
	struct flow_out out;
	struct flow_group group;
	struct flow_ask ask;
	struct flow_trying trying;
	struct flow_rule rule;

	/* From here on a flow for trials keeps what it has (flow_try.c, flow_kernel.c). */
	struct flow_versions versions;
	/* Room for out.max_items of each; marks only where they are wanted. */
	struct flow_item *items;
	struct flow_gap *gaps;
	struct flow_mark *marks;
	/* Plain packets (flow_nodes.c). */
	struct nodes *nodes;	  /* its own, unless it shares */
	struct flow_plain *plain; /* NULL: not needed yet */
	struct node_target
		*targets; /* of all flows that share this flow's code; NULL: not needed yet */
	struct flow_ahead ahead;

	struct timing timing;
};

/* flow.c */
/* The first of the flows that share code with F, perhaps F itself: the code is kept there. */
struct flow *flow_first(struct flow *f);
/* A flow with room for N items, all zero else; NULL: no memory. */
struct flow *flow_alloc(size_t n, bool marks);

/* flow.c: groups of questions */
/* Whether the context function may be asked about the event in hand within this batch. False: the
 * batch ends before. */
bool flow_may_ask(struct flow *f);
/* Whether more questions may be asked within this batch. */
bool flow_is_open(struct flow *f);
void flow_begin_group(struct flow *f);
/* *RET: the batch has room for a step. 0 or -ENOMEM. */
int flow_has_room(struct flow *f, bool *ret);

/* flow_seam.c */
/* The walk begins at BEGIN, a PSB or the end, and ends at STOP at the latest. */
void flow_begin_trace(struct flow *f, size_t begin, size_t stop);
/* The walk has come to the end of a piece, and there is another one. */
bool flow_has_piece(const struct flow *f);
/* Begins that piece, with a gap. The batch must be empty. */
void flow_begin_piece(struct flow *f);

/* flow_try.c */
#define FLOW_TRIAL_ITEMS 1024u
/* The flow for trials; NULL: no memory. */
struct flow *flow_scratch(struct flow *f);
/* The flow for trials as a second walk from where F stands, whose items nobody sees and which is
 * full after about ITEMS items (at most FLOW_TRIAL_ITEMS - FLOW_STEP_ITEMS). It knows no other
 * context than F's. NULL: no memory. */
struct flow *flow_fork(struct flow *f, uint32_t items);

/* flow_returns.c */
void flow_begin_rule(struct flow *f);
/* No return address is known any more. LOST: although there may be compressed returns to some. */
void flow_forget_returns(struct flow *f, bool lost);
/* A near return that is not compressed. */
void flow_pass_return(struct flow *f);
/* Before a compressed return: decides where the return stack's rules differ. True: blocks may have
 * been thrown away, and the step has to be done anew. */
bool flow_decide_return(struct flow *f);

/* flow_nodes.c */
/* Goes over plain packets as far as possible. *RET: at least one step was made. 0 or -ENOMEM. */
int flow_walk_plain(struct flow *f, bool *ret);
/* The steps of a new batch. */
void flow_begin_steps(struct flow *f);
void flow_end_steps(const struct flow *f, struct flow_batch *ret);
void flow_free_plain(struct flow *f);
/* Corrects the newest walk, number WALK: its last branch led to TO. */
void flow_mend_steps(struct flow *f, uint32_t walk, uint64_t to);
/* Takes the newest return address off the stack. False: there is none. */
bool flow_pop_return(struct flow *f, uint64_t *ret);
uint64_t flow_return_address(const struct flow *f, const struct retstack_entry *e);

/* flow_back.c */
/* Takes over what p->walk came to, which began in code of PLACE: the state behind it, and its steps
 * as part of the batch. */
void flow_take_walk(struct flow *f, struct flow_plain *p, uint32_t place);

/* flow_expand.c */
/* The number of instructions that STEP, which is no NODE_STEP_PLACE, executes. */
uint32_t flow_step_insns(const struct nodes *nodes, uint32_t step);
/* Sets run_to and insns_to of W, whose STEPS end in code of PLACE. */
void flow_end_run(const struct nodes *nodes, const uint32_t *steps, struct flow_walk *w,
		  uint32_t place);

/* The address of the branch that the last decision or target of STEPS was about; 0: none. */
uint64_t flow_last_branch(const struct nodes *nodes, const uint32_t *steps, size_t n,
			  uint32_t first_place);

/* flow_kernel.c */
bool flow_is_kernel(const struct flow *f, uint64_t ip);
/* The graph's context for the code at the walk's place. False: the batch must end first. */
bool flow_code_context(struct flow *f, uint64_t *ret);
/* The same for code that is only looked at, or that is in a run of the batch. */
uint64_t flow_context_at(struct flow *f, uint64_t ip);
/* Before a far transfer or an asynchronous branch. False: not yet, the walk has to come to the
 * branch again. */
bool flow_may_cross(struct flow *f, uint64_t from, uint64_t to);
/* Behind such a branch. */
void flow_crossed(struct flow *f);
/* Behind any branch: asks the context function if another thread has the CPU now. */
void flow_look_for_switch(struct flow *f);
void flow_forget_versions(struct flow *f);

/* flow_walk.c */
/* The first N instructions of B belong to the run at hand. */
void flow_ran(struct flow *f, const struct graph_block *b, uint32_t n);
/* The time of a branch that needs no packet: after the last packet that was used, before the next.
 */
struct flow_when flow_between(const struct flow *f);

/* flow_event.c */
/* Reads an event into f->in.event, which must be free. */
void flow_read_event(struct flow *f);
/* Makes sure that decisions or an event are in hand. */
void flow_load(struct flow *f);
/* Adds an item with the run so far, and begins a run at its TO. */
struct flow_item *flow_push(struct flow *f, enum flow_kind kind, uint64_t from, uint64_t to,
			    const struct flow_when *when);
/* The event in hand is used up. */
void flow_use_event(struct flow *f);
/* Execution goes on at IP, of which no block is known. */
void flow_go(struct flow *f, uint64_t ip);
/* Takes over the event's mode; the batch ends where it changes. */
void flow_take_mode(struct flow *f, uint8_t mode);
/* Ends the batch if the context function wants that (flow_split). */
void flow_part(struct flow *f);
/* A step where no code is followed (flow_config.no_walk). */
void flow_step_read(struct flow *f);
/* A step while tracing is off. */
void flow_step_off(struct flow *f);
/* While tracing is on and no decisions are left: does the event in hand if it takes place wherever
 * the walk stands. True: it did. */
bool flow_step_at_once(struct flow *f);
/* Tracing ends with the item that was pushed last. */
void flow_leave(struct flow *f);
/* The walk has come to the event's FROM. */
void flow_arrive(struct flow *f);
/* The trace ends with the walk at FROM. */
void flow_end(struct flow *f, uint64_t from);
/* At a tick: asks the context function again. */
void flow_ask_again(struct flow *f);

/* flow_gap.c */
/* The walk cannot go on from ADDRESS: a gap from the next unused packet to where decoding can go
 * on.
 */
void flow_fail(struct flow *f, enum fault fault, uint64_t address);
/* A step while the walk looks for where decoding can go on. */
void flow_step_sync(struct flow *f);
/* The event in hand is a gap; tracing counts as off behind it. */
void flow_event_gap(struct flow *f, enum fault fault);
/* The PSB in hand does not fit: an empty gap before it, unless only the next PSB will do.
 */
void flow_push_psb_gap(struct flow *f, enum fault fault);
/* Whether FAULT says that packets and code contradict each other. */
bool flow_is_contradiction(enum fault fault);
void flow_push_gap(struct flow *f, const struct flow_gap *gap);
/* A gap from the event in hand, whose packets are part of it, to where decoding can go on. */
void flow_lose(struct flow *f, enum fault fault);

/* flow_mark.c */
/* The event in hand is a mark: places it where the walk stands. */
void flow_mark_here(struct flow *f);
/* Whether the mark in hand shows that execution was at its FROM. Some marks have a FUP while
 * tracing is off, too. */
bool flow_mark_shows(const struct flow *f);
/* The branch is done: places the marks that were held for it. */
void flow_release(struct flow *f);
/* Tracing ended somewhere in the gap: places a mark that says so. */
void flow_mark_off(struct flow *f);
/* A timing packet stood before the decision or target that was used: places a tick. */
void flow_mark_tick(struct flow *f);
/* With no decision left: does the mark in hand if it belongs into B or behind it. True: something
 * was done. */
bool flow_mark_in(struct flow *f, const struct graph_block *b);
/* The branch at the end of B needs a packet: the mark in hand stands before or behind it. False:
 * the event in hand is no mark. */
bool flow_mark_at(struct flow *f, const struct graph_block *b);

/* flow_walk.c: errata */
/* BDM64: if code does not lead to the abort in hand, the branch before it led there. */
void flow_mend_bdm64(struct flow *f);
/* SKD022: whether the walk stands at a VM entry. */
bool flow_is_vmentry(struct flow *f);

/* flow_walk.c */
/* A step while tracing is on: events, or a block. 0 or -ENOMEM. */
int flow_step_on(struct flow *f);
