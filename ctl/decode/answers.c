/*
 * Answers the questions of ptsnap-decode, from the directories of --symbols, from the files that
 * are installed on this host, or with debuginfod-find(1).
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
#include "proto/bundle/bundle.h"

#include "ctl/base/say.h"

/* --- debuginfod-find, which runs once for each build id --- */

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

/* Returns the path, the caller's, or NULL if no server has the file. */
static char *ask(struct debuginfod *d, const uint8_t *id, size_t id_size)
{
	char hex[2 * sizeof(d->answers->id) + 1], line[PATH_MAX];
	char *argv[] = {(char[]){"debuginfod-find"}, (char[]){"debuginfo"}, hex, NULL};
	CLEANUP_CLOSE int out = -EBADF;
	int r, status = 0;
	bool good;
	pid_t pid, ended;

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
	do
		ended = waitpid(pid, &status, 0);
	while (ended < 0 && errno == EINTR);
	good &= ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return good ? strdup(line) : NULL;
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

/* --- All answers for one decode --- */

int answers_init(struct answers *a, const struct decode_request *q, int bundle_fd)
{
	*a = (struct answers){.bundle_fd = bundle_fd,
			      .by_net = q->debuginfod,
			      .asked_for_files = q->n_symbols > 0};
	debug_files_init(&a->files);
	debuginfod_init(&a->servers);
	for (size_t i = 0; i < q->n_symbols; i++) {
		int r = debug_files_add(&a->files, q->symbols[i]);

		if (r < 0)
			return say_error(EXIT_CODE_FAILURE, "--symbols=%s: %s", q->symbols[i],
					 strerror(-r));
	}
	/* Most hosts have none. */
	if (!q->not_installed)
		(void)debug_files_add(&a->files, DEBUG_FILES_INSTALLED);
	return 0;
}

void answers_done(struct answers *a)
{
	debug_files_done(&a->files);
	debuginfod_done(&a->servers);
	bundle_free(a->bundle);
}

/* Images that the bundle lacks are nowhere else, either: stored_open() has added what the state
 * directory has. */
static int count_absent(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	struct answers *a = userdata;

	(void)image;
	(void)ret_fd;
	(void)ret_size;
	a->absent++;
	return -ENOENT;
}

static int find_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      int *ret_fd, uint64_t *ret_size)
{
	struct answers *a = userdata;
	const struct manifest *m;
	const char *path;
	int r;

	/* The bundle's manifest has the program's path. */
	if (!a->opened && bundle_open(a->bundle_fd, &a->bundle) < 0)
		a->bundle = NULL;
	a->opened = true;
	m = a->bundle ? bundle_manifest(a->bundle) : NULL;
	path = m && image < m->n_images ? m->images[image].path : NULL;
	r = debug_files_find(&a->files, build_id, id_size, path, ret_fd, ret_size);
	if (r == 0 || !a->by_net)
		return r;
	path = debuginfod_find(&a->servers, build_id, id_size);
	return path ? debug_files_open(&a->files, path, ret_fd, ret_size) : -ENOENT;
}

void answers_use(struct answers *a, struct worker_job *job)
{
	job->image = count_absent;
	job->debug = find_debug;
	job->userdata = a;
}

void answers_remark(const struct answers *a, const char *name)
{
	if (a->absent > 0)
		say("%s lacks %ju of the images that decoding needs; `ptsnapctl fetch "
		    "--format=bundle' on the host of the snapshot writes a bundle that has them",
		    name, (uintmax_t)a->absent);
	if (a->files.without_path && a->asked_for_files)
		say("--symbols: this kernel cannot look for a path below a directory (openat2, "
		    "Linux 5.6); files were only found by build id");
	if (a->servers.error)
		say("--debuginfod: debuginfod-find cannot be run: %s", strerror(-a->servers.error));
}
