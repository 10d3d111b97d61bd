/*
 * The holders of perf events, from a fake /proc.
 */
#include "capture/proc/procscan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/capture/tree.h"

#define EVENT "anon_inode:[perf_event]"

static int setup(void **state)
{
	*state = tree_new();
	return 0;
}

static int teardown(void **state)
{
	tree_free(*state);
	return 0;
}

static void process(const char *root, unsigned pid, const char *comm, const char *link)
{
	char path[64];

	snprintf(path, sizeof(path), "%u/comm", pid);
	tree_write(root, path, comm);
	snprintf(path, sizeof(path), "%u/fd/0", pid);
	tree_symlink(root, path, "/dev/null");
	snprintf(path, sizeof(path), "%u/fd/5", pid);
	tree_symlink(root, path, link);
}

static void holders_find_gives_those_with_an_event_and_not_ourselves(void **state)
{
	struct holders h;
	char text[128];

	process(*state, 30, "perf\n", EVENT);
	process(*state, 7, "stop\n", EVENT);
	process(*state, 12, "innocent\n", "socket:[12]");
	process(*state, 13, "alike\n", EVENT " (deleted)");
	process(*state, 14, "shorter\n", "anon_inode:");
	process(*state, 99, "ourselves\n", EVENT);
	tree_write(*state, "meminfo", "");
	assert_int_equal(holders_find(*state, 99, &h), 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.all[0].pid, 7);
	assert_int_equal(h.all[1].pid, 30);
	assert_false(h.partial);
	holders_format(&h, text, sizeof(text));
	assert_string_equal(text, "stop (pid 7), perf (pid 30)");
}

static void holders_find_of_many_keeps_the_first_and_counts_all(void **state)
{
	struct holders h;
	char text[256];

	for (unsigned pid = 40; pid > 20; pid--)
		process(*state, pid, "x\n", EVENT);
	assert_int_equal(holders_find(*state, 1, &h), 0);
	assert_int_equal(h.n, 20);
	for (size_t i = 0; i < HOLDERS_MAX; i++)
		assert_int_equal(h.all[i].pid, 21 + i);
	holders_format(&h, text, sizeof(text));
	assert_non_null(strstr(text, "x (pid 28) and 12 more"));
}

static void holders_format_of_nobody_says_so(void **state)
{
	struct holders h;
	char text[64];

	assert_int_equal(holders_find(*state, 1, &h), 0);
	holders_format(&h, text, sizeof(text));
	assert_string_equal(text, "no process that can be seen");
}

static void holders_format_makes_names_printable(void **state)
{
	struct holders h;
	char text[64], small[8];

	process(*state, 5, "a\033[31m\n\xff\n", EVENT);
	assert_int_equal(holders_find(*state, 1, &h), 0);
	holders_format(&h, text, sizeof(text));
	assert_string_equal(text, "a?[31m?? (pid 5)");
	holders_format(&h, small, sizeof(small));
	assert_string_equal(small, "a?[31m?");
}

static void holders_find_sees_a_process_without_files_as_partial(void **state)
{
	struct holders h;

	process(*state, 5, "x\n", EVENT);
	tree_write(*state, "6/fd", "no directory");
	assert_int_equal(holders_find(*state, 1, &h), 0);
	assert_int_equal(h.n, 1);
	assert_true(h.partial);
}

static void holders_find_without_proc_fails(void **state)
{
	struct holders h;

	(void)state;
	assert_int_equal(holders_find("/nowhere", 1, &h), -ENOENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(holders_find_gives_those_with_an_event_and_not_ourselves),
		TEST(holders_find_of_many_keeps_the_first_and_counts_all),
		TEST(holders_format_of_nobody_says_so),
		TEST(holders_format_makes_names_printable),
		TEST(holders_find_sees_a_process_without_files_as_partial),
		TEST(holders_find_without_proc_fails),
	};

	return cmocka_run_group_tests_name("holders", tests, NULL, NULL);
}
