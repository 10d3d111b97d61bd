/*
 * Lists of CPUs; and struct owner, the thread of the intel_pt source, which has no test of its own.
 */
#include "capture/proc/number.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/perf/source_perf_private.h"
#include "proto/base.h"
#include "tests/unit/capture/tree.h"

static void cpulist_parse_ranges_and_single_cpus(void **state)
{
	struct cpulist l;

	(void)state;
	assert_int_equal(cpulist_parse("0-3,8,63-65,4095\n", &l), 0);
	assert_int_equal(cpulist_count(&l), 9);
	for (uint32_t cpu = 0; cpu < 4; cpu++)
		assert_true(cpulist_has(&l, cpu));
	assert_false(cpulist_has(&l, 4));
	assert_true(cpulist_has(&l, 8));
	assert_true(cpulist_has(&l, 64));
	assert_true(cpulist_has(&l, 4095));
	assert_false(cpulist_has(&l, 4096));
	assert_false(cpulist_has(&l, UINT32_MAX));
}

static void cpulist_parse_nothing_is_the_empty_list(void **state)
{
	struct cpulist l;

	(void)state;
	assert_int_equal(cpulist_parse("", &l), 0);
	assert_int_equal(cpulist_count(&l), 0);
	assert_int_equal(cpulist_parse("\n", &l), 0);
	assert_int_equal(cpulist_count(&l), 0);
}

static void cpulist_format_writes_ranges_and_says_what_does_not_fit(void **state)
{
	static const char *const lists[] = {"", "7", "0-3,8,63-65,4095", "0-4095", "0,2,4,6,8,10"};
	struct cpulist l;
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		assert_int_equal(cpulist_parse(lists[i], &l), 0);
		cpulist_format(&l, text, sizeof(text));
		assert_string_equal(text, lists[i]);
	}
	cpulist_format(&l, text, 12);
	assert_string_equal(text, "0,2,4,6...");
}

static void cpulist_parse_what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = {
		"a",	"-1",	"1-",  "1,",	",1",  "2-1", "1 2",
		"1--2", "4096", "0x1", "1-2-3", "1;2", " 1",  "99999999999999999999"};
	struct cpulist l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (cpulist_parse(wrong[i], &l) != -EINVAL)
			fail_msg("%s", wrong[i]);
}

static void cpulist_read_file_or_why_not(void **state)
{
	char *root = tree_new(), path[4096];
	struct cpulist l;

	(void)state;
	snprintf(path, sizeof(path), "%s/online", root);
	assert_int_equal(cpulist_read(path, &l), -ESRCH);
	tree_write(root, "online", "0,2\n");
	assert_int_equal(cpulist_read(path, &l), 0);
	assert_int_equal(cpulist_count(&l), 2);
	tree_write(root, "online", "all\n");
	assert_int_equal(cpulist_read(path, &l), -EBADMSG);
	tree_free(root);
}

struct counted {
	struct owner *owner;
	pid_t thread;
	unsigned n; /* no lock: only the owner's thread writes */
};

static void count(void *arg)
{
	struct counted *c = arg;

	if (c->thread != 0)
		assert_int_equal(c->thread, gettid());
	c->thread = gettid();
	c->n++;
}

static void *ask(void *arg)
{
	struct counted *c = arg;

	for (int i = 0; i < 500; i++)
		owner_run(c->owner, count, c);
	return NULL;
}

static void owner_run_many_callers_one_thread_does_each_once(void **state)
{
	struct counted c = {0};
	pthread_t threads[4];

	(void)state;
	assert_int_equal(owner_new(&c.owner), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &c), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(c.n, 2000);
	assert_int_not_equal(c.thread, gettid());
	owner_free(c.owner);
	owner_free(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpulist_parse_ranges_and_single_cpus),
		cmocka_unit_test(cpulist_parse_nothing_is_the_empty_list),
		cmocka_unit_test(cpulist_format_writes_ranges_and_says_what_does_not_fit),
		cmocka_unit_test(cpulist_parse_what_is_no_list_is_refused),
		cmocka_unit_test(cpulist_read_file_or_why_not),
		cmocka_unit_test(owner_run_many_callers_one_thread_does_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
