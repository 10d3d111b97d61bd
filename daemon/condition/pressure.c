/*
 * On=pressure: tasks that wait for a CPU, for memory or for I/O for too long, as the kernel
 * measures it (PSI, Documentation/accounting/psi.rst).
 *
 * The kernel compares the stalled time with the threshold while it passes, and tells at most one
 * event for each window (kernel/sched/psi.c, update_triggers()): ten times in each window, or every
 * 2 s for a process without CAP_SYS_RESOURCE, which gets only windows of a multiple of 2 s since
 * Linux 6.5, and none before (psi_trigger_create(), psi_open()).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/condition/condition_kind.h"
#include "proto/base.h"

#define FREE_WINDOW_USEC 2000000u

struct pressure {
	int fd;
	char what[ENTRY_REASON_SIZE];
};

static const char *const files[] = {
	[TRIGGER_CPU] = "cpu",
	[TRIGGER_MEMORY] = "memory",
	[TRIGGER_IO] = "io",
};

static int pressure_fail(int r, const struct trigger_condition *c, const char *path,
			 char why[CONDITION_WHY_SIZE])
{
	const char *hint = "";

	if (r == -ENOENT || r == -EOPNOTSUPP)
		hint = " (the kernel has no PSI: CONFIG_PSI, psi=1)";
	else if (r == -EINVAL && c->window_usec % FREE_WINDOW_USEC != 0)
		hint = " (without CAP_SYS_RESOURCE, PressureWindow= is a multiple of 2s)";
	else if (r == -EPERM)
		hint = " (this kernel wants CAP_SYS_RESOURCE)";
	condition_fail(r, why, path);
	snprintf(why + strlen(why), CONDITION_WHY_SIZE - strlen(why), "%s", hint);
	return r;
}

/* Tells the kernel what to watch: the form of psi_trigger_create(). The NUL is part of it. */
static int pressure_write(int fd, const struct trigger_condition *c)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64,
			 c->pressure_full ? "full" : "some", c->stall_usec, c->window_usec);

	return write(fd, text, (size_t)n + 1) < 0 ? -errno : 0;
}

static void pressure_describe(const struct trigger_condition *c, char ret[ENTRY_REASON_SIZE])
{
	snprintf(ret, ENTRY_REASON_SIZE,
		 "%s pressure: %s tasks stalled for %" PRIu64 ".%03u ms of %" PRIu64 " ms",
		 files[c->pressure], c->pressure_full ? "all" : "some", c->stall_usec / 1000,
		 (unsigned)(c->stall_usec % 1000), c->window_usec / 1000);
}

static int pressure_arm(const struct condition_setup *setup, void **ret_state, int *ret_fd,
			char why[CONDITION_WHY_SIZE])
{
	const struct trigger_condition *c = &setup->trigger->condition;
	CLEANUP_CLOSE int fd = -EBADF;
	struct pressure *p;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s", setup->paths->pressure, files[c->pressure]);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return pressure_fail(-errno, c, path, why);
	r = pressure_write(fd, c);
	if (r < 0)
		return pressure_fail(r, c, path, why);
	p = calloc(1, sizeof(*p));
	if (!p)
		return condition_fail(-ENOMEM, why, path);
	pressure_describe(c, p->what);
	p->fd = take_fd(&fd);
	*ret_fd = p->fd;
	*ret_state = p;
	return 0;
}

/* Polling has taken the event already (kernel/sched/psi.c, psi_trigger_poll()). */
static int pressure_take(void *state, struct condition_event *ret)
{
	const struct pressure *p = state;

	strcpy(ret->what, p->what);
	return CONDITION_HAPPENED;
}

static void pressure_disarm(void *state)
{
	struct pressure *p = state;

	close(p->fd);
	free(p);
}

const struct condition_kind condition_pressure = {
	.on = TRIGGER_ON_PRESSURE,
	.epoll = EPOLLPRI,
	.arm = pressure_arm,
	.take = pressure_take,
	.disarm = pressure_disarm,
};
