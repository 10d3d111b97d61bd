/*
 * The closed list of small idioms that every room may use. Nothing is added here without a second
 * room that needs it.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Run F on the variable when it leaves its scope. */
#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FREE CLEANUP(base_freep)
/* An int fd, -EBADF (or any negative number) when it holds nothing. */
#define CLEANUP_CLOSE CLEANUP(base_closep)

#define ARRAY_SIZE(a)	  (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MIN_OF(a, b)	  ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)	  ((a) > (b) ? (a) : (b))

/* Hand a pointer on: gives its value, leaves NULL. */
#define TAKE_PTR(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* Hand an fd on: gives its value, leaves -EBADF. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -EBADF;
	return taken;
}

static inline void base_freep(void *p)
{
	free(*(void **)p);
}

/* Close keeping errno; gives -EBADF to assign back: fd = close_fd(fd). */
static inline int close_fd(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -EBADF;
}

static inline void base_closep(int *fd)
{
	close_fd(*fd);
}

/* True when the sum or product fits, and then in *ret. */
static inline bool add_ok(size_t a, size_t b, size_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}

static inline bool mul_ok(size_t a, size_t b, size_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}
