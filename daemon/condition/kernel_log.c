/*
 * On=kernel-log: a line of the kernel's log, read from /dev/kmsg as the kernel writes it.
 *
 * Each read(2) gives one record. A reader that is too slow gets EPIPE, and goes on with the oldest
 * record that is left (kernel/printk/printk.c, devkmsg_read()).
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "daemon/condition/condition_kind.h"
#include "daemon/condition/kernel_text.h"
#include "proto/base.h"

/* A record with its prefix: PRINTK_MESSAGE_MAX is 2048 since Linux 6.4, CONSOLE_EXT_LOG_MAX 8192
 * before. read(2) fails with EINVAL if the record does not fit. */
#define RECORD_SIZE 8192
/* Records that are looked at before the loop does something else. */
#define READS_MAX 64

struct kernel_log {
	int fd;
	uint32_t reports;
	char *pattern;	/* owned; NULL: none */
	char path[256]; /* of the log, for a test */
	char test[64];	/* the message of a test; "": none */
};

static void kernel_log_disarm(void *state)
{
	struct kernel_log *k = state;

	if (k->fd >= 0)
		close(k->fd);
	free(k->pattern);
	free(k);
}

/* Opens the log behind its last record. 0 or -errno. */
static int kernel_log_open(struct kernel_log *k)
{
	k->fd = open(k->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return k->fd < 0 || lseek(k->fd, 0, SEEK_END) < 0 ? -errno : 0;
}

static int kernel_log_arm(const struct condition_setup *setup, void **ret_state, int *ret_fd,
			  char why[CONDITION_WHY_SIZE])
{
	const char *pattern = condition_text(setup, TRIGGER_KERNEL_LOG_MATCH);
	struct kernel_log *k = calloc(1, sizeof(*k));
	int r = -ENOMEM;

	if (!k)
		return condition_fail(r, why, setup->paths->kernel_log);
	k->fd = -EBADF;
	k->reports = setup->trigger->condition.kernel_log;
	snprintf(k->path, sizeof(k->path), "%s", setup->paths->kernel_log);
	k->pattern = pattern ? strdup(pattern) : NULL;
	if (k->pattern || !pattern)
		r = kernel_log_open(k);
	if (r < 0) {
		kernel_log_disarm(k);
		return condition_fail(r, why, setup->paths->kernel_log);
	}
	*ret_fd = k->fd;
	*ret_state = k;
	return 0;
}

/* Whether the trigger waits for RECORD, which RET then describes. */
static bool kernel_log_judge(struct kernel_log *k, const struct kernel_record *record,
			     struct condition_event *ret)
{
	enum trigger_report report = kernel_text_report(record, k->reports);
	char what[KERNEL_TEXT_SIZE + 64];

	ret->test = *k->test && strcmp(k->test, record->message) == 0;
	if (ret->test)
		*k->test = '\0';
	if (!ret->test && report == TRIGGER_N_REPORTS &&
	    !(k->pattern && fnmatch(k->pattern, record->message, FNM_NOESCAPE) == 0))
		return false;
	kernel_text_subject(record, report, &ret->pid, &ret->cpu);
	snprintf(what, sizeof(what), "%s: %s",
		 report < TRIGGER_N_REPORTS ? trigger_report_name(report) : "kernel log",
		 record->message);
	condition_copy_plain(what, ret->what, sizeof(ret->what));
	return true;
}

static int kernel_log_take(void *state, struct condition_event *ret)
{
	struct kernel_log *k = state;
	struct kernel_record record;
	char text[RECORD_SIZE];

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = read(k->fd, text, sizeof(text) - 1);

		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		text[n] = '\0';
		if (kernel_text_parse(text, &record) == 0 && kernel_log_judge(k, &record, ret))
			return CONDITION_HAPPENED;
	}
	return 0;
}

/* Writes a line that only the recorder waits for; its name has the time, as others may write, too.
 */
static int kernel_log_test(void *state, char why[CONDITION_WHY_SIZE])
{
	struct kernel_log *k = state;
	CLEANUP_CLOSE int fd = open(k->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	char line[sizeof(k->test) + 8];
	int n;

	if (fd < 0)
		return condition_fail(-errno, why, k->path);
	snprintf(k->test, sizeof(k->test), "ptsnapd: test of a trigger, %llu",
		 (unsigned long long)now_ns(CLOCK_MONOTONIC));
	/* LOG_USER, LOG_DEBUG. Readers do not see a record without its newline before the next one
	 * (kernel/printk/printk.c, vprintk_store()). */
	n = snprintf(line, sizeof(line), "<15>%s\n", k->test);
	if (write(fd, line, (size_t)n) < 0) {
		*k->test = '\0';
		return condition_fail(-errno, why, k->path);
	}
	return 0;
}

const struct condition_kind condition_kernel_log = {
	.on = TRIGGER_ON_KERNEL_LOG,
	.epoll = EPOLLIN,
	.arm = kernel_log_arm,
	.take = kernel_log_take,
	.disarm = kernel_log_disarm,
	.test = kernel_log_test,
};
