/*
 * The front door of the decoder: trace bytes plus a way to get code -> executed branches in
 * batches, gaps and markers, in order, each with an interval of time. What is inside may be
 * replaced; this interface stays.
 *
 * The decoder opens nothing, logs nothing, reads no clock, keeps nothing static.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/code.h"
#include "decoder/code/item.h"
#include "decoder/packet/event.h"
#include "decoder/packet/fault.h"

struct flow_gap {
	enum fault fault;
	uint64_t offset;  /* first byte that was not understood */
	uint64_t bytes;	  /* up to where decoding went on */
	uint64_t address; /* the IP concerned; 0: none */
	uint64_t read;	  /* of the last packet that was looked at when it was found */
	uint64_t tsc_lo, tsc_hi;
	uint64_t stays; /* code is missing: how many packets more led to such code before it was
			   left */
};

/* From a step on, this is when its decisions and targets were written. */
struct flow_time {
	uint32_t step;	 /* index into the batch's steps */
	uint64_t offset; /* of the first packet it holds for */
	uint64_t lo, hi;
	uint64_t first_hi; /* of the first decision of that packet, no later than */
};

/* Plain branches, as steps (decoder/hot/nodes.h): conditional, direct and indirect ones within user
 * code, with nothing else between. Direct branches of a step's node happened between the decision
 * before it and its own: no earlier than the time (lo) of the former and no later than that (hi, of
 * a packet's first decision first_hi) of the latter. */
struct flow_walk {
	uint32_t first, n;	      /* of the batch's steps */
	uint32_t first_time, n_times; /* of its times; the first one is that of the first step */
	uint32_t place;		      /* of the first step's code (NODE_STEP_PLACE) */
	uint8_t flags;		      /* of all branches: FLOW_IN_TX */
	uint64_t begin, end;	      /* offsets of the packets that decided */
	uint64_t before; /* how early direct branches of the first step happened (TSC), at the */
	uint64_t before_offset; /* packet there */
	uint64_t item_offset;	/* of the last item before it */
	uint64_t run_start;	/* the run that is open before it: where it began */
	uint32_t run_insns;	/* and its instructions so far */
	uint64_t to;		/* where execution goes on behind the last step */
	uint64_t run_to;	/* the run that is open there: where it began, */
	uint32_t insns_to;	/* and its instructions so far */
};

struct flow_batch {
	const struct flow_item *items; /* borrowed until the next call */
	size_t n_items;
	const struct flow_gap *gaps;
	size_t n_gaps;
	const struct flow_mark *marks;
	size_t n_marks;
	/* With flow_config.steps. */
	const struct flow_walk *walks;
	size_t n_walks;
	const uint32_t *steps;
	const struct flow_time *times;
	uint64_t context; /* what the context function last gave: all items belong to it, also
			   * those of the kernel's code */
};

/* Other things seen on the way, by count; and what the trace was made of. */
struct flow_stats {
	uint64_t bytes, bytes_decoded; /* decoded: not within a gap; PAD counts as decoded */
	uint64_t instructions,
		kernel_instructions; /* of those: in the kernel's code that is at hand */
	uint64_t branches; /* items but FLOW_END and FLOW_GAP: the lines of --view=branches, as perf
			       counts branches */
	uint64_t psbs, cbr, overflows, unknown_packets;
	uint64_t tsc_first, tsc_last; /* 0: no TSC packet */
	uint64_t packets;
	uint64_t compressed_returns, returns;
};

struct flow_config {
	const uint8_t *trace; /* borrowed; oldest byte first */
	size_t size;
	/* Time: 0 where unknown. TSC = CTC * tsc_art_num / tsc_art_den; see proto/bundle/manifest.h
	 */
	uint32_t mtc_period; /* UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den;
	/* CPU of the recording, for its errata; family 0: unknown. */
	uint32_t cpu_family, cpu_model, cpu_stepping;
	/* The code around IP in CONTEXT, a number that the context function gave: 0 and *ret, or an
	 * enum fault (UNMAPPED, ANONYMOUS, IMAGE_*, NO_SPACE). Called once a piece and context;
	 * the results are cached by context. */
	int (*code)(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret);
	/* Tracing is enabled, or goes on after a PSB or a gap, or execution comes back from the
	 * kernel's code that is at hand, at IP, at a time within [lo, hi]: whose code is it from
	 * here on? Any number; an equal number means equal code at equal addresses. NULL: always 0.
	 * A new batch begins when it changes. FLOW_CONTEXT_LATER: not known yet (never at a PSB
	 * while tracing is on). With `steps` the trace alone says which of these questions are
	 * asked within one call of flow_next, but for those at PSBs while tracing is on. */
	uint64_t (*context)(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi);
	/* The kernel's code, at addresses from KERNEL_START on (0: it is not at hand, and its
	 * addresses are like others). It is the same in all contexts and asked for by KERNEL_CODE:
	 * 0 and *ret, or an enum fault, as CODE. Where the kernel patches itself it has versions:
	 * those that the code at IP may have had within [lo, hi], from the one returned to
	 * *ret_last, rising with time; 0: it never changes. A piece of code is all of one version
	 * or never changes, and `ends` where the next one may change. VERSION 0 is also asked for
	 * where an instruction reaches over the end of code that never changes, another one where
	 * such a place ends within one. */
	uint64_t kernel_start;
	int (*kernel_code)(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret);
	uint32_t (*kernel_version)(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi,
				   uint32_t *ret_last);
	/* Behind a branch to here another thread has the CPU: a batch ends with it, and the context
	 * function is asked (flow_asked_switch). 0: not known. */
	uint64_t switch_ip;
	void *userdata;
	/* Code is kept together with that of this flow, whose code and userdata are asked for it,
	 * and which must live longer; NULL: by itself. Equal contexts then are equal code. */
	struct flow *share;
	uint32_t batch_items; /* a batch has about so many at most; 0: as many as there is room for
			       */
	/* Decode only from the first PSB whose TSC is >= this (0: from the first PSB). What lies
	 * before is neither decoded nor a gap. */
	uint64_t from_tsc;
	/* So from the first PSB at or behind this offset (0: from the first PSB). */
	uint64_t from_offset;
	/* Nothing in the trace happened later than this TSC (the CPU was stopped then); 0: unknown.
	 */
	uint64_t end_tsc;
	/* The trace was cut off and not stopped (its process was killed): what lies behind its last
	 * packet is not known to have executed. Else the code is walked up to the first branch that
	 * nothing is said of, which libipt does too. */
	bool cut;
	/* Give plain branches as steps and not as items (FLOW_STEPS). Instructions and branches of
	 * steps are not in the stats before flow_counted() adds them. */
	bool steps;
	/* Everything step by step, never over nodes: what tests compare with. */
	bool stepping;
	/* Make FLOW_MARK items; and FLOW_MARK_TICK ones, at which the context is asked for, too. */
	bool marks, ticks;
	/* Code in a virtual machine is walked like any other. Else it is the gap `guest`, unless
	 * the trace was recorded within that machine. */
	bool guests;
	/* A fault is followed by nothing up to the next PSB, as libipt's decoders do when they are
	 * synchronised forward; else by the first packet that says where execution is. */
	bool resume_at_psb;
	/* Any TIP behind a fault says where execution is, as libipt's resync has it; else only
	 * behind faults that leave no doubt about the packets. */
	bool resume_at_tip;
	/* libipt's return stack: popped by compressed returns only, never emptied by a PSB. */
	bool retstack_libipt;
	/* Stop quietly where tracing is asked to go on beyond this offset; 0: size. */
	uint64_t end_offset;
	/* That decode plain branches (with `steps`), this one included; 0: one for each CPU that
	 * may be used. Neither items nor questions depend on it, but batches end elsewhere where
	 * nothing is asked. Those that share
	 * have their threads in common, as many as the first one says. The code function is only
	 * called by the caller's thread. */
	uint32_t threads;
	/* Whose they are, borrowed; NULL: they are started when they are needed. So does the first
	 * one of those that share. */
	struct crew *crew;
	/* Of the trace that a thread takes at once, about; 0: as many as are worth it. */
	uint32_t thread_bytes;
	/* Bytes that what is kept of code may take, about; 0: as many as are worth it. Of those
	 * that share the first one says it. */
	uint64_t memory;
};

struct flow;

/* 0 or -ENOMEM. */
int flow_new(const struct flow_config *config, struct flow **ret);
void flow_free(struct flow *f);
/* The next batch. 0; FLOW_DONE: there is nothing more (*ret is empty); -ENOMEM. */
#define FLOW_DONE 1
/* The context function said FLOW_CONTEXT_LATER, *ret is empty: the next call asks it again. */
#define FLOW_LATER	   2
#define FLOW_CONTEXT_LATER UINT64_MAX
int flow_next(struct flow *f, struct flow_batch *ret);
const struct flow_stats *flow_get_stats(const struct flow *f);
/* The addresses of the N instructions of the run that begins at START, in the batch's context (only
 * valid for runs of the newest batch). Returns how many it gave (N, unless the code is gone). */
size_t flow_run(struct flow *f, uint64_t start, size_t n, uint64_t *ret_ips);

/* With flow_config.steps: the nodes of its steps (decoder/hot/nodes.h); NULL: there are none. */
struct nodes;
const struct nodes *flow_nodes(const struct flow *f);
/* Adds to the statistics what the caller counted in the walks of a batch: instructions, and
 * branches taken. */
void flow_counted(struct flow *f, uint64_t insns, uint64_t branches);
/* The branches of walk number WALK of BATCH, the newest one, as items, in order, in portions: each
 * call gives as many as ROOM has space for, *POSITION, zero at first, says how far it came. Returns
 * how many; 0: that was all. ROOM is at least FLOW_EXPAND_MIN. */
#define FLOW_EXPAND_MIN 64u
struct flow_position {
	uint64_t opaque[32];
};
size_t flow_expand(struct flow *f, const struct flow_batch *batch, uint32_t walk,
		   struct flow_position *position, struct flow_item *to, size_t room);

/* Within the context function: the offset of the packet with which tracing is enabled or goes on;
 * the items from there on have this offset or a later one. */
uint64_t flow_asked_at(const struct flow *f);
/* Within the context function: the packet shows where execution is, in code that was entered before
 * and not left since; else it was entered there. */
bool flow_asked_again(const struct flow *f);
/* Within the context function: a thread switch was seen; the next batch is another thread's. Never
 * FLOW_CONTEXT_LATER. */
bool flow_asked_switch(const struct flow *f);
/* Within the context function: execution comes back from the kernel's code. */
bool flow_asked_return(const struct flow *f);
/* Within the context function, so: a new batch begins there even if the context stays. */
void flow_split(struct flow *f);
/* Within the context function: what is known of execution ended with a gap, behind which it goes
 * on here. */
bool flow_asked_behind_gap(const struct flow *f);
/* Within the context function: whether code in a virtual machine is walked, as far as it is known.
 */
bool flow_walks_guests(const struct flow *f);
/* When the packet in hand was written, at the latest (TSC); UINT64_MAX: unknown. */
uint64_t flow_not_after(const struct flow *f);
/* How user code was left last: a FLOW_SYSCALL or FLOW_DISABLE item, made of a FLOW_FAR or
 * FLOW_ASYNC one where the kernel's code is at hand. NULL: it was not since the
 * beginning or the last gap. */
const struct flow_item *flow_left(const struct flow *f);

struct event;
struct event_reader;
struct timing;
/* Within the context function: a reader and a clock of one's own for the packets behind the one
 * that is asked for. */
void flow_readers(const struct flow *f, struct event_reader *ret_reader, struct timing *ret_timing);

#define FLOW_TRIAL_RETURNS 4u
/* What code of a context makes of the packets from where tracing is enabled to where it ends. */
struct flow_trial {
	enum fault fault; /* the first one; FAULT_NONE: they fit as far as was tried */
	bool whole;	  /* it was tried to the end: */
	uint8_t kind;	  /* of the last item */
	bool restored;	  /* it looks like the system call that ends a signal handler */
	uint64_t from;	  /* of the last item */
	uint64_t returns[FLOW_TRIAL_RETURNS]; /* where the first returns from calls before it go */
	size_t n_returns;
	uint64_t hash; /* of all that was walked: branches and instructions between them */
};
/* Within the context function, or between two batches: tries code of CONTEXT (asking the code
 * function as needed) on the packets that READER gives, with tracing enabled at IP. Nothing of it
 * is seen in the stream of items. 0 or -ENOMEM. */
int flow_try(struct flow *f, const struct event_reader *reader, uint64_t ip, uint64_t context,
	     struct flow_trial *ret);
