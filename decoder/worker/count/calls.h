/*
 * The call stack of one thread, out of its branches: which frames a branch ends and whether it
 * begins one.
 *
 * A return pops the frame whose call lies directly before its target (a call is 2 to 15 bytes
 * long). Where that is not the innermost frame, those within it have been left by longjmp or an
 * exception, and go too. A return that fits no frame went to a stack that we have not seen
 * (swapcontext, a caller from before the trace): all frames go, as a short stack is better than a
 * wrong one. Where tracing goes on elsewhere than it stopped, a signal handler was entered: a
 * frame of its own kind, which ends when execution is back where it was. So is an interrupt, and
 * the kernel while it runs for user code. A transaction that aborts ends what was called within it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"

#define CALLS_MAX_DEPTH	  4096u /* beyond, the outermost frames are forgotten */
#define CALLS_MAX_SIGNALS 64u

struct calls_frame {
	uint64_t from;	   /* the call; of a signal: the instruction it interrupted */
	uint64_t again;	   /* of a signal: a second address that ends it (a restarted syscall) */
	uint32_t function; /* the caller's, for the owner of the stack */
	bool signal;
	bool entry;    /* so: the kernel was entered from user code there */
	bool returned; /* of a signal: its handler has returned, to the restorer */
};

struct calls {
	struct calls_frame *frames; /* a ring, in which [begin, end) live */
	size_t capacity;	    /* power of two */
	uint64_t begin, end;	    /* begin moves only when the capacity is CALLS_MAX_DEPTH */
	uint64_t signals[CALLS_MAX_SIGNALS]; /* positions of signal frames, rising */
	size_t n_signals;
	bool stopped; /* tracing is off; it would go on at one of these: */
	uint64_t resume, again;
	bool sigreturn;	       /* the system call looked like the restorer's */
	uint64_t last_return;  /* TO of a return, when that was the last branch; 0 */
	uint64_t transaction;  /* end when it began; UINT64_MAX: none, or it is not known */
	uint64_t kernel_start; /* first address of the kernel, whose code is in the trace; 0: it is
				  not */
	bool aborts;	       /* the next asynchronous branch leaves it */
};

/* What a branch does to the stack, in this order. */
struct calls_change {
	size_t pops;
	bool pushes;
	bool call; /* a call enters a function, a signal a handler */
	struct calls_frame frame;
};

/* call rel32 is 5 bytes, call *%rax 2; no instruction is longer than 15 (SDM volume 2, 2.3.11). */
#define CALLS_MAX_CALL 15u

/* Where the frame at POSITION lies, in [begin, end). */
static inline struct calls_frame *calls_slot(const struct calls *c, uint64_t position)
{
	return &c->frames[position & (c->capacity - 1)];
}

/* Whether a return to TO ends F. */
static inline bool calls_returns_to(const struct calls_frame *f, uint64_t to)
{
	return !f->signal && to > f->from && to - f->from <= CALLS_MAX_CALL;
}

void calls_init(struct calls *c);
void calls_done(struct calls *c);
size_t calls_depth(const struct calls *c);
/* What ITEM changes; the caller carries it out. */
struct calls_change calls_decide(struct calls *c, const struct flow_item *item);
/* What a mark says of the stack: where transactions begin and end. */
void calls_mark(struct calls *c, const struct flow_mark *mark);
/* The innermost frame; depth must not be 0. */
struct calls_frame calls_pop(struct calls *c);
/* 0; CALLS_DROPPED: the outermost frame had to go, *ret_dropped; -ENOMEM. */
#define CALLS_DROPPED 1
int calls_push(struct calls *c, const struct calls_frame *frame, struct calls_frame *ret_dropped);
/* Frame number I, 0 the innermost; I below depth. */
const struct calls_frame *calls_at(const struct calls *c, size_t i);
