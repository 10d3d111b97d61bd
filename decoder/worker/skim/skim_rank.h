/*
 * The cells of a map, summed up by what they have in common, and put in order.
 */
#pragma once

#include <stddef.h>

#include "decoder/worker/skim/skim_map.h"

/* What of a cell is looked at. */
#define SKIM_BY_FUNCTION 1u
#define SKIM_BY_THREAD	 2u
#define SKIM_BY_CPU	 4u
#define SKIM_BY_SLICE	 8u

struct skim_group {
	struct skim_cell sum; /* with what its rows have in common */
	size_t first, n;      /* of the rows */
};

struct skim_ranking {
	struct skim_cell *rows; /* those of a group with the most bytes first */
	size_t n_rows;
	struct skim_group *groups;
	size_t n_groups;
};

/* One group for each of what GROUP (SKIM_BY_..) names, one row in it for each of what ROW names.
 * Slices and CPUs are in their order, else groups with the most bytes come first. 0 or -ENOMEM; to
 * be done with in any case. */
int skim_rank(const struct skim_map *m, unsigned int group, unsigned int row,
	      struct skim_ranking *ret);
void skim_ranking_done(struct skim_ranking *r);
