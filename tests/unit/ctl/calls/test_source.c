/*
 * ctl/calls/source: the options about a decode, and ctl/base/option: numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/base/say.h"
#include "ctl/calls/calls.h"
#include "proto/base.h"

static int take(struct calls_source *s, const char *name, const char *value)
{
	struct option table[SOURCE_OPTIONS];

	source_option_table(table, 300);
	for (size_t i = 0; i < SOURCE_OPTIONS; i++) {
		assert_int_equal(table[i].val, 300 + (int)i);
		if (strcmp(table[i].name, name) == 0) {
			assert_int_equal(table[i].has_arg == required_argument, value != NULL);
			return source_option_take(s, i, value);
		}
	}
	fail_msg("no option %s", name);
	return -1;
}

static void source_option_take_each_option_sets_its_member(void **state)
{
	struct calls_source s = {0};

	(void)state;
	assert_int_equal(take(&s, "worker", "/w"), 0);
	assert_int_equal(take(&s, "sysroot", "/s"), 0);
	assert_int_equal(take(&s, "symbols", "/a"), 0);
	assert_int_equal(take(&s, "symbols", "/b"), 0);
	assert_int_equal(take(&s, "debuginfod", NULL), 0);
	assert_int_equal(take(&s, "no-names", NULL), 0);
	assert_string_equal(s.worker, "/w");
	assert_string_equal(s.sysroot, "/s");
	assert_int_equal(s.n_symbols, 2);
	assert_string_equal(s.symbols[1], "/b");
	assert_true(s.debuginfod);
	assert_true(s.no_names);
}

static void source_option_take_too_many_directories_is_refused(void **state)
{
	struct calls_source s = {0};

	(void)state;
	for (size_t i = 0; i < DECODE_MAX_SYMBOLS; i++)
		assert_int_equal(take(&s, "symbols", "/d"), 0);
	assert_int_equal(take(&s, "symbols", "/d"), EXIT_CODE_USAGE);
	assert_int_equal(s.n_symbols, DECODE_MAX_SYMBOLS);
}

static void option_count_numbers_within_the_limit_are_taken(void **state)
{
	uint64_t n = 5;

	(void)state;
	assert_int_equal(option_count("--last", "0x10", 16, &n), 0);
	assert_int_equal(n, 16);
	assert_int_equal(option_count("--last", "17", 16, &n), EXIT_CODE_USAGE);
	assert_int_equal(option_count("--last", "0", UINT64_MAX, &n), EXIT_CODE_USAGE);
	assert_int_equal(option_count("--last", "-1", UINT64_MAX, &n), EXIT_CODE_USAGE);
	assert_int_equal(option_count("--last", "", UINT64_MAX, &n), EXIT_CODE_USAGE);
	assert_int_equal(n, 16);
	assert_int_equal(option_count("--limit", "18446744073709551615", UINT64_MAX, &n), 0);
	assert_int_equal(n, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_option_take_each_option_sets_its_member),
		cmocka_unit_test(source_option_take_too_many_directories_is_refused),
		cmocka_unit_test(option_count_numbers_within_the_limit_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
