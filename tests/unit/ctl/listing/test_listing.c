/*
 * ctl/listing: streams, slices of them, and streams that break the rules.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/listing/listing.h"
#include "proto/base.h"

static const char *const STREAM[] = {
	"H\t1\t1000\t9000\t10000",
	"C\t0\t7\t8\tone",
	"W\t2000\t10",
	"F\t1\tf\t/bin/x",
	"F\t2\tg\t/bin/y",
	"D\t1\t0x10\t1\t0x0\t\t\t\t0",
	"D\t2\t0x20\t2\t0x4\t\t\t\t0",
	"D\t3\t0x30\t0\t0x0\t\t\t\t0",
	"B\tenable\t0\t1",
	"B\tcall\t1\t2",
	"W\t4000\t0",
	"B\tret\t2\t1",
	"G\toverflow",
	"G\toverflow",
	"C\t1\t9\t9\ttwo",
	"W\t5000\t0",
	"B\tjump\t3\t3",
	"D\t1\t0x11\t1\t0x1\t\t\t\t0",
	"B\tsyscall\t1\t0",
	"G\toverflow",
	"R\tsideband-lost\t2",
	"Z\t5\t0\t3",
};

static char output[4096];

static int append(void *userdata, const struct listing_line *line)
{
	char text[128];

	(void)userdata;
	if (line->kind == EXECSTREAM_GAP)
		snprintf(text, sizeof(text), "%u:#%s*%u ", line->origin->tid, line->gap,
			 (unsigned)line->gaps);
	else
		snprintf(text, sizeof(text), "%u:%x>%x ", line->origin->tid,
			 line->from ? (unsigned)line->from->address : 0,
			 line->to ? (unsigned)line->to->address : 0);
	assert_true(strlen(output) + strlen(text) < sizeof(output));
	strcat(output, text);
	return 0;
}

/* Feeds N lines of STREAM, of which number CHANGED (from 0) is OTHER. */
static int feed(struct listing *l, const char *const *stream, size_t n, size_t changed,
		const char *other)
{
	char line[256];
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		snprintf(line, sizeof(line), "%s", i == changed ? other : stream[i]);
		r = listing_take(l, line);
	}
	return r;
}

static void check(const struct slice *slice, uint64_t last, const char *want)
{
	CLEANUP(listing_freep) struct listing *l = NULL;

	output[0] = '\0';
	assert_int_equal(listing_new(slice, last, append, NULL, &l), 0);
	assert_int_equal(feed(l, STREAM, ARRAY_SIZE(STREAM), SIZE_MAX, NULL), 0);
	assert_int_equal(listing_finish(l, false), 0);
	assert_string_equal(output, want);
	assert_int_equal(listing_told(l)->branches, 5);
	assert_int_equal(listing_told(l)->gaps, 3);
	assert_int_equal(listing_told(l)->recording, 2);
}

static void listing_take_everything_is_in_order(void **state)
{
	(void)state;
	check(&(struct slice){0}, 0,
	      "8:0>10 8:10>20 8:20>10 8:#overflow*2 9:30>30 9:11>0 9:#overflow*1 ");
}

static void listing_take_a_slice_has_its_lines_only(void **state)
{
	const struct slice cpu = {.has_cpu = true, .cpu = 1}, tid = {.has_tid = true, .tid = 8},
			   pid = {.has_pid = true, .pid = 9}, comm = {.comm = "o*"},
			   function = {.function = "g"}, image = {.image = "/bin/x"},
			   from = {.from = {.given = true, .ns = 2500}},
			   to = {.to = {.given = true, .before_trigger = true, .ns = 7000}};

	(void)state;
	check(&cpu, 0, "9:30>30 9:11>0 9:#overflow*1 ");
	check(&pid, 0, "9:30>30 9:11>0 9:#overflow*1 ");
	check(&tid, 0, "8:0>10 8:10>20 8:20>10 8:#overflow*2 ");
	check(&comm, 0, "8:0>10 8:10>20 8:20>10 8:#overflow*2 ");
	check(&function, 0, "8:10>20 8:20>10 8:#overflow*2 9:#overflow*1 ");
	check(&image, 0, "8:0>10 8:10>20 8:20>10 8:#overflow*2 9:11>0 9:#overflow*1 ");
	check(&from, 0, "8:20>10 8:#overflow*2 9:30>30 9:11>0 9:#overflow*1 ");
	check(&to, 0, "8:0>10 8:10>20 ");
}

static void listing_take_an_empty_slice_is_invalid(void **state)
{
	const struct slice slice = {.from = {.given = true, .ns = 500},
				    .to = {.given = true, .ns = 400}};
	CLEANUP(listing_freep) struct listing *l = NULL;

	(void)state;
	assert_int_equal(listing_new(&slice, 0, append, NULL, &l), 0);
	assert_int_equal(feed(l, STREAM, ARRAY_SIZE(STREAM), SIZE_MAX, NULL), -EINVAL);
}

static void listing_finish_the_last_lines_keep_their_places(void **state)
{
	(void)state;
	/* Place 1 got another meaning behind the third line. */
	check(&(struct slice){0}, 5, "8:20>10 8:#overflow*2 9:30>30 9:11>0 9:#overflow*1 ");
	check(&(struct slice){0}, 1, "9:#overflow*1 ");
	check(&(struct slice){0}, 100,
	      "8:0>10 8:10>20 8:20>10 8:#overflow*2 9:30>30 9:11>0 9:#overflow*1 ");
}

static void listing_take_broken_rules_are_refused(void **state)
{
	static const struct {
		size_t line;
		const char *text;
	} bad[] = {
		{0, "W\t1\t1"},
		{1, "H\t1\t1000\t9000\t10000"},
		{2, "B\tenable\t0\t0"},
		{2, "W\t18446744073709551615\t1"},
		{3, "F\t2\tf\t"},
		{3, "F\t0\tf\t"},
		{5, "D\t0\t0x10\t1\t0x0\t\t\t\t0"},
		{5, "D\t1\t0x10\t3\t0x0\t\t\t\t0"},
		{8, "B\tenable\t0\t4"},
		{8, "I\t4"},
		{8, "I\t0"},
		{21, "Z\t4\t0\t3"},
		{21, "Z\t5\t1\t3"},
		{21, "Z\t5\t0\t2"},
		{20, "Z\t5\t0\t3"},
		{20, "nonsense"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(listing_freep) struct listing *l = NULL;
		const struct slice all = {0};

		output[0] = '\0';
		assert_int_equal(listing_new(&all, i % 2, append, NULL, &l), 0);
		if (feed(l, STREAM, ARRAY_SIZE(STREAM), bad[i].line, bad[i].text) != -EBADMSG)
			fail_msg("taken: %s", bad[i].text);
	}
}

static void listing_finish_a_stream_without_an_end_is_invalid(void **state)
{
	CLEANUP(listing_freep) struct listing *l = NULL;
	const struct slice all = {0};

	(void)state;
	assert_int_equal(listing_new(&all, 0, append, NULL, &l), 0);
	assert_int_equal(feed(l, STREAM, ARRAY_SIZE(STREAM) - 1, SIZE_MAX, NULL), 0);
	assert_int_equal(listing_finish(l, false), -EBADMSG);
	assert_int_equal(listing_finish(l, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listing_take_everything_is_in_order),
		cmocka_unit_test(listing_take_a_slice_has_its_lines_only),
		cmocka_unit_test(listing_take_an_empty_slice_is_invalid),
		cmocka_unit_test(listing_finish_the_last_lines_keep_their_places),
		cmocka_unit_test(listing_take_broken_rules_are_refused),
		cmocka_unit_test(listing_finish_a_stream_without_an_end_is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
