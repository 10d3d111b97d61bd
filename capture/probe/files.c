/*
 * A file of a specification: its descriptor and the numbers by which the kernel knows it.
 */
#include "capture/probe/files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "capture/proc/procmaps.h"

/* The first 20 bits of s_dev are the minor number (include/linux/kdev_t.h). */
#define KERNEL_DEV(maj, min) ((maj) << 20 | (min))

static int open_regular(const char *path)
{
	/* Not O_PATH: the file must be readable. O_NONBLOCK: a FIFO must not hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int read_id(int fd, struct shared_file *ret)
{
	CLEANUP_CLOSE int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct mapquery *q = malloc(sizeof(*q));
	void *map = MAP_FAILED;
	int r = -ENOMEM;

	if (self < 0)
		r = -errno;
	else if (q) {
		map = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
		r = map == MAP_FAILED ? -errno : mapquery_at(self, (uintptr_t)map, q);
	}
	if (r == 0)
		*ret = (struct shared_file){.ino = q->ino, .dev = KERNEL_DEV(q->maj, q->min)};
	if (map != MAP_FAILED)
		munmap(map, 1);
	free(q);
	return r;
}

int probe_file_open(const char *path, struct probe_file *ret, char **ret_error)
{
	CLEANUP_CLOSE int fd = open_regular(path);
	struct shared_file id;
	char *copy;
	int r;

	if (fd == -EINVAL)
		return probe_fail(ret_error, fd, "%s is not a regular file.", path);
	if (fd < 0)
		return probe_fail(ret_error, fd, "%s cannot be opened: %s.", path, strerror(-fd));
	r = read_id(fd, &id);
	if (r < 0)
		return probe_fail(ret_error, r, "%s cannot be mapped: %s.", path, strerror(-r));
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	*ret = (struct probe_file){.fd = take_fd(&fd), .path = copy, .id = id};
	return 0;
}

bool probe_file_moved(const struct probe_file *f)
{
	struct stat was, is;

	if (f->fd < 0)
		return false;
	return fstat(f->fd, &was) < 0 || stat(f->path, &is) < 0 || was.st_ino != is.st_ino ||
	       was.st_dev != is.st_dev;
}

void probe_file_close(struct probe_file *f)
{
	close_fd(f->fd);
	free(f->path);
	*f = PROBE_FILE_NONE;
}
