/*
 * The call stack of one thread, out of its branches: which frames a branch ends and whether the
 * branch begins a frame.
 *
 * A return pops the frame whose call lies directly before the return's target (a call is 2 to 15
 * bytes long). If that is not the innermost frame, the frames within it have been left by longjmp
 * or by an exception, and are popped too. A return that fits no frame went to a stack that the
 * trace does not show (swapcontext, a caller from before the trace): all frames are popped, because
 * a short stack is better than a wrong one.
 *
 * The owner of the stack adds frames of its own (CALLS_JUMP) for jumps between functions. No return
 * fits them, and they are popped with the frames below.
 *
 * If tracing goes on elsewhere than it stopped, a signal handler was entered: it has a frame of its
 * own kind, which ends when execution is back where it was. An interrupt has such a frame too, and
 * so has the kernel while it runs for user code. The abort of a transaction ends the calls that
 * were made within the transaction.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"

#define CALLS_MAX_DEPTH	  4096u /* beyond, the outermost frames are forgotten */
#define CALLS_MAX_SIGNALS 64u

/* When an instance of a function began: the time of the branch that entered the function. */
struct calls_begin {
	uint64_t tsc;	/* 0: the instance did not begin with a call, or its time is unknown */
	uint64_t ticks; /* that its thread had been traced by then */
};

struct calls_frame {
	uint64_t from; /* the call; of a signal: the interrupted instruction; CALLS_JUMP */
	struct calls_begin begin; /* of the caller's instance; for the owner of the stack */
	uint32_t function;	  /* the caller; for the owner of the stack */
	int8_t again;		  /* of a signal: so far behind FROM lies a second address that ends
				   * the frame (a restarted syscall) */
	bool signal;		  /* a signal, an interrupt, or an entry into the kernel */
	bool entry;		  /* of a signal: user code entered the kernel here */
	bool returned;		  /* of a signal: its handler has returned to the restorer */
};

_Static_assert(sizeof(struct calls_frame) == 32, "frames have grown");

/* "from" of a frame that a jump made: FUNCTION went on in another function (a tail call, a PLT
 * entry, a part of the function that lies apart), and ends with the frame below. */
#define CALLS_JUMP UINT64_MAX

struct calls {
	struct calls_frame *frames; /* a ring; frames [begin, end) exist */
	size_t capacity;	    /* power of two */
	uint64_t begin, end;	    /* begin moves only when the capacity is CALLS_MAX_DEPTH */
	uint64_t signals[CALLS_MAX_SIGNALS]; /* positions of signal frames, rising */
	size_t n_signals;
	bool stopped;		/* tracing is off */
	uint64_t resume, again; /* where tracing would go on without a signal; 0: unknown */
	bool sigreturn;		/* the last system call looked like the restorer's */
	uint64_t last_return;	/* the target of the last branch if that was a return; else 0 */
	uint64_t transaction;	/* end when it began; UINT64_MAX: none, or unknown */
	uint64_t kernel_start;	/* first address of the kernel; 0: kernel code is not traced */
	bool aborts;		/* the next asynchronous branch is the transaction's abort */
};

/* The changes that a branch makes to the stack, in this order. */
struct calls_change {
	size_t pops;
	bool lost; /* nobody knows whether, and where, the frames that are popped ended */
	bool pushes;
	bool call; /* a call enters a function; a signal enters a handler */
	struct calls_frame frame;
};

/* call rel32 is 5 bytes, call *%rax 2; no instruction is longer than 15 (SDM volume 2, 2.3.11). */
#define CALLS_MAX_CALL 15u

/* The frame at POSITION, which is in [begin, end). */
static inline struct calls_frame *calls_slot(const struct calls *c, uint64_t position)
{
	return &c->frames[position & (c->capacity - 1)];
}

/* Whether a return to TO ends F. */
static inline bool calls_returns_to(const struct calls_frame *f, uint64_t to)
{
	return to - f->from - 1 < CALLS_MAX_CALL && !f->signal;
}

void calls_init(struct calls *c);
void calls_done(struct calls *c);
size_t calls_depth(const struct calls *c);
/* Says what ITEM changes; the caller pops and pushes. */
struct calls_change calls_decide(struct calls *c, const struct flow_item *item);
/* Takes note of marks that say where transactions begin and end. */
void calls_mark(struct calls *c, const struct flow_mark *mark);
/* Pops the innermost frame; the depth must not be 0. */
struct calls_frame calls_pop(struct calls *c);
/* 0; CALLS_DROPPED: the outermost frame was dropped and is *ret_dropped; -ENOMEM. */
#define CALLS_DROPPED 1
int calls_push(struct calls *c, const struct calls_frame *frame, struct calls_frame *ret_dropped);
/* Frame number I, 0 being the innermost; I is below the depth. */
const struct calls_frame *calls_at(const struct calls *c, size_t i);
