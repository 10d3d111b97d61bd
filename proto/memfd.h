/*
 * Memory files: made, filled, sealed, and handed on read-only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A new memfd (close-on-exec, sealable) of SIZE bytes, named for /proc. 0 or -errno; *ret_fd owned.
 */
int memfd_new(const char *name, uint64_t size, int *ret_fd);
/* Seals against shrinking, growing, writing and further seals. Every writable shared mapping must
 * be gone (-EBUSY). */
int memfd_seal(int fd);
/* Seals it against changing its size, and against further seals: whoever may write to it cannot
 * make who has it mapped fault. 0 or -errno. */
int memfd_seal_size(int fd);
/* Whether FD is a memory file of SIZE bytes that keeps that size. 0; -EBADF: something else,
 * -EPERM: its size can change, -EFBIG: it has another. */
int memfd_check_size(int fd, uint64_t size);
/* The same file opened O_RDONLY through /proc/self/fd, so that a receiver cannot write. */
int memfd_reopen_readonly(int fd, int *ret_fd);
/* All of DATA to FD, short writes and EINTR handled. 0 or -errno. */
int memfd_write_all(int fd, const void *data, size_t size);
/* SIZE bytes of FROM at *offset to TO's file position (copy_file_range, else read and write).
 * 0, -ENODATA when FROM ends early, or -errno. */
int memfd_copy(int from, uint64_t offset, uint64_t size, int to);
/* The same, but what cannot be read is a result: *ret tells how many bytes arrived before FROM
 * ended (read_error 0) or failed. 0, or -errno of writing. */
struct memfd_copied {
	uint64_t bytes;
	int read_error; /* 0 or -errno */
};
int memfd_copy_readable(int from, uint64_t offset, uint64_t size, int to, struct memfd_copied *ret);
