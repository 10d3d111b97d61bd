/*
 * The Debian packages of files, as dpkg-query(1) knows them.
 *
 * The program is asked once for all files, gets no input, and may take a short time only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ctl/show/show_private.h"
#include "proto/base.h"

#define TIMEOUT_USEC 2000000u
#define MAX_OUTPUT   8192u

/* Starts ARGV without input and without messages. *RET_OUT is the end of a pipe with its output. 0
 * or -errno. */
static int start(char **argv, int *ret_out, pid_t *ret_pid)
{
	CLEANUP_CLOSE int theirs = -EBADF;
	CLEANUP_CLOSE int ours = -EBADF;
	posix_spawn_file_actions_t actions;
	int pair[2], r;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, theirs, 1);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (r == 0)
		r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r == 0)
		*ret_out = take_fd(&ours);
	return -r;
}

/* Reads the output up to its end, as far as it fits, or until the time is over. */
static void read_output(int fd, char text[static MAX_OUTPUT])
{
	uint64_t until = now_usec(CLOCK_MONOTONIC) + TIMEOUT_USEC, now;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t size = 0;
	ssize_t n = 1;

	while (n > 0 && size < MAX_OUTPUT - 1 && (now = now_usec(CLOCK_MONOTONIC)) < until) {
		if (poll(&p, 1, (int)((until - now) / 1000) + 1) <= 0)
			break;
		n = read(fd, text + size, MAX_OUTPUT - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	text[size] = '\0';
}

static bool is_packages(const char *line, size_t n)
{
	return n > 0 && n < PACKAGES_NAME &&
	       strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == n;
}

static void add(struct packages *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->names[i]) == n && memcmp(p->names[i], name, n) == 0)
			return;
	if (p->n == PACKAGES_MAX)
		return;
	memcpy(p->names[p->n], name, n);
	p->names[p->n++][n] = '\0';
}

/* Lines are "PACKAGE:ARCHITECTURE: PATH" or "PACKAGE: PATH". */
static void parse(struct packages *p, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, ":\n");

		if (text[n] == ':' && is_packages(text, n))
			add(p, text, n);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

/* Dpkg-query takes other paths for patterns. */
static bool is_plain(const char *path)
{
	return path[0] == '/' && path[1] != '/' && strlen(path) < 1024 && !strpbrk(path, "*?[\\\n");
}

void packages_find(const char *const *paths, size_t n, struct packages *ret)
{
	char *argv[4 + 2 * PACKAGES_MAX + 1] = {"dpkg-query", "-S", "--"};
	CLEANUP_CLOSE int out = -EBADF;
	char text[MAX_OUTPUT];
	size_t n_args = 3;
	pid_t pid;

	*ret = (struct packages){.n = 0};
	for (size_t i = 0; i < MIN_OF(n, (size_t)PACKAGES_MAX); i++) {
		if (!is_plain(paths[i]))
			continue;
		argv[n_args++] = (char *)(uintptr_t)paths[i];
		/* Packages from before /bin and /lib moved to /usr have the file there. */
		if (strncmp(paths[i], "/usr/", 5) == 0)
			argv[n_args++] = (char *)(uintptr_t)(paths[i] + 4);
	}
	if (n_args == 3 || start(argv, &out, &pid) < 0)
		return;
	read_output(out, text);
	out = close_fd(out);
	/* It has ended, or has been given its time. */
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	parse(ret, text);
}
