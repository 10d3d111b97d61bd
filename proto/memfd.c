/*
 * Makes, seals, checks and copies memory files.
 */
#include "proto/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/base.h"

/* Linux 6.3. Hosts with vm.memfd_noexec=2 refuse memory files without this flag. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define COPY_BYTES  65536u
#define RANGE_BYTES (1u << 30)

int memfd_new(const char *name, uint64_t size, int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;

	if (size > INT64_MAX)
		return -EFBIG;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

int memfd_seal(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int memfd_seal_size(int fd)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int memfd_check_size(int fd, uint64_t size)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	/* hugetlbfs has seals, too. */
	if (seals < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0)
		return -EBADF;
	if ((seals & F_SEAL_SHRINK) == 0)
		return -EPERM;
	return st.st_size < 0 || (uint64_t)st.st_size != size ? -EFBIG : 0;
}

int memfd_reopen_readonly(int fd, int *ret_fd)
{
	char path[64];
	int opened;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	opened = open(path, O_RDONLY | O_CLOEXEC);
	if (opened < 0)
		return -errno;
	*ret_fd = opened;
	return 0;
}

int memfd_write_all(int fd, const void *data, size_t size)
{
	const uint8_t *pos = data;

	while (size > 0) {
		ssize_t n = write(fd, pos, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		pos += n;
		size -= (size_t)n;
	}
	return 0;
}

int memfd_copy_readable(int from, uint64_t offset, uint64_t size, int to, struct memfd_copied *ret)
{
	uint8_t buffer[COPY_BYTES];
	off_t at = (off_t)offset;
	ssize_t n;
	int r;

	*ret = (struct memfd_copied){0};
	if (offset > INT64_MAX || size > INT64_MAX - offset) {
		ret->read_error = -EOVERFLOW;
		return 0;
	}
	/* The kernel may stop anywhere for reasons of its own (other file system, pipe, O_APPEND,
	 * old kernel). The loop behind goes on from there, and meets errors of the files. */
	for (n = 1; n > 0 && ret->bytes < size;) {
		n = copy_file_range(from, &at, to, NULL,
				    (size_t)MIN_OF(size - ret->bytes, (uint64_t)RANGE_BYTES), 0);
		ret->bytes += n > 0 ? (uint64_t)n : 0;
	}
	while (ret->bytes < size) {
		n = pread(from, buffer, MIN_OF(size - ret->bytes, (uint64_t)sizeof(buffer)),
			  (off_t)(offset + ret->bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			ret->read_error = n < 0 ? -errno : 0;
			return 0;
		}
		r = memfd_write_all(to, buffer, (size_t)n);
		if (r < 0)
			return r;
		ret->bytes += (uint64_t)n;
	}
	return 0;
}

int memfd_copy(int from, uint64_t offset, uint64_t size, int to)
{
	struct memfd_copied copied;
	int r;

	r = memfd_copy_readable(from, offset, size, to, &copied);
	if (r < 0)
		return r;
	if (copied.read_error)
		return copied.read_error;
	return copied.bytes < size ? -ENODATA : 0;
}
