/*
 * Walking ahead: threads that go over plain packets (node_walk.c) from PSBs on, before the walk
 * itself comes there, as if it came as they guess. They keep what came out in pieces. The walk
 * takes a piece only where it stands exactly as the piece begins, and goes itself elsewhere, so
 * that what it gives does not depend on them. Used by flow_nodes.c.
 *
 * Threads belong to the flow that others share; each flow's trace is opened for them. All that is
 * here is called by the one thread that the flows are of.
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
	size_t segment_bytes; /* that a thread takes at once, about; 0: as many as are worth it */
};

/* Return addresses, the oldest one first. */
struct ahead_returns {
	const struct retstack_entry *list;
	uint32_t n;
};

/* What a walk did. */
struct ahead_piece {
	/* It stood so before: */
	const uint8_t *pos;
	uint64_t context, last_ip;
	uint32_t node, place;
	uint8_t mode, order;
	struct ahead_returns before;
	/* And so behind; `prompt` counts from false. */
	struct node_walk walk;
	struct ahead_returns after;
};

struct ahead;
struct ahead_trace;

/* THREADS in all, at least 1, the caller's included; where there cannot be so many, fewer. The
 * others are of CREW, borrowed until ahead_free(); NULL: they are started. 0 or -errno. */
int ahead_new(struct graph *graph, struct nodes *nodes, uint32_t threads, struct crew *crew,
	      struct ahead **ret);
/* Behind the close of all traces. */
void ahead_free(struct ahead *a);
/* How many threads may run: of CPUs that the caller may use. */
uint32_t ahead_count_cpus(void);

int ahead_open(struct ahead *a, const struct ahead_config *config, struct ahead_trace **ret);
void ahead_close(struct ahead_trace *t);
/* The walk stands in front of the packet at POS, in code of CONTEXT: the piece that begins there,
 * or NULL. It holds up to the next call of this or of ahead_return(). May walk ahead itself, where
 * another thread is not done with it. *RET_LIMIT: if there is none the caller should not walk
 * further than this before he asks again. */
const struct ahead_piece *ahead_take(struct ahead_trace *t, const uint8_t *pos, uint64_t context,
				     const uint8_t **ret_limit);
/* Where the steps begin that those of the piece that was taken last are among; with ahead_lend()
 * they stay up to ahead_return(). */
const uint32_t *ahead_steps(const struct ahead_trace *t);
void ahead_lend(struct ahead_trace *t);
void ahead_return(struct ahead_trace *t);
/* Until the other threads have nothing to do. */
void ahead_settle(struct ahead_trace *t);
