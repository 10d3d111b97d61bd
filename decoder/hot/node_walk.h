/*
 * The hot loop: goes over plain packets by nodes. It knows TNT, TIP and PAD, and packets of time,
 * of which it only notes the places. It stops in front of any other packet, and wherever there is a
 * doubt. Its results depend on nothing but struct node_walk and the code, so another thread can run
 * it ahead of the walk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/retstack.h"
#include "decoder/hot/nodes.h"

/* Between the packet at OFFSET and the one before it stand packets of time. */
struct node_point {
	uint32_t step; /* steps before OFFSET */
	uint64_t offset;
};

/* A target that was met before. */
struct node_target {
	uint64_t ip;   /* 0: free */
	uint64_t edge; /* without decisions and call */
	uint32_t place;
	uint32_t tag; /* says which context and mode */
};
#define NODE_TARGETS 4096u

struct node_walk {
	struct nodes *nodes;
	struct node_target *targets; /* NODE_TARGETS of them */
	uint32_t tag;		     /* of targets of this context and mode */
	const uint8_t *trace;
	const uint8_t *pos;   /* the next packet */
	const uint8_t *limit; /* no packet from here on; the 16 bytes behind can be read */
	uint64_t context;
	uint64_t ip_end; /* addresses from here on are the stepping walk's */
	bool skip_time;	 /* packets of time may be passed */
	uint8_t rule;	 /* enum retstack_rule; RETSTACK_ASK: stops where the rules differ */
	bool parted;	 /* with RETSTACK_ASK: they differ already below the addresses in RETURNS */
	bool compile;	 /* nodes may be made */
	bool known;	 /* but only of code that was asked for before (nodes_lock) */
	uint8_t mode;

	/* Where execution stands: in front of the node that the edge leads to. */
	uint64_t edge;
	uint32_t place;
	uint64_t last_ip;
	struct retstack *returns;
	/* Decisions in hand, the next one in the highest bit. 0 at the beginning. */
	uint64_t bits;
	uint32_t n_bits;
	uint32_t last_bits;   /* decisions of the packet that was read last, if it is a TNT */
	const uint8_t *chain; /* the first packet of the decisions in hand; at first pos */
	const uint8_t *last;  /* the last packet of decisions or a target; NULL: none yet */
	const uint8_t *used;  /* the last such packet before the chain */
	const uint8_t *tip;   /* the last packet of a target; NULL: none yet */
	uint8_t timed;	      /* packets of time stood behind LAST; 2: a CYC */
	bool prompt;	      /* as in struct event_reader */
	uint8_t order;	      /* enum event_order */
	uint64_t packets, n_returns, n_compressed;
	uint64_t time;		      /* the last TSC before; no TSC is passed that is earlier */
	uint64_t tsc_first, tsc_last; /* of TSC packets that were passed, */
	bool has_tsc;		      /* if there were any */

	/* The result. STEPS has room for one step more than MAX_STEPS, which may be a
	 * place, and POINTS for one more than MAX_POINTS. */
	uint32_t *steps;
	size_t n_steps, max_steps;
	struct node_point *points;
	size_t n_points, max_points;
};

/* Goes on as far as possible; n_steps must be below max_steps. 0 or -ENOMEM. */
int node_walk(struct node_walk *w);
