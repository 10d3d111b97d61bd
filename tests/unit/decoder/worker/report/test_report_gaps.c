/*
 * The gaps of a report: which there are, when, and what they take from what is covered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>
#include <linux/perf_event.h>

#include "proto/base.h"
#include "tests/unit/decoder/worker/report/made_report.h"

static void report_write_gaps_are_named(void **state)
{
	const struct make_bundle how = {.rounds = 5, .no_image = true};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_true(number_at(o, "gapCounts/image-missing") > 0);
	assert_string_equal(text_at(o, "gaps/0/kind"), "image-missing");
	assert_string_equal(text_at(place_of(o, "gaps/0/place"), "address"), "0x400200");
	assert_string_equal(text_at(o, "images/0/missing"), "deleted before it could be opened");
	assert_null(at(o, "images/0/bytes"));
	assert_int_equal(number_at(o, "totals/instructions"), 0);
	json_object_put(o);
}

/* The branches before and behind a gap are not neighbours in the list of last branches. */
static void report_write_last_branches_have_the_gap_between_them(void **state)
{
	const struct make_bundle how = {.rounds = 8, .overflow = true};
	size_t size, n, gap = 0;
	struct json_object *o = report_of(&how, 0, false, &size);
	char path[64];

	(void)state;
	assert_int_equal(number_at(o, "gapCounts/overflow"), 1);
	n = length_at(o, "threads/0/lastBranches");
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "threads/0/lastBranches/%zu/kind", i);
		if (strcmp(text_at(o, path), "gap") != 0)
			continue;
		assert_int_equal(gap, 0);
		gap = i;
	}
	assert_in_range(gap, 1, n - 2);
	snprintf(path, sizeof(path), "threads/0/lastBranches/%zu/gap", gap);
	assert_string_equal(text_at(o, path), "overflow");
	assert_int_equal(number_at(o, "threads/0/branches"), n - 1);
	json_object_put(o);
}

static void report_write_every_aux_flag_is_a_gap_with_a_name(void **state)
{
	static const struct {
		uint64_t flags;
		const char *kind, *why;
	} cases[] = {
		{PERF_AUX_FLAG_OVERWRITE, NULL, NULL},
		{PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_TRUNCATED, "aux-truncated", "cut"},
		{PERF_AUX_FLAG_OVERWRITE | PERF_AUX_FLAG_PARTIAL, "aux-partial", "vmx-off"},
		{PERF_AUX_FLAG_COLLISION, "aux-collision", "another user"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct make_bundle how = {.rounds = 5, .aux_flags = cases[i].flags};
		size_t size;
		struct json_object *o = report_of(&how, 0, false, &size);

		assert_int_equal(length_at(o, "gaps"), cases[i].kind != NULL);
		if (cases[i].kind != NULL) {
			assert_string_equal(text_at(o, "gaps/0/kind"), cases[i].kind);
			assert_int_equal(number_at(o, "gaps/0/cpu"), 0);
			assert_non_null(strstr(text_at(o, "gaps/0/why"), cases[i].why));
		}
		json_object_put(o);
	}
}

static struct perfrecord aux_record(uint32_t cpu, uint64_t time, uint64_t flags)
{
	struct perfrecord r = {.type = PERF_RECORD_AUX, .cpu = cpu, .time = time};

	r.u.aux.flags = flags;
	return r;
}

static struct perfrecord lost_record(uint32_t cpu, uint64_t time)
{
	struct perfrecord r = {.type = PERF_RECORD_LOST, .cpu = cpu, .time = time};

	r.u.lost.lost = 2;
	return r;
}

/* One second before the window, within the window, and behind the stop. */
static void report_write_records_of_faults_count_only_within_the_window(void **state)
{
	size_t size;
	static const struct {
		uint64_t time;
		bool within;
	} cases[] = {
		{MAKE_TSC - 900000, false},
		{MAKE_TSC + 2500, true},
		{MAKE_TSC + 900000, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct perfrecord aux[] = {
			aux_record(0, cases[i].time, PERF_AUX_FLAG_TRUNCATED),
			aux_record(0, cases[i].time + 1, PERF_AUX_FLAG_PARTIAL),
		};
		const struct make_bundle how = {
			.rounds = 5, .records = aux, .n_records = ARRAY_SIZE(aux)};
		struct json_object *o = report_of_edited(&how, NULL, 0, &size);

		assert_int_equal(length_at(o, "gaps"), cases[i].within ? 2 : 0);
		assert_int_equal(number_at(o, "totals/gaps"), cases[i].within ? 2 : 0);
		if (cases[i].within) {
			assert_int_equal(number_at(o, "gapCounts/aux-truncated"), 1);
			assert_int_equal(signed_at(o, "gaps/0/atNSec"), -2500);
			assert_int_equal(signed_at(o, "gaps/0/untilNSec"), -2500);
		} else {
			assert_int_equal(number_at(o, "gapCountsOutside/aux-truncated"), 1);
			assert_int_equal(number_at(o, "gapCountsOutside/aux-partial"), 1);
		}
		json_object_put(o);
	}
}

/* Its effects are gaps of their own: code of processes whose mappings may be incomplete. */
static void report_write_loss_before_the_window_is_counted_apart(void **state)
{
	size_t size;
	const struct perfrecord before = lost_record(0, MAKE_TSC - 900000);
	const struct perfrecord within = lost_record(0, MAKE_TSC + 2500);
	struct make_bundle how = {.rounds = 5, .records = &before, .n_records = 1};
	struct json_object *o = report_of_edited(&how, NULL, 0, &size);

	(void)state;
	assert_int_equal(json_object_object_length(at(o, "gapCounts")), 1);
	assert_int_equal(number_at(o, "gapCounts/image-uncertain"), 5);
	assert_int_equal(number_at(o, "gapCountsOutside/sideband-lost"), 1);
	json_object_put(o);
	how.records = &within;
	o = report_of_edited(&how, NULL, 0, &size);
	assert_int_equal(number_at(o, "gapCounts/sideband-lost"), 1);
	assert_int_equal(json_object_object_length(at(o, "gapCountsOutside")), 0);
	json_object_put(o);
}

static void add_flags(struct manifest *m, uint64_t begin, uint64_t end)
{
	struct manifest_cpu *cpu = &m->cpus[0];

	(void)end;
	cpu->aux_flags = PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL | PERF_AUX_FLAG_COLLISION;
	cpu->truncated_ns = begin - 238000;
	cpu->partial_ns = begin + 100;
	/* An older recorder did not say when. */
	cpu->collision_ns = MANIFEST_ABSENT;
}

/* The sideband's log no longer has the AUX records. */
static void report_write_flag_of_long_ago_is_no_gap(void **state)
{
	size_t size;
	const struct make_bundle how = {.rounds = 5};
	struct json_object *o = report_of_edited(&how, add_flags, 0, &size);

	(void)state;
	assert_int_equal(length_at(o, "gaps"), 2);
	assert_int_equal(number_at(o, "gapCounts/aux-partial"), 1);
	assert_int_equal(number_at(o, "gapCounts/aux-collision"), 1);
	assert_int_equal(json_object_object_length(at(o, "gapCounts")), 2);
	assert_int_equal(number_at(o, "gapCountsOutside/aux-truncated"), 1);
	json_object_put(o);
}

static void add_note(struct manifest *m, uint32_t cpu, const char *kind, uint64_t since,
		     uint64_t until)
{
	const struct manifest_note note = {
		.kind = (char *)kind, .count = 1, .cpu = cpu, .since_ns = since, .until_ns = until};

	assert_int_equal(manifest_add_note_at(m, &note), 0);
}

static void add_notes(struct manifest *m, uint64_t begin, uint64_t end)
{
	static const char offline[] = "cpu-offline";

	add_note(m, 0, offline, begin - 5000, begin - 1);		      /* ended before */
	add_note(m, 0, offline, end + 1, MANIFEST_ABSENT);		      /* began behind */
	add_note(m, MANIFEST_ANY, offline, MANIFEST_ABSENT, begin - 1);	      /* ended before */
	add_note(m, 0, offline, begin - 5000, begin + 1000);		      /* reaches in */
	add_note(m, 0, offline, begin + 2000, end + 5000);		      /* reaches out */
	add_note(m, 0, offline, begin + 3000, MANIFEST_ABSENT);		      /* lasts */
	add_note(m, MANIFEST_ANY, offline, MANIFEST_ABSENT, MANIFEST_ABSENT); /* no times */
}

static void report_write_note_is_cut_to_the_window(void **state)
{
	size_t size;
	const struct make_bundle how = {.rounds = 5};
	struct json_object *o = report_of_edited(&how, add_notes, 0, &size);

	(void)state;
	assert_int_equal(length_at(o, "gaps"), 4);
	assert_int_equal(number_at(o, "gapCounts/cpu-offline"), 4);
	assert_int_equal(number_at(o, "gapCountsOutside/cpu-offline"), 3);
	assert_int_equal(number_at(o, "gaps/0/cpu"), 0);
	assert_int_equal(signed_at(o, "gaps/0/atNSec"), -5000);
	assert_int_equal(signed_at(o, "gaps/0/untilNSec"), -4000);
	assert_int_equal(signed_at(o, "gaps/1/atNSec"), -3000);
	assert_int_equal(signed_at(o, "gaps/1/untilNSec"), 0);
	assert_int_equal(signed_at(o, "gaps/2/atNSec"), -2000);
	assert_null(at(o, "gaps/2/untilNSec"));
	assert_null(at(o, "gaps/3/cpu"));
	assert_null(at(o, "gaps/3/atNSec"));
	json_object_put(o);
}

/* Within the 5000 ns of a trace, two of which overlap; and before it. */
static void add_holes(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)end;
	add_note(m, 0, "pt-silent", begin + 3000, begin + 4000);
	add_note(m, 0, "snapshot-copy", begin + 3500, begin + 3800);
	add_note(m, 0, "pt-failed", begin + 1000, begin + 2000);
	add_note(m, 0, "snapshot-copy", begin - 2000, begin - 1000);
	add_note(m, 0, "pt-starting", begin - 9000, begin - 8000);
}

static void report_write_time_without_a_trace_is_a_gap_and_not_covered(void **state)
{
	static const char *const kinds[] = {"pt-silent", "snapshot-copy", "pt-failed"};
	static const int64_t times[][2] = {{-2000, -1000}, {-1500, -1200}, {-4000, -3000}};
	const struct make_bundle how = {.rounds = 5};
	char path[32];
	size_t size;
	struct json_object *o = report_of_edited(&how, add_holes, 0, &size);

	(void)state;
	assert_int_equal(length_at(o, "gaps"), ARRAY_SIZE(kinds));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "gaps/%zu/kind", i);
		assert_string_equal(text_at(o, path), kinds[i]);
		snprintf(path, sizeof(path), "gaps/%zu/atNSec", i);
		assert_int_equal(signed_at(o, path), times[i][0]);
		snprintf(path, sizeof(path), "gaps/%zu/untilNSec", i);
		assert_int_equal(signed_at(o, path), times[i][1]);
	}
	assert_int_equal(number_at(o, "gapCountsOutside/snapshot-copy"), 1);
	assert_int_equal(number_at(o, "gapCountsOutside/pt-starting"), 1);
	assert_int_equal(number_at(o, "cpus/0/untracedNSec"), 2000);
	assert_int_equal(number_at(o, "coverage/nsecUntraced"), 2000);
	assert_int_equal(number_at(o, "coverage/nsec"), 5000);
	assert_int_equal(number_at(o, "coverage/nsecDecoded"), 3000);
	assert_true(json_object_get_double(at(o, "coverage/percent")) == 60);
	assert_true(json_object_get_double(at(o, "cpus/0/coveragePercent")) == 60);
	json_object_put(o);
}

/* CPU 1 was handed back, and its ring is new since: its trace begins behind that. */
static void add_yield(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)end;
	add_note(m, 0, "pt-starting", begin - 200, begin - 100);
	add_note(m, 0, "pt-yielded", begin - 70000, begin - 400);
	add_note(m, 0, "snapshot-copy", begin - 90000, begin - 80000);
}

static void report_write_time_before_a_new_ring_is_a_gap(void **state)
{
	struct make_bundle how = {.rounds = 5, .empty_bytes = 4096};
	size_t size;
	struct json_object *o = report_of_edited(&how, add_yield, 0, &size);

	(void)state;
	assert_int_equal(length_at(o, "gaps"), 1);
	assert_string_equal(text_at(o, "gaps/0/kind"), "pt-yielded");
	assert_int_equal(signed_at(o, "gaps/0/atNSec"), -75000);
	assert_int_equal(signed_at(o, "gaps/0/untilNSec"), -5400);
	assert_int_equal(number_at(o, "coverage/nsecUntraced"), 0);
	assert_true(json_object_get_double(at(o, "coverage/percent")) == 100);
	json_object_put(o);
	/* The ring has been full since. */
	how.empty_bytes = 0;
	o = report_of_edited(&how, add_yield, 0, &size);
	assert_int_equal(length_at(o, "gaps"), 0);
	assert_int_equal(number_at(o, "gapCountsOutside/pt-yielded"), 1);
	json_object_put(o);
}

/* The request reaches back further than the trace, which begins behind the time without one. */
static void report_write_time_without_a_trace_counts_as_far_back_as_asked(void **state)
{
	const struct make_bundle how = {.rounds = 5, .last_ns = 45000};
	size_t size;
	struct json_object *o = report_of_edited(&how, add_yield, 0, &size);

	(void)state;
	assert_int_equal(number_at(o, "gapCounts/pt-yielded"), 1);
	assert_int_equal(number_at(o, "gapCounts/pt-starting"), 1);
	assert_int_equal(length_at(o, "gaps"), 2);
	assert_string_equal(text_at(o, "gaps/1/kind"), "pt-yielded");
	assert_int_equal(signed_at(o, "gaps/1/atNSec"), -45000);
	assert_int_equal(signed_at(o, "gaps/1/untilNSec"), -5400);
	json_object_put(o);
}

static void report_write_note_is_a_gap_with_its_words(void **state)
{
	static const char why[] = "/usr/bin/s\x1b[31m\"u\"do: set-user-ID program";
	const struct make_bundle how = {.rounds = 5, .note = why};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_int_equal(number_at(o, "gapCounts/untraced-exec"), 1);
	assert_string_equal(text_at(o, "gaps/0/kind"), "untraced-exec");
	assert_string_equal(text_at(o, "gaps/0/why"), why);
	assert_null(at(o, "gaps/0/cpu"));
	json_object_put(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_write_gaps_are_named),
		cmocka_unit_test(report_write_last_branches_have_the_gap_between_them),
		cmocka_unit_test(report_write_every_aux_flag_is_a_gap_with_a_name),
		cmocka_unit_test(report_write_records_of_faults_count_only_within_the_window),
		cmocka_unit_test(report_write_loss_before_the_window_is_counted_apart),
		cmocka_unit_test(report_write_flag_of_long_ago_is_no_gap),
		cmocka_unit_test(report_write_note_is_cut_to_the_window),
		cmocka_unit_test(report_write_time_without_a_trace_is_a_gap_and_not_covered),
		cmocka_unit_test(report_write_time_before_a_new_ring_is_a_gap),
		cmocka_unit_test(report_write_time_without_a_trace_counts_as_far_back_as_asked),
		cmocka_unit_test(report_write_note_is_a_gap_with_its_words),
	};

	return cmocka_run_group_tests_name("report_gaps", tests, NULL, NULL);
}
