/*
 * Files with names and DWARF, below the directories of --symbols. What lies in a directory is the
 * user's own, but the path of a program comes from the bundle: it is looked up as if the directory
 * were the root. Nothing but a regular file is ever opened for reading: a device may do something
 * when it is, and a pipe waits for a writer. Nothing here reads what is in a file.
 */
#include "ctl/decode/debug_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base.h"

/* What proto/worker.h lets be asked for. */
#define MAX_ID 20u
/* ".build-id/XX/", the rest in hex, ".debug" */
#define NAME_SIZE (sizeof(".build-id/xx/.debug") + 2 * MAX_ID)

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

/* What is open as a path, for reading; false: it is nothing to be read. */
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

/* Links in such a directory lead to where packages have the files, also elsewhere. */
static bool find_by_name(struct debug_files *d, int dir, const char *name, uint64_t *ret_size)
{
	CLEANUP_CLOSE int fd = openat(dir, name, O_PATH | O_CLOEXEC);

	return fd >= 0 && take(d, fd, ret_size);
}

static void put_hex(char *to, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
	to[2 * size] = '\0';
}

static bool find_by_id(struct debug_files *d, int dir, const uint8_t *id, size_t id_size,
		       uint64_t *ret_size)
{
	char first[3], rest[2 * MAX_ID + 1], name[NAME_SIZE];

	put_hex(first, id, 1);
	put_hex(rest, id + 1, id_size - 1);
	snprintf(name, sizeof(name), ".build-id/%s/%s.debug", first, rest);
	if (find_by_name(d, dir, name, ret_size))
		return true;
	snprintf(name, sizeof(name), ".build-id/%s/%s", first, rest);
	return find_by_name(d, dir, name, ret_size);
}

/* An absolute path that goes nowhere but down. */
static bool is_plain(const char *path)
{
	if (*path != '/' || strlen(path) >= PATH_MAX - sizeof(".debug"))
		return false;
	for (const char *at = path; at; at = strchr(at + 1, '/'))
		if (strncmp(at, "/..", 3) == 0 && (at[3] == '/' || at[3] == '\0'))
			return false;
	return true;
}

/* *PATH with END behind it, below DIR. */
static bool find_below(struct debug_files *d, int dir, const char *path, const char *end,
		       uint64_t *ret_size)
{
	static const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
					    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int fd = -EBADF;
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s%s", path, end);
	fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	/* EPERM: from a filter of system calls that is older than this one. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		d->without_path = true;
	return fd >= 0 && take(d, fd, ret_size);
}

/* What a record says behind the path of a file that was replaced, as programs are when they are
 * brought up to date (fs/d_path.c, d_path()). */
#define DELETED " (deleted)"

/* PATH as files with names have it; NULL: there can be none. */
static char *path_for_files(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	if (n > strlen(DELETED) && strcmp(path + n - strlen(DELETED), DELETED) == 0)
		n -= strlen(DELETED);
	return path && is_plain(path) ? strndup(path, n) : NULL;
}

static bool find_by_path(struct debug_files *d, int dir, const char *path, uint64_t *ret_size)
{
	return find_below(d, dir, path, ".debug", ret_size) ||
	       find_below(d, dir, path, "", ret_size);
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
	CLEANUP_FREE char *plain = path_for_files(path);
	bool found = false;

	d->fd = close_fd(d->fd);
	if (id_size == 0 || id_size > MAX_ID)
		return -ENOENT;
	for (size_t i = 0; i < d->n && !found && id_size > 1; i++)
		found = find_by_id(d, d->dirs[i], id, id_size, ret_size);
	for (size_t i = 0; i < d->n && !found && plain; i++)
		found = find_by_path(d, d->dirs[i], plain, ret_size);
	*ret_fd = d->fd;
	return found ? 0 : -ENOENT;
}
