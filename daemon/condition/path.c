/*
 * On=path: a file appears in a folder, because a program creates it, links it or moves it there.
 *
 * inotify(7) watches the folder, which must exist. A file that is there already is no event.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "daemon/condition/condition_kind.h"
#include "proto/base.h"

#define WATCHED (IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct path {
	int fd;
	char folder[PATH_MAX];
	char pattern[PATH_MAX]; /* of the last part */
	char test_name[32];	/* of the file of a test; "": none */
};

static void path_split(const char *text, struct path *p)
{
	const char *slash = strrchr(text, '/');

	/* The file is in "/" itself. */
	snprintf(p->folder, sizeof(p->folder), "%.*s", (int)MAX_OF(slash - text, 1), text);
	snprintf(p->pattern, sizeof(p->pattern), "%s", slash + 1);
}

static int path_arm(const struct condition_setup *setup, void **ret_state, int *ret_fd,
		    char why[CONDITION_WHY_SIZE])
{
	struct path *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return condition_fail(-ENOMEM, why, "inotify");
	path_split(condition_text(setup, TRIGGER_PATH_APPEARS), p);
	p->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (p->fd < 0 || inotify_add_watch(p->fd, p->folder, WATCHED) < 0) {
		r = condition_fail(-errno, why, p->folder);
		if (p->fd >= 0)
			close(p->fd);
		free(p);
		return r;
	}
	*ret_fd = p->fd;
	*ret_state = p;
	return 0;
}

/* As CONDITION_HAPPENED, 0, -errno of take(). */
static int path_judge(struct path *p, const struct inotify_event *e, struct condition_event *ret)
{
	const char *slash = strcmp(p->folder, "/") == 0 ? "" : "/";
	char path[2 * PATH_MAX];

	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT))
		return -ENOENT;
	if (e->mask & IN_Q_OVERFLOW)
		return -EOVERFLOW;
	ret->test = *p->test_name && e->len > 0 && strcmp(e->name, p->test_name) == 0;
	if (!ret->test && (e->len == 0 || fnmatch(p->pattern, e->name, FNM_PERIOD) != 0))
		return 0;
	if (ret->test)
		*p->test_name = '\0';
	snprintf(path, sizeof(path), "%s%s%s appeared", p->folder, slash, e->name);
	condition_copy_plain(path, ret->what, sizeof(ret->what));
	return CONDITION_HAPPENED;
}

/* Files that appear together are one event, of which the first file is told; a test's file only if
 * no other appeared. */
static int path_take(void *state, struct condition_event *ret)
{
	_Alignas(struct inotify_event) char bytes[16384];
	struct path *p = state;
	ssize_t n = read(p->fd, bytes, sizeof(bytes));
	bool happened = false;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (size_t at = 0; at < (size_t)n && ret->lost == 0;) {
		const struct inotify_event *e = (const void *)(bytes + at);
		struct condition_event one = *ret;
		int r = path_judge(p, e, &one);

		if (r < 0)
			ret->lost = r;
		else if (r == CONDITION_HAPPENED && (!happened || ret->test))
			*ret = one;
		happened |= r == CONDITION_HAPPENED;
		at += sizeof(*e) + e->len;
	}
	return happened ? CONDITION_HAPPENED : ret->lost;
}

static void path_disarm(void *state)
{
	struct path *p = state;

	close(p->fd);
	free(p);
}

/* Makes a file of a name that no program waits for, and removes it. */
static int path_test(void *state, char why[CONDITION_WHY_SIZE])
{
	struct path *p = state;
	char path[PATH_MAX + 32];
	int fd;

	snprintf(p->test_name, sizeof(p->test_name), ".ptsnap-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/%s", p->folder, p->test_name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		*p->test_name = '\0';
		return condition_fail(-errno, why, path);
	}
	close(fd);
	(void)unlink(path);
	return 0;
}

const struct condition_kind condition_path = {
	.on = TRIGGER_ON_PATH,
	.epoll = EPOLLIN,
	.arm = path_arm,
	.take = path_take,
	.disarm = path_disarm,
	.test = path_test,
};
