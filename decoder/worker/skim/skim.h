/*
 * The skim: a map of a trace from the addresses in its packets alone, without code.
 *
 * A skim is a first look at hundreds of megabytes: it says who was where when, and where to look
 * closer. Each packet with an address is a sample. skim_read.c finds the samples; skim_owner.c
 * finds the thread of each by time; skim_map.c counts samples by thread, function, CPU and slice of
 * time, and ranks the counts; skim_json.c writes the map, skim_lines.c one line for each sample.
 * skim_shift.c uses samples to find the shift between the clocks of trace and sideband, also for a
 * decode. skim.c goes over the CPUs. skim_private.h is inside only.
 *
 * Main types: struct skim_sample, struct skim_owner (the thread of a sample), struct skim_map.
 *
 * Decisions that govern the room:
 * - No code is read to follow branches. Only symbols are looked up, for names.
 * - The work is linear in the trace, and bytes without an address are passed at the speed of
 *   memory. With WORKER_SKIM_PSB, only the PSB+ are read.
 * - All tables and lists have limits; what exceeds a limit is counted, and "cut" says how much.
 * - Where switches are closer together than the trace's time is exact, the thread stays unknown: a
 *   skim does not ask what the code says, as a decode does.
 *
 * A skim belongs to one thread. It borrows the bundle, the options and the sink.
 */
#pragma once

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/views.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

/* OPTIONS ask for a skim (options->skim). WORKER_VIEW_REPORT: writes the map as JSON, within
 * options->report_limit; WORKER_VIEW_SUMMARY: its totals; WORKER_VIEW_BRANCHES: one line for each
 * sample. *ret_faults: the number of overflows and of packets that could not be read. 0, -ENOMEM,
 * -E2BIG (the map does not fit its limit even with all lists cut), or -errno of the output. */
int skim_run(const struct bundle *bundle, const struct decode_options *options,
	     const struct decode_sink *sink, uint64_t *ret_faults);

/* For replay_new_with(): finds the shift of the trace's clock against the sideband's from samples,
 * with less work than shift_clocks(), which reads megabytes of packets. 0 or -ENOMEM. */
int skim_clocks(struct replay *r);
/* The same, from the newest few megabytes of each CPU. */
int skim_clocks_newest(struct replay *r);
