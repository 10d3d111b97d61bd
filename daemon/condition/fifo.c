/*
 * On=fifo: another program writes to a FIFO.
 *
 * The FIFO exists, and its owner and mode say who may write to it. The recorder opens it for
 * reading and writing, so that a writer that goes away leaves no end of file behind (fifo(7)).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/condition/condition_kind.h"
#include "proto/base.h"

/* A pipe has 64 KiB; more than one pipe at a time is another event. */
#define READS_MAX 16

struct fifo {
	int fd;
	bool test;
	char what[ENTRY_REASON_SIZE];
};

static int fifo_arm(const struct condition_setup *setup, void **ret_state, int *ret_fd,
		    char why[CONDITION_WHY_SIZE])
{
	const char *path = condition_text(setup, TRIGGER_FIFO);
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	struct fifo *f;

	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return condition_fail(-errno, why, path);
	if (!S_ISFIFO(st.st_mode)) {
		snprintf(why, CONDITION_WHY_SIZE, "%.200s is not a FIFO", path);
		return -EINVAL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return condition_fail(-ENOMEM, why, path);
	snprintf(f->what, sizeof(f->what), "a program wrote to ");
	condition_copy_plain(path, f->what + strlen(f->what), sizeof(f->what) - strlen(f->what));
	f->fd = take_fd(&fd);
	*ret_fd = f->fd;
	*ret_state = f;
	return 0;
}

static int fifo_take(void *state, struct condition_event *ret)
{
	struct fifo *f = state;
	char unread[4096];
	bool some = false;

	for (int i = 0; i < READS_MAX && read(f->fd, unread, sizeof(unread)) > 0; i++)
		some = true;
	if (!some)
		return 0;
	strcpy(ret->what, f->what);
	ret->test = f->test;
	f->test = false;
	return CONDITION_HAPPENED;
}

static void fifo_disarm(void *state)
{
	struct fifo *f = state;

	close(f->fd);
	free(f);
}

static int fifo_test(void *state, char why[CONDITION_WHY_SIZE])
{
	struct fifo *f = state;

	/* A full FIFO is an event, too. */
	if (write(f->fd, "\n", 1) < 0 && errno != EAGAIN)
		return condition_fail(-errno, why, "the FIFO");
	f->test = true;
	return 0;
}

const struct condition_kind condition_fifo = {
	.on = TRIGGER_ON_FIFO,
	.epoll = EPOLLIN,
	.arm = fifo_arm,
	.take = fifo_take,
	.disarm = fifo_disarm,
	.test = fifo_test,
};
