/*
 * Runs debuginfod-find once for each build id, and remembers the answers.
 */
#include "ctl/decode/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"

#define PROGRAM "debuginfod-find"

void debuginfod_init(struct debuginfod *d)
{
	*d = (struct debuginfod){0};
}

void debuginfod_done(struct debuginfod *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->answers[i].path);
	free(d->answers);
	debuginfod_init(d);
}

/* Starts debuginfod-find without input and without messages. *ret_out is the end of a pipe with the
 * output. 0 or -errno. */
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
		r = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (r == 0)
		r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r == 0)
		*ret_out = take_fd(&ours);
	return -r;
}

/* Reads one line with an absolute path. Returns false if the output is anything else. */
static bool read_line(int fd, char line[static PATH_MAX])
{
	size_t size = 0;
	ssize_t n = 1;

	while (n != 0 && size < PATH_MAX) {
		n = read(fd, line + size, PATH_MAX - size);
		if (n < 0 && errno != EINTR)
			return false;
		size += n > 0 ? (size_t)n : 0;
	}
	if (size == 0 || memchr(line, '\n', size) != line + size - 1)
		return false;
	line[size - 1] = '\0';
	return line[0] == '/';
}

static bool exited_with_0(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns the path, the caller's, or NULL if no server has the file. */
static char *ask(struct debuginfod *d, const uint8_t *id, size_t id_size)
{
	char hex[2 * sizeof(d->answers->id) + 1], line[PATH_MAX];
	char *argv[] = {(char[]){PROGRAM}, (char[]){"debuginfo"}, hex, NULL};
	CLEANUP_CLOSE int out = -EBADF;
	bool good;
	pid_t pid;
	int r;

	for (size_t i = 0; i < id_size; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	r = start(argv, &out, &pid);
	if (r < 0) {
		d->error = r;
		return NULL;
	}
	good = read_line(out, line);
	/* A program that still writes gets SIGPIPE and ends. */
	out = close_fd(out);
	return exited_with_0(pid) && good ? strdup(line) : NULL;
}

const char *debuginfod_find(struct debuginfod *d, const uint8_t *id, size_t id_size)
{
	struct debuginfod_answer *a;

	if (id_size == 0 || id_size > sizeof(a->id))
		return NULL;
	for (size_t i = 0; i < d->n; i++)
		if (d->answers[i].id_size == id_size && memcmp(d->answers[i].id, id, id_size) == 0)
			return d->answers[i].path;
	if (d->n == DEBUGINFOD_MAX_ASKED || d->error)
		return NULL;
	if (!d->answers)
		d->answers = calloc(DEBUGINFOD_MAX_ASKED, sizeof(*d->answers));
	if (!d->answers)
		return NULL;
	a = &d->answers[d->n++];
	a->id_size = (uint8_t)id_size;
	memcpy(a->id, id, id_size);
	a->path = ask(d, id, id_size);
	return a->path;
}
