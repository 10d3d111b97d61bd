/*
 * The report, out of a finished replay. Shape: proto/report.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/decode.h"

struct report_options {
	uint64_t limit; /* bytes; 0: none */
	bool pretty;
	bool no_symbols;     /* none were read: said in it */
	bool lines;	     /* with source lines and inlined functions */
	uint64_t lines_ns;   /* for no longer than that, of CPU time; 0: no limit */
	const char *version; /* of this program */
};

/* Writes to FD. What does not fit the limit is cut in this order, and said in "cut": functions,
 * turns and what came besides branches, the threads' last branches, gaps, images, processes,
 * threads, CPUs. 0, -ENOMEM, -E2BIG (what cannot be cut is larger than the limit) or -errno of
 * write. */
int report_write(struct decode *d, const struct report_options *options, int fd);
