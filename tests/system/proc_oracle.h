/*
 * Reads from /proc the names of all processes and what they map executable. This is the oracle of a
 * timeline that was made of records.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sideband/timeline/timeline.h"

struct oracle;

/* As /proc is now. */
struct oracle *oracle_read(void);
void oracle_free(struct oracle *o);

struct oracle_result {
	uint64_t processes; /* that were compared: those that BEFORE and AFTER say the same of */
	uint64_t mappings;
	uint64_t changed; /* processes that were not, as they changed meanwhile */
	uint64_t wrong;	  /* mappings and names that the timeline does not have, or otherwise */
	uint64_t stale;	  /* mappings of the timeline where nothing is any more */
	char first_wrong[512]; /* in words */
};

/* Holds the timeline as of TIME, between BEFORE and AFTER, against both. Adds to *RESULT. */
void oracle_compare(const struct oracle *before, const struct oracle *after,
		    const struct timeline *t, uint64_t time, struct oracle_result *result);
