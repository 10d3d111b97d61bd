/*
 * Code in the memory of live processes, read at a snapshot: evidence.regions -> images of kind
 * "memory" and "vdso", and the texts with the names of such code. In a job's thread, after the CPUs
 * run again. The processes go on meanwhile: what is read may be newer than the trace.
 */
#pragma once

#include "capture/ring/source.h"
#include "daemon/gather/evidence.h"

/* Bytes. */
struct memory_limits {
	uint64_t process, all; /* of memory */
	uint64_t map, maps;    /* of one text with names; of all */
};
extern const struct memory_limits memory_default_limits;

/* PROC is "/proc" (or a test's tree). Processes that are gone, or are not the ones that were seen,
 * are left out; what is beyond a limit is a note. Nothing where nothing was traced. 0 or -ENOMEM.
 */
int memory_read(struct source *source, const char *proc, const struct memory_limits *limits,
		struct evidence *e);
