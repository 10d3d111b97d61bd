/*
 * What a report leaves out where it must not become longer, and that it says so.
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
#include <json-c/json.h>

#include "proto/report.h"
#include "tests/unit/decoder/worker/report/made_report.h"

static uint64_t cut_of(struct json_object *o, const char *what, const char *key)
{
	size_t i;

	for (i = 0; i < length_at(o, "cut"); i++) {
		struct json_object *line = json_object_array_get_idx(at(o, "cut"), i);

		if (strcmp(text_at(line, "what"), what) == 0)
			return number_at(line, key);
	}
	return UINT64_MAX;
}

/* The list WHAT has TOTAL elements, of which the report has some, and says how many. */
static void assert_is_cut(struct json_object *o, const char *what, uint64_t total)
{
	const size_t kept = length_at(o, what);

	if (kept == 0 || kept > total)
		fail_msg("%zu of %ju elements of %s are kept", kept, (uintmax_t)total, what);
	if (kept == total) {
		assert_true(cut_of(o, what, "total") == UINT64_MAX);
		return;
	}
	assert_int_equal(cut_of(o, what, "kept"), kept);
	assert_int_equal(cut_of(o, what, "total"), total);
}

/* The more there is of one list, the more of this list is cut. */
static void report_write_limit_leaves_something_of_every_list(void **state)
{
	const struct make_bundle how = {.rounds = 100, .more_processes = 500};
	size_t i, whole, size, last = SIZE_MAX;
	struct json_object *o;
	bool pretty;

	(void)state;
	for (pretty = false;; pretty = true) {
		json_object_put(report_of(&how, 0, pretty, &whole));
		for (i = 0; i < 12; i++) {
			const uint64_t limit = whole - whole / 13 * i;

			o = report_of(&how, limit, pretty, &size);
			assert_true(size <= limit);
			/* Another list has the room that one list does not need. */
			assert_true(i > 10 || size > limit - limit / 4);
			assert_int_equal(length_at(o, "threads"), 1);
			assert_int_equal(length_at(o, "images"), 1);
			assert_is_cut(o, "functions", 3);
			assert_is_cut(o, "processes", 501);
			last = length_at(o, "processes");
			assert_true(i > 9 || length_at(o, "threads/0/lastBranches") > 0);
			json_object_put(o);
		}
		assert_true(last < 501);
		if (pretty)
			break;
	}
}

#define STORM 20000u

static void add_storm_notes(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)begin;
	(void)end;
	for (int i = 0; i < 3000; i++)
		assert_int_equal(manifest_add_note(m, "sideband-bad", 1, "a record"), 0);
	assert_int_equal(manifest_add_note(m, "pt-busy", 1, "a rare one"), 0);
}

static bool has_gap(struct json_object *o, const char *kind)
{
	for (size_t i = 0; i < length_at(o, "gaps"); i++)
		if (strcmp(text_at(json_object_array_get_idx(at(o, "gaps"), i), "kind"), kind) == 0)
			return true;
	return false;
}

/* Threads that run for a microsecond each fill the report many times. */
static void report_write_storm_of_threads_hides_nothing(void **state)
{
	struct perfrecord *records = calloc(STORM, sizeof(*records));
	const struct make_bundle how = {.rounds = STORM,
					.more_processes = 6000,
					.untraced = true,
					.state = "no-pt",
					.why = "none",
					.monotonic = true,
					.records = records,
					.n_records = STORM};
	struct json_object *o;
	uint64_t last = 0;
	size_t size;

	(void)state;
	for (uint32_t i = 0; i < STORM; i++) {
		records[i] = (struct perfrecord){.type = PERF_RECORD_SWITCH_CPU_WIDE,
						 .time = MAKE_TSC + (uint64_t)i * MAKE_ROUND};
		records[i].pid = MAKE_PID;
		records[i].tid = 100000 + i;
		records[i].u.context_switch.next_prev_pid = MAKE_PID;
		records[i].u.context_switch.next_prev_tid = i > 0 ? 100000 + i - 1 : MAKE_TID;
	}
	o = report_of_edited(&how, add_storm_notes, REPORT_DECODE_LIMIT, &size);
	free(records);
	assert_true(size <= REPORT_DECODE_LIMIT && size > REPORT_DECODE_LIMIT / 4 * 3);
	assert_is_cut(o, "threads", STORM + 1);
	assert_is_cut(o, "processes", 6001);
	assert_is_cut(o, "gaps", 3001);
	assert_true(length_at(o, "processes") > 100 && length_at(o, "gaps") > 100);
	assert_true(length_at(o, "turns") > 100);
	assert_int_equal(cut_of(o, "turns", "kept"), length_at(o, "turns"));
	assert_int_equal(length_at(o, "images"), 1);
	/* Many gaps of one kind do not hide the others, and numbers stay in order. */
	assert_true(has_gap(o, "pt-busy"));
	for (size_t i = 0; i < length_at(o, "gaps"); i++) {
		const uint64_t n = number_at(json_object_array_get_idx(at(o, "gaps"), i), "n");

		assert_true(n > last);
		last = n;
	}
	json_object_put(o);
}

/* A host with 20 CPUs and 200 processes: what cannot be had from a longer report of the same bundle
 * in time is all there. */
static void report_write_ordinary_host_has_all_but_turns_and_branches(void **state)
{
	const struct make_bundle how = {
		.rounds = 600, .n_cpus = 20, .more_processes = 199, .rounds_per_turn = 2};
	struct json_object *o, *line;
	size_t size;

	(void)state;
	o = report_of(&how, REPORT_DEFAULT_LIMIT, false, &size);
	assert_true(size <= REPORT_DEFAULT_LIMIT && size < 200 * 1024);
	assert_int_equal(length_at(o, "cpus"), 20);
	assert_int_equal(length_at(o, "processes"), 200);
	assert_int_equal(length_at(o, "functions"), 3);
	assert_true(length_at(o, "threads/0/lastBranches") > 0);
	assert_true(length_at(o, "turns") > 200);
	for (size_t i = 0; i < length_at(o, "cut"); i++) {
		line = json_object_array_get_idx(at(o, "cut"), i);
		if (strcmp(text_at(line, "what"), "turns") != 0 &&
		    strcmp(text_at(line, "what"), "lastBranches") != 0)
			fail_msg("%s is cut", text_at(line, "what"));
	}
	json_object_put(o);
}

/* Places that elements share, and places of elements that are not kept. */
static void report_write_limit_places_are_those_of_what_is_kept(void **state)
{
	const struct make_bundle how = {.rounds = 300, .n_cpus = 2, .rounds_per_turn = 1};
	size_t whole, size, last = SIZE_MAX;

	(void)state;
	json_object_put(report_of(&how, 0, false, &whole));
	/* report_of() looks whether each place is mentioned. */
	for (size_t limit = whole; limit > 5000; limit = limit * 15 / 16) {
		struct json_object *o = report_of(&how, limit, false, &size);

		assert_true(size <= limit);
		assert_true(cut_of(o, "places", "total") == UINT64_MAX);
		assert_true(length_at(o, "places") > 0 || length_at(o, "threads") == 0);
		last = length_at(o, "places");
		json_object_put(o);
	}
	assert_true(last < 8);
}

/* The newest turns are kept, and they leave room for functions. */
static void report_write_limit_keeps_the_newest_turns(void **state)
{
	const struct make_bundle how = {.rounds = 300, .n_cpus = 2, .rounds_per_turn = 1};
	size_t i, whole, size;

	(void)state;
	json_object_put(report_of(&how, 0, false, &whole));
	for (i = 1; i < 8; i++) {
		struct json_object *o = report_of(&how, whole - whole / 10 * i, false, &size);
		const size_t kept = length_at(o, "turns");

		assert_true(kept > 0 && kept < 602);
		assert_int_equal(cut_of(o, "turns", "kept"), kept);
		assert_int_equal(cut_of(o, "turns", "total"), 602);
		assert_int_equal(
			signed_at(json_object_array_get_idx(at(o, "turns"), kept - 1), "untilNSec"),
			0);
		assert_int_equal(length_at(o, "functions"), 3);
		json_object_put(o);
	}
}

/* Just below its size the report must also hold the lines that say what was cut. */
static void report_write_limit_slightly_exceeded_still_fits(void **state)
{
	const struct make_bundle how = {.rounds = 100};
	size_t whole, less, size;

	(void)state;
	json_object_put(report_of(&how, 0, false, &whole));
	for (less = 1; less < 1200; less += 37) {
		json_object_put(report_of(&how, whole - less, false, &size));
		assert_true(size <= whole - less);
	}
}

static void report_write_limit_too_small_is_e2big(void **state)
{
	const struct make_bundle how = {.rounds = 1};
	const struct decode_options options = {.view = WORKER_VIEW_REPORT, .report_limit = 100};
	struct bundle *bundle = made_open(&how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;

	(void)state;
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), -E2BIG);
	close(sink.fd);
	bundle_free(bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_write_limit_leaves_something_of_every_list),
		cmocka_unit_test(report_write_storm_of_threads_hides_nothing),
		cmocka_unit_test(report_write_ordinary_host_has_all_but_turns_and_branches),
		cmocka_unit_test(report_write_limit_places_are_those_of_what_is_kept),
		cmocka_unit_test(report_write_limit_keeps_the_newest_turns),
		cmocka_unit_test(report_write_limit_slightly_exceeded_still_fits),
		cmocka_unit_test(report_write_limit_too_small_is_e2big),
	};

	return cmocka_run_group_tests_name("report_limit", tests, NULL, NULL);
}
