/*
 * Inside of the skim: the owner of a sample, the map of all samples, and the ways to write them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/fault.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/view/views.h"

/* --- The owner of a sample: skim_owner.c --- */

/* The thread or process that a sample belongs to. */
struct skim_owner {
	const struct timeline_thread *thread; /* NULL: nobody, or unknown */
	/* Not NULL: the sample is of this process, but its thread is unknown. */
	const struct timeline_thread *process;
	uint32_t context; /* number in replay->contexts */
	bool guest;	  /* a virtual machine: the code of the contexts is not its code */
};

struct skim_owners {
	struct replay *replay; /* borrowed */
	size_t index;	       /* of the CPU in the manifest */
	bool guests; /* a raw trace: nothing tells a virtual machine's code from a process' code */
	struct skim_owner owner;
	/* The last question. Samples between two packets of time all have the same times. */
	bool asked, kernel;
	uint64_t tsc_lo, tsc_hi;
	bool known;	       /* OWNER holds for such addresses ... */
	uint64_t since, until; /* ... within these times, perf ns */
};

void skim_owners_init(struct skim_owners *w, struct replay *r, size_t index);
/* Finds the owner of S, valid until the next call. Samples come in the order of the CPU's trace. 0
 * or -ENOMEM. */
int skim_owner_of(struct skim_owners *w, const struct skim_sample *s,
		  const struct skim_owner **ret);

/* --- The map: samples counted by thread, function, CPU and slice of time: skim_map.c --- */

#define SKIM_SLICES   40u
#define SKIM_NO_SLICE UINT32_MAX
/* Samples beyond this number of cells are counted in the first cell. */
#define SKIM_MAX_CELLS (1u << 18)

#define SKIM_RECENT 256u /* a power of two */

/* Samples with the same thread, function, CPU and slice. */
struct skim_cell {
	const struct timeline_thread *thread; /* NULL: nobody, or unknown */
	uint32_t function;		      /* number in functions; 0: unknown */
	uint32_t cpu;			      /* index into the manifest's CPUs */
	uint32_t slice;			      /* SKIM_NO_SLICE: the time is unknown */
	uint32_t some;			      /* 1: an unknown thread of the process of THREAD */
	uint64_t samples;
	/* The bytes of trace from each of these samples to the next sample: a measure of the
	 * branches that were executed. */
	uint64_t bytes;
};

struct skim_map {
	struct functions functions;
	uint64_t first, last; /* TSC: the slices' beginning and end; 0: there are none */
	struct skim_cell *cells;
	size_t n_cells, capacity;
	uint32_t *slots;
	size_t n_slots;
	uint64_t refused; /* samples counted in the first cell because there were too many cells */
	/* The cells that were found last, by function. Cells of the current thread, CPU and slice
	 * have the current round. */
	struct skim_recent {
		uint64_t round;
		uint32_t function, cell;
	} recent[SKIM_RECENT];
	uint64_t round;
	struct skim_cell now;		  /* the current thread, CPU, slice and function */
	uint64_t slice_from, slice_until; /* TSCs of the current slice */
	size_t at;			  /* the cell of the last sample; SIZE_MAX: none */
	uint64_t since;			  /* the offset of the last sample */
	struct functions_span span;	  /* of the last address */
};

/* FIRST and LAST: the TSC at which the slices begin and end; 0: unknown. 0 or -ENOMEM. */
int skim_map_init(struct skim_map *m, const struct replay *r, uint64_t first, uint64_t last);
void skim_map_done(struct skim_map *m);
/* Counts a sample of CPU. Samples of a CPU come in the order of its trace, one CPU after the other.
 * 0 or -ENOMEM. */
int skim_map_add(struct skim_map *m, size_t cpu, const struct skim_sample *s,
		 const struct skim_owner *owner);
/* Behind the last sample of a CPU, whose trace ends at OFFSET. */
void skim_map_end(struct skim_map *m, uint64_t offset);
/* The TSC at which slice I begins. */
uint64_t skim_map_slice(const struct skim_map *m, uint32_t i);

/* --- Rankings of the counts: skim_map.c --- */

/* The parts of a cell that a ranking looks at. */
#define SKIM_BY_FUNCTION 1u
#define SKIM_BY_THREAD	 2u
#define SKIM_BY_CPU	 4u
#define SKIM_BY_SLICE	 8u

struct skim_group {
	struct skim_cell sum; /* of the rows, with the parts that they have in common */
	size_t first, n;      /* its rows in the ranking */
};

struct skim_ranking {
	struct skim_cell *rows; /* within a group, the rows with the most bytes come first */
	size_t n_rows;
	struct skim_group *groups;
	size_t n_groups;
};

/* Sums up the cells: one group for each value of the parts GROUP (SKIM_BY_*), and in it one row for
 * each value of the parts ROW. Groups of slices or CPUs are in their order; of other groups, those
 * with the most bytes come first. 0 or -ENOMEM; skim_ranking_done is to be called in both cases. */
int skim_rank(const struct skim_map *m, unsigned int group, unsigned int row,
	      struct skim_ranking *ret);
void skim_ranking_done(struct skim_ranking *r);

/* --- Samples as lines, "TIME CPU PID/TID PACKET ADDRESS SYMBOL IMAGE": skim_lines.c --- */

struct skim_lines {
	struct lines *lines; /* borrowed */
	const struct replay *replay;
	struct functions functions;
	uint64_t show;
	/* The text of the last time. */
	uint64_t tsc;
	size_t time_size;
	char time[32];
};

/* SHOW: WORKER_SHOW_TIME, _PLACES. 0 or -ENOMEM. */
int skim_lines_init(struct skim_lines *l, const struct replay *r, uint64_t show,
		    struct lines *lines);
void skim_lines_done(struct skim_lines *l);
/* Writes that something is missing at or before OFFSET, behind the sample BEFORE of CPU. 0 or the
 * sticky error of the lines. */
int skim_lines_gap(struct skim_lines *l, size_t cpu, const struct skim_sample *before,
		   uint64_t offset, enum fault kind);
/* Writes a sample of CPU. 0, -ENOMEM, or the sticky error of the lines. */
int skim_lines_write(struct skim_lines *l, size_t cpu, const struct skim_sample *s,
		     const struct skim_owner *owner);

/* --- The map as JSON (docs/ptsnapctl.1.scd, --skim): skim_json.c --- */

struct skim_json {
	const struct replay *replay;
	const char *skim;		  /* "psb", "tip" */
	const struct skim_counts *counts; /* of each CPU of the manifest */
	const struct skim_map *map;	  /* NULL: only the totals */
	uint64_t limit;			  /* bytes; 0: none */
	bool pretty;
	int fd; /* borrowed */
};

/* Halves the lists until the map fits. 0, -ENOMEM, -E2BIG (the map does not fit without lists), or
 * -errno of write. */
int skim_json_write(const struct skim_json *j);
