/*
 * Keeps one record for each kind of step, for one naming (functions.h): it says what the step adds
 * to the counters.
 *
 * Most steps stay within one function and neither call nor return: their record says all. The
 * others have a list of ops. Memory is bounded by the nodes, with 132 bytes for each, and by
 * TALLY_MAX_OPS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/hot/nodes.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/count/steps.h"

enum tally_kind {
	TALLY_NEW,   /* there is no record */
	TALLY_PLAIN, /* the step is all in one function, and ends with no call and no return */
	TALLY_OPS,   /* the step has ops */
	TALLY_HARD,  /* a piece lies in two functions: each instruction has to be looked up */
};

struct tally_record {
	/* TALLY_PLAIN: naming and function (tally_match). TALLY_OPS: TALLY_NO_MATCH times the index
	 * of the first op; no plain record has such a value. TALLY_HARD: TALLY_HARD_MATCH. */
	uint32_t match;
	uint16_t insns; /* TALLY_PLAIN; else the naming */
	uint8_t items;	/* TALLY_PLAIN; else the number of ops */
	uint8_t kind : 2;
	bool open : 1;	    /* the last piece ends with no branch taken: the run goes on */
	uint8_t before : 3; /* TALLY_PLAIN: items before the first decision or target */
	bool first : 1;	    /* TALLY_PLAIN: the first decision or target is an item */
	bool entry : 1;	    /* TALLY_PLAIN: the step begins with the function's first instruction */
};

#define TALLY_NO_MATCH	 (NAMINGS_MAX + 1)
#define TALLY_MAX_OPS	 FUNCTIONS_MAX
#define TALLY_NO_RECORD	 NAMINGS_MAX			/* the match of no record */
#define TALLY_HARD_MATCH (TALLY_NO_MATCH + NAMINGS_MAX) /* neither a naming nor ops */

_Static_assert(sizeof(struct tally_record) == 8, "records have grown");
_Static_assert(UINT64_C(1) * TALLY_NO_MATCH * FUNCTIONS_MAX == UINT64_C(1) << 32,
	       "namings and functions have other bits");

/* The match of plain records of FUNCTION in NAMING, which is not NAMING_NONE. */
static inline uint32_t tally_match(uint32_t naming, uint32_t function)
{
	return naming + function * TALLY_NO_MATCH;
}

static inline uint32_t tally_record_function(const struct tally_record *r)
{
	return r->match / TALLY_NO_MATCH;
}

static inline uint32_t tally_record_ops(const struct tally_record *r)
{
	return r->match / TALLY_NO_MATCH;
}

static inline uint32_t tally_record_naming(const struct tally_record *r)
{
	return r->kind == TALLY_PLAIN ? r->match % TALLY_NO_MATCH : r->insns;
}

/* Whether R is a TALLY_OPS for NAMING, which is not NAMING_NONE, as that of a record that is not
 * made is. */
static inline bool tally_record_has_ops(const struct tally_record *r, uint32_t naming)
{
	return r->match % TALLY_NO_MATCH == 0 && r->insns == naming;
}

/* Consecutive pieces of a step (steps.h), all in one function. Only the last piece may call or
 * return. */
struct tally_op {
	uint32_t function;
	uint32_t from; /* offset of the last instruction */
	uint16_t insns;
	uint8_t items;
	uint8_t before : 3; /* as in a record */
	bool first : 1;
	bool entry : 1;
	bool begins : 1; /* a run begins with the op; for the first op the step before decides */
	bool pushes : 1, returns : 1;
};

struct tally_cache {
	struct functions *functions; /* borrowed */
	const struct nodes *nodes;   /* whose steps the records are of */
	struct namings namings;
	struct steps_table table;
	struct tally_record *records; /* the table's */
	uint32_t *offsets;	      /* of the nodes, closer together than in the nodes */
	uint32_t n_offsets, max_offsets;
	struct tally_op *ops;
	size_t n_ops, max_ops;
	struct functions_span span; /* that was looked up last; empty: none */
};

/* 0 or -ENOMEM. */
int tally_cache_init(struct tally_cache *c, struct functions *functions);
void tally_cache_done(struct tally_cache *c);
/* The walks to come have NODES; records of other nodes are forgotten. Makes room for the records of
 * all steps that NODES has. 0 or -ENOMEM. */
int tally_cache_use(struct tally_cache *c, const struct nodes *nodes);
/* The naming of PLACE, which is a place of CONTEXT. May forget all records. 0 or -ENOMEM. */
int tally_cache_naming(struct tally_cache *c, uint32_t context, uint32_t place, uint32_t *ret);
/* Makes the record of STEP for NAMING, which is that of PLACE in CONTEXT and not NAMING_NONE. May
 * forget all other records. 0 or -ENOMEM. */
int tally_cache_make(struct tally_cache *c, uint32_t context, uint32_t naming, uint32_t place,
		     uint32_t step);
