/*
 * The fast map of a trace: only the addresses that its packets hold, without walking any code. A
 * first look at hundreds of megabytes, and where to look closer.
 */
#pragma once

#include "decoder/worker/view/views.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

/* REQUEST asks for a skim (options->skim). WORKER_VIEW_REPORT: the map as JSON, within
 * options->report_limit; WORKER_VIEW_SUMMARY: its totals; WORKER_VIEW_BRANCHES: a line a sample.
 * *ret_faults: packets that could not be read, and overflows. 0 or -errno:
 * -ENOMEM, -E2BIG a map that does not fit its limit even when all is cut, or of the output. */
int skim_run(const struct bundle *bundle, const struct decode_options *options,
	     const struct decode_sink *sink, uint64_t *ret_faults);
