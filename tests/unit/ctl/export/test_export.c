/*
 * ctl/export: what the formats share, small streams with known outputs, and what is refused. The
 * readers of the formats are in tests/system/export_readers.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/export/export_private.h"
#include "proto/memfd.h"

static char output[65536];

static struct exporter *exporter_of(const char *format, enum export_weight weight, int fd)
{
	struct exporter *e = NULL;

	assert_int_equal(exporter_new(export_format_find(format), weight, fd, &e), 0);
	return e;
}

static int give(struct exporter *e, const char *line)
{
	static char copy[CALLSTREAM_MAX_LINE];
	struct callstream_item item;

	strcpy(copy, line);
	assert_int_equal(callstream_parse(copy, &item), 0);
	return exporter_take(e, &item);
}

static void give_all(struct exporter *e, const char *const *lines)
{
	for (; *lines; lines++)
		assert_int_equal(give(e, *lines), 0);
}

/* Two threads; f calls g, and is off the CPU for 5 of its 20 ns. */
static const char *const SMALL[] = {
	"H\t1\t100\t50\t140",
	"T\t1\t7\t8\ta;b",
	"F\t1\t0x10\tf,\"\t/bin/x\tx.c\t3",
	"F\t2\t0x20\t=g'\t\t\t0",
	"B\t1\t110\t0\t0\t1\tcall",
	"B\t1\t112\t0\t0\t2\tjump",
	"S\t1\t114\t0\tblocked",
	"R\t1\t119\t1",
	"E\t1\t120\t0\t1\treturn\t4",
	"E\t1\t130\t0\t1\topen\t6",
	"G\t0\t130\t5\t1\toverflow",
	"M\t1\t131\t1\t9\tptwrite",
	"Z\t2\t0",
	NULL,
};

/* The export of SMALL. */
static const char *export_small(const char *format, enum export_weight weight)
{
	CLEANUP_CLOSE int fd = -EBADF;
	CLEANUP(exporter_freep) struct exporter *e = NULL;
	struct exporter_told told;
	ssize_t n;

	assert_int_equal(memfd_new("test", 0, &fd), 0);
	e = exporter_of(format, weight, fd);
	give_all(e, SMALL);
	assert_int_equal(exporter_finish(e, &told), 0);
	assert_int_equal(told.calls, 2);
	assert_int_equal(told.folded, 0);
	n = pread(fd, output, sizeof(output) - 1, 0);
	assert_true(n >= 0);
	output[n] = '\0';
	return output;
}

static void exporter_collapsed_adds_up_what_each_weight_says(void **state)
{
	(void)state;
	assert_string_equal(export_small("collapsed", EXPORT_CPU),
			    "a\\x3bb;f,\" 12\na\\x3bb;f,\";=g' 3\n");
	assert_string_equal(export_small("collapsed", EXPORT_WALL),
			    "a\\x3bb;f,\" 12\na\\x3bb;f,\";=g' 8\n");
	assert_string_equal(export_small("collapsed", EXPORT_INSNS),
			    "a\\x3bb;f,\" 6\na\\x3bb;f,\";=g' 4\n");
}

static void exporter_csv_quotes_and_disarms_formulas(void **state)
{
	const char *text = export_small("csv", EXPORT_CPU);

	(void)state;
	assert_non_null(strstr(text,
			       "2,1,1,7,8,\"a;b\",\"\\x3dg'\",\"\",0x20,\"\",0,112,120,8,3,8,3,"
			       "4,4,0,1,\"jump\",\"return\"\r\n"));
	assert_non_null(strstr(text,
			       "1,0,0,7,8,\"a;b\",\"f,\"\"\",\"/bin/x\",0x10,\"x.c\",3,110,130,"
			       "20,15,12,12,10,6,0,1,\"call\",\"open\"\r\n"));
	assert_string_equal(export_small("csv-turns", EXPORT_CPU),
			    "pid,tid,thread,cpu,begin_ns,end_ns,why\r\n"
			    "7,8,\"a;b\",0,100,114,\"blocked\"\r\n"
			    "7,8,\"a;b\",1,119,150,\"unknown\"\r\n");
	assert_string_equal(export_small("csv-gaps", EXPORT_CPU),
			    "pid,tid,thread,cpu,begin_ns,end_ns,kind\r\n"
			    "0,0,\"\",1,130,135,\"overflow\"\r\n");
	assert_string_equal(export_small("csv-marks", EXPORT_CPU),
			    "pid,tid,thread,cpu,time_ns,kind,value\r\n"
			    "7,8,\"a;b\",1,131,\"ptwrite\",9\r\n");
}

static void exporter_sql_doubles_quotes_of_names(void **state)
{
	const char *text = export_small("sql", EXPORT_CPU);

	(void)state;
	assert_non_null(strstr(text, "(4,'=g''','','0x20','',0)"));
	assert_non_null(strstr(text, "INSERT INTO trace VALUES\n(100,150,140);\n"));
	assert_non_null(strstr(text, "COMMIT;\n"));
}

static void exporter_speedscope_shows_waiting_within_a_call(void **state)
{
	(void)state;
	assert_non_null(strstr(export_small("speedscope", EXPORT_CPU),
			       "\"events\":[{\"type\":\"O\",\"frame\":5,\"at\":10},"
			       "{\"type\":\"O\",\"frame\":6,\"at\":12},"
			       "{\"type\":\"O\",\"frame\":0,\"at\":14},"
			       "{\"type\":\"C\",\"frame\":0,\"at\":19},"
			       "{\"type\":\"C\",\"frame\":6,\"at\":20},"
			       "{\"type\":\"C\",\"frame\":5,\"at\":30}]"));
}

/* The events of the speedscope export of LINES. */
static const char *speedscope_events(const char *const *lines)
{
	CLEANUP_CLOSE int fd = -EBADF;
	CLEANUP(exporter_freep) struct exporter *e = NULL;
	struct exporter_told told;
	char *begin, *end;
	ssize_t n;

	assert_int_equal(memfd_new("test", 0, &fd), 0);
	e = exporter_of("speedscope", EXPORT_CPU, fd);
	give_all(e, lines);
	assert_int_equal(exporter_finish(e, &told), 0);
	n = pread(fd, output, sizeof(output) - 1, 0);
	assert_true(n >= 0);
	output[n] = '\0';
	begin = strstr(output, "\"events\":");
	assert_non_null(begin);
	end = strchr(begin, ']');
	assert_non_null(end);
	end[1] = '\0';
	return begin;
}

static void exporter_speedscope_shows_a_gap_within_a_call(void **state)
{
	static const char *const lines[] = {
		"H\t1\t100\t50\t140",
		"T\t1\t7\t8\tt",
		"F\t1\t0x10\tf\t\t\t0",
		"B\t1\t110\t0\t0\t1\tcall",
		"G\t1\t112\t3\t0\tlost",
		"E\t1\t130\t0\t0\treturn\t6",
		"Z\t1\t0",
		NULL,
	};

	(void)state;
	assert_string_equal(speedscope_events(lines),
			    "\"events\":[{\"type\":\"O\",\"frame\":5,\"at\":10},"
			    "{\"type\":\"O\",\"frame\":1,\"at\":12},"
			    "{\"type\":\"C\",\"frame\":1,\"at\":15},"
			    "{\"type\":\"C\",\"frame\":5,\"at\":30}]");
}

/* A gap from 112 to 132, in which the thread loses its CPU at 114 and a call ends at 120. */
static void exporter_speedscope_gap_goes_on_behind_what_happens_within(void **state)
{
	static const char *const lines[] = {
		"H\t1\t100\t50\t140",
		"T\t1\t7\t8\tt",
		"F\t1\t0x10\tf\t\t\t0",
		"B\t1\t110\t0\t0\t1\tcall",
		"G\t1\t112\t20\t0\tlost",
		"S\t1\t114\t0\tblocked",
		"R\t1\t119\t0",
		"E\t1\t120\t0\t0\treturn\t6",
		"B\t1\t140\t0\t0\t1\tcall",
		"E\t1\t141\t0\t0\topen\t1",
		"Z\t2\t0",
		NULL,
	};

	(void)state;
	assert_string_equal(speedscope_events(lines),
			    "\"events\":[{\"type\":\"O\",\"frame\":5,\"at\":10},"
			    "{\"type\":\"O\",\"frame\":1,\"at\":12},"
			    "{\"type\":\"C\",\"frame\":1,\"at\":14},"
			    "{\"type\":\"O\",\"frame\":0,\"at\":14},"
			    "{\"type\":\"O\",\"frame\":1,\"at\":14},"
			    "{\"type\":\"C\",\"frame\":1,\"at\":19},"
			    "{\"type\":\"C\",\"frame\":0,\"at\":19},"
			    "{\"type\":\"O\",\"frame\":1,\"at\":19},"
			    "{\"type\":\"C\",\"frame\":1,\"at\":20},"
			    "{\"type\":\"C\",\"frame\":5,\"at\":20},"
			    "{\"type\":\"O\",\"frame\":1,\"at\":20},"
			    "{\"type\":\"C\",\"frame\":1,\"at\":32},"
			    "{\"type\":\"O\",\"frame\":5,\"at\":40},"
			    "{\"type\":\"C\",\"frame\":5,\"at\":41}]");
}

static void exporter_callgrind_writes_a_name_once(void **state)
{
	const char *text = export_small("callgrind", EXPORT_CPU);

	(void)state;
	assert_non_null(strstr(text, "summary: 10 15 20\n"));
	assert_non_null(strstr(text, "fn=(3) f,\"\n3 6 12 12\n"));
	assert_non_null(strstr(text, "cfn=(4) =g'\ncalls=1 0\n3 4 3 8\n"));
	assert_non_null(strstr(text, "fn=(4)\n0 4 3 8\n"));
}

static void exporter_take_item_without_its_place_is_refused(void **state)
{
	static const char *const bad[] = {
		"B\t1\t110\t0\t0\t3\tcall", /* no function 3 */
		"B\t2\t110\t0\t0\t1\tcall", /* no thread 2 */
		"E\t1\t110\t0\t0\treturn\t4",
		"F\t1\t0x10\tf\t\t\t0", /* again */
		"F\t0\t0x10\tf\t\t\t0",
		"T\t0\t1\t1\tx",
		"H\t1\t100\t50\t0",
		"R\t1\t119\t65536",
		"G\t1\t18446744073709551615\t1\t0\tx",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(exporter_freep) struct exporter *e = exporter_of("csv", EXPORT_CPU, 1);

		for (size_t j = 0; j < 4; j++)
			assert_int_equal(give(e, SMALL[j]), 0);
		assert_int_equal(give(e, bad[i]), -EBADMSG);
	}
}

static void exporter_take_number_beyond_the_limit_is_refused(void **state)
{
	CLEANUP(exporter_freep) struct exporter *e = exporter_of("csv", EXPORT_CPU, 1);

	(void)state;
	assert_int_equal(give(e, SMALL[0]), 0);
	assert_int_equal(give(e, "F\t4194305\t0x10\tf\t\t\t0"), -E2BIG);
}

static void exporter_finish_without_the_end_is_no_data(void **state)
{
	CLEANUP(exporter_freep) struct exporter *e = exporter_of("csv", EXPORT_CPU, 1);
	struct exporter_told told;

	(void)state;
	assert_int_equal(give(e, SMALL[0]), 0);
	assert_int_equal(exporter_finish(e, &told), -ENODATA);
}

static void exporter_finish_full_device_is_an_error(void **state)
{
	(void)state;
	for (const struct export_format *f = export_formats; f->name; f++) {
		CLEANUP_CLOSE int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
		CLEANUP(exporter_freep) struct exporter *e = exporter_of(f->name, EXPORT_CPU, fd);
		struct exporter_told told;

		give_all(e, SMALL);
		assert_int_equal(exporter_finish(e, &told), -ENOSPC);
	}
}

static void exporter_collapsed_deep_stack_is_booked_to_callers(void **state)
{
	CLEANUP_CLOSE int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	CLEANUP(exporter_freep) struct exporter *e = exporter_of("collapsed", EXPORT_INSNS, fd);
	struct exporter_told told;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(give(e, SMALL[i]), 0);
	for (unsigned i = 0; i < EXPORT_MAX_DEPTH + 3; i++)
		assert_int_equal(give(e, "B\t1\t110\t0\t0\t1\tcall"), 0);
	for (unsigned i = 0; i < EXPORT_MAX_DEPTH + 3; i++)
		assert_int_equal(give(e, "E\t1\t110\t0\t0\treturn\t1"), 0);
	assert_int_equal(give(e, "Z\t1027\t0"), 0);
	assert_int_equal(exporter_finish(e, &told), 0);
	assert_int_equal(told.folded, 3);
	assert_int_equal(told.calls, EXPORT_MAX_DEPTH + 3);
}

static void names_clean_hostile_text_is_safe_and_cut(void **state)
{
	static char text[EXPORT_MAX_NAME + 1], long_text[2 * EXPORT_MAX_NAME + 1];

	(void)state;
	names_clean("a\x1b[2J\n\xff\xe2\x80\xae\xc3\xa9\"';<", text);
	assert_string_equal(text, "a\\x1b[2J\\x0a\\xff\\u{202e}\xc3\xa9\"';<");
	memset(long_text, '\n', sizeof(long_text) - 1);
	names_clean(long_text, text);
	assert_int_equal(strlen(text), EXPORT_MAX_NAME - 3); /* 1023 of 4, and "~" */
	assert_string_equal(text + EXPORT_MAX_NAME - 8, "\\x0a~");
}

static void names_add_equal_names_have_one_number(void **state)
{
	struct names s;
	uint32_t first, again;
	char name[16];

	(void)state;
	assert_int_equal(names_init(&s), 0);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(names_add(&s, name, &first), 0);
		assert_int_equal(first, i + 1);
	}
	assert_int_equal(names_add(&s, "17", &again), 0);
	assert_int_equal(again, 18);
	assert_int_equal(names_add(&s, "", &again), 0);
	assert_int_equal(again, 0);
	names_done(&s);
}

/* The vectors are Python's hash() of bytes with PYTHONHASHSEED=0, which is the same function. */
static void slots_siphash_known_text_has_the_known_hash(void **state)
{
	static const uint64_t none[2];
	static const char *const longer = "operator<<(std::ostream&)";

	(void)state;
	assert_true(slots_siphash(none, "main", 4) == UINT64_C(0xf22da7240b7add18));
	assert_true(slots_siphash(none, "12345678", 8) == UINT64_C(0x3489982430560a87));
	assert_true(slots_siphash(none, longer, strlen(longer)) == UINT64_C(0xf8f97acf1c379b7b));
}

#define MANY 300000u

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Two numbers whose texts have the same hash. Among 300,000 texts, ten pairs are likely. */
static void find_pair(const struct slots *s, uint32_t pair[static 2])
{
	uint64_t *list = calloc(MANY, sizeof(*list));
	char name[16];

	assert_non_null(list);
	for (uint32_t i = 0; i < MANY; i++) {
		int n = snprintf(name, sizeof(name), "%u", i);

		list[i] = (uint64_t)slots_hash(s, name, (size_t)n) << 32 | i;
	}
	qsort(list, MANY, sizeof(*list), compare);
	for (uint32_t i = 1; i < MANY && pair[0] == pair[1]; i++)
		if (list[i] >> 32 == list[i - 1] >> 32) {
			pair[0] = (uint32_t)list[i - 1];
			pair[1] = (uint32_t)list[i];
		}
	free(list);
	assert_int_not_equal(pair[0], pair[1]);
}

static void names_add_names_with_one_hash_have_two_numbers(void **state)
{
	struct names s;
	uint32_t pair[2] = {0}, numbers[2];
	char name[16];

	(void)state;
	assert_int_equal(names_init(&s), 0);
	/* This key has such a pair. */
	s.slots.key[0] = s.slots.key[1] = 0;
	find_pair(&s.slots, pair);
	for (int i = 0; i < 4; i++) {
		uint32_t number;

		snprintf(name, sizeof(name), "%u", pair[i % 2]);
		assert_int_equal(names_add(&s, name, &number), 0);
		assert_true(i < 2 || number == numbers[i % 2]);
		assert_string_equal(s.list[number], name);
		numbers[i % 2] = number;
	}
	assert_int_not_equal(numbers[0], numbers[1]);
	names_done(&s);
}

/* FNV-1a, which this room used, and which has no key. */
static uint32_t fnv(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}

/* The most slots in a row that are not free: no search takes more steps. */
static uint32_t longest_row(const struct slots *s)
{
	uint32_t longest = 0, row = 0;

	for (uint32_t i = 0; i < 2 * s->n; i++) {
		row = s->list[i & (s->n - 1)].number1 ? row + 1 : 0;
		longest = MAX_OF(longest, row);
	}
	return longest;
}

static void names_add_chosen_names_are_not_in_one_row(void **state)
{
	struct names s;
	uint32_t number;
	char name[16];

	(void)state;
	assert_int_equal(names_init(&s), 0);
	for (unsigned i = 0; s.n < 500; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if ((fnv(name) & 1023) == 0)
			assert_int_equal(names_add(&s, name, &number), 0);
	}
	assert_true(longest_row(&s.slots) < 250);
	names_done(&s);
}

static void slots_init_two_tables_have_different_keys(void **state)
{
	struct slots a, b;

	(void)state;
	assert_int_equal(slots_init(&a), 0);
	assert_int_equal(slots_init(&b), 0);
	assert_memory_not_equal(a.key, b.key, sizeof(a.key));
	slots_done(&a);
	slots_done(&b);
}

static void spool_get_mixed_strands_come_back_each_in_order(void **state)
{
	CLEANUP(spool_freep) struct spool *s = NULL;
	struct spool_strand *strands[3];
	uint64_t v;

	(void)state;
	assert_int_equal(spool_new(&s), 0);
	for (unsigned k = 0; k < 3; k++)
		assert_int_equal(spool_strand_new(s, &strands[k]), 0);
	for (uint64_t i = 0; i < 5000; i++)
		for (unsigned k = 0; k < 2; k++)
			assert_int_equal(spool_put(s, strands[k], i << (k * 50)), 0);
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(spool_rewind(s, strands[k]), 0);
		for (uint64_t i = 0; k < 2 && i < 5000; i++) {
			assert_int_equal(spool_get(s, strands[k], &v), 0);
			assert_int_equal(v, i << (k * 50));
		}
		assert_int_equal(spool_get(s, strands[k], &v), -ENODATA);
		spool_strand_free(strands[k]);
	}
}

static void pb_end_nested_message_has_its_length(void **state)
{
	static const uint8_t expected[] = {0x08, 0x96, 0x01, 0x12, 0x02, 'h',  'i',
					   0x1a, 0x82, 0x80, 0x80, 0x00, 0x08, 0x00};
	static const uint8_t expected_long[] = {0x1a, 0xcb, 0x81, 0x80, 0x00,
						0x0a, 0xc8, 0x01, 'x'};
	char long_text[201] = "";
	struct bytes_out m;
	size_t inner;

	(void)state;
	memset(long_text, 'x', 200);
	bytes_out_init(&m, 1000);
	pb_number(&m, 1, 150);
	pb_text(&m, 2, "hi");
	inner = pb_begin(&m, 3);
	pb_number(&m, 1, 0);
	pb_end(&m, inner);
	assert_int_equal(m.size, sizeof(expected));
	assert_memory_equal(m.data, expected, sizeof(expected));
	bytes_out_reset(&m);
	inner = pb_begin(&m, 3);
	pb_text(&m, 1, long_text);
	pb_end(&m, inner);
	assert_memory_equal(m.data, expected_long, sizeof(expected_long)); /* 203 */
	bytes_out_done(&m);
}

static void brstack_take_foreign_line_is_refused(void **state)
{
	static const char *const bad[] = {"",	"x 1", "1", "1 ", "1 2 3", "11112222333344445 1",
					  "1 G"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(brstack_freep) struct brstack *b = NULL;

		assert_int_equal(brstack_new(1, &b), 0);
		assert_int_equal(brstack_take(b, "1 2"), 0);
		assert_int_equal(brstack_take(b, bad[i]), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exporter_collapsed_adds_up_what_each_weight_says),
		cmocka_unit_test(exporter_csv_quotes_and_disarms_formulas),
		cmocka_unit_test(exporter_sql_doubles_quotes_of_names),
		cmocka_unit_test(exporter_speedscope_shows_waiting_within_a_call),
		cmocka_unit_test(exporter_speedscope_shows_a_gap_within_a_call),
		cmocka_unit_test(exporter_speedscope_gap_goes_on_behind_what_happens_within),
		cmocka_unit_test(exporter_callgrind_writes_a_name_once),
		cmocka_unit_test(exporter_take_item_without_its_place_is_refused),
		cmocka_unit_test(exporter_take_number_beyond_the_limit_is_refused),
		cmocka_unit_test(exporter_finish_without_the_end_is_no_data),
		cmocka_unit_test(exporter_finish_full_device_is_an_error),
		cmocka_unit_test(exporter_collapsed_deep_stack_is_booked_to_callers),
		cmocka_unit_test(names_clean_hostile_text_is_safe_and_cut),
		cmocka_unit_test(names_add_equal_names_have_one_number),
		cmocka_unit_test(slots_siphash_known_text_has_the_known_hash),
		cmocka_unit_test(names_add_names_with_one_hash_have_two_numbers),
		cmocka_unit_test(names_add_chosen_names_are_not_in_one_row),
		cmocka_unit_test(slots_init_two_tables_have_different_keys),
		cmocka_unit_test(spool_get_mixed_strands_come_back_each_in_order),
		cmocka_unit_test(pb_end_nested_message_has_its_length),
		cmocka_unit_test(brstack_take_foreign_line_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
