/*
 * Copies memory that is there, memory that is not, and memory that never comes.
 */
#include "daemon/gather/memory_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/support/child.h"

#define PAGE 4096u

static int open_mem(void)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static uint8_t *map_pages(size_t n)
{
	uint8_t *at =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static void memory_copy_gives_what_is_there(void **state)
{
	CLEANUP_CLOSE int mem = open_mem();
	CLEANUP_CLOSE int to = -EBADF;
	uint8_t *at = map_pages(40), got[2];
	struct memory_copy c;

	(void)state;
	memset(at, 0x55, 40 * PAGE);
	munmap(at + 39 * PAGE, PAGE);
	assert_int_equal(memfd_new("copy", 0, &to), 0);
	memory_copy_init(&c);
	assert_int_equal(memory_copy(&c, mem, (uintptr_t)at, 40 * PAGE, to), 39 * PAGE);
	assert_int_equal(memory_copy(&c, mem, (uintptr_t)at + 39 * PAGE, 10, to), 0);
	at[0] = 0x66;
	assert_int_equal(memory_copy(&c, mem, (uintptr_t)at, 1, to), 1);
	assert_int_equal(pread(to, got, 2, 39 * PAGE - 1), 2);
	assert_int_equal(got[0], 0x55);
	assert_int_equal(got[1], 0x66);
	assert_int_equal(c.left, 0);
	memory_copy_done(&c);
	munmap(at, 39 * PAGE);
}

/* Opens /dev/kmsg at its end: a read at any offset waits for the next line of the kernel. */
static int open_stalled(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && lseek(fd, 0, SEEK_END) < 0)
		fd = close_fd(fd);
	return fd;
}

/* Copies from a stalled file, again if the kernel logged a line just then. */
static ssize_t copy_stalled(struct memory_copy *c, int stalled, int to)
{
	int patience = c->patience_ms;
	ssize_t n;

	c->patience_ms = 20;
	do
		n = memory_copy(c, stalled, 0, PAGE, to);
	while (n >= 0);
	c->patience_ms = patience;
	return n;
}

static void memory_copy_of_what_never_comes_is_given_up(void **state)
{
	CLEANUP_CLOSE int mem = open_mem();
	CLEANUP_CLOSE int to = -EBADF;
	CLEANUP_CLOSE int stalled = open_stalled();
	uint8_t *there;
	struct memory_copy c;

	(void)state;
	if (stalled < 0)
		skip();
	there = map_pages(1);
	there[0] = 1;
	assert_int_equal(memfd_new("copy", 0, &to), 0);
	memory_copy_init(&c);
	for (unsigned i = 0; i < MEMORY_COPY_MAX_LEFT; i++) {
		assert_int_equal(memory_copy(&c, mem, (uintptr_t)there, PAGE, to), PAGE);
		assert_int_equal(copy_stalled(&c, stalled, to), -ETIMEDOUT);
		assert_int_equal(c.left, i + 1);
	}
	/* Not for ever. */
	assert_int_equal(memory_copy(&c, mem, (uintptr_t)there, PAGE, to), -ETIMEDOUT);
	memory_copy_done(&c);
	munmap(there, PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_copy_gives_what_is_there),
		cmocka_unit_test(memory_copy_of_what_never_comes_is_given_up),
	};

	/* memory_copy() forks. */
	pthread_atfork(NULL, NULL, test_leave_cmocka);
	return cmocka_run_group_tests_name("daemon/memory_copy", tests, NULL, NULL);
}
