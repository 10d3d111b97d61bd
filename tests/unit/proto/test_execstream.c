/*
 * proto/execstream and proto/fields: round trips of lines, and lines that are none.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/execstream.h"

static char line[EXECSTREAM_MAX_LINE];

static void check_round_trip(const struct execstream_item *item, const char *want)
{
	struct execstream_item got;
	size_t n = execstream_compose(item, line);

	assert_int_equal(n, strlen(line));
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
	assert_string_equal(line, want);
	assert_int_equal(execstream_parse(line, &got), 0);
	/* Texts are other pointers. */
	assert_string_equal(got.name, item->name ? item->name : "");
	assert_string_equal(got.image, item->image ? item->image : "");
	assert_string_equal(got.bytes, item->bytes ? item->bytes : "");
	assert_string_equal(got.text, item->text ? item->text : "");
	assert_string_equal(got.file, item->file ? item->file : "");
	got.name = item->name;
	got.image = item->image;
	got.bytes = item->bytes;
	got.text = item->text;
	got.file = item->file;
	assert_memory_equal(&got, item, sizeof(got));
}

static void execstream_compose_each_kind_parses_to_the_same(void **state)
{
	const struct {
		struct execstream_item item;
		const char *want;
	} cases[] = {
		{{.kind = EXECSTREAM_HEAD, .version = 1, .time = 5, .width = 6, .trigger = 7},
		 "H\t1\t5\t6\t7"},
		{{.kind = EXECSTREAM_CONTEXT,
		  .cpu = EXECSTREAM_UNKNOWN,
		  .pid = 1,
		  .tid = 2,
		  .name = "a\tb\\\x1b\xff"},
		 "C\t4294967295\t1\t2\ta\\x09b\\x5c\\x1b\\xff"},
		{{.kind = EXECSTREAM_WHEN, .time = UINT64_MAX, .width = 0},
		 "W\t18446744073709551615\t0"},
		{{.kind = EXECSTREAM_FUNCTION, .function = 3, .name = "f", .image = ""},
		 "F\t3\tf\t"},
		{{.kind = EXECSTREAM_PLACE,
		  .place = 65536,
		  .address = UINT64_MAX,
		  .function = 3,
		  .offset = 0,
		  .bytes = "90",
		  .text = "nop",
		  .file = "a.c",
		  .line = 9},
		 "D\t65536\t0xffffffffffffffff\t3\t0x0\t90\tnop\ta.c\t9"},
		{{.kind = EXECSTREAM_BRANCH, .branch = EXECSTREAM_CALL_IND, .from = 1, .to = 0},
		 "B\tcall-ind\t1\t0"},
		{{.kind = EXECSTREAM_INSN, .place = 1}, "I\t1"},
		{{.kind = EXECSTREAM_GAP, .name = "overflow"}, "G\toverflow"},
		{{.kind = EXECSTREAM_RECORDING, .name = "x", .count = 2}, "R\tx\t2"},
		{{.kind = EXECSTREAM_END, .branches = 1, .insns = 2, .gaps = 3}, "Z\t1\t2\t3"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_round_trip(&cases[i].item, cases[i].want);
}

static void execstream_parse_what_is_no_line_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"X",
		"I",
		"I\t",
		"I\t-1",
		"I\t65537",
		"I\t1\t2",
		"II\t1",
		"I 1",
		"I\t4294967296",
		"H\t2\t5\t6\t7",
		"W\t18446744073709551616\t0",
		"B\tleap\t1\t2",
		"B\tcall\t1\t65537",
		"B\tcall\t65537\t1",
		"F\t262144\tf\t",
		"D\t1\t0x\t0\t0x0\t\t\t\t0",
		"D\t1\t12\t0\t0x0\t\t\t\t0",
		"D\t1\t0x0\t0\t0x0\t9\t\t\t0",
		"D\t1\t0x0\t0\t0x0\t9g\t\t\t0",
		"D\t1\t0x0\t0\t0x0\t00112233445566778899aabbccddeeff\t\t\t0",
		"D\t1\t0x0\t0\t0x0\t\t\t\t0\t1",
		"G\ta\\",
		"G\ta\\x0",
		"G\ta\\x00",
		"G\ta\x7f",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct execstream_item item;

		strcpy(line, bad[i]);
		if (execstream_parse(line, &item) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	}
}

static void execstream_compose_long_texts_fit_a_line(void **state)
{
	static char text[2 * FIELDS_MAX_TEXT];
	struct execstream_item item = {
		.kind = EXECSTREAM_PLACE, .place = 1, .bytes = "", .text = text, .file = text};

	(void)state;
	memset(text, 1, sizeof(text) - 1);
	assert_true(execstream_compose(&item, line) < EXECSTREAM_MAX_LINE);
	*strchr(line, '\n') = '\0';
	assert_int_equal(execstream_parse(line, &item), 0);
	assert_int_equal(strlen(item.text), FIELDS_MAX_TEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(execstream_compose_each_kind_parses_to_the_same),
		cmocka_unit_test(execstream_parse_what_is_no_line_is_refused),
		cmocka_unit_test(execstream_compose_long_texts_fit_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
