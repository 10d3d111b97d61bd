#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/callstream.h"

static char line[CALLSTREAM_MAX_LINE];

static struct callstream_item parse(const char *text)
{
	struct callstream_item item;

	assert_true(strlen(text) < sizeof(line));
	strcpy(line, text);
	assert_int_equal(callstream_parse(line, &item), 0);
	return item;
}

static void refuse(const char *text)
{
	struct callstream_item item;

	strcpy(line, text);
	assert_int_equal(callstream_parse(line, &item), -EBADMSG);
}

static void callstream_compose_each_kind_gives_its_line(void **state)
{
	static const struct {
		struct callstream_item item;
		const char *line;
	} cases[] = {
		{{.kind = CALLSTREAM_HEAD, .version = 1, .time = 7, .width = 9, .value = 11},
		 "H\t1\t7\t9\t11\n"},
		{{.kind = CALLSTREAM_THREAD, .thread = 1, .pid = 2, .tid = 3, .name = "a\tb\\\n"},
		 "T\t1\t2\t3\ta\\x09b\\x5c\\x0a\n"},
		{{.kind = CALLSTREAM_FUNCTION,
		  .function = 4,
		  .address = 0x34f0,
		  .name = "main",
		  .image = "/bin/\xc3\xa9",
		  .file = "",
		  .line = 12},
		 "F\t4\t0x34f0\tmain\t/bin/\\xc3\\xa9\t\t12\n"},
		{{.kind = CALLSTREAM_BEGIN,
		  .thread = 1,
		  .time = 5,
		  .width = 2,
		  .cpu = 3,
		  .function = 4,
		  .begin = CALLSTREAM_SIGNAL},
		 "B\t1\t5\t2\t3\t4\tsignal\n"},
		{{.kind = CALLSTREAM_FINISH,
		  .thread = 1,
		  .time = UINT64_MAX,
		  .end = CALLSTREAM_UNWOUND,
		  .insns = 99},
		 "E\t1\t18446744073709551615\t0\t0\tunwound\t99\n"},
		{{.kind = CALLSTREAM_ON, .thread = 1, .time = 5, .cpu = 2}, "R\t1\t5\t2\n"},
		{{.kind = CALLSTREAM_OFF,
		  .thread = 1,
		  .time = 5,
		  .cpu = 2,
		  .why = CALLSTREAM_BLOCKED},
		 "S\t1\t5\t2\tblocked\n"},
		{{.kind = CALLSTREAM_GAP, .time = 5, .width = 6, .cpu = 2, .name = "overflow"},
		 "G\t0\t5\t6\t2\toverflow\n"},
		{{.kind = CALLSTREAM_MARK,
		  .thread = 1,
		  .time = 5,
		  .cpu = 2,
		  .value = 8,
		  .name = "ptwrite"},
		 "M\t1\t5\t2\t8\tptwrite\n"},
		{{.kind = CALLSTREAM_END, .value = 10, .cut = 1}, "Z\t10\t1\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = callstream_compose(&cases[i].item, line);

		assert_string_equal(line, cases[i].line);
		assert_int_equal(n, strlen(cases[i].line));
	}
}

static void callstream_parse_composed_line_gives_the_item(void **state)
{
	struct callstream_item item = {.kind = CALLSTREAM_FUNCTION,
				       .function = UINT32_MAX,
				       .address = UINT64_MAX,
				       .name = "operator<<\x1b[2J",
				       .image = "[kernel]",
				       .file = "a\\b.c",
				       .line = 1};
	struct callstream_item back;

	(void)state;
	line[callstream_compose(&item, line) - 1] = '\0';
	assert_int_equal(callstream_parse(line, &back), 0);
	assert_int_equal(back.function, UINT32_MAX);
	assert_int_equal(back.address, UINT64_MAX);
	assert_string_equal(back.name, item.name);
	assert_string_equal(back.image, item.image);
	assert_string_equal(back.file, item.file);
	assert_int_equal(back.line, 1);
	for (int i = 0; i < CALLSTREAM_BEGINS_N; i++) {
		item = (struct callstream_item){.kind = CALLSTREAM_BEGIN,
						.begin = (enum callstream_begin)i};
		line[callstream_compose(&item, line) - 1] = '\0';
		assert_int_equal(callstream_parse(line, &back), 0);
		assert_int_equal(back.begin, i);
	}
}

static void callstream_compose_long_text_is_cut(void **state)
{
	static char name[2 * CALLSTREAM_MAX_TEXT];
	struct callstream_item item = {
		.kind = CALLSTREAM_FUNCTION, .name = name, .image = name, .file = name};

	(void)state;
	memset(name, 1, sizeof(name) - 1);
	assert_true(callstream_compose(&item, line) < CALLSTREAM_MAX_LINE);
	line[strlen(line) - 1] = '\0';
	assert_int_equal(callstream_parse(line, &item), 0);
	assert_int_equal(strlen(item.name), CALLSTREAM_MAX_TEXT);
}

static void callstream_parse_foreign_line_is_refused(void **state)
{
	(void)state;
	refuse("");
	refuse("Q\t1");
	refuse("HH\t1\t7\t9\t11");
	refuse("H\t2\t7\t9\t11"); /* another version */
	refuse("Z\t1");		  /* too few fields */
	refuse("Z\t1\t0\t0");
	refuse("Z\t1\t");
	refuse("Z\t-1\t0");
	refuse("Z\t18446744073709551616\t0");
	refuse("R\t4294967296\t5\t2");
	refuse("S\t1\t5\t2\tbored");
	refuse("T\t1\t2\t3\ta\\b");
	refuse("T\t1\t2\t3\ta\\x00b");
	refuse("T\t1\t2\t3\t\xff");
	refuse("F\t4\t34f0\tmain\t\t\t0");
	refuse("F\t4\t0x\tmain\t\t\t0");
	refuse("F\t4\t0x11112222333344445\tmain\t\t\t0");
}

static void callstream_parse_item_without_texts_has_empty_ones(void **state)
{
	struct callstream_item item = parse("Z\t10\t1");

	(void)state;
	assert_string_equal(item.name, "");
	assert_string_equal(item.image, "");
	assert_string_equal(item.file, "");
	assert_int_equal(item.value, 10);
	assert_int_equal(item.cut, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callstream_compose_each_kind_gives_its_line),
		cmocka_unit_test(callstream_parse_composed_line_gives_the_item),
		cmocka_unit_test(callstream_compose_long_text_is_cut),
		cmocka_unit_test(callstream_parse_foreign_line_is_refused),
		cmocka_unit_test(callstream_parse_item_without_texts_has_empty_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
