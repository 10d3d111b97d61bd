/*
 * Writes output files atomically, reads whole files, and finds programs.
 */
#include "ctl/base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "proto/base.h"

/* How many temporary names to try when other files have them. */
#define MAX_ATTEMPTS 100

#define WORKER_INSTALLED  PTSNAP_LIBEXECDIR "/ptsnap-decode"
#define WORKER_BUILD_TREE "../decoder/worker/ptsnap-decode"

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

/* Opens a temporary file beside o->path, as a file without a name if possible: the kernel removes
 * that one even if we are killed. Not every file system can do that, and the file gets its name by
 * way of /proc. */
static int open_temporary(struct output *o)
{
	CLEANUP_FREE char *copy = strdup(o->path);

	if (!copy)
		return -ENOMEM;
	if (access("/proc/self/fd", X_OK) == 0)
		o->fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	if (o->fd >= 0)
		return 0;
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

/* Whether only root or we can have put there what ST is of. */
static bool is_trusted(const struct stat *st)
{
	return st->st_uid == 0 || st->st_uid == geteuid();
}

/* Opens PATH, which was a file like ST and no regular one, if it still is that file. */
static int open_special(struct output *o, const char *path, const struct stat *st)
{
	CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	struct stat now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return -errno;
	if (S_ISREG(now.st_mode) || now.st_dev != st->st_dev || now.st_ino != st->st_ino)
		return -EAGAIN;
	o->fd = take_fd(&fd);
	return 0;
}

/* Decides what output_open() does with PATH. Sets o->path, and *MODE where a file of our own is
 * replaced; or opens o->fd. 0 or -errno. */
static int output_place(struct output *o, const char *path, mode_t *mode)
{
	size_t size = strlen(path);
	struct stat name, st;
	bool replace;

	if (size == 0)
		return -ENOENT;
	if (lstat(path, &name) < 0) {
		if (errno != ENOENT)
			return -errno;
		if (path[size - 1] == '/')
			return -EISDIR;
		replace = true;
	} else if (!is_trusted(&name) && !S_ISDIR(name.st_mode)) {
		replace = true;
	} else {
		replace = stat(path, &st) < 0;
		if (replace && errno != ENOENT)
			return -errno;
	}
	if (replace) {
		o->path = strdup(path);
		return o->path ? 0 : -ENOMEM;
	}
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return open_special(o, path, &st);
	/* A symbolic link of ours stays, and the file that the link names is replaced. */
	o->path = realpath(path, NULL);
	if (!o->path)
		return -errno;
	/* Another name can be a link that a stranger made to a file of ours. */
	if (st.st_uid == geteuid() && st.st_nlink == 1)
		*mode = st.st_mode & 0777;
	return 0;
}

int output_open(struct output *o, const char *path)
{
	mode_t mode = 0600;
	int r;

	assert(o->fd < 0 && !o->path); /* initialised, and not open */
	if (!path || strcmp(path, "-") == 0) {
		o->fd = STDOUT_FILENO;
		o->is_stdout = true;
		return 0;
	}
	r = output_place(o, path, &mode);
	if (r < 0 || o->fd >= 0)
		return r;
	r = open_temporary(o);
	if (r < 0)
		return r;
	/* Some file systems have no modes; the file is written there all the same. */
	(void)!fchmod(o->fd, mode);
	return 0;
}

/* Gives the file without a name a temporary name: linkat(2) replaces no file, rename(2) does. */
static int give_name(struct output *o)
{
	CLEANUP_FREE char *copy = strdup(o->path);
	char self[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	const char *directory;

	if (!copy)
		return -ENOMEM;
	directory = dirname(copy);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", o->fd);
	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
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

	assert(o->fd >= 0); /* open, and not committed */
	if (!o->path)
		return 0;
	r = o->temporary ? 0 : give_name(o);
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

int file_read_whole(int fd, uint64_t max, char **ret, size_t *ret_size)
{
	CLEANUP_FREE char *text = NULL;
	size_t size, done = 0;
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	/* A file that becomes shorter meanwhile ends there. */
	while (n != 0 && done < size) {
		n = pread(fd, text + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	*ret = TAKE_PTR(text);
	*ret_size = done;
	return 0;
}

/* RELATIVE, a path from the directory of our own program; NULL if no program is there. */
static char *find_in_build_tree(const char *relative)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *path;

	if (n < 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	if (asprintf(&path, "%s/%s", self, relative) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int program_find(const char *option, const char *installed, const char *build_tree, char **ret)
{
	char *found = NULL;

	if (!option && access(installed, X_OK) < 0)
		found = find_in_build_tree(build_tree);
	if (!found)
		found = strdup(option ? option : installed);
	if (!found)
		return -ENOMEM;
	*ret = found;
	return 0;
}

int worker_find(const char *option, char **ret)
{
	const char *environment = getenv("PTSNAP_DECODE");

	if (!option && environment && *environment)
		option = environment;
	return program_find(option, WORKER_INSTALLED, WORKER_BUILD_TREE, ret);
}

uint64_t worker_memory(void)
{
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return WORKER_MEMORY_MIN;
	return MAX_OF((uint64_t)info.totalram * info.mem_unit / 2, WORKER_MEMORY_MIN);
}
