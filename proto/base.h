/*
 * The small idioms that all rooms use: cleanup, growing arrays, binary search, clocks.
 *
 * This room has what crosses a border between programs, and what every program needs to read and
 * write that: bytes.h (little-endian bytes with checked bounds), memfd.h (sealed memory files),
 * json.h (a streaming writer), varlink.h (the control socket's protocol), report.h (keys of a
 * report), and for ptsnap-decode decode_options.h, worker.h (messages) and channel.h (their
 * socket). perf/ has the layouts of perf and Intel PT, and bundle/ a snapshot at rest.
 *
 * Decisions that govern the room:
 * - proto includes nothing of ours, and every other room may include it. A layout that two programs
 *   share is defined here, once.
 * - Everything that comes from another program is hostile: each parser checks every length and
 *   number before use, has a limit for what it allocates, and fails as a whole.
 * - Readers and writers (struct bytes_in, bytes_out, json_writer) remember their first failure, so
 *   that a caller tests once, at the end.
 * - Bytes for another process travel as a descriptor of a sealed memory file. The receiver checks
 *   seals and size, and then trusts that the file stays as it is.
 * - Reports are written as a stream and never built as a tree: a million objects cost json-c 1.2 GB
 *   and this writer 1 MB (measured).
 * - 0 is success, -errno is forwarded unchanged, positive results are documented conditions.
 *
 * The list of idioms in this file is closed: an idiom comes in when a second room needs it.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Runs F on the variable when the variable leaves its scope. */
#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FREE CLEANUP(base_freep)
/* For an int with a descriptor, or -EBADF (or another negative number). */
#define CLEANUP_CLOSE CLEANUP(base_closep)

#define ARRAY_SIZE(a)	  (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MIN_OF(a, b)	  ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)	  ((a) > (b) ? (a) : (b))

/* Hands a pointer over: the value of P, which becomes NULL. */
#define TAKE_PTR(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* Hands a descriptor over: returns *FD, which becomes -EBADF. */
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

/* Closes FD and keeps errno. Returns -EBADF, to be assigned: fd = close_fd(fd). */
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

/* Return whether the sum or product fits, and set *ret to it. */
static inline bool add_ok(size_t a, size_t b, size_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}

static inline bool mul_ok(size_t a, size_t b, size_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}

/* --- Arrays that grow --- */

/* For ARRAY_RESERVE: makes room for NEED elements of SIZE bytes, or for twice *CAPACITY if that is
 * more. */
static inline void *base_grow(void *list, size_t *capacity, size_t need, size_t size, size_t max)
{
	size_t n = *capacity ? *capacity : 2, bytes;

	do
		if (!mul_ok(n, 2, &n))
			return NULL;
	while (n < need);
	/* Checked here, because AddressSanitizer ends a process in which reallocarray() finds an
	 * overflow. */
	if (n > max || !mul_ok(n, size, &bytes))
		return NULL;
	list = realloc(list, bytes);
	if (list)
		*capacity = n;
	return list;
}

/*
 * Makes room for N elements in LIST, a malloc()ed array (or NULL) with room for CAPACITY elements.
 * LIST and CAPACITY are lvalues; an array that grows gets at least twice its size. 0, or -ENOMEM,
 * also if CAPACITY's type cannot hold the number; LIST and CAPACITY are then unchanged.
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

/* Makes the memory of LIST fit exactly N elements (one element for N = 0). 0, or -ENOMEM; LIST is
 * then unchanged. */
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

/* Makes room for one more element behind the N elements of LIST. For arrays without a capacity that
 * only grow by this macro: such an array has room for the power of two that holds N. 0, or -ENOMEM;
 * LIST is then unchanged. */
#define ARRAY_EXTEND(list, n)                                       \
	({                                                          \
		size_t has_ = (n);                                  \
                                                                    \
		has_ &(has_ - 1) ? 0 : ARRAY_FIT((list), 2 * has_); \
	})

/* --- Binary search --- */

/*
 * The first I from 0 to N - 1 for which the expression HOLDS is true, or N. HOLDS must be true for
 * all elements behind the first such element. I is declared here:
 * FIRST_WHERE(i, s->n, s->list[i].end > address).
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

/* The time of CLOCK (of clock_gettime(2)) in nanoseconds, or 0 if it cannot be read. */
static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time of CLOCK in microseconds. */
static inline uint64_t now_usec(clockid_t clock)
{
	return now_ns(clock) / 1000u;
}
