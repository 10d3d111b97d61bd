/*
 * What the steps of walks do to the tally, kept by step, each for one view (tally_views.h).
 *
 * Most steps stay within one function and neither call nor return: of those all that is needed is
 * in their record. Bounded by the nodes: 132 bytes for each, and the ops.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/hot/nodes.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/count/steps_table.h"
#include "decoder/worker/count/tally_views.h"

enum tally_kind {
	TALLY_NEW,   /* there is no record */
	TALLY_PLAIN, /* all is in one function, which is neither left by a call nor by a return */
	TALLY_OPS,
	TALLY_HARD, /* it has to be taken apart, with each instruction looked up */
};

struct tally_record {
	/* Of a plain one its view and function (tally_match); else a multiple of TALLY_NO_MATCH,
	 * which nothing plain has: of TALLY_OPS times the index into the cache's ops. */
	uint32_t match;
	uint16_t insns; /* of a plain one; else the view */
	uint8_t items;	/* so; else how many ops */
	uint8_t kind : 2;
	bool open : 1;	    /* its last piece ends with no branch taken: the run goes on */
	uint8_t before : 3; /* of a plain one: items before the first decision or target */
	bool first : 1;	    /* so: that makes an item */
	bool entry : 1;	    /* so: its function begins with it */
};

#define TALLY_NO_MATCH	(TALLY_MAX_VIEWS + 1)
#define TALLY_MAX_OPS	FUNCTIONS_MAX
#define TALLY_NO_RECORD TALLY_MAX_VIEWS /* nor has any */

_Static_assert(sizeof(struct tally_record) == 8, "records have grown");
_Static_assert(UINT64_C(1) * TALLY_NO_MATCH * FUNCTIONS_MAX == UINT64_C(1) << 32,
	       "views and functions have other bits");

/* What records of FUNCTION begin with in VIEW, which is not TALLY_NO_VIEW. */
static inline uint32_t tally_match(uint32_t view, uint32_t function)
{
	return view + function * TALLY_NO_MATCH;
}

static inline uint32_t tally_record_function(const struct tally_record *r)
{
	return r->match / TALLY_NO_MATCH;
}

static inline uint32_t tally_record_ops(const struct tally_record *r)
{
	return r->match / TALLY_NO_MATCH;
}

static inline uint32_t tally_record_view(const struct tally_record *r)
{
	return r->kind == TALLY_PLAIN ? r->match % TALLY_NO_MATCH : r->insns;
}

/* Pieces of a step (steps.h), one behind the other, all in one function; only the last one of them
 * may call or return. */
struct tally_op {
	uint32_t function;
	uint32_t from; /* offset of the last instruction */
	uint16_t insns;
	uint8_t items;
	uint8_t before : 3; /* as in a record */
	bool first : 1;
	bool entry : 1;
	bool begins : 1; /* a run begins with it; of the first one the step before says that */
	bool pushes : 1, returns : 1;
};

struct tally_cache {
	struct functions *functions; /* borrowed */
	const struct nodes *nodes;   /* whose steps these are */
	struct tally_views views;
	struct steps_table table;
	struct tally_record *records; /* the table's */
	uint32_t *offsets; /* of the nodes: closer together than those themselves keep them */
	uint32_t n_offsets, max_offsets;
	struct tally_op *ops;
	size_t n_ops, max_ops;
	struct functions_span span; /* that was looked up last; empty: none */
};

/* 0 or -ENOMEM. */
int tally_cache_init(struct tally_cache *c, struct functions *functions);
void tally_cache_done(struct tally_cache *c);
/* NODES are those of the walks to come; what is kept of others is forgotten. There are records then
 * for all steps that there may be. 0 or -ENOMEM. */
int tally_cache_use(struct tally_cache *c, const struct nodes *nodes);
/* The view of PLACE, which is one of CONTEXT. May forget all records. 0 or -ENOMEM. */
int tally_cache_view(struct tally_cache *c, uint32_t context, uint32_t place, uint32_t *ret);
/* Makes the record of STEP for VIEW, which is that of PLACE in CONTEXT, and not TALLY_NO_VIEW. May
 * forget all others. 0 or -ENOMEM. */
int tally_cache_make(struct tally_cache *c, uint32_t context, uint32_t view, uint32_t place,
		     uint32_t step);
