/*
 * Items: the branches and other places that the decoder gives, in order.
 *
 * Between two items execution was linear: the run of an item begins at the previous item's TO and
 * ends with the instruction at the item's FROM. `insns` counts the instructions of the run, FROM's
 * own included. Conditional branches that were not taken make no item; they are part of a run. Each
 * taken direct jump and call is an item of its own, so a run lies at rising addresses.
 */
#pragma once

#include <stdint.h>

enum flow_kind {
	FLOW_COND,     /* conditional branch, taken (loop, jrcxz included) */
	FLOW_JUMP,     /* direct jump */
	FLOW_CALL,     /* direct near call (zero-length ones too: see FLAG) */
	FLOW_JUMP_IND, /* indirect jump */
	FLOW_CALL_IND, /* indirect near call */
	FLOW_RET,      /* near return, compressed or not */
	FLOW_FAR,      /* far transfer that stayed traced (far call/jump/return, iret, int) */
	FLOW_SYSCALL,  /* syscall, sysenter, int n: leaves tracing, to 0 (user-only trace) */
	FLOW_ASYNC,    /* asynchronous transfer (signal, interrupt): FROM was not executed */
	FLOW_ENABLE,   /* tracing enabled at TO; from 0, insns 0 */
	FLOW_DISABLE,  /* tracing disabled after the run; FROM is the IP that would have been next
			  (asynchronous: FUP) or the branch that left; to 0. A branch that left
			  (e.g. a jump out of a filter) counts in insns; an asynchronous item did
			  not execute FROM */
	FLOW_END,      /* the trace ends; the run up to here has no branch; from = next IP, to 0 */
	FLOW_GAP,  /* a fault: `gap` is its index; from = last known IP (or 0), to 0; the run before
		      it (insns) did execute */
	FLOW_MARK, /* something that is not a branch (flow_config.marks): `mark` is its index; from
		      and to = the IP where execution goes on, or 0 while tracing is off; a mark
		      ends a run, and the next run begins at TO. Marks of packets within a gap come
		      before the gap */
	FLOW_STEPS, /* many branches at once (flow_config.steps): `walk` is the index of their walk;
		       from = to = where execution goes on behind them. The item is no branch and
		       ends no run: the run that is open before the item goes on in its first step;
		       the run behind its last step goes on in what follows, whose `start` and
		       `insns` count from there */
};

#define FLOW_COMPRESSED	 0x01 /* a compressed return */
#define FLOW_ZERO_LENGTH 0x02 /* a direct call to its own next instruction */
#define FLOW_ASYNC_STOP	 0x04 /* FLOW_DISABLE: asynchronous, FROM itself was not executed */
#define FLOW_IN_TX	 0x08
#define FLOW_GOES_ON	 0x10 /* FLOW_ENABLE: not by TIP.PGE; decoding begins or goes on there */

struct flow_item {
	uint64_t from, to;
	uint64_t start;		 /* first instruction of the run; meaningful when insns > 0 */
	uint64_t tsc_lo, tsc_hi; /* the branch happened within; 0, UINT64_MAX: unknown */
	uint64_t offset; /* of the packet that decided it, bytes from the trace's beginning */
	uint32_t insns;
	union {
		uint32_t gap;  /* FLOW_GAP: index into the batch's gaps */
		uint32_t mark; /* FLOW_MARK: into its marks */
		uint32_t walk; /* FLOW_STEPS: into its walks */
	};
	uint8_t kind, flags;
};
