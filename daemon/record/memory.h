/*
 * Which processes have code in memory that is no file's (JIT compilers, trampolines, vDSOs of
 * another size than ours), fed by intake.c with records, read out by evidence.c; in the loop's
 * thread. Told by MMAP2 records alone, which mprotect(2) to PROT_EXEC makes too
 * (mm/mprotect.c, mprotect_fixup(): perf_event_mmap()); unmapping is not told, so what is listed
 * may be gone: who reads it looks again (memory_read.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

struct memory;

/* Memory of a live process that holds code: read by the job, after the CPUs run again. */
struct memory_region {
	uint32_t pid;
	uint64_t address, size; /* bytes */
	bool vdso;
};

/* At most MAX processes are remembered; those that did not run for longest make room. 0 or -ENOMEM.
 */
int memory_new(uint32_t max, struct memory **ret);
void memory_free(struct memory *m);

/* In all that follow M may be NULL: then nothing is remembered. */
/* A MMAP2 record. Nothing is allocated for those of files, and of vDSOs like our own. */
void memory_see(struct memory *m, const struct perfrecord *record);
/* Process PID was forked by PPID, executed another program, at TIME (perf ns); has ended. Of
 * different CPUs records come in any order. */
void memory_fork(struct memory *m, uint32_t pid, uint32_t ppid, uint64_t time);
void memory_exec(struct memory *m, uint32_t pid, uint64_t time);
void memory_exit(struct memory *m, uint32_t pid);
/* A thread of PID got or left a CPU. Costs next to nothing where nobody has such code. */
void memory_ran(struct memory *m, uint32_t pid, uint64_t time);

/* All regions, those of one process together and in order, processes that ran last first; *ret is
 * malloc'ed, may be NULL when there are none. 0 or -ENOMEM. */
int memory_regions(const struct memory *m, struct memory_region **ret, size_t *ret_n);
/* Regions that found no room. */
uint64_t memory_dropped(const struct memory *m);
