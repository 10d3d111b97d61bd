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
#include <time.h>
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

/* --- Arrays that grow --- */

/* ARRAY_RESERVE's: room for NEED elements of SIZE bytes or for twice *CAPACITY, whichever is more.
 */
static inline void *base_grow(void *list, size_t *capacity, size_t need, size_t size, size_t max)
{
	size_t n = *capacity ? *capacity : 2, bytes;

	do
		if (!mul_ok(n, 2, &n))
			return NULL;
	while (n < need);
	/* AddressSanitizer ends the process where reallocarray() itself finds the overflow. */
	if (n > max || !mul_ok(n, size, &bytes))
		return NULL;
	list = realloc(list, bytes);
	if (list)
		*capacity = n;
	return list;
}

/*
 * Room for N elements in LIST, a malloc()ed array (or NULL) that has room for CAPACITY of them;
 * both are lvalues and change when the array grows, at least to twice its size. 0, or -ENOMEM when
 * there is no memory or CAPACITY's type cannot hold the number; LIST and CAPACITY then are as they
 * were.
 */
#define ARRAY_RESERVE(list, capacity, n)                                           \
	({                                                                         \
		size_t need_ = (n), room_ = (capacity);                            \
		void *grown_ = NULL;                                               \
                                                                                   \
		if (need_ > room_)                                                 \
			grown_ = base_grow((list), &room_, need_, sizeof(*(list)), \
					   (__typeof__(capacity))-1);              \
		if (grown_) {                                                      \
			(list) = grown_;                                           \
			(capacity) = (__typeof__(capacity))room_;                  \
		}                                                                  \
		need_ <= room_ ? 0 : -ENOMEM;                                      \
	})

/* The memory of LIST becomes that of exactly N elements, of one for N = 0. 0, or -ENOMEM: LIST is
 * as it was. */
#define ARRAY_FIT(list, n)                                                       \
	({                                                                       \
		size_t need_ = (n), bytes_;                                      \
		void *fit_ = mul_ok(need_ ? need_ : 1, sizeof(*(list)), &bytes_) \
				     ? realloc((list), bytes_)                   \
				     : NULL;                                     \
                                                                                 \
		if (fit_)                                                        \
			(list) = fit_;                                           \
		fit_ ? 0 : -ENOMEM;                                              \
	})

/* Room for one more element behind the N of LIST, an array that remembers no capacity: it has room
 * for the power of two that holds N. For arrays that only this lets grow. 0, or -ENOMEM: LIST is as
 * it was. */
#define ARRAY_EXTEND(list, n)                                       \
	({                                                          \
		size_t has_ = (n);                                  \
                                                                    \
		has_ &(has_ - 1) ? 0 : ARRAY_FIT((list), 2 * has_); \
	})

/* --- Binary search --- */

/*
 * The first I of 0 to N - 1 for which the expression HOLDS is true, or N; for all behind the first
 * it must be true, too. I is declared here: FIRST_WHERE(i, s->n, s->list[i].end > address).
 */
#define FIRST_WHERE(i, n, holds)                                              \
	({                                                                    \
		__typeof__((n) + 0) low_ = 0, high_ = (n);                    \
                                                                              \
		while (low_ < high_) {                                        \
			const __typeof__(low_) i = low_ + (high_ - low_) / 2; \
                                                                              \
			if (holds)                                            \
				high_ = i;                                    \
			else                                                  \
				low_ = i + 1;                                 \
		}                                                             \
		low_;                                                         \
	})

/* --- Clocks --- */

/* What CLOCK (of clock_gettime(2)) says, in nanoseconds; 0 where it cannot be read. */
static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same in microseconds. */
static inline uint64_t now_usec(clockid_t clock)
{
	return now_ns(clock) / 1000u;
}
