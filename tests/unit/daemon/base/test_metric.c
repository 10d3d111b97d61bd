/*
 * Series of Prometheus text files: selectors, lines of the format, and hostile lines.
 */
#include "daemon/base/metric.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

/* The result of metric_find() for SERIES in TEXT. */
static int find(const char *text, const char *series, double above, double *ret)
{
	struct metric_series s;

	assert_int_equal(metric_parse(series, &s), 0);
	return metric_find(text, strlen(text), &s, above, -INFINITY, ret);
}

static void metric_parse_takes_labels_with_escapes(void **state)
{
	struct metric_series s;

	(void)state;
	assert_int_equal(metric_parse("a:b{c=\"x\\\"\\\\\\n\", d=\"\"}", &s), 0);
	assert_string_equal(s.name, "a:b");
	assert_int_equal(s.n_labels, 2);
	assert_string_equal(s.labels[0].value, "x\"\\\n");
	assert_string_equal(s.labels[1].name, "d");
}

static void metric_parse_refuses_other_forms(void **state)
{
	static const char *const bad[] = {
		"",	"1a",	    "a b",	 "a{",	      "a{b}",	   "a{b=c}",
		"a{}x", "a{b=\"c}", "a{b=\"c\"", "{a=\"b\"}", "a{=\"b\"}", "a{b=\"c\"d=\"e\"}"};
	struct metric_series s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(metric_parse(bad[i], &s), -EINVAL);
}

static void metric_find_above_the_limit_is_reached(void **state)
{
	double value = 0;

	(void)state;
	assert_int_equal(find("# HELP load x\nload 5\n", "load", 5, &value), 0);
	assert_int_equal(find("load 5.5 1395066363000\n", "load", 5, &value), METRIC_REACHED);
	assert_true(value == 5.5);
	assert_int_equal(find("load +Inf\n", "load", 5, &value), METRIC_REACHED);
}

static void metric_find_nan_reaches_nothing(void **state)
{
	double value = 0;

	(void)state;
	assert_int_equal(find("load NaN\n", "load", 5, &value), 0);
}

static void metric_find_takes_lines_with_all_labels(void **state)
{
	static const char text[] = "e{code=\"200\"} 9\ne{host=\"a\",code=\"500\"} 7\n";
	double value = 0;

	(void)state;
	assert_int_equal(find(text, "e{code=\"500\"}", 0, &value), METRIC_REACHED);
	assert_true(value == 7);
	assert_int_equal(find(text, "e", 8, &value), METRIC_REACHED);
	assert_true(value == 9);
	assert_int_equal(find(text, "e{code=\"404\"}", 0, &value), -ENOENT);
}

static void metric_find_names_that_only_begin_alike_are_others(void **state)
{
	double value = 0;

	(void)state;
	assert_int_equal(find("load1 9\nloa 9\n", "load", 0, &value), -ENOENT);
}

static void metric_find_last_line_without_its_end_is_not_read(void **state)
{
	double value = 0;

	(void)state;
	/* The writer may have written 1 of 12 so far. */
	assert_int_equal(find("load 1", "load", 0, &value), -ENOENT);
}

static void metric_find_skips_broken_lines(void **state)
{
	static const char text[] =
		"load\nload x\nload 9x\nload{ 7\nload{a=\"} 7\nload{a} 7\n\n"
		"load 000000000000000000000000000000000000000000000000000000000000"
		"0000000000000000000000000009\nload 3\n";
	double value = 0;

	(void)state;
	assert_int_equal(find(text, "load", 2, &value), METRIC_REACHED);
	assert_true(value == 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(metric_parse_takes_labels_with_escapes),
		cmocka_unit_test(metric_parse_refuses_other_forms),
		cmocka_unit_test(metric_find_above_the_limit_is_reached),
		cmocka_unit_test(metric_find_nan_reaches_nothing),
		cmocka_unit_test(metric_find_takes_lines_with_all_labels),
		cmocka_unit_test(metric_find_names_that_only_begin_alike_are_others),
		cmocka_unit_test(metric_find_last_line_without_its_end_is_not_read),
		cmocka_unit_test(metric_find_skips_broken_lines),
	};

	return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
