#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"
#include "proto/base.h"
#include "proto/memfd.h"

struct seen {
	size_t n, stop_at;
	enum callstream_kind last;
	char name[32];
};

static int see(void *userdata, const struct callstream_item *item)
{
	struct seen *seen = userdata;

	seen->last = item->kind;
	if (item->kind == CALLSTREAM_FUNCTION)
		snprintf(seen->name, sizeof(seen->name), "%s", item->name);
	return ++seen->n == seen->stop_at ? 77 : 0;
}

static int read_bytes(const char *text, size_t size, struct seen *seen)
{
	CLEANUP_CLOSE int fd = -EBADF;

	assert_int_equal(memfd_new("test", 0, &fd), 0);
	assert_int_equal(memfd_write_all(fd, text, size), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return calls_read_fd(fd, see, seen);
}

static int read_text(const char *text, struct seen *seen)
{
	return read_bytes(text, strlen(text), seen);
}

#define HEAD "H\t1\t10\t90\t0\n"
#define DEFS "T\t1\t5\t6\tsh\nF\t1\t0x10\tma\\x09in\t/bin/sh\t\t0\n"
#define END  "Z\t1\t0\n"

static void calls_read_fd_whole_stream_gives_each_item(void **state)
{
	struct seen seen = {0};

	(void)state;
	assert_int_equal(read_text(HEAD DEFS
				   "R\t1\t10\t0\nB\t1\t11\t2\t0\t1\tcall\n"
				   "G\t0\t12\t3\t0\toverflow\n"
				   "E\t1\t14\t0\t0\treturn\t7\nS\t1\t20\t0\tblocked\n" END,
				   &seen),
			 0);
	assert_int_equal(seen.n, 9);
	assert_int_equal(seen.last, CALLSTREAM_END);
	assert_string_equal(seen.name, "ma\tin");
}

static void calls_read_fd_reader_that_stops_gets_its_result(void **state)
{
	struct seen seen = {.stop_at = 2};

	(void)state;
	assert_int_equal(read_text(HEAD DEFS "garbage", &seen), 77);
	assert_int_equal(seen.n, 2);
}

static void calls_read_fd_cut_off_says_so(void **state)
{
	struct seen seen = {0};

	(void)state;
	assert_int_equal(read_text("", &seen), -ENODATA);
	assert_int_equal(read_text(HEAD DEFS, &seen), -ENODATA);
	assert_int_equal(read_text(HEAD "Z\t1\t0", &seen), -ENODATA);
}

static void calls_read_fd_broken_rule_is_refused(void **state)
{
	static const char *const bad[] = {
		"Z\t1\t0\n",					     /* no head */
		HEAD HEAD END,					     /* two heads */
		HEAD END END,					     /* something behind the end */
		HEAD "T\t2\t5\t6\tsh\n" END,			     /* numbers have a break */
		HEAD "T\t0\t5\t6\tsh\n" END,			     /* no number */
		HEAD "F\t2\t0x10\tmain\t/bin/sh\t\t0\n" END,	     /* likewise */
		HEAD DEFS "B\t2\t11\t2\t0\t1\tcall\n" END,	     /* no such thread */
		HEAD DEFS "B\t1\t11\t2\t0\t2\tcall\n" END,	     /* no such function */
		HEAD DEFS "B\t0\t11\t2\t0\t1\tcall\n" END,	     /* a frame of nobody */
		HEAD DEFS "E\t1\t11\t2\t0\treturn\t0\n" END,	     /* no frame to end */
		HEAD DEFS "R\t1\t11\t0\nS\t1\t10\t0\tblocked\n" END, /* back in time */
		HEAD DEFS "x\t1\n" END,				     /* no such line */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(read_text(bad[i], &(struct seen){0}), -EBADMSG);
	assert_int_equal(read_bytes(HEAD "T\t1\t5\t6\ta\0b\n" END,
				    sizeof(HEAD "T\t1\t5\t6\ta\0b\n" END) - 1, &(struct seen){0}),
			 -EBADMSG);
}

static void calls_read_fd_endless_line_is_refused(void **state)
{
	char *line = malloc(3 * CALLSTREAM_MAX_LINE);

	(void)state;
	assert_non_null(line);
	memset(line, 'T', 3 * CALLSTREAM_MAX_LINE);
	assert_int_equal(read_bytes(line, 3 * CALLSTREAM_MAX_LINE, &(struct seen){0}), -EBADMSG);
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_read_fd_whole_stream_gives_each_item),
		cmocka_unit_test(calls_read_fd_reader_that_stops_gets_its_result),
		cmocka_unit_test(calls_read_fd_cut_off_says_so),
		cmocka_unit_test(calls_read_fd_broken_rule_is_refused),
		cmocka_unit_test(calls_read_fd_endless_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
