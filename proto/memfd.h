/*
 * Memory files, which carry bytes from one process to another: made, filled, sealed, and handed
 * over read-only, so that a receiver can trust that the file stays as it is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Makes a memfd (close-on-exec, sealable) of SIZE bytes; /proc shows NAME. *ret_fd is the caller's.
 * 0 or -errno. */
int memfd_new(const char *name, uint64_t size, int *ret_fd);
/* Seals against shrinking, growing, writing and further seals. 0 or -errno (-EBUSY: there are
 * writable shared mappings). */
int memfd_seal(int fd);
/* Seals against shrinking, growing and further seals, so that a process that may write to the file
 * cannot cause faults in a process that has mapped the file. 0 or -errno. */
int memfd_seal_size(int fd);
/* Checks that FD is a memory file of SIZE bytes that cannot shrink. 0; -EBADF: no memory file, or
 * one of hugetlbfs, whose pages may be missing when they are touched; -EPERM: the size can change;
 * -EFBIG: another size. */
int memfd_check_size(int fd, uint64_t size);
/* Opens the same file O_RDONLY through /proc/self/fd, so that a receiver cannot
 * write. 0 or -errno. */
int memfd_reopen_readonly(int fd, int *ret_fd);
/* Writes all of DATA to FD, also after short writes and EINTR. 0 or -errno. */
int memfd_write_all(int fd, const void *data, size_t size);
/* Copies SIZE bytes of FROM from OFFSET on to TO's position. 0; -ENODATA: FROM ends early; or
 * -errno.
 */
int memfd_copy(int from, uint64_t offset, uint64_t size, int to);
/* The same, but a failure to read is a result: *ret tells how many bytes were copied before FROM
 * ended (read_error 0) or could not be read. 0, or -errno of writing. */
struct memfd_copied {
	uint64_t bytes;
	int read_error; /* 0 or -errno */
};
int memfd_copy_readable(int from, uint64_t offset, uint64_t size, int to, struct memfd_copied *ret);
