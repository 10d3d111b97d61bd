/*
 * Atomic output files. Called by the verbs with -o.
 */
#include "ctl/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

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

/* A file beside PATH with the mode of the one that it will replace. */
static int open_beside(struct output *o, const char *path, mode_t mode)
{
	o->path = strdup(path);
	if (!o->path || asprintf(&o->temporary, "%s.XXXXXX", path) < 0) {
		o->temporary = NULL;
		return -ENOMEM;
	}
	o->fd = mkostemp(o->temporary, O_CLOEXEC);
	if (o->fd < 0) {
		int r = -errno;

		free(TAKE_PTR(o->temporary));
		return r;
	}
	/* The replaced file's mode is a wish: a file system without modes is no reason to fail. */
	(void)!fchmod(o->fd, mode);
	return 0;
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
		return errno == ENOENT ? open_beside(o, path, 0600) : -errno;
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

int output_commit(struct output *o)
{
	if (!o->temporary)
		return 0;
	if (close(take_fd(&o->fd)) < 0 || rename(o->temporary, o->path) < 0)
		return -errno;
	free(TAKE_PTR(o->temporary));
	return 0;
}

bool output_is_terminal(const struct output *o)
{
	return isatty(o->fd);
}
