/*
 * Finds separate files with symbols and DWARF.
 *
 * The content of a directory is the user's or the host's own, but the path of a program comes from
 * a bundle: the path is looked up as if the directory were the root. Only regular files are opened
 * for reading: opening a device can have effects, and opening a pipe waits for a writer.
 */
#include "decoder/run/debug_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base.h"

/* The largest build id of a question (proto/worker.h). */
#define MAX_ID 20u
/* The kernel writes this behind the path of a file that was replaced, as by an update of its
 * package (fs/d_path.c, d_path()). */
#define DELETED " (deleted)"

void debug_files_init(struct debug_files *d)
{
	*d = (struct debug_files){.fd = -EBADF};
}

void debug_files_done(struct debug_files *d)
{
	for (size_t i = 0; i < d->n; i++)
		close_fd(d->dirs[i]);
	close_fd(d->fd);
	debug_files_init(d);
}

int debug_files_add(struct debug_files *d, const char *directory)
{
	int fd;

	if (d->n == DEBUG_FILES_MAX_DIRS)
		return -E2BIG;
	fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d->dirs[d->n++] = fd;
	return 0;
}

/* Opens PATH_FD (O_PATH) for reading as d->fd. Returns false if it cannot be read. */
static bool take(struct debug_files *d, int path_fd, uint64_t *ret_size)
{
	char name[64];
	struct stat st;

	if (fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	d->fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*ret_size = (uint64_t)st.st_size;
	return d->fd >= 0;
}

/* Links lead to where packages have the files, also out of DIR. */
static bool find_by_name(struct debug_files *d, int dir, const char *name, uint64_t *ret_size)
{
	CLEANUP_CLOSE int fd = openat(dir, name, O_PATH | O_CLOEXEC);

	return fd >= 0 && take(d, fd, ret_size);
}

/* Looks for PATH followed by SUFFIX below DIR. */
static bool find_below(struct debug_files *d, int dir, const char *path, const char *suffix,
		       uint64_t *ret_size)
{
	static const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
					    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int fd = -EBADF;
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	/* EPERM: a system call filter that is older than openat2(2). */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		d->without_path = true;
	return fd >= 0 && take(d, fd, ret_size);
}

/* Returns a program's path as files with symbols have it, or NULL if PATH is not absolute or
 * contains "..". */
static char *plain_path(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	if (n == 0 || *path != '/' || n >= PATH_MAX - sizeof(".debug"))
		return NULL;
	for (const char *at = path; at; at = strchr(at + 1, '/'))
		if (strncmp(at, "/..", 3) == 0 && (at[3] == '/' || at[3] == '\0'))
			return NULL;
	if (n > strlen(DELETED) && strcmp(path + n - strlen(DELETED), DELETED) == 0)
		n -= strlen(DELETED);
	return strndup(path, n);
}

int debug_files_open(struct debug_files *d, const char *path, int *ret_fd, uint64_t *ret_size)
{
	bool found;

	d->fd = close_fd(d->fd);
	found = find_by_name(d, AT_FDCWD, path, ret_size);
	*ret_fd = d->fd;
	return found ? 0 : -ENOENT;
}

int debug_files_find(struct debug_files *d, const uint8_t *id, size_t id_size, const char *path,
		     int *ret_fd, uint64_t *ret_size)
{
	char name[sizeof(".build-id/xx/.debug") + 2 * MAX_ID];
	CLEANUP_FREE char *plain = plain_path(path);
	bool found = false;
	int n;

	d->fd = close_fd(d->fd);
	if (id_size == 0 || id_size > MAX_ID)
		return -ENOENT;
	n = snprintf(name, sizeof(name), ".build-id/%02x/", id[0]);
	for (size_t i = 1; i < id_size; i++)
		n += sprintf(name + n, "%02x", id[i]);
	for (size_t i = 0; i < d->n && !found && id_size > 1; i++) {
		strcpy(name + n, ".debug");
		found = find_by_name(d, d->dirs[i], name, ret_size);
		name[n] = '\0';
		if (!found)
			found = find_by_name(d, d->dirs[i], name, ret_size);
	}
	for (size_t i = 0; i < d->n && !found && plain; i++)
		found = find_below(d, d->dirs[i], plain, ".debug", ret_size) ||
			find_below(d, d->dirs[i], plain, "", ret_size);
	*ret_fd = d->fd;
	return found ? 0 : -ENOENT;
}
