/*
 * Where threads sleep in the kernel at a snapshot, by /proc: in which system call, and which thread
 * holds the lock that they wait for. The trace does not tell where threads are that have not run
 * within it.
 *
 * The reading is later than the trigger. The decoder uses it only of threads that had no CPU in
 * between, which the sideband says if it is drained behind the reading.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/gather/evidence.h"

/* Beyond these, processes are counted and not read; but so many threads are read however long that
 * takes. */
#define ASLEEP_MAX_THREADS 4096u
#define ASLEEP_MAX_MSEC	   100
#define ASLEEP_MIN_THREADS 64u

struct asleep;

/* Reads all threads of the N processes PIDS that are asleep; those of processes that have ended are
 * left out. PROC is "/proc" (or a test's tree). 0 or -ENOMEM. */
int asleep_read(const char *proc, const uint32_t *pids, size_t n, struct asleep **ret);
void asleep_freep(struct asleep **a);
/* Adds a text of kind "threads" to E, of threads of the processes that the manifest has and does
 * not exclude. 0, -ENOMEM, or -E2BIG: the manifest's limit. */
int asleep_tell(const struct asleep *a, struct evidence *e);
