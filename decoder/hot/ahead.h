/*
 * Walking ahead: threads go over plain packets (node_walk.c) from PSBs on, before the walk itself
 * comes there, with the state that they guess the walk will have. They keep what came out in
 * pieces. The walk takes a piece only where its own state is the one before the piece, and goes
 * over the packets itself elsewhere, so its items do not depend on threads.
 *
 * The threads belong to the flow that keeps the code; each flow's trace is opened for them. All
 * functions here are called by the one thread that the flows belong to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/retstack.h"
#include "decoder/hot/crew.h"
#include "decoder/hot/node_walk.h"
#include "decoder/packet/errata.h"

struct ahead_config {
	const uint8_t *trace; /* borrowed */
	size_t size;
	size_t from, stop; /* packets in [from, stop) are walked */
	struct errata errata;
	uint64_t ip_end;      /* as in struct node_walk */
	uint8_t rule;	      /* enum retstack_rule, until ahead_set_rule() */
	size_t segment_bytes; /* a thread takes about so many at once; 0: as many as are worth it */
};

/* Return addresses, the oldest one first. */
struct ahead_returns {
	const struct retstack_entry *list;
	uint32_t n;
};

/* A piece of walk. */
struct ahead_piece {
	/* The state before: */
	const uint8_t *pos;
	uint64_t context, last_ip;
	uint64_t time; /* as in struct node_walk */
	uint32_t node, place;
	uint8_t mode, order;
	struct ahead_returns before;
	/* And the state behind; `prompt` was false before. */
	struct node_walk walk;
	struct ahead_returns after;
};

struct ahead;
struct ahead_trace;

/* THREADS in all, at least 1, the caller's included, or fewer, where so many cannot be had. The
 * other threads come from CREW, borrowed until ahead_free(); NULL: they are started. 0 or -errno.
 */
int ahead_new(struct graph *graph, struct nodes *nodes, uint32_t threads, struct crew *crew,
	      struct ahead **ret);
/* To be called when all traces are closed. */
void ahead_free(struct ahead *a);
/* The number of CPUs that the caller may use. */
uint32_t ahead_count_cpus(void);

int ahead_open(struct ahead *a, const struct ahead_config *config, struct ahead_trace **ret);
void ahead_close(struct ahead_trace *t);
/* The walk stands in front of the packet at POS, in code of CONTEXT: the piece that begins there,
 * or NULL. The piece stays valid up to the next call of this function or of ahead_return(). While
 * another thread is still at work on it, this function may walk a segment ahead itself. *RET_LIMIT:
 * without a piece, the caller should not walk further than this before the next call. */
const struct ahead_piece *ahead_take(struct ahead_trace *t, const uint8_t *pos, uint64_t context,
				     const uint8_t **ret_limit);
/* From now on threads walk by RULE, an enum retstack_rule; a piece's `walk` says by which rule it
 * was walked. */
void ahead_set_rule(struct ahead_trace *t, uint8_t rule);
/* The array that has the steps of the piece that was taken last. With ahead_lend() it stays valid
 * up to ahead_return(). */
const uint32_t *ahead_steps(const struct ahead_trace *t);
void ahead_lend(struct ahead_trace *t);
void ahead_return(struct ahead_trace *t);
/* Waits until the other threads have nothing to do. */
void ahead_settle(struct ahead_trace *t);
