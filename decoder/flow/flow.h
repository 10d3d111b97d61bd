/*
 * The decoder of one CPU's trace: from trace bytes, and a function that gives code, to executed
 * branches, gaps and marks, in batches and in order, each with an interval of time.
 *
 * flow.c makes batches, and flow_seam.c begins anew where a trace does not go on. flow_walk.c steps
 * over code, block by block; flow_event.c does what happens between instructions; flow_gap.c finds
 * where decoding can go on behind a fault; flow_mark.c places marks; flow_kernel.c knows versions
 * of the kernel's code; flow_try.c tries the code of a context on packets; flow_returns.c knows
 * which returns pop the return stack. Plain packets take a shorter way: flow_nodes.c hands them to
 * the hot loop (decoder/hot), flow_back.c takes over its state, and flow_expand.c makes items of
 * its steps.
 *
 * Decisions that govern the room:
 * - The decoder opens nothing, logs nothing, reads no clock and keeps nothing static.
 * - Trace and code are hostile. Work is in proportion to the trace, memory is bounded (flow.c), and
 *   a fault is an item with a name.
 * - Behind a fault decoding goes on with the first packet that says where execution is, or with the
 *   next PSB or TIP.PGE where the fault leaves a doubt about the packets.
 * - A stay in missing code is one gap, however many packets lead from it to itself.
 * - A mark never changes where the walk goes. Where the code does not lead to a mark's place, the
 *   mark stands where the walk needs the next packet.
 * - Return compression as the SDM says it: popped at every near RET, emptied by each PSB, without
 *   zero-length direct calls. Some traces pop at compressed RETs only. Where the two rules differ,
 *   the packets that follow decide, and what they do not decide is counted (flow_returns.c).
 * - Both walks give the same items: the hot loop stops before anything that it does not know, and
 *   the stepping walk goes on. Threads only do ahead what the walk then takes over where its own
 *   state is the one that they guessed, so items do not depend on threads. With `steps`, bytes of
 *   the trace alone say which questions about contexts are asked together.
 *
 * A struct flow belongs to one thread, which alone calls the user's functions. It borrows the
 * trace, the code and the flow whose code it shares, and owns its batch until the next call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/code.h"
#include "decoder/code/item.h"
#include "decoder/code/retstack.h"
#include "decoder/packet/event.h"
#include "decoder/packet/fault.h"

struct flow_gap {
	enum fault fault;
	uint64_t offset;  /* first byte that was not understood */
	uint64_t bytes;	  /* up to where decoding went on */
	uint64_t address; /* the IP concerned; 0: none */
	uint64_t read;	  /* offset of the last packet that was looked at when it was found */
	uint64_t tsc_lo, tsc_hi;
	uint64_t stays; /* missing code: so many packets more led to it before it was left */
};

/* When the decisions and targets of the steps from STEP on were written. */
struct flow_time {
	uint32_t step;	 /* index into the batch's steps */
	uint64_t offset; /* of the first packet that this time holds for */
	uint64_t lo, hi;
	uint64_t first_hi; /* the first decision of that packet is no later than that */
};

/* Plain branches, as steps (decoder/hot/nodes.h): conditional, direct and indirect branches within
 * user code, with nothing else between. Direct branches of a step's node happened between the
 * decision before the step and the step's own decision: no earlier than lo of the former, and no
 * later than hi of the latter (first_hi, if it is its packet's first decision). */
struct flow_walk {
	uint32_t first, n;	      /* of the batch's steps */
	uint32_t first_time, n_times; /* of the batch's times, beginning with the first step's */
	uint32_t place;		      /* of the first step's code (NODE_STEP_PLACE) */
	uint8_t flags;		      /* of all branches: FLOW_IN_TX */
	uint64_t begin, end;	      /* offsets of the packets that decided */
	/* Direct branches of the first step happened no earlier than this (TSC); offset of the
	 * packet that says so. */
	uint64_t before, before_offset;
	uint64_t item_offset; /* of the last item before this walk */
	uint64_t run_start;   /* where the run began that is open before this walk, */
	uint32_t run_insns;   /* and the run's instructions so far */
	uint64_t to;	      /* where execution goes on behind the last step */
	uint64_t run_to;      /* where the run began that is open there, */
	uint32_t insns_to;    /* and the run's instructions so far */
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
	uint64_t context; /* the context function's last answer: all items belong to it, also items
			   * of the kernel's code */
};

/* Counts of the trace's contents. */
struct flow_stats {
	uint64_t bytes, bytes_decoded; /* decoded: not within a gap; PAD counts as decoded */
	uint64_t instructions;
	uint64_t kernel_instructions; /* of these: in the kernel's code that is at hand */
	/* Those in code that may have been other code when it ran, by enum code_change. */
	uint64_t changing[CODE_CHANGES_N];
	/* Items other than FLOW_END, FLOW_GAP and FLOW_MARK: the lines of --view=branches, as perf
	 * counts branches. */
	uint64_t branches;
	uint64_t psbs, cbr, overflows, unknown_packets;
	uint64_t tsc_first, tsc_last; /* 0: no TSC packet */
	uint64_t packets;
	uint64_t compressed_returns, returns;
	/* Where the two rules of the return stack lead to different targets: */
	uint64_t returns_all;	     /* the packets contradict all rules but RETSTACK_ALL */
	uint64_t returns_compressed; /* ... all but RETSTACK_COMPRESSED */
	uint64_t returns_undecided;  /* the packets do not decide; */
	uint64_t branches_undecided; /* at least so many branches would be others then */
};

/* A place where the bytes of a trace do not go on: nothing that was known before holds behind it.
 */
struct flow_seam {
	uint64_t offset; /* of the first byte behind it; decoding goes on with the next PSB */
	enum fault fault;
};

struct flow_config {
	const uint8_t *trace; /* borrowed; oldest byte first */
	size_t size;
	const struct flow_seam *seams; /* borrowed; rising, within the trace. Each is a gap */
	size_t n_seams;
	/* Time: 0 where unknown. TSC = CTC * tsc_art_num / tsc_art_den; see proto/bundle/manifest.h
	 */
	uint32_t mtc_period; /* UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den;
	/* The processor that wrote the trace, for its errata; family 0: unknown. */
	uint32_t cpu_family, cpu_model, cpu_stepping;
	/* The code around IP in CONTEXT, a number that the context function gave: 0 and *ret, or an
	 * enum fault (UNMAPPED, ANONYMOUS, IMAGE_*, NO_SPACE). Called once a piece and context;
	 * the results are cached by context. */
	int (*code)(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret);
	/* Says which context's code is executed from here on: tracing is enabled, or goes on after
	 * a PSB or a gap, or execution comes back from the kernel's code that is at hand, at IP, at
	 * a time within [tsc_lo, tsc_hi]. Any number; equal numbers mean equal code at equal
	 * addresses. NULL: always 0. A new batch begins where the number changes.
	 * FLOW_CONTEXT_LATER: not known yet (never at a PSB while tracing is on). With `steps` the
	 * trace alone says which of these questions are asked within one call of flow_next, except
	 * questions at PSBs while tracing is on. */
	uint64_t (*context)(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi);
	/* The kernel's code lies at addresses from KERNEL_START on (0: it is not at hand, and these
	 * addresses are like others). It is the same in all contexts and comes from KERNEL_CODE: 0
	 * and *ret, or an enum fault, as CODE. Where the kernel patches itself its code has
	 * versions, which rise with time: KERNEL_VERSION returns the first and sets *ret_last to
	 * the last version that the code at IP may have had within [tsc_lo, tsc_hi]; 0: it never
	 * changes. A piece of code has one version or never changes, and is marked `ends` where the
	 * piece behind it may change. VERSION 0 is also asked for where an instruction reaches over
	 * the end of code that never changes; another version, where such a place ends within an
	 * instruction. */
	uint64_t kernel_start;
	int (*kernel_code)(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret);
	uint32_t (*kernel_version)(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi,
				   uint32_t *ret_last);
	/* Behind a branch to this address another thread has the CPU: a batch ends with the branch,
	 * and the context function is asked (flow_asked_switch). 0: not known. */
	uint64_t switch_ip;
	void *userdata;
	/* This flow's code is shared: its code function and userdata are used, and it must live
	 * longer. Equal contexts then mean equal code in both flows. NULL: code of one's own. */
	struct flow *share;
	uint32_t batch_items; /* most items of a batch, about; 0: as many as there is room for */
	/* Decode only from the first PSB whose TSC is >= this (0: from the first PSB). The bytes
	 * before are neither decoded nor a gap. */
	uint64_t from_tsc;
	/* Likewise from the first PSB at or behind this offset (0: from the first PSB). */
	uint64_t from_offset;
	/* Nothing in the trace happened later than this TSC (the CPU was stopped then); 0: unknown.
	 */
	uint64_t end_tsc;
	/* The trace was cut off and not stopped (its process was killed): what lies behind its last
	 * packet is not known to have executed. Otherwise the code is walked up to the first branch
	 * that no packet decides, as libipt does. */
	bool cut;
	/* Give plain branches as steps and not as items (FLOW_STEPS). Instructions and branches of
	 * steps are not in the stats before flow_counted() adds them. */
	bool steps;
	/* Walk everything step by step, never over nodes: what tests compare with. */
	bool stepping;
	/* Make FLOW_MARK items. TICKS: also FLOW_MARK_TICK, at which the context is asked for, too.
	 */
	bool marks, ticks;
	/* Walk code in a virtual machine like any other. Otherwise it is the gap `guest`, unless
	 * the trace was recorded within that machine. */
	bool guests;
	/* Behind a fault wait for the next PSB, as libipt's decoders do when they are synchronised
	 * forward. Otherwise go on with the first packet that says where execution is. */
	bool resume_at_psb;
	/* Behind any fault a TIP says where execution is, as with libipt's resync. Otherwise only
	 * behind faults that leave no doubt about the packets. */
	bool resume_at_tip;
	/* libipt's return stack: popped by compressed returns only, never emptied by a PSB. */
	bool retstack_libipt;
	/* Else: the rule of the return stack. RETSTACK_ASK: the packets decide. */
	enum retstack_rule retstack;
	/* The trace was recorded without TNT packets or without branches, so no code can be
	 * followed: only marks, and gaps of the bytes. */
	bool no_walk;
	/* Stop quietly where tracing goes on beyond this offset; 0: size. */
	uint64_t end_offset;
	/* Threads that decode plain branches (with `steps`), the caller's included; 0: one for each
	 * CPU that may be used. Neither items nor questions depend on the number, but batches end
	 * elsewhere where nothing is asked. Flows that share code use the same threads, as many as
	 * the first flow says. Only the caller's thread calls the user's functions. */
	uint32_t threads;
	/* Thread pool (borrowed). NULL: threads are started on demand. Flows that share code use
	 * the first flow's pool. */
	struct crew *crew;
	/* Bytes of the trace that a thread takes at once, about; 0: as many as are worth it. */
	uint32_t thread_bytes;
	/* Most bytes for all that is kept of code, about; 0: as many as are worth it. Flows that
	 * share code use the first flow's limit. */
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
/* Gives the addresses of the N instructions of the run that begins at START, which must be a run of
 * the newest batch. Returns how many it gave (N, unless the code is gone). */
size_t flow_run(struct flow *f, uint64_t start, size_t n, uint64_t *ret_ips);

/* The mode of the runs of the newest batch: enum insn_mode. */
uint8_t flow_run_mode(const struct flow *f);

/* With flow_config.steps: the nodes of its steps (decoder/hot/nodes.h); NULL: there are none. */
struct nodes;
const struct nodes *flow_nodes(const struct flow *f);
/* Adds to the statistics what the caller counted in the walks of a batch: instructions, and
 * branches taken. */
void flow_counted(struct flow *f, uint64_t insns, uint64_t branches);
/* Gives the branches of walk number WALK of BATCH, the newest batch, as items in order, in portions
 * of at most ROOM items (FLOW_EXPAND_MIN or more). *POSITION is zero at first and says how far the
 * calls came. Returns the number of items; 0: that was all. */
#define FLOW_EXPAND_MIN 64u
struct flow_position {
	uint64_t opaque[32];
};
size_t flow_expand(struct flow *f, const struct flow_batch *batch, uint32_t walk,
		   struct flow_position *position, struct flow_item *to, size_t room);

/* --- Within the context function --- */

/* The offset of the packet with which tracing is enabled or goes on. Items from there on have this
 * offset or a later one. */
uint64_t flow_asked_at(const struct flow *f);
/* The packet shows where execution is, in code that was entered before and not left since. False:
 * the code is entered here. */
bool flow_asked_again(const struct flow *f);
/* A thread switch was seen, and the next batch is another thread's. The answer must not be
 * FLOW_CONTEXT_LATER. */
bool flow_asked_switch(const struct flow *f);
/* Execution comes back from the kernel's code. */
bool flow_asked_return(const struct flow *f);
/* Has a new batch begin here even if the context stays. */
void flow_split(struct flow *f);
/* There was a gap before, and execution goes on here behind it. */
bool flow_asked_behind_gap(const struct flow *f);
/* Whether code in a virtual machine is walked, as far as that is known yet. */
bool flow_walks_guests(const struct flow *f);

/* --- At any time --- */

/* When the packet in hand was written, at the latest (TSC); UINT64_MAX: unknown. */
uint64_t flow_not_after(const struct flow *f);
/* How user code was left last: a FLOW_SYSCALL or FLOW_DISABLE item, which is made of a FLOW_FAR or
 * FLOW_ASYNC item where the kernel's code is at hand. NULL: user code was not left since the
 * beginning or the last gap. */
const struct flow_item *flow_left(const struct flow *f);

struct event;
struct event_reader;
struct timing;
/* Within the context function: copies of the flow's reader and clock, for the packets behind the
 * one that is asked for. */
void flow_readers(const struct flow *f, struct event_reader *ret_reader, struct timing *ret_timing);

/* The result of walking code of a context by the packets from where tracing is enabled to where it
 * ends. */
struct flow_trial {
	enum fault fault; /* the first fault; FAULT_NONE: the code fits as far as was tried */
	bool whole;	  /* the trial came to the end of the packets */
	uint8_t kind;	  /* of the last item */
	bool doubt;	  /* some of the code may not be what was executed (flow_code.changing) */
	bool inside;	  /* the instruction before `from` led there, and it was no jump or call */
	uint64_t from;	  /* of the last item */
	uint64_t hash;	  /* of all that was walked: branches and instructions between them */
};
/* Within the context function, or between two batches: tries code of CONTEXT (asking the code
 * function as needed) on the packets that READER gives, with tracing enabled at IP. The stream of
 * items has nothing of it. 0 or -ENOMEM. */
int flow_try(struct flow *f, const struct event_reader *reader, uint64_t ip, uint64_t context,
	     struct flow_trial *ret);
