/*
 * /tmp/perf-PID.map: the names that a JIT compiler tells of its code, as perf reads them
 * (tools/perf/Documentation/jit-interface.txt). Used by memory_read.c, in a job's thread.
 */
#pragma once

#include <stdint.h>

#include "capture/proc/mounts.h"
#include "daemon/gather/evidence.h"

/* That of process PID (its number here), whose directory in /proc is DIR, becomes a text of E;
 * the file is looked for in the process' own root by the number that it has in its own namespace.
 * One that is larger than MAX or *LEFT bytes, which is what may yet be read, is a text that is
 * missing; where there is no file there is no text. 0 or -ENOMEM. */
int memory_names_read(struct mounts *mounts, int dir, uint32_t pid, uint64_t max, uint64_t *left,
		      struct evidence *e);
