/*
 * Atomic output files. Called by the verbs with -o.
 */
#include "ctl/base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

/* Names that others have taken beside the file. */
#define MAX_ATTEMPTS 100

void output_init(struct output *o)
{
	*o = (struct output){.fd = -EBADF};
}

void output_done(struct output *o)
{
	if (o->temporary)
		unlink(o->temporary);
	if (!o->is_stdout)
		close_fd(o->fd);
	free(o->temporary);
	free(o->path);
	output_init(o);
}

static int open_directly(struct output *o, const char *path)
{
	o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return o->fd < 0 ? -errno : 0;
}

static int open_named(struct output *o)
{
	if (asprintf(&o->temporary, "%s.XXXXXX", o->path) < 0) {
		o->temporary = NULL;
		return -ENOMEM;
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0) {
		int r = -errno;

		free(TAKE_PTR(o->temporary));
		return r;
	}
	return 0;
}

/* Without a name, so that nothing is left of it when we are killed. Not every file system can, and
 * the name comes by way of /proc. */
static int open_nameless(struct output *o)
{
	CLEANUP_FREE char *copy = strdup(o->path);

	if (!copy)
		return -ENOMEM;
	if (access("/proc/self/fd", X_OK) < 0)
		return -errno;
	o->fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return o->fd < 0 ? -errno : 0;
}

/* A file beside PATH with the mode of the one that it will replace. */
static int open_beside(struct output *o, const char *path, mode_t mode)
{
	int r;

	o->path = strdup(path);
	if (!o->path)
		return -ENOMEM;
	r = open_nameless(o);
	if (r < 0)
		r = open_named(o);
	if (r < 0)
		return r;
	/* The replaced file's mode is a wish: a file system without modes is no reason to fail. */
	(void)!fchmod(o->fd, mode);
	return 0;
}

static int open_new(struct output *o, const char *path)
{
	size_t size = strlen(path);

	if (size == 0)
		return -ENOENT;
	return path[size - 1] == '/' ? -EISDIR : open_beside(o, path, 0600);
}

int output_open(struct output *o, const char *path)
{
	CLEANUP_FREE char *real = NULL;
	struct stat st;

	if (!path || strcmp(path, "-") == 0) {
		o->fd = STDOUT_FILENO;
		o->is_stdout = true;
		return 0;
	}
	if (stat(path, &st) < 0)
		return errno == ENOENT ? open_new(o, path) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return open_directly(o, path);
	/* A symbolic link stays one: what it names is replaced. */
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	return open_beside(o, real, st.st_mode & 0777);
}

/* The nameless file gets a name: link() does not replace, so it is not yet the one that was asked
 * for. */
static int name_it(struct output *o)
{
	CLEANUP_FREE char *copy = strdup(o->path);
	char self[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	const char *directory;
	int attempt;

	if (!copy)
		return -ENOMEM;
	directory = dirname(copy);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	for (attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		CLEANUP_FREE char *name = NULL;

		if (asprintf(&name, "%s/.ptsnapctl.%jd.%d", directory, (intmax_t)getpid(),
			     attempt) < 0)
			return -ENOMEM;
		if (linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
			o->temporary = TAKE_PTR(name);
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return -errno;
}

int output_commit(struct output *o)
{
	int r;

	if (!o->path)
		return 0;
	r = o->temporary ? 0 : name_it(o);
	if (r < 0)
		return r;
	if (close(take_fd(&o->fd)) < 0 || rename(o->temporary, o->path) < 0)
		return -errno;
	free(TAKE_PTR(o->temporary));
	return 0;
}

bool output_replaces(const char *path, const char *input)
{
	struct stat a, b;

	return path && input && strcmp(path, "-") != 0 && stat(path, &a) == 0 &&
	       stat(input, &b) == 0 && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

bool output_is_terminal(const struct output *o)
{
	return isatty(o->fd);
}
