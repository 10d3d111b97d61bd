/*
 * Divides the time of a decode between attempts, and makes the memory file for a report.
 */
#include "daemon/job/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/store/entry.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* Source lines may take a quarter of the whole time. */
#define LINES_PART 4u
/* The first attempt has all of the time but a half with source lines, a quarter without; the second
 * one with names has all of what is left but a third. */
#define FIRST_WITH     2u
#define FIRST_WITHOUT  4u
#define SECOND_WITHOUT 3u

/* How many bytes above the report's limit a decoder can write. A decoder with a report that is too
 * long says so itself (decoder/worker/main.c). */
#define OUTPUT_SLACK (1u << 20)

/* A decoder's standard error in the log: lines, and bytes of a line with its NUL. */
#define SAID_LINES 32u
#define SAID_LINE  512u

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
		.debug = c->debug_directory && a->symbols,
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

/* Whether a stranger's symbol table or DWARF may be the reason of the failure. */
static bool may_be_strangers(int result, const struct worker_outcome *outcome)
{
	int error = outcome->error;

	if (result == WORKER_FAILED)
		return error == 0 || error == -EBADMSG || error == -ENOMEM;
	return result == WORKER_CRASHED || result == WORKER_TIMEOUT || result == -EFBIG ||
	       result == -ENODATA;
}

bool attempt_next(const struct config *c, const struct attempt *last, int result,
		  const struct worker_outcome *outcome, uint64_t spent_usec, uint64_t deadline_ns,
		  bool may_hurry, struct attempt *ret)
{
	const struct attempt before = *last; /* RET may be LAST */
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
	else if (late && may_hurry) /* the deadline leaves half of the time to end in */
		ret->deadline_ns = MIN_OF(ret->deadline_ns, ret->timeout_usec * 1000u / 2);
	return true;
}

const char *attempt_without(const struct attempt *wanted, const struct attempt *had)
{
	if (wanted->symbols && !had->symbols)
		return "names";
	return wanted->lines && !had->lines ? "source lines" : NULL;
}

/* The pages that a decoder fills count towards its control group while that exists, and then
 * towards ours. The file's size is therefore sealed before a decoder gets the file. */
int report_output_new(int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r = memfd_new("ptsnap-report", (uint64_t)REPORT_DEFAULT_LIMIT + OUTPUT_SLACK, &fd);

	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The decoder wrote through the same open file, so the report ends at the file's position. */
int report_output_end(int fd)
{
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (end < 0)
		return -errno;
	if (end == 0 || (uint64_t)end > REPORT_DEFAULT_LIMIT)
		return end == 0 ? -ENODATA : -EFBIG;
	return ftruncate(fd, end) < 0 ? -errno : 0;
}

/* log_line() makes the text safe. */
void attempt_log_said(const struct worker_said *said, const char *id, bool failed)
{
	const int priority = failed ? LOG_WARNING : LOG_INFO;
	char line[SAID_LINE];
	unsigned int lines = 0;
	size_t at = 0;

	while (lines < SAID_LINES && worker_said_line(said, &at, line, sizeof(line))) {
		log_line(priority, id, "the decoder says: %s", line);
		lines++;
	}
	if (said->n - at + said->dropped > 0)
		log_line(priority, id,
			 "the decoder says %" PRIu64 " bytes more, which are left out",
			 (uint64_t)(said->n - at) + said->dropped);
}
