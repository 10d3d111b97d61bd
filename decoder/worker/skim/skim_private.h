/*
 * Inside of the skim: the owner of a sample, and the two ways to write samples.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/functions.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/skim/skim_map.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/view/lines.h"

/* --- The owner of a sample: skim_owner.c --- */

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
