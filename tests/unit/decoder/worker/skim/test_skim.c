/*
 * decoder/worker/skim and its parts: what a skim says of a made bundle.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/skim/skim.h"
#include "decoder/worker/skim/skim_private.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"
#include "tests/unit/decoder/worker/made_raw.h"

#define PSB    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82
#define PSBEND 2, 0x23

static int skim_to(struct bundle *bundle, const struct decode_options *options, char **ret,
		   uint64_t *ret_faults)
{
	struct decode_sink sink = {.version = "t"};
	size_t size;
	int r;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	r = skim_run(bundle, options, &sink, ret_faults);
	*ret = made_text(sink.fd, &size);
	return r;
}

static char *skimmed(const struct make_bundle *how, const struct decode_options *options)
{
	struct bundle *bundle = made_open(how);
	uint64_t faults;
	char *text;

	assert_int_equal(skim_to(bundle, options, &text, &faults), 0);
	bundle_free(bundle);
	return text;
}

static char *lines_of(const struct make_bundle *how, enum worker_skim skim, uint64_t show)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_BRANCHES, .skim = skim, .show = show};

	return skimmed(how, &options);
}

static struct json_object *map_of(const struct make_bundle *how, enum worker_skim skim,
				  uint64_t limit)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .skim = skim, .report_limit = limit};
	char *text = skimmed(how, &options);
	struct json_object *map = json_tokener_parse(text);

	assert_non_null(map);
	assert_true(limit == 0 || strlen(text) <= limit);
	free(text);
	return map;
}

#define FILE "/usr/bin/loop\\xef\\xbf\\xbd\"x\n"

static void expect_lines(const struct make_bundle *how, enum worker_skim skim, uint64_t show,
			 const char *expected)
{
	char *text = lines_of(how, skim, show);

	assert_string_equal(text, expected);
	free(text);
}

static void skim_lines_say_when_who_and_where(void **state)
{
	const struct make_bundle how = {.rounds = 2, .plain_returns = true};

	(void)state;
	expect_lines(&how, WORKER_SKIM_TIP, 0,
		     "-0.000002000 0 4711/4712 psb/64 - - [off]\n"
		     "-0.000002000 0 4711/4712 tip.pge 400200 main+0x0 " FILE
		     "-0.000002000 0 4711/4712 tip 400205 main+0x5 " FILE
		     "-0.000001000 0 4711/4712 tip.pge 40020d tail+0x6 " FILE
		     "-0.000001000 0 4711/4712 tip 400205 main+0x5 " FILE);
	expect_lines(&how, WORKER_SKIM_PSB, 0, "-0.000002000 0 4711/4712 psb/64 - - [off]\n");
}

static void skim_lines_with_times_and_places_have_them_in_hex(void **state)
{
	const struct make_bundle how = {.rounds = 1};

	(void)state;
	expect_lines(&how, WORKER_SKIM_TIP, WORKER_SHOW_TIME | WORKER_SHOW_PLACES,
		     "f4240 f4240 0 0 4711/4712 psb/64 - - [off]\n"
		     "f4240 f4434 24 0 4711/4712 tip.pge 400200 main+0x0 " FILE);
	expect_lines(&how, WORKER_SKIM_TIP, WORKER_SHOW_PLACES,
		     "-0.000001000 0 0 4711/4712 psb/64 - - [off]\n"
		     "-0.000001000 24 0 4711/4712 tip.pge 400200 main+0x0 " FILE);
}

static void skim_lines_of_what_is_not_known_have_no_name(void **state)
{
	const struct make_bundle kernel = {.rounds = 1, .kernel = true};
	const struct make_bundle blank = {.rounds = 1, .no_image = true, .monotonic = true};
	const struct make_bundle nobody = {.rounds = 1, .no_sideband = true};

	(void)state;
	expect_lines(&kernel, WORKER_SKIM_TIP, 0,
		     "-0.000001000 0 4711/4712 psb/64 - - [off]\n"
		     "-0.000001000 0 4711/4712 tip.pge 400200 main+0x0 " FILE
		     "-0.000000500 0 4711/4712 tip ffffffff81000000 - [kernel]\n");
	expect_lines(&blank, WORKER_SKIM_TIP, 0,
		     "0xf4240 0 4711/4712 psb/64 - - [off]\n"
		     "0xf4240 0 4711/4712 tip.pge 400200 - [unknown]\n");
	expect_lines(&nobody, WORKER_SKIM_TIP, 0,
		     "-0.000001000 0 -/- psb/64 - - [off]\n"
		     "-0.000001000 0 -/- tip.pge 400200 - [unknown]\n");
}

static void skim_lines_are_whose_turn_it_was(void **state)
{
	const struct make_bundle how = {.rounds = 8, .rounds_per_turn = 2};

	(void)state;
	expect_lines(&how, WORKER_SKIM_TIP, 0,
		     "-0.000008000 0 4711/4712 psb/64 - - [off]\n"
		     "-0.000008000 0 4711/4712 tip.pge 400200 main+0x0 " FILE
		     "-0.000007000 0 4711/4712 tip.pge 40020d tail+0x6 " FILE
		     "-0.000006000 0 4711/4713 tip.pge 40020d tail+0x6 " FILE
		     "-0.000005000 0 4711/4713 tip.pge 40020d tail+0x6 " FILE
		     "-0.000004000 0 4711/4712 tip.pge 40020d tail+0x6 " FILE
		     "-0.000003000 0 4711/4712 tip.pge 40020d tail+0x6 " FILE
		     "-0.000002000 0 4711/4713 tip.pge 40020d tail+0x6 " FILE
		     "-0.000001000 0 4711/4713 tip.pge 40020d tail+0x6 " FILE);
}

/* Code without names is said by its place in the file; of a raw trace all is one process'. */
static void skim_lines_of_a_raw_trace_know_no_clock(void **state)
{
	static const uint8_t trace[] = {
		PSB,  0x19, 9, 0, 0, 0, 0,	0,    0, 0x7d,
		0x34, 0x12, 0, 0, 0, 0, PSBEND, 0x2d, 1, 0, /* TIP */
		2,    0x43, 1, 0, 0, 0, 0,	0, /* PIP: in a virtual machine, whose code is given
						    */
		0x2d, 2,    0,
	};
	const struct decode_options options = {.view = WORKER_VIEW_BRANCHES,
					       .skim = WORKER_SKIM_TIP};
	struct bundle *bundle;
	struct manifest m;
	uint64_t faults;
	char *text;

	(void)state;
	manifest_init(&m);
	bundle = made_raw(&m, trace, sizeof(trace), NULL);
	assert_int_equal(skim_to(bundle, &options, &text, &faults), 0);
	assert_string_equal(text, "0x9 0 -/- psb 1234 - [unknown]\n"
				  "0x9 0 -/- tip 1 - [unknown]\n"
				  "0x9 0 -/- tip 2 - [unknown]\n");
	bundle_free(bundle);
	free(text);
}

/* Samples before and behind what is missing are never neighbours. */
static void skim_lines_say_where_something_is_missing(void **state)
{
	static const uint8_t trace[] = {
		0x2d, 7,      0,		      /* before the first PSB */
		PSB,  PSBEND, 0x2d, 1, 0,    2, 0xf3, /* OVF */
		0x2d, 2,      0,    2, 0xff, 0,	      /* no packet */
		PSB,  PSBEND, 0x2d, 3, 0,
	};
	const struct decode_options options = {
		.view = WORKER_VIEW_BRANCHES, .skim = WORKER_SKIM_TIP, .show = WORKER_SHOW_PLACES};
	struct bundle *bundle;
	struct manifest m;
	uint64_t faults;
	char *text;

	(void)state;
	manifest_init(&m);
	bundle = made_raw(&m, trace, sizeof(trace), NULL);
	assert_int_equal(skim_to(bundle, &options, &text, &faults), 0);
	assert_string_equal(text, "- 0 0 -/- gap - - [head]\n"
				  "- 3 0 -/- psb - - [off]\n"
				  "- 15 0 -/- tip 1 - [unknown]\n"
				  "- 18 0 -/- gap - - [overflow]\n"
				  "- 1a 0 -/- tip 2 - [unknown]\n"
				  "- 1d 0 -/- gap - - [bad-packet]\n"
				  "- 20 0 -/- psb - - [off]\n"
				  "- 32 0 -/- tip 3 - [unknown]\n");
	bundle_free(bundle);
	free(text);
}

#define TSC(n) 0x19, n, 0, 0, 0, 0, 0, 0

/* Bytes that are there twice are no bad packets, and their PSB does not say that tracing is off. */
static void skim_where_time_runs_backwards_says_so(void **state)
{
	static const uint8_t trace[] = {
		PSB,  TSC(9), PSBEND, 0x2d, 1,	     0, /* TIP */
		PSB,  TSC(5), PSBEND, 0x2d, 2,	     0,	     PSB,  TSC(12), PSBEND,
		0x2d, 3,      0,      PSB,  TSC(14), PSBEND, 0x2d, 4,	    0,
	};
	const struct decode_options lines = {.view = WORKER_VIEW_BRANCHES, .skim = WORKER_SKIM_TIP};
	const struct decode_options summary = {.view = WORKER_VIEW_SUMMARY,
					       .skim = WORKER_SKIM_TIP};
	struct bundle *bundle;
	struct manifest m;
	uint64_t faults;
	char *text;

	(void)state;
	manifest_init(&m);
	bundle = made_raw(&m, trace, sizeof(trace), NULL);
	assert_int_equal(skim_to(bundle, &lines, &text, &faults), 0);
	assert_string_equal(text, "- 0 -/- gap - - [time-backwards]\n"
				  "0xc 0 -/- psb - - [off]\n"
				  "0xc 0 -/- tip 3 - [unknown]\n"
				  "0xe 0 -/- psb - - [off]\n"
				  "0xe 0 -/- tip 4 - [unknown]\n");
	free(text);
	assert_int_equal(faults, 1);
	assert_int_equal(skim_to(bundle, &summary, &text, &faults), 0);
	assert_non_null(strstr(text, "\"badPackets\":0,"));
	assert_non_null(strstr(text, "\"timeBackwards\":1,"));
	bundle_free(bundle);
	free(text);
}

static void skim_of_a_virtual_machine_is_nobodys(void **state)
{
	static const uint8_t trace[] = {
		PSB, PSBEND, 2, 0x43, 1, 0, 0, 0, 0, 0, 0x2d, 2, 0,
	};
	const struct decode_options options = {.view = WORKER_VIEW_BRANCHES,
					       .skim = WORKER_SKIM_TIP};
	struct bundle *bundle;
	struct manifest m;
	uint64_t faults;
	char *text;

	(void)state;
	manifest_init(&m);
	m.source = strdup("emulated");
	bundle = made_raw(&m, trace, sizeof(trace), NULL);
	assert_int_equal(skim_to(bundle, &options, &text, &faults), 0);
	assert_string_equal(text, "- 0 -/- psb - - [off]\n"
				  "- 0 -/- tip 2 - [guest]\n");
	bundle_free(bundle);
	free(text);
}

static void skim_map_counts_functions_threads_cpus_and_slices(void **state)
{
	const struct make_bundle how = {
		.rounds = 8, .n_cpus = 2, .rounds_per_turn = 2, .rounds_per_psb = 3};
	struct json_object *map = map_of(&how, WORKER_SKIM_TIP, 0);
	uint64_t samples = 0;
	size_t i;

	(void)state;
	assert_string_equal(text_at(map, "skim"), "tip");
	assert_int_equal(number_at(map, "samples"), 16);
	assert_int_equal(number_at(map, "psbs"), 6);
	assert_int_equal(length_at(map, "functions"), 2);
	assert_string_equal(text_at(map, "functions/0/name"), "tail");
	assert_int_equal(number_at(map, "functions/0/samples"), 14);
	assert_string_equal(text_at(map, "functions/1/name"), "main");
	assert_int_equal(length_at(map, "threads"), 2);
	assert_int_equal(number_at(map, "threads/0/tid"), MAKE_TID);
	assert_int_equal(number_at(map, "threads/0/samples"), 8);
	assert_int_equal(length_at(map, "threads/0/functions"), 2);
	assert_int_equal(number_at(map, "threads/1/tid"), MAKE_TID + 1);
	assert_string_equal(text_at(map, "threads/1/functions/0/name"), "tail");
	assert_int_equal(length_at(map, "cpus"), 2);
	assert_int_equal(number_at(map, "cpus/1/samples"), 8);
	assert_int_equal(number_at(map, "cpus/1/psbs"), 3);
	assert_int_equal(length_at(map, "cpus/1/threads"), 2);
	assert_int_equal(json_object_get_int64(at(map, "slices/0/fromNSec")), -8000);
	for (i = 0; i < length_at(map, "slices"); i++) {
		char path[64];

		snprintf(path, sizeof(path), "slices/%zu/samples", i);
		samples += number_at(map, path);
	}
	assert_int_equal(samples, 16);
	assert_int_equal(length_at(map, "slices"), 8);
	assert_int_equal(length_at(map, "cut"), 0);
	json_object_put(map);
}

/* All bytes behind a sample are its function's, up to the next sample or where tracing is off. */
static void skim_map_bytes_are_those_up_to_the_next_sample(void **state)
{
	const struct make_bundle how = {.rounds = 1, .plain_returns = true};
	struct json_object *map = map_of(&how, WORKER_SKIM_TIP, 0);

	(void)state;
	assert_int_equal(number_at(map, "functions/0/samples"), 2);
	assert_int_equal(number_at(map, "functions/0/bytes"), number_at(map, "traceBytes") - 0x24);
	json_object_put(map);
}

static bool is_cut(struct json_object *map, const char *what, uint64_t total)
{
	size_t i;

	for (i = 0; i < length_at(map, "cut"); i++) {
		struct json_object *line = json_object_array_get_idx(at(map, "cut"), i);

		if (strcmp(text_at(line, "what"), what) == 0)
			return number_at(line, "total") == total && number_at(line, "kept") < total;
	}
	return false;
}

static void skim_map_that_is_too_long_is_cut_and_says_so(void **state)
{
	const struct make_bundle how = {.rounds = 50, .n_cpus = 8, .rounds_per_turn = 2};
	struct json_object *map = map_of(&how, WORKER_SKIM_TIP, 1500);
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .skim = WORKER_SKIM_TIP, .report_limit = 100};
	struct bundle *bundle = made_open(&how);
	uint64_t faults;
	char *text;

	(void)state;
	assert_true(is_cut(map, "functions", 2));
	assert_true(is_cut(map, "cpus", 8));
	assert_true(is_cut(map, "slices", SKIM_SLICES));
	json_object_put(map);
	assert_int_equal(skim_to(bundle, &options, &text, &faults), -E2BIG);
	free(text);
	bundle_free(bundle);
}

static void skim_summary_is_the_totals(void **state)
{
	const struct make_bundle how = {.rounds = 8, .overflow = true, .plain_returns = true};
	const struct decode_options options = {.view = WORKER_VIEW_SUMMARY,
					       .skim = WORKER_SKIM_TIP};
	struct bundle *bundle = made_open(&how);
	struct json_object *o;
	uint64_t faults;
	char *text;

	(void)state;
	assert_int_equal(skim_to(bundle, &options, &text, &faults), 0);
	assert_int_equal(faults, 1);
	o = json_tokener_parse(text);
	assert_int_equal(number_at(o, "overflows"), 1);
	assert_true(number_at(o, "samples") > 8);
	assert_false(json_object_object_get_ex(o, "functions", NULL));
	json_object_put(o);
	free(text);
	bundle_free(bundle);
}

static void skim_of_no_cpu_is_empty(void **state)
{
	const struct make_bundle how = {.no_psb = true, .no_sideband = true};
	struct json_object *map = map_of(&how, WORKER_SKIM_PSB, 0);

	(void)state;
	assert_int_equal(number_at(map, "samples"), 0);
	assert_int_equal(length_at(map, "functions"), 0);
	assert_int_equal(length_at(map, "slices"), 0);
	json_object_put(map);
}

static void skim_of_the_last_begins_there(void **state)
{
	const struct make_bundle how = {.rounds = 9, .rounds_per_psb = 3, .last_ns = 2500};
	const struct make_bundle all = {.rounds = 9, .rounds_per_psb = 3};
	struct json_object *last = map_of(&how, WORKER_SKIM_TIP, 0);
	struct json_object *whole = map_of(&all, WORKER_SKIM_TIP, 0);

	(void)state;
	assert_int_equal(number_at(whole, "psbs"), 3);
	assert_int_equal(number_at(last, "psbs"), 1);
	assert_int_equal(number_at(last, "samples"), 3);
	json_object_put(last);
	json_object_put(whole);
}

static void skim_other_views_are_refused(void **state)
{
	const struct decode_options options = {.view = WORKER_VIEW_INSNS, .skim = WORKER_SKIM_PSB};

	(void)state;
	assert_false(decode_options_are_sound(&options));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skim_lines_say_when_who_and_where),
		cmocka_unit_test(skim_lines_with_times_and_places_have_them_in_hex),
		cmocka_unit_test(skim_lines_of_what_is_not_known_have_no_name),
		cmocka_unit_test(skim_lines_are_whose_turn_it_was),
		cmocka_unit_test(skim_lines_of_a_raw_trace_know_no_clock),
		cmocka_unit_test(skim_lines_say_where_something_is_missing),
		cmocka_unit_test(skim_where_time_runs_backwards_says_so),
		cmocka_unit_test(skim_of_a_virtual_machine_is_nobodys),
		cmocka_unit_test(skim_map_counts_functions_threads_cpus_and_slices),
		cmocka_unit_test(skim_map_bytes_are_those_up_to_the_next_sample),
		cmocka_unit_test(skim_map_that_is_too_long_is_cut_and_says_so),
		cmocka_unit_test(skim_summary_is_the_totals),
		cmocka_unit_test(skim_of_no_cpu_is_empty),
		cmocka_unit_test(skim_of_the_last_begins_there),
		cmocka_unit_test(skim_other_views_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
