/*
 * ctl/base/size: numbers, sizes and times of the command line.
 */
#include "ctl/base/size.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/base.h"

struct number_case {
	const char *text;
	int result;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct number_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = 77; /* must stay on failure */
		int r = parse(cases[i].text, &value);

		if (r != cases[i].result || value != (r ? 77 : cases[i].value))
			fail_msg("\"%s\": %d, %ju", cases[i].text, r, (uintmax_t)value);
	}
}

static void parse_number_cases(void **state)
{
	static const struct number_case cases[] = {
		{"0", 0, 0},
		{"10", 0, 10},
		{"010", 0, 10},
		{"0x10", 0, 16},
		{"0XfF", 0, 255},
		{"18446744073709551615", 0, UINT64_MAX},
		{"0xffffffffffffffff", 0, UINT64_MAX},
		{"18446744073709551616", -ERANGE, 0},
		{"0x10000000000000000", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"0x", -EINVAL, 0},
		{"-1", -EINVAL, 0},
		{"+1", -EINVAL, 0},
		{" 1", -EINVAL, 0},
		{"1 ", -EINVAL, 0},
		{"1a", -EINVAL, 0},
		{"0xg", -EINVAL, 0},
		{"x", -EINVAL, 0},
	};

	(void)state;
	check(size_parse_number, cases, ARRAY_SIZE(cases));
}

static void parse_bytes_cases(void **state)
{
	static const struct number_case cases[] = {
		{"4096", 0, 4096},
		{"0x1000", 0, 4096},
		{"1B", 0, 1},
		{"512K", 0, 512 << 10},
		{"512k", 0, 512 << 10},
		{"512KiB", 0, 512 << 10},
		{"8M", 0, 8 << 20},
		{"2G", 0, 2ull << 30},
		{"1T", 0, 1ull << 40},
		{"16777215T", 0, 16777215ull << 40},
		{"16777216T", -ERANGE, 0},
		{"8m", -EINVAL, 0},
		{"8X", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"8 M", -EINVAL, 0},
		{"8MM", -EINVAL, 0},
		{"1.5M", -EINVAL, 0},
		{"-8M", -EINVAL, 0},
		{"", -EINVAL, 0},
	};

	(void)state;
	check(size_parse_bytes, cases, ARRAY_SIZE(cases));
}

static void parse_time_cases(void **state)
{
	static const struct number_case cases[] = {
		{"2", 0, 2000000},	     {"500us", 0, 500},	    {"50ms", 0, 50000},
		{"2s", 0, 2000000},	     {"1.5s", 0, 1500000},  {"0.25", 0, 250000},
		{"0.0000019s", 0, 1},	     {"1.9us", 0, 1},	    {"1min", 0, 60000000},
		{"2h", 0, 7200000000},	     {"0", 0, 0},	    {"5m", 0, 300000000},
		{"5M", -EINVAL, 0},	     {"5 s", -EINVAL, 0},   {"1.s", -EINVAL, 0},
		{".5s", -EINVAL, 0},	     {"s", -EINVAL, 0},	    {"", -EINVAL, 0},
		{"-1s", -EINVAL, 0},	     {"0x10s", -EINVAL, 0}, {"18446744073710s", -ERANGE, 0},
		{"5124095577h", -ERANGE, 0},
	};

	(void)state;
	check(size_parse_time, cases, ARRAY_SIZE(cases));
}

static void parse_last_tells_size_from_time(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t bytes, usec; /* 7: left alone */
	} cases[] = {
		{"8M", 0, 8 << 20, 7},	      {"4096", 0, 4096, 7},   {"0x1000", 0, 4096, 7},
		{"50ms", 0, 7, 50000},	      {"2s", 0, 7, 2000000},  {"1min", 0, 7, 60000000},
		{"0", -EINVAL, 7, 7},	      {"0ms", -EINVAL, 7, 7}, {"5m", -EINVAL, 7, 7},
		{"1.5m", -EINVAL, 7, 7},      {"all", -EINVAL, 7, 7}, {"", -EINVAL, 7, 7},
		{"99999999T", -ERANGE, 7, 7},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 7, usec = 7;

		assert_int_equal(size_parse_last(cases[i].text, &bytes, &usec), cases[i].result);
		assert_int_equal(bytes, cases[i].bytes);
		assert_int_equal(usec, cases[i].usec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_number_cases),
		cmocka_unit_test(parse_bytes_cases),
		cmocka_unit_test(parse_time_cases),
		cmocka_unit_test(parse_last_tells_size_from_time),
	};

	return cmocka_run_group_tests_name("size", tests, NULL, NULL);
}
