/*
 * Bounded aggregates of what executed: by thread, function and CPU. A lane is one thread, whatever
 * CPUs it ran on: its stretches come in the order of its life, so its last branches and its call
 * stack are its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/calls.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/tally_cache.h"
#include "decoder/worker/replay/replay.h"
#include "proto/report.h"

/* Lanes beyond share the first, of no known thread. */
#define TALLY_MAX_LANES	  65536u
#define TALLY_NO_FUNCTION UINT32_MAX

struct tally_branch {
	uint64_t from, to;
	uint64_t tsc_lo, tsc_hi;
	uint32_t context;
	uint8_t kind; /* enum flow_kind */
};

struct tally_lane {
	const struct timeline_thread *thread; /* NULL: unknown */
	uint64_t insns, branches;
	uint64_t hash;	   /* of its instructions; only where the summary asks */
	uint64_t ticks;	   /* of traced stretches */
	uint64_t last_tsc; /* estimate for the last item; 0: unknown */
	struct marks_transactions transactions;
	bool traced; /* within a stretch */
	uint64_t ip; /* where it was last; 0: unknown */
	uint32_t context;
	const struct space *space;
	struct calls calls;
	uint32_t function; /* that runs; TALLY_NO_FUNCTION */
	bool called;	   /* and has just been called */
	bool cut;	   /* the run goes on behind a mark */
	struct tally_branch last[REPORT_LAST_BRANCHES];
	uint64_t n_last; /* ever; the newest is last[(n_last - 1) % REPORT_LAST_BRANCHES] */
};

struct tally_cpu {
	uint64_t first_tsc, last_tsc; /* of items; 0: unknown */
	uint64_t gap_tsc;	      /* a gap is open since; 0: none */
	uint64_t lost_ticks;	      /* within gaps */
};

/* A walk of the stretch that is being counted, whose branches are not among lane->last yet. */
struct tally_tail {
	uint32_t walk, last; /* number; the step of its last branch */
	uint64_t end;	     /* lane->n_last behind that */
};

struct tally {
	struct functions functions;
	struct tally_cache cache;  /* of steps */
	struct tally_lane **lanes; /* lanes[0]: unknown thread, or too many */
	size_t n_lanes, capacity;
	uint32_t *slots;
	size_t n_slots;
	struct tally_lane *lane; /* the one being counted */
	/* The newest is tails[(n_tails - 1) % REPORT_LAST_BRANCHES]; the others have none of the
	 * last branches. */
	struct tally_tail tails[REPORT_LAST_BRANCHES];
	size_t n_tails;
	struct tally_cpu *cpus; /* as the manifest's */
	uint64_t lanes_refused;
};

/* REPLAY is borrowed. 0 or -ENOMEM. */
int tally_init(struct tally *t, const struct replay *replay);
void tally_done(struct tally *t);
/* The flow's statistics are told of the stretch's walks. 0 or -ENOMEM. */
int tally_stretch(struct tally *t, const struct replay_stretch *s);
/* After the last stretch: closes what is still on the stacks, which themselves stay. */
void tally_end(struct tally *t);
