/*
 * The inside of walking ahead, shared by ahead.c (who does what) and ahead_walk.c (the walk).
 */
#pragma once

#include "decoder/hot/ahead.h"
#include "decoder/packet/event.h"

#define AHEAD_PIECES  256u
#define AHEAD_RETURNS 8192u
#define AHEAD_STEPS   (64u << 10)
#define AHEAD_POINTS  4096u
/* Of a piece: bytes of trace, about; points at most. */
#define AHEAD_BYTES	   8192u
#define AHEAD_PIECE_STEPS  (24u << 10) /* there has to be room for so many */
#define AHEAD_PIECE_POINTS 1024u

/* A part of a trace that one thread walks at once: from a PSB to another one. */
struct ahead_segment {
	struct ahead_segment *next; /* of those that are free */
	const uint8_t *begin, *end;
	uint64_t context;
	bool dropped;	   /* nobody will take its pieces any more (atomic) */
	bool done;	   /* (atomic) */
	uint32_t n;	   /* pieces (atomic): they and what they hold stay */
	const uint8_t *at; /* where the piece behind them begins (atomic) */
	size_t n_steps, n_points, n_returns;
	struct ahead_piece pieces[AHEAD_PIECES];
	struct retstack_entry returns[AHEAD_RETURNS];
	struct node_point points[AHEAD_POINTS + 1];
	uint32_t steps[AHEAD_STEPS + 1];
};

/* A thread's own. */
struct ahead_walker {
	struct nodes *nodes;
	struct event_reader reader;
	struct retstack returns;
	struct ahead_returns listed; /* the same, of the segment; n > PT_RET_STACK: not yet */
	uint64_t context;	     /* of the targets */
	uint64_t last_ip;
	uint32_t node, place; /* where execution stands */
	uint8_t mode;
	bool known; /* there are targets */
	struct node_target targets[NODE_TARGETS];
};

/* ahead_walk.c */
/* Fills S with pieces, as far as they can be guessed. */
void ahead_run(struct ahead_walker *w, const struct ahead_config *config, struct ahead_segment *s);
