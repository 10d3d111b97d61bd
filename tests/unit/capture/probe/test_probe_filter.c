/*
 * capture/probe/filter: formats of tracepoints and the filters over them.
 */
#include "capture/probe/filter.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As /sys/kernel/tracing/events/CATEGORY/NAME/format of Linux 6.18, with fields of all kinds. */
static const char format[] = "name: made\nID: 7\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\n"
			     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
			     "\tfield:unsigned char small;\toffset:28;\tsize:1;\tsigned:0;\n"
			     "\tfield:u64 big;\toffset:32;\tsize:8;\tsigned:0;\n"
			     "\tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n"
			     "\tfield:u32 list[4];\toffset:44;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t next_pid;\toffset:60;\tsize:4;\tsigned:1;\n"
			     "\tfield:struct odd thing;\toffset:64;\tsize:12;\tsigned:0;\n"
			     "\nprint fmt: \"pid=%d\", REC->pid\n";

static void filter_is_parsed_into_comparisons(void **state)
{
	struct shared_test t[SHARED_TESTS];
	char *error = NULL;

	(void)state;
	assert_int_equal(filter_parse(format, "  pid==-5&&small >= 0x10 && big & 8 ", t, &error),
			 3);
	assert_int_equal(t[0].offset, 24);
	assert_int_equal(t[0].size, 4);
	assert_true(t[0].is_signed);
	assert_int_equal(t[0].op, SHARED_EQ);
	assert_int_equal((int64_t)t[0].value, -5);
	assert_int_equal(t[1].offset, 28);
	assert_int_equal(t[1].op, SHARED_GE);
	assert_int_equal(t[1].value, 16);
	assert_false(t[1].is_signed);
	assert_int_equal(t[2].op, SHARED_AND);
	assert_int_equal(filter_parse(format, "next_pid<3", t, &error), 1);
	assert_int_equal(t[0].offset, 60);
	assert_int_equal(filter_parse(format, NULL, t, &error), 0);
	assert_int_equal(filter_parse(format, " ", t, &error), 0);
	assert_null(error);
}

static void filter_text_is_compared_with_its_end(void **state)
{
	struct shared_test t[SHARED_TESTS];
	char *error = NULL;

	(void)state;
	assert_int_equal(filter_parse(format, "comm==\"bash\" && name != \"a && b\"", t, &error),
			 2);
	assert_int_equal(t[0].is_text, SHARED_TEXT_HERE);
	assert_int_equal(t[0].size, 5);
	assert_string_equal(t[0].text, "bash");
	assert_int_equal(t[1].is_text, SHARED_TEXT_ELSEWHERE);
	assert_int_equal(t[1].offset, 40);
	assert_int_equal(t[1].size, 7);
	assert_int_equal(t[1].op, SHARED_NE);
	/* An array that is full has no end. */
	assert_int_equal(filter_parse(format, "comm==\"sixteen letters!\"", t, &error), 1);
	assert_int_equal(t[0].size, 16);
	assert_null(error);
}

static void filter_numbers_have_the_range_of_their_field(void **state)
{
	static const char *const good[] = {"small==255", "small==0", "pid==-2147483648",
					   "pid==2147483647", "big==18446744073709551615"};
	static const char *const bad[] = {"small==256", "small==-1", "pid==2147483648",
					  "pid==-2147483649", "big==18446744073709551616"};
	struct shared_test t[SHARED_TESTS];
	char *error = NULL;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(filter_parse(format, good[i], t, &error), 1);
		assert_int_equal(filter_parse(format, bad[i], t, &error), -EINVAL);
		assert_non_null(strstr(error, "cannot have the value"));
		free(error);
	}
}

static void filter_that_is_wrong_is_refused(void **state)
{
	static const struct {
		const char *filter, *text;
	} cases[] = {
		{"id==1", "no field id"},
		{"omm==1", "no field omm"},
		{"next==1", "no field next"},
		{"common_pid==1", "cannot be compared"},
		{"==1", "name is expected"},
		{"pid", "does not begin with a comparison"},
		{"pid=1", "does not begin with a comparison"},
		{"pid==", "does not begin with a comparison"},
		{"pid==x", "does not begin with a comparison"},
		{"pid&&1", "does not begin with a comparison"},
		{"pid==\"a\"", "does not begin with a comparison"},
		{"comm==1", "does not begin with a comparison"},
		{"comm<\"a\"", "does not begin with a comparison"},
		{"comm==\"a", "does not begin with a comparison"},
		{"comm==\"seventeen letters\"", "does not begin with a comparison"},
		{"name==\"a text of more than thirty-one bytes\"",
		 "does not begin with a comparison"},
		{"list==1", "does not begin with a comparison"},
		{"thing==1", "does not begin with a comparison"},
		{"pid==1 pid==2", "\"&&\" is expected"},
		{"pid==1 &&", "name is expected"},
		{"pid==1 || pid==2", "\"&&\" is expected"},
		{"pid>1&&pid>1&&pid>1&&pid>1&&pid>1&&pid>1&&pid>1&&pid>1&&pid>1", "at most 8"},
	};
	struct shared_test t[SHARED_TESTS];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *error = NULL;

		if (filter_parse(format, cases[i].filter, t, &error) != -EINVAL ||
		    !strstr(error, cases[i].text))
			fail_msg("%s: %s", cases[i].filter, error ? error : "accepted");
		free(error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_is_parsed_into_comparisons),
		cmocka_unit_test(filter_text_is_compared_with_its_end),
		cmocka_unit_test(filter_numbers_have_the_range_of_their_field),
		cmocka_unit_test(filter_that_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
