/*
 * DATA rings -> perf records -> timeline, files, processes: all steady-state work of the daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/source.h"
#include "daemon/files.h"
#include "daemon/procs.h"
#include "sideband/timeline.h"

struct intake_cpu {
	uint64_t aux_flags; /* PERF_AUX_FLAG_*, or'ed since the last intake_take_flags */
	uint64_t lost;	    /* records that LOST records told of, in all */
};

struct intake {
	struct source *source; /* all borrowed */
	struct timeline *timeline;
	struct files *files;
	struct procs *procs;
	struct intake_cpu *cpus; /* owned; as many as the source has */
	uint64_t bad_records;	 /* that contradicted themselves and were skipped */
	uint64_t bad_bytes;	 /* thrown away with a ring that contradicted itself */
};

int intake_init(struct intake *in, struct source *source, struct timeline *timeline,
		struct files *files, struct procs *procs);
void intake_done(struct intake *in);
/* Takes in what the rings hold, at most one ring full of each, and returns the bytes taken. Nothing
 * is allocated for a record whose process and file are known. */
uint64_t intake_drain(struct intake *in);
/* One record that did not come from a ring (procscan_fn; USERDATA is the struct intake). 0. */
int intake_record(void *userdata, const void *record, size_t size);
/* The AUX flags of CPU INDEX, which are then forgotten. */
uint64_t intake_take_flags(struct intake *in, size_t index);
