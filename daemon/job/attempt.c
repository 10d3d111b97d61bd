/*
 * How the time of a decode is divided between attempts, and what each leaves out. Called by
 * job_decode.c and remake.c.
 */
#include "daemon/job/attempt.h"

#include <errno.h>

#include "daemon/store/entry.h"
#include "proto/base.h"
#include "proto/report.h"

/* Of all the time: what goes into source lines, and what the first attempt has at most. */
#define LINES_PART    4u
#define FIRST_WITH    2u /* half */
#define FIRST_WITHOUT 4u /* all but a quarter */
/* Of what is left: what one with names has, where another one comes after it. */
#define SECOND_WITHOUT 3u /* all but a third */

static uint64_t all_but(uint64_t usec, uint64_t part)
{
	return usec - usec / part;
}

struct decode_options attempt_options(const struct config *c, const struct attempt *a)
{
	return (struct decode_options){
		.view = WORKER_VIEW_REPORT,
		.report_limit = REPORT_DEFAULT_LIMIT,
		.memory_limit = c->decode_memory,
		.has_deadline = a->deadline_ns != ENTRY_ABSENT,
		.deadline_ns = a->deadline_ns,
		.no_symbols = !a->symbols,
		.lines = a->lines,
		.lines_ns = c->decode_timeout_usec * 1000u / LINES_PART,
	};
}

void attempt_first(const struct config *c, uint64_t deadline_ns, struct attempt *ret)
{
	uint64_t all = c->decode_timeout_usec;

	*ret = (struct attempt){
		.lines = c->source_lines,
		.symbols = true,
		.timeout_usec = all_but(all, c->source_lines ? FIRST_WITH : FIRST_WITHOUT),
		.deadline_ns = deadline_ns,
	};
}

/* Whether a stranger's symbol table or DWARF may have been what it failed at. */
static bool may_be_strangers(int result, const struct worker_outcome *outcome)
{
	int error = outcome->error;

	if (result == WORKER_FAILED)
		return error == 0 || error == -EBADMSG || error == -ENOMEM;
	return result == WORKER_CRASHED || result == WORKER_TIMEOUT || result == -EFBIG ||
	       result == -ENODATA;
}

/* Half of what is left is for a part of the trace, so that it is done in time. */
static void hurry(struct attempt *a)
{
	a->deadline_ns = MIN_OF(a->deadline_ns, a->timeout_usec * 1000u / 2);
}

bool attempt_next(const struct config *c, const struct attempt *last, int result,
		  const struct worker_outcome *outcome, uint64_t spent_usec, uint64_t deadline_ns,
		  bool may_hurry, struct attempt *ret)
{
	const struct attempt before = *last; /* RET may be it */
	bool late = before.hurry || result == WORKER_TIMEOUT;

	if (!before.symbols || spent_usec >= c->decode_timeout_usec ||
	    !may_be_strangers(result, outcome))
		return false;
	*ret = (struct attempt){.symbols = before.lines,
				.timeout_usec = c->decode_timeout_usec - spent_usec,
				.deadline_ns = deadline_ns,
				.hurry = late};
	if (deadline_ns != ENTRY_ABSENT)
		ret->deadline_ns -= MIN_OF(deadline_ns, spent_usec * 1000u);
	if (ret->symbols)
		ret->timeout_usec = all_but(ret->timeout_usec, SECOND_WITHOUT);
	else if (late && may_hurry)
		hurry(ret);
	return true;
}

const char *attempt_without(const struct attempt *wanted, const struct attempt *had)
{
	if (wanted->symbols && !had->symbols)
		return "names";
	return wanted->lines && !had->lines ? "source lines" : NULL;
}
