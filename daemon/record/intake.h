/*
 * DATA rings -> perf records -> timeline, files, processes: all steady-state work of the daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/drain.h"
#include "capture/ring/source.h"
#include "daemon/record/files.h"
#include "daemon/record/memory.h"
#include "daemon/record/procs.h"
#include "sideband/timeline/timeline.h"

struct intake_cpu {
	uint64_t aux_flags; /* PERF_AUX_FLAG_*, or'ed since the last intake_take_flags */
	uint64_t aux_ns;    /* when the last AUX record was written: its CPU had stopped */
	uint64_t lost;	    /* records, in all */
	/* Of its sideband ring as it is now: what LOST records have told, and what is known, as
	 * these tell only of losses that another record follows. */
	uint64_t lost_told, lost_known;
};

/* All borrowed. */
struct intake_parts {
	struct source *source;
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct memory *memory;
	uint64_t queue_bytes; /* drain_new's */
	uint64_t period_usec;
};

struct intake {
	struct source *source; /* all borrowed */
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct memory *memory;
	struct drain *drain;	 /* owned */
	struct intake_cpu *cpus; /* owned; as many as the source has */
	uint64_t bad_records;	 /* that contradicted themselves and were skipped */
	uint64_t bad_bytes;	 /* thrown away with a ring that contradicted itself */
	struct source_watch watch;
	bool started; /* rings that come from now on come late */
	uint64_t unmarked[PERFRECORD_MAX_SIZE / 8];
};

/* From now on the rings of the source are emptied, also those that come later; the source's watch
 * is ours, and IN must stay where it is. 0 or -errno. */
int intake_init(struct intake *in, const struct intake_parts *parts);
/* Before the source is freed. */
void intake_done(struct intake *in);
/* Readable when intake_some should be called; borrowed. */
int intake_fd(const struct intake *in);
/* Takes in some of what waits in memory, so much that others in the loop do not wait for long.
 * Returns the bytes taken. Nothing is allocated for a record whose process and file are known. */
uint64_t intake_some(struct intake *in);
/* Takes in all that the rings hold at the time of the call. Returns the bytes taken. */
uint64_t intake_drain(struct intake *in);
/* After it: what the sideband rings had no room for, and no record has told of yet, is a loss now.
 * Where the source does not know, nothing. */
void intake_settle(struct intake *in);
/* One record that did not come from a ring (procscan_fn; USERDATA is the struct intake). 0. */
int intake_record(void *userdata, const void *record, size_t size);
/* The AUX flags of CPU INDEX, which are then forgotten. */
uint64_t intake_take_flags(struct intake *in, size_t index);
