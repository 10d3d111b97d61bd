/*
 * ctl/calls/slice: small streams and their slices, line by line.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/slice.h"
#include "proto/base.h"

static const char *const STREAM[] = {
	"H\t1\t1000\t9000\t10000",
	"T\t1\t7\t8\tone",
	"T\t2\t9\t9\ttwo",
	"F\t1\t0x10\tf\t/bin/x\t\t0",
	"F\t2\t0x20\tg\t/bin/y\t\t0",
	"R\t1\t1000\t0",
	"B\t1\t2000\t1\t0\t1\tcall",
	"B\t1\t3000\t1\t0\t2\tcall",
	"B\t2\t3500\t0\t1\t2\tcall",
	"B\t1\t4000\t1\t0\t1\tcall",
	"E\t1\t5000\t1\t0\treturn\t11",
	"S\t1\t5500\t0\tblocked",
	"R\t1\t6000\t1",
	"M\t0\t6500\t1\t9\tfrequency",
	"G\t2\t5000\t3000\t1\toverflow",
	"E\t1\t7000\t1\t1\treturn\t12",
	"E\t1\t8000\t1\t1\treturn\t13",
	"E\t2\t9000\t0\t1\topen\t14",
	"Z\t4\t0",
};

static char output[16384];

static int append(void *userdata, const struct callstream_item *item)
{
	static char line[CALLSTREAM_MAX_LINE];

	(void)userdata;
	callstream_compose(item, line);
	assert_true(strlen(output) + strlen(line) < sizeof(output));
	strcat(output, line);
	return 0;
}

/* The slice of STREAM without its definitions; OPTIONS are pairs that end with NULL. */
static const char *slice_of(const char *const *options, int expected)
{
	CLEANUP(slicer_freep) struct slicer *s = NULL;
	struct option table[SLICE_OPTIONS];
	struct slice slice = {0};
	static char line[CALLSTREAM_MAX_LINE];
	struct callstream_item item;
	int r = 0;

	slice_option_table(table, 0);
	for (; *options; options += 2)
		for (size_t i = 0; i < SLICE_OPTIONS; i++)
			if (strcmp(table[i].name, options[0]) == 0)
				assert_int_equal(slice_option_take(&slice, i, options[1]), 0);
	assert_true(slice_is_given(&slice));
	output[0] = '\0';
	assert_int_equal(slicer_new(&slice, append, NULL, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(STREAM) && r == 0; i++) {
		strcpy(line, STREAM[i]);
		assert_int_equal(callstream_parse(line, &item), 0);
		r = slicer_take(s, &item);
	}
	assert_int_equal(r, expected);
	return output;
}

#define SLICE(...) slice_of((const char *const[]){__VA_ARGS__, NULL}, 0)

#define T1 "T\t1\t7\t8\tone\n"
#define T2 "T\t2\t9\t9\ttwo\n"
#define F  "F\t1\t0x10\tf\t/bin/x\t\t0\nF\t2\t0x20\tg\t/bin/y\t\t0\n"

static void slicer_take_span_finds_what_is_open_and_leaves_it_open(void **state)
{
	(void)state;
	assert_string_equal(SLICE("from", "-6us", "to", "4500us", "tid", "8"),
			    "H\t1\t4000\t6000\t10000\n" T1 F "R\t1\t4000\t0\n"
			    "B\t1\t4000\t0\t0\t1\tfound\n"
			    "B\t1\t4000\t0\t0\t2\tfound\n"
			    "B\t1\t4000\t1\t0\t1\tcall\n"
			    "E\t1\t5000\t1\t0\treturn\t11\n"
			    "S\t1\t5500\t0\tblocked\n"
			    "R\t1\t6000\t1\n"
			    "M\t0\t6500\t1\t9\tfrequency\n"
			    "E\t1\t7000\t1\t1\treturn\t12\n"
			    "E\t1\t8000\t1\t1\treturn\t13\n"
			    "S\t1\t10000\t1\tunknown\n"
			    "Z\t3\t0\n");
	assert_string_equal(SLICE("to", "5us", "from", "3us"),
			    "H\t1\t4000\t2000\t10000\n" T1 T2 F "R\t1\t4000\t0\n"
			    "B\t1\t4000\t0\t0\t1\tfound\n"
			    "B\t1\t4000\t0\t0\t2\tfound\n"
			    "B\t1\t4000\t1\t0\t1\tcall\n"
			    "E\t1\t5000\t1\t0\treturn\t11\n"
			    "S\t1\t5500\t0\tblocked\n"
			    "R\t1\t6000\t1\n"
			    "B\t2\t4000\t0\t1\t2\tfound\n"
			    "G\t2\t5000\t1000\t1\toverflow\n"
			    "E\t1\t6000\t0\t1\topen\t0\n"
			    "E\t1\t6000\t0\t1\topen\t0\n"
			    "S\t1\t6000\t1\tunknown\n"
			    "E\t2\t6000\t0\t1\topen\t0\n"
			    "Z\t4\t0\n");
}

static void slicer_take_function_comes_with_what_it_calls(void **state)
{
	(void)state;
	assert_string_equal(SLICE("function", "g", "comm", "o?e"),
			    "H\t1\t1000\t9000\t10000\n" T1 F "R\t1\t1000\t0\n"
			    "B\t1\t3000\t1\t0\t2\tcall\n"
			    "B\t1\t4000\t1\t0\t1\tcall\n"
			    "E\t1\t5000\t1\t0\treturn\t11\n"
			    "S\t1\t5500\t0\tblocked\n"
			    "R\t1\t6000\t1\n"
			    "M\t0\t6500\t1\t9\tfrequency\n"
			    "E\t1\t7000\t1\t1\treturn\t12\n"
			    "S\t1\t10000\t1\tunknown\n"
			    "Z\t2\t0\n");
	assert_non_null(strstr(SLICE("image", "/bin/y", "pid", "9"), "B\t2\t3500"));
	assert_null(strstr(output, "B\t1\t"));
}

static void slicer_take_cpu_follows_the_thread_there(void **state)
{
	(void)state;
	assert_string_equal(SLICE("cpu", "1", "tid", "8"),
			    "H\t1\t1000\t9000\t10000\n" T1 F "B\t1\t6000\t0\t1\t1\tfound\n"
			    "B\t1\t6000\t0\t1\t2\tfound\n"
			    "R\t1\t6000\t1\n"
			    "M\t0\t6500\t1\t9\tfrequency\n"
			    "E\t1\t7000\t1\t1\treturn\t12\n"
			    "E\t1\t8000\t1\t1\treturn\t13\n"
			    "S\t1\t10000\t1\tunknown\n"
			    "Z\t2\t0\n");
}

static void slicer_take_empty_span_is_invalid(void **state)
{
	static const char *const options[] = {"from", "5us", "to", "5us", NULL};

	(void)state;
	slice_of(options, -EINVAL);
}

static void slice_option_take_nonsense_is_usage(void **state)
{
	struct slice slice = {0};

	(void)state;
	assert_int_equal(slice_option_take(&slice, 0, "-"), 2);
	assert_int_equal(slice_option_take(&slice, 1, "--5ms"), 2);
	assert_int_equal(slice_option_take(&slice, 2, "1x"), 2);
	assert_int_equal(slice_option_take(&slice, 3, "4294967296"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slicer_take_span_finds_what_is_open_and_leaves_it_open),
		cmocka_unit_test(slicer_take_function_comes_with_what_it_calls),
		cmocka_unit_test(slicer_take_cpu_follows_the_thread_there),
		cmocka_unit_test(slicer_take_empty_span_is_invalid),
		cmocka_unit_test(slice_option_take_nonsense_is_usage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
