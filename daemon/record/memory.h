/*
 * The regions of memory that hold code of no file: JIT compilers, trampolines, and vDSOs of another
 * size than ours.
 *
 * Only MMAP2 records tell of such code; mprotect(2) to PROT_EXEC makes one, too (mm/mprotect.c,
 * mprotect_fixup(): perf_event_mmap()). No record tells of unmapping, so a region may be gone:
 * whoever reads it must look again (daemon/gather/memory_read.h).
 *
 * The newest record of a region tells since when the region's bytes are what they are. Memory that
 * is private, executable and not writable can be written to only after mprotect(2) has made it
 * writable, which makes no record (perf_event_mmap_match() leaves out what is not executable); but
 * before it is executed again, another mprotect(2) must make it executable, which does. The kernel
 * writes no record for: a write of a debugger (ptrace(2), /proc/PID/mem), which needs no right to
 * the mapping; mremap(2), which moves other memory there; and madvise(2) with MADV_DONTNEED, which
 * makes it zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

struct memory;

/* A region of a live process; a job reads it after the CPUs run again. */
struct memory_region {
	uint32_t pid;
	uint64_t address, size; /* bytes */
	bool vdso;
	/* perf ns; since then the records show nothing by which the bytes may have changed.
	 * MEMORY_UNKNOWN: they can be written to, or that is not known. */
	uint64_t unchanged_ns;
};
#define MEMORY_UNKNOWN UINT64_MAX

/* Remembers at most MAX processes; the one that has not run for longest makes room. 0 or -ENOMEM.
 */
int memory_new(uint32_t max, struct memory **ret);
void memory_free(struct memory *m);

/* In all that follow M may be NULL: then nothing is remembered. */

/* Handles a MMAP2 record, which tells how memory is SINCE then (perf ns; UINT64_MAX: unknown).
 * Allocates nothing for files and for vDSOs like our own. */
void memory_see(struct memory *m, const struct perfrecord *record, uint64_t since);
/* Records were lost up to TIME (perf ns; 0: unknown): they may have told of any memory. */
void memory_lost(struct memory *m, uint64_t time);
/* Process PID was forked by PPID, or executed another program, at TIME (perf ns); or has ended.
 * Records of different CPUs come in any order. */
void memory_fork(struct memory *m, uint32_t pid, uint32_t ppid, uint64_t time);
void memory_exec(struct memory *m, uint32_t pid, uint64_t time);
void memory_exit(struct memory *m, uint32_t pid);
/* A thread of PID got or left a CPU at TIME. */
void memory_ran(struct memory *m, uint32_t pid, uint64_t time);

/* All regions; those of one process are together and in order, and processes that ran last come
 * first. *ret is the caller's and may be NULL if there are none. 0 or -ENOMEM. */
int memory_regions(const struct memory *m, struct memory_region **ret, size_t *ret_n);
/* As unchanged_ns, for all of the SIZE bytes at ADDRESS of PID. */
uint64_t memory_unchanged(const struct memory *m, uint32_t pid, uint64_t address, uint64_t size);
/* Regions that found no room: of processes that live, and of processes that made room. */
uint64_t memory_dropped(const struct memory *m);

/* Our own vDSO, which is that of all 64-bit processes, at another address: the whole mapping, as
 * its MMAP2 record has it. A kernel image, never written. NULL and size 0: there is none. */
const void *vdso_own(uint64_t *ret_size);
