#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define BYTES 200000u

/* Makes a memfd of BYTES bytes, each of which depends on its offset. */
static int patterned(void)
{
	CLEANUP_FREE uint8_t *data = malloc(BYTES);
	int fd;

	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(memfd_new("pattern", 0, &fd), 0);
	assert_int_equal(memfd_write_all(fd, data, BYTES), 0);
	return fd;
}

static void check_pattern(int fd, size_t from, size_t size)
{
	CLEANUP_FREE uint8_t *data = malloc(BYTES);

	assert_int_equal(pread(fd, data, BYTES, 0), size);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(data[i], (uint8_t)((from + i) * 7 + (from + i) / 256));
}

static void memfd_new_has_its_size_and_closes_on_exec(void **state)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	int other;

	(void)state;
	assert_int_equal(memfd_new("x", 12345, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 12345);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(memfd_new("x", UINT64_MAX, &other), -EFBIG);
}

static void memfd_seal_makes_it_unchangeable(void **state)
{
	CLEANUP_CLOSE int fd = patterned();

	(void)state;
	assert_int_equal(memfd_seal(fd), 0);
	assert_int_equal(memfd_write_all(fd, "x", 1), -EPERM);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(ftruncate(fd, BYTES + 1), -1);
	assert_int_equal(memfd_seal(fd), -EPERM);
	check_pattern(fd, 0, BYTES);
}

static void memfd_seal_with_a_writable_mapping_is_busy(void **state)
{
	CLEANUP_CLOSE int fd = patterned();
	void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(memfd_seal(fd), -EBUSY);
	munmap(map, 4096);
	assert_int_equal(memfd_seal(fd), 0);
}

static void memfd_reopen_readonly_cannot_write(void **state)
{
	CLEANUP_CLOSE int fd = patterned();
	CLEANUP_CLOSE int reader = -EBADF;

	(void)state;
	assert_int_equal(memfd_reopen_readonly(fd, &reader), 0);
	assert_int_equal(memfd_write_all(reader, "x", 1), -EBADF);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, reader, 0), MAP_FAILED);
	assert_true(fcntl(reader, F_GETFD) & FD_CLOEXEC);
	check_pattern(reader, 0, BYTES);
	assert_int_equal(memfd_reopen_readonly(-1, &reader), -ENOENT);
}

static void memfd_copy_takes_exactly_the_range(void **state)
{
	static const struct {
		uint64_t offset, size;
		int flags; /* of the target: O_APPEND cannot take copy_file_range */
	} cases[] = {
		{0, BYTES, 0}, {1, 3, 0}, {70000, 100000, 0}, {0, 0, 0}, {70000, 100000, O_APPEND}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_CLOSE int from = patterned();
		CLEANUP_CLOSE int to = -EBADF;

		assert_int_equal(memfd_new("to", 0, &to), 0);
		assert_int_equal(fcntl(to, F_SETFL, cases[i].flags), 0);
		assert_int_equal(memfd_copy(from, cases[i].offset, cases[i].size, to), 0);
		check_pattern(to, cases[i].offset, cases[i].size);
		assert_int_equal(lseek(to, 0, SEEK_CUR), cases[i].size);
	}
}

static void memfd_copy_to_a_pipe_works(void **state)
{
	CLEANUP_CLOSE int from = patterned();
	CLEANUP_CLOSE int reader = -EBADF;
	CLEANUP_CLOSE int writer = -EBADF;
	uint8_t got[100];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	reader = fds[0];
	writer = fds[1];
	assert_int_equal(memfd_copy(from, 256, 100, writer), 0);
	assert_int_equal(read(reader, got, 100), 100);
	assert_int_equal(got[1], (uint8_t)(257 * 7 + 1));
}

static void memfd_copy_beyond_the_end_has_no_data(void **state)
{
	CLEANUP_CLOSE int from = patterned();
	CLEANUP_CLOSE int to = -EBADF;
	struct memfd_copied copied;

	(void)state;
	assert_int_equal(memfd_new("to", 0, &to), 0);
	assert_int_equal(memfd_copy(from, BYTES - 10, 11, to), -ENODATA);
	assert_int_equal(memfd_copy(from, UINT64_MAX, 1, to), -EOVERFLOW);
	assert_int_equal(memfd_copy(from, 1, UINT64_MAX, to), -EOVERFLOW);
	assert_int_equal(memfd_copy_readable(from, BYTES - 10, 100, to, &copied), 0);
	assert_int_equal(copied.bytes, 10);
	assert_int_equal(copied.read_error, 0);
}

static void memfd_copy_tells_read_errors_from_write_errors(void **state)
{
	CLEANUP_CLOSE int from = patterned();
	CLEANUP_CLOSE int directory = open("/", O_RDONLY | O_CLOEXEC);
	CLEANUP_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CLEANUP_CLOSE int to = -EBADF;
	struct memfd_copied copied;

	(void)state;
	assert_int_equal(memfd_new("to", 0, &to), 0);
	assert_int_equal(memfd_copy_readable(directory, 0, 10, to, &copied), 0);
	assert_int_equal(copied.read_error, -EISDIR);
	assert_int_equal(memfd_copy(directory, 0, 10, to), -EISDIR);
	assert_int_equal(memfd_copy_readable(from, 0, 10, full, &copied), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memfd_new_has_its_size_and_closes_on_exec),
		cmocka_unit_test(memfd_seal_makes_it_unchangeable),
		cmocka_unit_test(memfd_seal_with_a_writable_mapping_is_busy),
		cmocka_unit_test(memfd_reopen_readonly_cannot_write),
		cmocka_unit_test(memfd_copy_takes_exactly_the_range),
		cmocka_unit_test(memfd_copy_to_a_pipe_works),
		cmocka_unit_test(memfd_copy_beyond_the_end_has_no_data),
		cmocka_unit_test(memfd_copy_tells_read_errors_from_write_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
