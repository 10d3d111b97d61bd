/*
 * capture/proc/cpustat: user time of each CPU.
 */
#include "capture/proc/cpustat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/tree.h"

static void cpustat_read_takes_users_without_guests(void **state)
{
	const uint64_t tick = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	char *root = tree_new();
	uint64_t ran[4];

	(void)state;
	tree_write(root, "stat",
		   "cpu  100 10 1 1 1 1 1 1 30 2\n"
		   "cpu0 60 5 1 2 3 4 5 6 30 2\n"
		   "cpu2 40 5 1 2 3 4 5 6 0 0\n"
		   "cpu9 7 0 0 0 0 0 0 0 0 0\n"
		   "intr 1 2 3\n"
		   "cpu3 1 1 1 1 1 1 1 1 1 1\n");
	assert_int_equal(cpustat_read(root, ran, ARRAY_SIZE(ran)), 0);
	assert_int_equal(ran[0], 33 * tick);
	assert_int_equal(ran[1], UINT64_MAX);
	assert_int_equal(ran[2], 45 * tick);
	assert_int_equal(ran[3], UINT64_MAX);
	tree_free(root);
}

static void cpustat_read_other_text_or_no_file_is_an_error(void **state)
{
	char *root = tree_new();
	uint64_t ran[2];

	(void)state;
	assert_int_equal(cpustat_read(root, ran, ARRAY_SIZE(ran)), -ENOENT);
	tree_write(root, "stat", "cpu  1 2 3\ncpu0 1 2\n");
	assert_int_equal(cpustat_read(root, ran, ARRAY_SIZE(ran)), -EBADMSG);
	/* More than there is room for makes the difference the other way. */
	tree_write(root, "stat", "cpu0 1 2 3 4 5 6 7 8 90 10\n");
	assert_int_equal(cpustat_read(root, ran, ARRAY_SIZE(ran)), 0);
	assert_int_equal(ran[0], 0);
	tree_free(root);
}

static void cpustat_read_of_this_host_grows_with_what_runs(void **state)
{
	static uint64_t before[4096], after[4096];
	bool grew = false;

	(void)state;
	assert_int_equal(cpustat_read("/proc", before, ARRAY_SIZE(before)), 0);
	while (!grew) {
		assert_int_equal(cpustat_read("/proc", after, ARRAY_SIZE(after)), 0);
		for (size_t i = 0; i < ARRAY_SIZE(after); i++)
			grew |= after[i] > before[i];
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpustat_read_takes_users_without_guests),
		cmocka_unit_test(cpustat_read_other_text_or_no_file_is_an_error),
		cmocka_unit_test(cpustat_read_of_this_host_grows_with_what_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
