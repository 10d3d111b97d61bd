/*
 * The options of a decoder, attempt after attempt, the file for its report, and its last words.
 *
 * A decoder that crashes, sends invalid messages, or runs out of memory or time probably failed at
 * symbol tables or DWARF, which strangers wrote. The next attempt therefore goes without source
 * lines, and the one after it without names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "decoder/run/worker_run.h"

struct attempt {
	bool lines, symbols;
	bool hurry; /* an earlier attempt ran out of time, so deadline_ns may be set */
	uint64_t timeout_usec;
	uint64_t deadline_ns; /* from the attempt's beginning; ENTRY_ABSENT: none */
};

/* The first attempt. Leaves time for another one, so that a hang costs names and not the report.
 * DEADLINE_NS: what the request asked for; ENTRY_ABSENT: none. */
void attempt_first(const struct config *c, uint64_t deadline_ns, struct attempt *ret);
/* The attempt after LAST (may be RET). RESULT is that of worker_run(), or of report_output_end()
 * after it; SPENT_USEC counts from the beginning of the first attempt. MAY_HURRY: where time ran
 * out, a report of the newest part of the trace will do. Returns false if there is no other
 * attempt: leaving something out would not help, or no time is left. */
bool attempt_next(const struct config *c, const struct attempt *last, int result,
		  const struct worker_outcome *outcome, uint64_t spent_usec, uint64_t deadline_ns,
		  bool may_hurry, struct attempt *ret);
/* The options of attempt A for a report; the caller adds its own. */
struct decode_options attempt_options(const struct config *c, const struct attempt *a);
/* Names what attempt HAD left out of WANTED, "source lines" or "names"; NULL: nothing. */
const char *attempt_without(const struct attempt *wanted, const struct attempt *had);

/* Makes a memory file for one report (proto/report.h, REPORT_DEFAULT_LIMIT) that no owner of a
 * descriptor can make larger. 0: *ret_fd is the caller's; -errno. */
int report_output_new(int *ret_fd);
/* Cuts the file after the report, when the decoder has ended. 0, -EFBIG: longer than the limit,
 * -ENODATA: no report, or -errno. */
int report_output_end(int fd);

/* Logs what a decoder wrote to standard error, line by line, about snapshot ID: as warnings if the
 * decode FAILED, else as information. In the loop's thread. */
void attempt_log_said(const struct worker_said *said, const char *id, bool failed);
