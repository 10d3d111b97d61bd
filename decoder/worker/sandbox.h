/*
 * The sandbox around the worker, complete before the worker reads the first byte that a stranger
 * wrote.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sandbox_limits {
	const int *keep;   /* fds that stay open, besides 0, 1 and 2 */
	size_t n_keep;	   /* at most SANDBOX_MAX_KEEP */
	int channel;	   /* the only one of them that carries messages; -1: none */
	unsigned more_fds; /* number of fds that may come over the channel later */
	/* Limit of memory that can be written to (RLIMIT_DATA: only private mappings without
	 * MAP_GROWSDOWN can be made); 0: none. Limit of addresses (RLIMIT_AS), which cost only
	 * their page tables, 1/512 at most; 0: none. */
	uint64_t memory_bytes, address_bytes;
	uint64_t cpu_seconds; /* RLIMIT_CPU; 0: none */
	uint64_t file_bytes;  /* RLIMIT_FSIZE: the largest size of a written file; 0: none */
	/* Called in front of the last step: starts all threads. When it returns, each thread must
	 * have come to its own work, because the system calls of starting are forbidden afterwards.
	 * 0 or -errno. May be NULL. */
	int (*start)(void *userdata);
	void *userdata;
};

#define SANDBOX_MAX_KEEP 8

/* Steps that failed and are not fatal, or'ed. The seccomp filter is never among them. */
#define SANDBOX_NO_LANDLOCK 0x01 /* the kernel has none */
#define SANDBOX_NO_UID	    0x02 /* root, but not allowed to become nobody */

/* Enters the sandbox; there is no way back. Called while there is only the main thread.
 * *ret_missing: SANDBOX_NO_*. 0 or -errno; after a failure the process must end. */
int sandbox_enter(const struct sandbox_limits *limits, unsigned *ret_missing);
