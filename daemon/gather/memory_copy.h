/*
 * Another process' memory, copied by a process of our own that can be left behind: who reads memory
 * makes the kernel bring its pages, and one that is a FUSE file's comes when a stranger pleases;
 * nothing ends who waits for it. Used by memory_read.c, in a job's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a piece may take, and how many helpers are left behind before nothing is read any more.
 */
#define MEMORY_COPY_PATIENCE_MS 1000
#define MEMORY_COPY_MAX_LEFT	4u

struct memory_copy {
	int channel; /* to the helper; -EBADF: there is none yet */
	pid_t helper;
	int patience_ms; /* tests have less */
	unsigned left;	 /* helpers that wait for strangers */
};

void memory_copy_init(struct memory_copy *c);
/* A helper that does not wait ends with it. */
void memory_copy_done(struct memory_copy *c);
/* SIZE bytes at ADDRESS of MEM (/proc/PID/mem) to the end of the file TO; both borrowed. Returns
 * how many, fewer where the rest cannot be read. -ETIMEDOUT: nobody brings them, TO may still be
 * written to; -errno: there is no helper. */
ssize_t memory_copy(struct memory_copy *c, int mem, uint64_t address, size_t size, int to);
