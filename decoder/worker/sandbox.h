/*
 * The walls around the worker, put up before it reads the first byte that a stranger wrote.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sandbox_limits {
	const int *keep;   /* fds that stay open, besides 0, 1 and 2 */
	size_t n_keep;	   /* at most SANDBOX_MAX_KEEP */
	int channel;	   /* that of them which messages go over, and no other; -1: none */
	unsigned more_fds; /* that may come by the others later */
	/* What can be written to (RLIMIT_DATA: nothing but private mappings without MAP_GROWSDOWN
	 * is let be made); 0: none. Addresses cost only their page tables, 1/512 at most, and are
	 * bounded for that (RLIMIT_AS); 0: none. */
	uint64_t memory_bytes, address_bytes;
	uint64_t cpu_seconds; /* RLIMIT_CPU; 0: none */
	uint64_t file_bytes;  /* RLIMIT_FSIZE: the largest size of a file written to; 0: none */
	/* Behind all walls but the last: starts the threads that there are to be, each of which has
	 * come as far as its own work when this returns, as what starting takes is then forbidden.
	 * 0 or -errno. May be NULL. */
	int (*start)(void *userdata);
	void *userdata;
};

#define SANDBOX_MAX_KEEP 8

/* What could not be put up and is not fatal, or'ed. The seccomp filter is never among them. */
#define SANDBOX_NO_LANDLOCK 0x01 /* the kernel has none */
#define SANDBOX_NO_UID	    0x02 /* root, but not allowed to become nobody */

/* Called by the main thread, which is the only one. No way back. *ret_missing: SANDBOX_NO_*. 0 or
 * -errno; after a failure the process must end. */
int sandbox_enter(const struct sandbox_limits *limits, unsigned *ret_missing);
