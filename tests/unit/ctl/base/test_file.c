#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/base/file.h"

static int make(const char *text)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void whole_file_read_up_to_its_limit_is_all_of_it(void **state)
{
	int fd = make("a text");
	char *text = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(file_read_whole(fd, 6, &text, &size), 0);
	assert_int_equal(size, 6);
	assert_memory_equal(text, "a text", 6);
	/* The file's position does not matter, and stays. */
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 6);
	free(text);
	close(fd);
}

static void whole_file_read_of_nothing_is_nothing(void **state)
{
	int fd = make("");
	char *text = NULL;
	size_t size = 1;

	(void)state;
	assert_int_equal(file_read_whole(fd, 0, &text, &size), 0);
	assert_int_equal(size, 0);
	assert_non_null(text);
	free(text);
	close(fd);
}

static void whole_file_read_beyond_its_limit_is_efbig(void **state)
{
	int fd = make("a text");
	char *text = NULL;
	size_t size = 1;

	(void)state;
	assert_int_equal(file_read_whole(fd, 5, &text, &size), -EFBIG);
	assert_null(text);
	assert_int_equal(size, 1);
	close(fd);
}

static void whole_file_read_of_a_pipe_is_ebadmsg(void **state)
{
	char *text = NULL;
	size_t size;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(file_read_whole(fds[0], 5, &text, &size), -EBADMSG);
	assert_int_equal(file_read_whole(-1, 5, &text, &size), -EBADF);
	assert_null(text);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file_read_up_to_its_limit_is_all_of_it),
		cmocka_unit_test(whole_file_read_of_nothing_is_nothing),
		cmocka_unit_test(whole_file_read_beyond_its_limit_is_efbig),
		cmocka_unit_test(whole_file_read_of_a_pipe_is_ebadmsg),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
