/*
 * A bundle as a perf.data file that `perf script' and `perf report' read (Linux 6.1's and later).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"

struct export_told {
	uint64_t bytes;	  /* of the file */
	uint64_t records; /* of the sideband that are in it */
	uint64_t skipped; /* that contradict themselves or are not for perf */
	/* Traces of CPUs without TSC packets or without a clock: perf cannot tell who ran. */
	bool nobodys;
};

/* Writes B to FD from its position on, which is the file's beginning; FD need not be seekable. One
 * pass over the sideband to measure it, one over everything to write it; nothing of the traces is
 * copied. 0, -ENODATA (no trace in the bundle), -ENOMEM, or -errno of writing. */
int export_perfdata(const struct bundle *b, int fd, struct export_told *ret);
