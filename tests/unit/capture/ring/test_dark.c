/*
 * capture/ring/dark: the list of times in which a CPU was not traced, and its limit.
 */
#include "capture/ring/dark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "proto/bundle/manifest.h"

static void dark_begin_same_kind_goes_on_and_another_kind_ends(void **state)
{
	struct dark d = {0};

	(void)state;
	assert_null(dark_open(&d));
	dark_end(&d, 5);
	assert_int_equal(d.n, 0);
	dark_begin(&d, "a", "first", 10);
	dark_begin(&d, "a", "second", 20);
	assert_int_equal(dark_open(&d)->since_ns, 10);
	assert_string_equal(dark_open(&d)->why, "first");
	assert_int_equal(dark_open(&d)->until_ns, MANIFEST_ABSENT);
	dark_begin(&d, "b", NULL, 30);
	dark_end(&d, 35);
	assert_int_equal(d.n, 2);
	assert_int_equal(dark_at(&d, 0)->until_ns, 30);
	assert_false(dark_at(&d, 0)->open);
	assert_string_equal(dark_at(&d, 1)->why, "");
	assert_int_equal(d.count, 2);
	assert_int_equal(d.total_ns, 25);
}

static void dark_begin_at_the_same_time_replaces_the_reason(void **state)
{
	struct dark d = {0};

	(void)state;
	dark_begin(&d, "a", NULL, 10);
	dark_begin(&d, "b", NULL, 10);
	assert_int_equal(d.n, 1);
	assert_string_equal(dark_open(&d)->kind, "b");
	assert_int_equal(d.count, 0);
}

static void dark_end_unknown_or_earlier_time_is_no_length(void **state)
{
	struct dark d = {0};

	(void)state;
	dark_add(&d, "a", NULL, 10, 8);
	assert_int_equal(dark_at(&d, 0)->until_ns, 10);
	dark_add(&d, "a", NULL, 10, MANIFEST_ABSENT);
	dark_add(&d, "a", NULL, MANIFEST_ABSENT, 8);
	assert_int_equal(d.total_ns, 0);
	assert_int_equal(d.count, 3);
	assert_int_equal(d.n, 3);
}

static void dark_add_beyond_the_limit_forgets_the_oldest_and_counts(void **state)
{
	struct dark d = {0};

	(void)state;
	for (uint64_t i = 0; i < DARK_SPANS + 3; i++)
		dark_add(&d, "a", NULL, 10 * i, 10 * i + 4);
	assert_int_equal(d.n, DARK_SPANS);
	assert_int_equal(d.forgotten, 3);
	assert_int_equal(d.forgotten_until_ns, 24);
	assert_int_equal(dark_at(&d, 0)->since_ns, 30);
	assert_int_equal(dark_at(&d, d.n - 1)->since_ns, 10 * (DARK_SPANS + 2));
	assert_int_equal(d.count, DARK_SPANS + 3);
	assert_int_equal(d.total_ns, 4 * (DARK_SPANS + 3));
}

static void dark_begin_long_reason_is_cut(void **state)
{
	char why[2 * DARK_WHY_SIZE];
	struct dark d = {0};

	(void)state;
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	dark_begin(&d, "a", why, 1);
	assert_int_equal(strlen(dark_open(&d)->why), DARK_WHY_SIZE - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(dark_begin_same_kind_goes_on_and_another_kind_ends),
		cmocka_unit_test(dark_begin_at_the_same_time_replaces_the_reason),
		cmocka_unit_test(dark_end_unknown_or_earlier_time_is_no_length),
		cmocka_unit_test(dark_add_beyond_the_limit_forgets_the_oldest_and_counts),
		cmocka_unit_test(dark_begin_long_reason_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
