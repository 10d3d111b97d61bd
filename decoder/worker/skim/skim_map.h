/*
 * Samples counted: who was where when, in slices of time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/functions.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/skim/skim_whose.h"

#define SKIM_SLICES   40u
#define SKIM_NO_SLICE UINT32_MAX
/* With more of them the rest is counted in the first. */
#define SKIM_MAX_CELLS (1u << 18)

#define SKIM_RECENT 256u /* a power of two */

/* What has all of these in common. */
struct skim_cell {
	const struct timeline_thread *thread; /* NULL: nobody, or not known */
	uint32_t function;		      /* number in functions; 0: not known */
	uint32_t cpu;			      /* index into the manifest's */
	uint32_t slice;			      /* SKIM_NO_SLICE: its time is not known */
	uint32_t some; /* 1: some thread of that one's process, it is not known which */
	uint64_t samples;
	/* Of trace, from these samples to the next ones: so many branches were executed from
	 * there on. */
	uint64_t bytes;
};

struct skim_map {
	struct functions functions;
	uint64_t first, last; /* TSC of the slices' beginning and end; 0: there are none */
	struct skim_cell *cells;
	size_t n_cells, capacity;
	uint32_t *slots;
	size_t n_slots;
	uint64_t refused; /* samples counted in the first cell as there were too many */
	/* The cells that were found last, by function: those of the thread, CPU and slice at hand
	 * have the same round. */
	struct skim_recent {
		uint64_t round;
		uint32_t function, cell;
	} recent[SKIM_RECENT];
	uint64_t round;
	struct skim_cell now;		  /* thread, CPU and slice at hand, and the function; */
	uint64_t slice_from, slice_until; /* such TSCs are of that slice */
	/* Where the last sample was counted, and where it is. */
	size_t at;
	uint64_t since;
	struct functions_span span; /* of the last address */
};

/* FIRST and LAST: TSC of the whole; 0: not known. 0 or -ENOMEM. */
int skim_map_init(struct skim_map *m, const struct replay *r, uint64_t first, uint64_t last);
void skim_map_done(struct skim_map *m);
/* A sample of CPU, whose OWNER is. Those of a CPU come in their order, one CPU after the other. 0
 * or -ENOMEM. */
int skim_map_add(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		 const struct skim_owner *owner);
/* Behind the last sample of a CPU, whose trace ends at OFFSET. */
void skim_map_end(struct skim_map *m, uint64_t offset);
/* The TSC at which slice I begins. */
uint64_t skim_map_slice(const struct skim_map *m, uint32_t i);
