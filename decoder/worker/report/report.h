/*
 * The report, out of a finished replay. Shape: proto/report.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/count/decoded.h"
#include "proto/decode_options.h"

/* Writes to FD. VERSION: of this program. What does not fit OPTIONS->report_limit is cut in this
 * order, and said in "cut": functions, turns and what came besides branches, the threads' last
 * branches, gaps, images, processes, threads, CPUs. 0, -ENOMEM, -E2BIG (what cannot be cut is
 * larger than the limit) or -errno of write. */
int report_write(struct decode *d, const struct decode_options *options, const char *version,
		 int fd);
/* The summary: one JSON object for scripts. OPTIONS: hash, pretty. Sorts the threads of the tally.
 * 0 or -errno. */
int report_summary(struct decode *d, const struct decode_options *options, int fd);
