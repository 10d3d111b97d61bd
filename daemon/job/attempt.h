/*
 * What a decoder is asked for, attempt after attempt: one that crashes, lies, runs out of memory or
 * out of time is asked for less, as what it failed at was written by strangers: first without
 * source lines, then without names. Used by job_decode.c and remake.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "decoder/run/worker_run.h"

struct attempt {
	bool lines, symbols;
	bool hurry; /* one before it was stopped for its time: DEADLINE_NS is ours */
	uint64_t timeout_usec;
	uint64_t deadline_ns; /* from its beginning; ENTRY_ABSENT: none */
};

/* The first one. It leaves time for another, so that a hang costs names, not the report.
 * DEADLINE_NS: that of whoever asked; ENTRY_ABSENT: none. */
void attempt_first(const struct config *c, uint64_t deadline_ns, struct attempt *ret);
/* The one after LAST, of which RESULT is that of worker_run(), or of report_output_end() behind it;
 * SPENT_USEC since the first one began. MAY_HURRY: the newest part alone will do where time ran
 * out. False: there is none: nothing that is left out would help, or no time is left. */
bool attempt_next(const struct config *c, const struct attempt *last, int result,
		  const struct worker_outcome *outcome, uint64_t spent_usec, uint64_t deadline_ns,
		  bool may_hurry, struct attempt *ret);
/* What the decoder is asked for in attempt A: a report, to which the caller adds its own options.
 */
struct decode_options attempt_options(const struct config *c, const struct attempt *a);
/* What of WANTED it did without, "source lines" or "names"; NULL: nothing. */
const char *attempt_without(const struct attempt *wanted, const struct attempt *had);
