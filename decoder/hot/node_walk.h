/*
 * The hot loop: plain packets over nodes. It knows TNT, TIP, PAD and packets of time, which it only
 * notes the places of; in front of anything else it stops, and wherever there is a doubt. What it
 * does depends on nothing but its own struct and code, so that it can be done ahead by another
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/retstack.h"
#include "decoder/hot/nodes.h"

/* The packets from OFFSET on stand behind packets of time that those before do not. */
struct node_point {
	uint32_t step; /* steps before it */
	uint64_t offset;
};

/* A target met before. */
struct node_target {
	uint64_t ip;   /* 0: free */
	uint64_t edge; /* without decisions and call */
	uint32_t place;
	uint32_t tag; /* of whose code and which mode it is */
};
#define NODE_TARGETS 4096u

struct node_walk {
	struct nodes *nodes;
	struct node_target *targets; /* NODE_TARGETS of them */
	uint32_t tag;		     /* of those that are of this context and mode */
	const uint8_t *trace;
	const uint8_t *pos;   /* the next packet */
	const uint8_t *limit; /* not to be read from on; 16 bytes behind it there are */
	uint64_t context;
	uint64_t ip_end;   /* addresses from here on are the stepping walk's */
	bool skip_time;	   /* packets of time may be passed */
	bool keep_returns; /* only compressed returns pop (libipt) */
	bool compile;	   /* nodes may be made, */
	bool known;	   /* of code that was asked for before (nodes_lock) */
	uint8_t mode;

	/* Where execution stands: in front of this node. */
	uint64_t edge;
	uint32_t place;
	uint64_t last_ip;
	struct retstack *returns;
	/* Decisions in hand, the next one in the highest bit. 0 at the beginning. */
	uint64_t bits;
	uint32_t n_bits;
	uint32_t last_bits;   /* of the packet that was read last, if it is a TNT */
	const uint8_t *chain; /* the first packet that any of them is of, at first pos */
	const uint8_t *last;  /* the last packet of decisions or a target; NULL: none yet */
	const uint8_t *used;  /* the same before the chain */
	const uint8_t *tip;   /* the last target; NULL: none yet */
	uint8_t timed;	      /* packets of time stood behind the last one of those; 2: a CYC */
	bool prompt;	      /* as struct event_reader has it */
	uint8_t order;	      /* enum event_order */
	uint64_t packets, n_returns, n_compressed;
	uint64_t tsc_first, tsc_last; /* of packets that were passed; */
	bool has_tsc;		      /* there were any */

	/* What it makes. There is room for one step more than MAX_STEPS, which may be a place, and
	 * for one point more than MAX_POINTS. */
	uint32_t *steps;
	size_t n_steps, max_steps;
	struct node_point *points;
	size_t n_points, max_points;
};

/* Goes on as far as it can; n_steps is below max_steps. 0 or -ENOMEM. */
int node_walk(struct node_walk *w);
