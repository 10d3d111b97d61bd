/*
 * On=metric: a number of a Prometheus text file goes beyond a limit.
 *
 * The file is looked at once a second, and read if it has changed. The event is the crossing: a
 * number that stays beyond its limit is one event. Writers replace the file with rename(2), so it
 * is opened anew each time, and may be missing meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon/base/metric.h"
#include "daemon/condition/condition_kind.h"
#include "proto/base.h"

#define PERIOD_SEC 1
/* Of a file; a larger one is refused. */
#define SIZE_MAX_BYTES (1u << 20)

struct metric_file {
	int timer;
	char *path, *text; /* owned; TEXT is the series for people */
	struct metric_series series;
	double above, below;
	struct stat seen;
	bool beyond; /* at the last look */
	bool test;
};

static void metric_disarm(void *state)
{
	struct metric_file *m = state;

	if (m->timer >= 0)
		close(m->timer);
	free(m->path);
	free(m->text);
	free(m);
}

static bool is_unchanged(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the whole of FD, a regular file. The caller's; NULL with errno. */
static char *read_all(int fd, size_t size)
{
	CLEANUP_FREE char *bytes = malloc(MAX_OF(size, (size_t)1));
	size_t got = 0;

	while (bytes && got < size) {
		ssize_t n = read(fd, bytes + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* The file was cut meanwhile: the next look reads it again. */
			errno = n == 0 ? EAGAIN : errno;
			return NULL;
		}
		got += (size_t)n;
	}
	return TAKE_PTR(bytes);
}

/* 0: not changed since the last look; METRIC_LOOKED: *RET is the result of metric_find() and *VALUE
 * its number; -errno. */
#define METRIC_LOOKED 1
static int metric_look(struct metric_file *m, int *ret, double *value)
{
	CLEANUP_CLOSE int fd = open(m->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	CLEANUP_FREE char *bytes = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > SIZE_MAX_BYTES)
		return -EFBIG;
	if (is_unchanged(&st, &m->seen))
		return 0;
	bytes = read_all(fd, (size_t)st.st_size);
	if (!bytes)
		return -errno;
	m->seen = st;
	*ret = metric_find(bytes, (size_t)st.st_size, &m->series, m->above, m->below, value);
	return METRIC_LOOKED;
}

static int start_timer(struct metric_file *m)
{
	const struct itimerspec each = {{PERIOD_SEC, 0}, {PERIOD_SEC, 0}};

	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return m->timer < 0 || timerfd_settime(m->timer, 0, &each, NULL) < 0 ? -errno : 0;
}

static struct metric_file *metric_new(const struct condition_setup *setup)
{
	const char *path = condition_text(setup, TRIGGER_METRIC_FILE);
	const char *text = condition_text(setup, TRIGGER_METRIC);
	struct metric_file *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->timer = -EBADF;
	m->path = strdup(path);
	m->text = strdup(text);
	m->above = setup->trigger->condition.above;
	m->below = setup->trigger->condition.below;
	/* The text is valid, as trigger_condition_take() has parsed it. */
	if (m->path && m->text && metric_parse(m->text, &m->series) == 0)
		return m;
	metric_disarm(m);
	return NULL;
}

static int metric_arm(const struct condition_setup *setup, void **ret_state, int *ret_fd,
		      char why[CONDITION_WHY_SIZE])
{
	struct metric_file *m = metric_new(setup);
	int found = 0, r;
	double value;

	if (!m)
		return condition_fail(-ENOMEM, why, "metric");
	/* A number that is beyond the limit already has to come back first. */
	r = metric_look(m, &found, &value);
	m->beyond = found == METRIC_REACHED;
	if (r >= 0)
		r = start_timer(m);
	if (r < 0) {
		condition_fail(r, why, m->path);
		metric_disarm(m);
		return r;
	}
	*ret_fd = m->timer;
	*ret_state = m;
	return 0;
}

static void describe(const struct metric_file *m, double value, struct condition_event *ret)
{
	char what[sizeof(ret->what)];
	bool above = value > m->above;

	if (m->test)
		snprintf(what, sizeof(what), "%.200s is %g", m->text, value);
	else
		snprintf(what, sizeof(what), "%.180s is %g, %s %g", m->text, value,
			 above ? "above" : "below", above ? m->above : m->below);
	condition_copy_plain(what, ret->what, sizeof(ret->what));
	ret->test = m->test;
}

static int metric_take(void *state, struct condition_event *ret)
{
	struct metric_file *m = state;
	double value = 0;
	uint64_t ticks;
	bool crossed;
	int found;

	(void)!read(m->timer, &ticks, sizeof(ticks));
	/* The file may be missing, or be another kind of file, for a while. */
	if (metric_look(m, &found, &value) != METRIC_LOOKED)
		return 0;
	crossed = found == METRIC_REACHED && !m->beyond;
	m->beyond = found == METRIC_REACHED;
	if (!crossed && !(m->test && found >= 0))
		return 0;
	m->test &= !crossed;
	describe(m, value, ret);
	m->test = false;
	return CONDITION_HAPPENED;
}

/* Has the file read again, whether it changed or not, and whatever the number is. */
static int metric_test(void *state, char why[CONDITION_WHY_SIZE])
{
	const struct itimerspec now = {{PERIOD_SEC, 0}, {0, 1}};
	struct metric_file *m = state;
	double value;
	int found, r;

	m->seen = (struct stat){0};
	r = metric_look(m, &found, &value);
	if (r < 0)
		return condition_fail(r, why, m->path);
	if (found < 0) {
		snprintf(why, CONDITION_WHY_SIZE, "%.100s has no %.100s", m->path, m->text);
		return -ENOENT;
	}
	m->seen = (struct stat){0};
	m->test = true;
	return timerfd_settime(m->timer, 0, &now, NULL) < 0
		       ? condition_fail(-errno, why, "timerfd_settime")
		       : 0;
}

const struct condition_kind condition_metric = {
	.on = TRIGGER_ON_METRIC,
	.epoll = EPOLLIN,
	.arm = metric_arm,
	.take = metric_take,
	.disarm = metric_disarm,
	.test = metric_test,
};
