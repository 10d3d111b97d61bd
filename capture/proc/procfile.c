/*
 * Opens, reads and parses the small files of a process.
 */
#include "capture/proc/procfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "capture/proc/number.h"
#include "proto/base.h"

/* include/linux/sched.h. */
#define PF_KTHREAD 0x00200000u
/* Fields of /proc/PID/stat, counted as in proc(5). */
#define FIELD_PPID  4
#define FIELD_FLAGS 9
#define FIELD_START 22
/* Numbers of at most 20 digits in 52 fields, and a name. */
#define STAT_MAX 2048
/* include/uapi/linux/openat2.h, Linux 5.12. */
#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif
/* A lookup fails while the tree changes (-EAGAIN), so it is tried so often. */
#define LOOKUPS 4

static int gone(int error)
{
	return error == ENOENT || error == ESRCH ? -ESRCH : -error;
}

int procfile_process(const char *proc, uint32_t pid, int *ret_dir)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s/%u", proc, pid);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	*ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_dir < 0 ? gone(errno) : 0;
}

static int open_resolved(int root, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags), .resolve = resolve};
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int procfile_beneath(int dir, const char *path, int flags)
{
	uint64_t resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
	CLEANUP_CLOSE int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = -EAGAIN;

	if (root < 0)
		return gone(errno);
	for (int i = 0; i < LOOKUPS && fd == -EAGAIN; i++)
		fd = open_resolved(root, path, flags, resolve | RESOLVE_CACHED);
	return fd == -EINVAL ? open_resolved(root, path, flags, resolve) : fd;
}

int procfile_opendir(int dir, const char *path, DIR **ret)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return gone(errno);
	*ret = fdopendir(fd);
	if (*ret)
		return 0;
	r = -errno;
	close_fd(fd);
	return r;
}

int procfile_fopen(int dir, const char *path, FILE **ret)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return gone(errno);
	*ret = fdopen(fd, "r");
	if (*ret)
		return 0;
	r = -errno;
	close_fd(fd);
	return r;
}

ssize_t procfile_read(int dir, const char *path, char *ret, size_t size)
{
	CLEANUP_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	assert(size > 0);
	if (fd < 0)
		return gone(errno);
	do {
		n = read(fd, ret + used, size - 1 - used);
		if (n < 0 && errno != EINTR)
			return gone(errno);
		used += n > 0 ? (size_t)n : 0;
	} while (n != 0 && used < size - 1);
	ret[used] = '\0';
	return (ssize_t)used;
}

int procfile_comm(int dir, const char *path, char *ret, size_t size)
{
	ssize_t n = procfile_read(dir, path, ret, size);

	if (n < 0)
		return (int)n;
	if (n > 0 && ret[n - 1] == '\n')
		ret[n - 1] = '\0';
	return 0;
}

int procfile_stat(int dir, struct procfile_stat *ret)
{
	char text[STAT_MAX];
	uint64_t fields[FIELD_START + 1] = {0};
	ssize_t n = procfile_read(dir, "stat", text, sizeof(text));
	const char *at;

	if (n < 0)
		return (int)n;
	/* The name is in parentheses and may hold any byte, also parentheses; the last one is the
	 * kernel's. */
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] == '\0' || at[3] != ' ')
		return -EBADMSG;
	ret->zombie = at[2] == 'Z' || at[2] == 'X';
	at += 3;
	for (size_t i = FIELD_PPID; i <= FIELD_START; i++) {
		at++;
		/* Some fields may be negative; those are not used. */
		if (*at == '-')
			at++;
		if (!number_parse(at, 10, UINT64_MAX, " \n", &at, &fields[i]))
			return -EBADMSG;
		if (*at == '\0' && i != FIELD_START)
			return -EBADMSG;
	}
	if (fields[FIELD_PPID] > INT32_MAX)
		return -EBADMSG;
	ret->ppid = (uint32_t)fields[FIELD_PPID];
	ret->kernel = (fields[FIELD_FLAGS] & PF_KTHREAD) != 0;
	ret->start_ticks = fields[FIELD_START];
	return 0;
}
