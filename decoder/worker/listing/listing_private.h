/*
 * Inside of the listing: lines (listing.c) and places (listing_places.c).
 */
#pragma once

#include "decoder/code/insn_text.h"
#include "decoder/worker/listing/listing.h"
#include "decoder/worker/view/stream_time.h"
#include "proto/execstream.h"

/* What a number of a place means now. */
struct listing_place {
	uint64_t address;
	uint32_t context;
	uint8_t mode; /* enum insn_mode */
	bool used;
	bool newest; /* of the two places of its set, this one was asked for last */
};

struct listing {
	const struct decode_options *options;
	const struct replay *replay;
	struct functions *functions;
	struct lines *lines;
	struct insn_text *text; /* NULL: branches, which need none */
	struct stream_time time;
	char *line;		      /* EXECSTREAM_MAX_LINE bytes */
	struct listing_place *places; /* EXECSTREAM_PLACES: number less 1 */
	uint32_t *numbers;	      /* of functions in the stream, by index; 0: not defined yet */
	size_t n_numbers, capacity;
	uint32_t n_defined;
	bool has_origin, has_when;
	size_t cpu; /* the origin of the last lines */
	const struct timeline_thread *thread, *process;
	struct stream_when when;
	uint64_t before; /* TSC of the item before; 0: not known */
	uint64_t branches, insns, gaps;
};

/* Writes ITEM. */
void listing_put(struct listing *l, const struct execstream_item *item);
/* The number of the place ADDRESS of CONTEXT, whose code is of MODE; defined now if it is not. 0:
 * ADDRESS is 0. The place that was asked for before this one keeps its meaning. 0 or -ENOMEM. */
int listing_place(struct listing *l, uint32_t context, uint8_t mode, uint64_t address,
		  uint32_t *ret);
