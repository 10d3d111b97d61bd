/*
 * Views: pieces of code with the names that they have. In all contexts in which a piece is seen so
 * the same offset in it is of the same function, wherever it lies.
 *
 * It depends on the piece's image, on where the piece lies in it, on how far it is mapped, and,
 * where there is one, on the process' perf map, which goes by address; on nothing else of a
 * context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/hot/nodes.h"
#include "decoder/worker/replay/replay.h"

/* Of code of which that is not known; views are below MAX. */
#define TALLY_NO_VIEW	0u
#define TALLY_MAX_VIEWS ((1u << 14) - 1)

struct tally_view {
	uint64_t offset;		 /* of the piece, in the file */
	uint64_t map_before, map_behind; /* of the mapping, before the piece begins and behind */
	uint64_t address;		 /* with a perf map: its */
	uint32_t image;
	uint32_t pid;  /* whose perf map there is; UINT32_MAX: none */
	uint32_t next; /* of the same hash; 0: none */
};

struct tally_views {
	const struct replay *replay; /* borrowed */
	struct tally_view *list;     /* [0]: none */
	uint32_t n, max;
	uint32_t *slots;
	uint32_t *of_place; /* view + 1 by place; 0: not looked up */
	size_t n_places;
};

/* 0 or -ENOMEM. */
int tally_views_init(struct tally_views *v, const struct replay *replay);
void tally_views_done(struct tally_views *v);
/* The numbers of places mean others from here on. */
void tally_views_forget_places(struct tally_views *v);
/* Looks up PLACE of NODES, which is one of CONTEXT. 0; TALLY_VIEWS_FULL: there are too many,
 * nothing is known now; -ENOMEM. */
#define TALLY_VIEWS_FULL 1
int tally_views_look_up(struct tally_views *v, const struct nodes *nodes, uint32_t context,
			uint32_t place, uint32_t *ret);

/* The same of one that may be known. */
static inline int tally_views_find(struct tally_views *v, const struct nodes *nodes,
				   uint32_t context, uint32_t place, uint32_t *ret)
{
	if (place < v->n_places && v->of_place[place] != 0) {
		*ret = v->of_place[place] - 1;
		return 0;
	}
	return tally_views_look_up(v, nodes, context, place, ret);
}
