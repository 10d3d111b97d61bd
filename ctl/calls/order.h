/*
 * Whole calls out of a call stream, in the order in which they began.
 *
 * A call is known when it ends, and is to be told when it began: calls wait here until all that
 * began before them has ended. At most ORDER_MAX wait. Then the one that began first is told as it
 * is, still running, so that memory does not grow with a call that contains everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/calls/calls.h"

#define ORDER_MAX (1u << 18)
/* The decoder's names are kept up to these limits, and counted beyond them. */
#define ORDER_MAX_FUNCTIONS (1u << 20)
#define ORDER_MAX_THREADS   (1u << 17)
#define ORDER_MAX_NAMES	    ((size_t)256 << 20) /* bytes, of functions and threads together */
#define ORDER_NAMELESS	    "[name not kept]"

struct order_thread {
	uint32_t pid, tid;
	char *name; /* ORDER_NAMELESS: not kept */
};

struct order_function {
	char *name, *image; /* ORDER_NAMELESS and "": not kept */
};

/* A call; or a gap of its thread or of its CPU. */
struct order_call {
	uint64_t begin, begin_width; /* ns, as in the stream; of a gap: from when */
	uint64_t end, end_width;     /* RUNNING: the time so far */
	uint64_t off;		     /* of the time between: without a CPU */
	uint64_t insns;		     /* in the frame itself; RUNNING: 0 */
	uint32_t thread, cpu, depth;
	uint32_t function; /* 0: unknown; of a gap: the number of its name */
	uint8_t how;	   /* enum callstream_begin */
	uint8_t ended;	   /* enum callstream_end */
	bool running;	   /* told before it ended */
	bool gap;
	uint64_t gaps, covered; /* of gaps as one (gaps.h): how many, and ns that they cover */
	bool known;		/* private: it need not wait any more */
	bool dropped;		/* private: shorter than wanted */
};

struct order {
	/* Settings: set behind order_init(). */
	uint64_t longer_than; /* ns; calls that take less are left out */
	uint32_t depth;	      /* calls further in are left out; UINT32_MAX: none */
	/* Takes a call, borrowed. 0; another value is the result of order_take(). */
	int (*fn)(void *userdata, const struct order_call *call);
	void *userdata;

	/* Results. Gaps' names are at their numbers. */
	uint64_t first, trigger; /* ns; 0: unknown */
	uint64_t cut;		 /* frames that the decoder left out */
	uint64_t running;	 /* calls that were told while they were running */
	uint64_t nameless;	 /* functions and threads whose names are not kept */
	uint64_t threads_left_out;
	char **gaps;
	size_t n_threads, n_functions, n_gaps;

	/* Private. */
	struct order_thread *threads;	  /* by number */
	struct order_function *functions; /* by number */
	size_t names_max, names_used;
	size_t threads_capacity, functions_capacity, gaps_capacity, stacks_capacity, n_stacks;
	struct order_stack *stacks; /* by thread */
	struct order_call *calls;   /* a ring: [head, tail) wait */
	size_t capacity;
	uint64_t head, tail;
};

void order_init(struct order *o);
void order_done(struct order *o);
/* Takes an item of a stream as calls_read() or a slicer hands it out; ORDER is a struct order. 0;
 * the result of fn if that was not 0; -ENOMEM. */
int order_take(void *order, const struct callstream_item *item);
/* Thread and function NUMBER of a call that was told. Their texts are not NULL. */
const struct order_thread *order_thread(const struct order *o, uint32_t number);
const struct order_function *order_function(const struct order *o, uint32_t number);
/* How long CALL took, by the middle of its intervals; *ret_uncertain: so much more or less. */
uint64_t order_duration(const struct order_call *call, uint64_t *ret_uncertain);
