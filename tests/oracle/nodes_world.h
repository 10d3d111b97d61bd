/*
 * Random worlds for nodes_diff: random code, mapped at several places in a few address spaces, and
 * the trace that a processor would write of a random way through it; then changes to both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "tests/oracle/diff_input.h"

#define NODES_CODES	 4u
#define NODES_CODE_BYTES 2048u
#define NODES_PLACES	 14u
#define NODES_TRACE_MAX	 (256u << 10)
#define NODES_ENABLES	 8192u
#define NODES_BLOCKS	 512u

/* A part of CODES[content] that begins at FIRST, in one address space. */
struct nodes_place {
	uint64_t context, address;
	uint32_t content, first, size;
	uint32_t piece; /* code is given in pieces of this size; 0: in one piece */
	bool mapping;	/* the mapping is named */
	bool changing, ends;
	bool mixed; /* every second piece has the opposite of `changing` */
};

/* The context of the code from OFFSET of the trace on. */
struct nodes_enable {
	uint64_t offset, context;
};

struct nodes_world {
	uint8_t codes[NODES_CODES][NODES_CODE_BYTES];
	uint16_t blocks[NODES_CODES][NODES_BLOCKS]; /* where instructions begin */
	size_t n_blocks[NODES_CODES];
	struct nodes_place places[NODES_PLACES];
	size_t n_places;
	uint8_t trace[NODES_TRACE_MAX];
	size_t size;
	bool keep; /* the processor pops its return stack at compressed returns only */
	struct nodes_enable enables[NODES_ENABLES];
	size_t n_enables;
	struct flow_config config; /* everything but trace, size and the fields that nodes_compare.h
				    * sets */
	/* State while decoding. */
	struct flow *flow;
	bool often_later, later;
};

/* Makes a world. Its trace is what a processor would write (nodes_run.c). */
void nodes_world_make(struct nodes_world *w, struct diff_random *r);
/* Makes one change to the trace, or to the code without changing the trace. */
void nodes_world_change(struct nodes_world *w, struct diff_random *r);
void nodes_world_change_trace(struct nodes_world *w, struct diff_random *r);
/* Removes N bytes of the trace at AT. */
void nodes_world_cut(struct nodes_world *w, size_t at, size_t n);
/* Prints the world as text. */
void nodes_world_print(const struct nodes_world *w);
/* Call before each decoding. */
void nodes_world_reset(void *world, struct flow *f);
/* Writes the trace of a random way through the code. */
void nodes_world_run(struct nodes_world *w, struct diff_random *r);
/* The place at IP of CONTEXT; NULL: none. */
const struct nodes_place *nodes_world_find(const struct nodes_world *w, uint64_t context,
					   uint64_t ip);
/* True once in N calls, at random. */
static inline bool nodes_once(struct diff_random *r, size_t n)
{
	return diff_below(r, n) == 0;
}
