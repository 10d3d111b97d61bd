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

#include "decoder/worker/decode.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"

static int64_t signed_at(struct json_object *o, const char *path)
{
	return json_object_get_int64(at(o, path));
}

/* The report of a made bundle, parsed; *ret_size its bytes. */
static struct json_object *report_of(const struct make_bundle *how, uint64_t limit, bool pretty,
				     size_t *ret_size)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .report_limit = limit, .pretty = pretty};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	struct json_object *o;
	uint64_t faults;
	char *text;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	text = made_text(sink.fd, ret_size);
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(text);
	return o;
}

static void report_write_loop_says_what_ran(void **state)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_int_equal(number_at(o, "totals/instructions"), make_bundle_insns(20) + 3);
	assert_int_equal(length_at(o, "threads"), 1);
	assert_int_equal(number_at(o, "threads/0/tid"), MAKE_TID);
	assert_int_equal(number_at(o, "threads/0/instructions"), make_bundle_insns(20) + 3);
	assert_string_equal(text_at(o, "threads/0/comm"), "loop\x1b[1m");
	assert_int_equal(length_at(o, "threads/0/lastBranches"), 64);
	assert_string_equal(text_at(o, "threads/0/lastBranches/63/kind"), "disable");
	assert_string_equal(text_at(o, "threads/0/lastBranches/63/fromName"), "leaf+0x2");
	assert_null(at(o, "threads/0/lastBranches/63/to"));
	assert_string_equal(text_at(o, "threads/0/lastBranches/62/toName"), "leaf");
	assert_int_equal(length_at(o, "threads/0/stack"), 2);
	assert_string_equal(text_at(o, "threads/0/stack/0/name"), "leaf");
	assert_int_equal(number_at(o, "threads/0/stack/0/offset"), 2);
	assert_string_equal(text_at(o, "threads/0/stack/1/name"), "main");
	assert_int_equal(number_at(o, "threads/0/stack/1/image"), 0);
	assert_string_equal(text_at(o, "functions/0/name"), "tail");
	/* Entered by tail's jump in each round but the first; the last instance was interrupted. */
	assert_string_equal(text_at(o, "functions/1/name"), "main");
	assert_int_equal(number_at(o, "functions/1/calls"), 20);
	assert_int_equal(number_at(o, "functions/1/durations/ended"), 19);
	assert_true(number_at(o, "functions/1/durations/maxNSec") > 0);
	assert_int_equal(number_at(o, "functions/1/durations/slowest/tid"), MAKE_TID);
	/* Leaf takes no time. */
	assert_string_equal(text_at(o, "functions/2/name"), "leaf");
	assert_false(json_object_object_get_ex(at(o, "functions/2"), "durations", NULL));
	assert_string_equal(text_at(o, "images/0/buildId"),
			    "abababababababababababababababababababab");
	assert_int_equal(number_at(o, "images/0/instructions"), make_bundle_insns(20) + 3);
	assert_string_equal(text_at(o, "processes/0/unit"), "loop.service");
	assert_null(at(o, "processes/0/containerId"));
	assert_true(json_object_get_double(at(o, "coverage/percent")) == 100);
	assert_true(json_object_get_double(at(o, "coverage/exactPercent")) == 100);
	assert_int_equal(number_at(o, "coverage/instructionsExact"), make_bundle_insns(20) + 3);
	assert_int_equal(json_object_object_length(at(o, "coverage/mayHaveChanged")), 0);
	assert_int_equal(length_at(o, "gaps"), 0);
	assert_int_equal(length_at(o, "cut"), 0);
	json_object_put(o);
}

static void report_write_times_count_from_trigger(void **state)
{
	const struct make_bundle how = {.rounds = 20};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_int_equal(json_object_get_int64(at(o, "cpus/0/begin/atNSec")),
			 -20 * (int64_t)MAKE_ROUND);
	assert_int_equal(json_object_get_int64(at(o, "cpus/0/end/atNSec")), 0);
	assert_int_equal(number_at(o, "cpus/0/gotNSec"), 20 * MAKE_ROUND);
	assert_true(json_object_get_int64(at(o, "threads/0/lastBranches/0/atNSec")) < 0);
	assert_null(at(o, "cpus/0/darkNSec"));
	/* The bundle knows no other clock. */
	assert_true(number_at(o, "trigger/clocks/perfNSec") > 20 * MAKE_ROUND);
	assert_null(at(o, "trigger/clocks/realtimeNSec"));
	assert_null(at(o, "trigger/clocks/monotonicNSec"));
	json_object_put(o);
}

static void add_label(struct manifest *m, const char *key, const char *value)
{
	struct manifest_label *label = manifest_add_label(m);

	label->key = strdup(key);
	label->value = strdup(value);
}

static void report_write_unit_and_labels_are_told_where_there_are_any(void **state)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT};
	const struct make_bundle how = {.rounds = 2};
	struct bundle *bundle = made_open(&how);
	struct manifest *m = (struct manifest *)bundle_manifest(bundle);
	struct decode_sink sink = {.version = "t"};
	struct json_object *o;
	uint64_t faults;
	size_t size;
	char *text;

	(void)state;
	m->unit = strdup("web.service");
	m->sender_unit = strdup("cron.service");
	add_label(m, "a", "1");
	add_label(m, "c", "3");
	/* A stranger may have written the manifest: each key comes out once. */
	add_label(m, "b", "2");
	add_label(m, "c", "4");
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	text = made_text(sink.fd, &size);
	o = json_tokener_parse(text);
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_string_equal(text_at(o, "trigger/unit"), "web.service");
	assert_string_equal(text_at(o, "trigger/senderUnit"), "cron.service");
	assert_non_null(strstr(text, "\"labels\":{\"a\":\"1\",\"c\":\"3\"}"));
	free(text);
	json_object_put(o);
}

static void report_write_stop_without_answer_ends_with_the_last_time(void **state)
{
	const struct make_bundle how = {.rounds = 20, .rounds_per_psb = 5, .no_answer = 1000000000};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_in_range(number_at(o, "cpus/0/gotNSec"), 15 * MAKE_ROUND, 20 * MAKE_ROUND);
	assert_in_range(number_at(o, "threads/0/cpuNSec"), 0, 20 * MAKE_ROUND);
	assert_string_equal(text_at(o, "gaps/0/kind"), "stop-timeout");
	json_object_put(o);
}

static void report_write_gaps_are_named(void **state)
{
	const struct make_bundle how = {.rounds = 5, .no_image = true};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_true(number_at(o, "gapCounts/image-missing") > 0);
	assert_string_equal(text_at(o, "gaps/0/kind"), "image-missing");
	assert_string_equal(text_at(o, "gaps/0/address"), "0x400200");
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

/* Edits the manifest of a made bundle. */
typedef void edit_fn(struct manifest *m, uint64_t begin, uint64_t end);

static struct json_object *report_of_edited(const struct make_bundle *how, edit_fn *edit,
					    uint64_t limit, size_t *ret_size)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT, .report_limit = limit};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	struct json_object *o;
	uint64_t faults;
	char *text;

	if (edit)
		edit((struct manifest *)bundle_manifest(bundle), MAKE_TSC,
		     MAKE_TSC + (uint64_t)how->rounds * MAKE_ROUND);
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	text = made_text(sink.fd, ret_size);
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(text);
	return o;
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

static void add_note(struct manifest *m, uint32_t cpu, uint64_t since, uint64_t until)
{
	const struct manifest_note note = {.kind = (char *)"cpu-offline",
					   .count = 1,
					   .cpu = cpu,
					   .since_ns = since,
					   .until_ns = until};

	assert_int_equal(manifest_add_note_at(m, &note), 0);
}

static void add_notes(struct manifest *m, uint64_t begin, uint64_t end)
{
	add_note(m, 0, begin - 5000, begin - 1);		     /* ended before */
	add_note(m, 0, end + 1, MANIFEST_ABSENT);		     /* began behind */
	add_note(m, MANIFEST_ANY, MANIFEST_ABSENT, begin - 1);	     /* ended before */
	add_note(m, 0, begin - 5000, begin + 1000);		     /* reaches in */
	add_note(m, 0, begin + 2000, end + 5000);		     /* reaches out */
	add_note(m, 0, begin + 3000, MANIFEST_ABSENT);		     /* lasts */
	add_note(m, MANIFEST_ANY, MANIFEST_ABSENT, MANIFEST_ABSENT); /* no times */
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

static void add_dark(struct manifest *m, uint32_t cpu, const char *kind, uint64_t since,
		     uint64_t until)
{
	const struct manifest_note note = {
		.kind = (char *)kind, .count = 1, .cpu = cpu, .since_ns = since, .until_ns = until};

	assert_int_equal(manifest_add_note_at(m, &note), 0);
}

/* Within the 5000 ns of a trace, two of which overlap; and before it. */
static void add_holes(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)end;
	add_dark(m, 0, "pt-silent", begin + 3000, begin + 4000);
	add_dark(m, 0, "snapshot-copy", begin + 3500, begin + 3800);
	add_dark(m, 0, "pt-failed", begin + 1000, begin + 2000);
	add_dark(m, 0, "snapshot-copy", begin - 2000, begin - 1000);
	add_dark(m, 0, "pt-starting", begin - 9000, begin - 8000);
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
	add_dark(m, 0, "pt-starting", begin - 200, begin - 100);
	add_dark(m, 0, "pt-yielded", begin - 70000, begin - 400);
	add_dark(m, 0, "snapshot-copy", begin - 90000, begin - 80000);
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

static void report_write_empty_trace_is_a_report(void **state)
{
	const struct make_bundle how = {.rounds = 0};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_int_equal(number_at(o, "gapCounts/empty"), 1);
	assert_null(at(o, "coverage/percent"));
	assert_null(at(o, "cpus/0/begin"));
	/* The records know who ran. */
	assert_int_equal(length_at(o, "turns"), 2);
	assert_int_equal(length_at(o, "threads"), 1);
	json_object_put(o);
}

/* A host without PT: who ran is all that is known, to the nanosecond. */
static void report_write_without_any_pt_tells_who_ran(void **state)
{
	const struct make_bundle how = {.rounds = 20,
					.n_cpus = 2,
					.rounds_per_turn = 5,
					.untraced = true,
					.state = "no-pt",
					.why = "this processor has no Intel PT",
					.monotonic = true};

	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_true(json_object_get_boolean(at(o, "trace/degraded")));
	assert_string_equal(text_at(o, "trace/why"), "this processor has no Intel PT");
	assert_string_equal(text_at(o, "trace/preset"), "std");
	assert_string_equal(text_at(o, "trace/attrs/pt"), "type=8 config=0x300e601");
	assert_string_equal(text_at(o, "trace/attrs/sideband"), "type=1 config=0x9");
	assert_int_equal(length_at(o, "trace/attrs/sidebandMissing"), 2);
	assert_string_equal(text_at(o, "trace/attrs/sidebandMissing/1"), "cgroup");
	assert_string_equal(text_at(o, "trace/sizesNote"), "4 MiB a CPU instead of 8");
	assert_true(json_object_get_boolean(at(o, "trace/clockIsMonotonic")));
	assert_null(at(o, "configuration/clock"));
	assert_null(at(o, "configuration/returnCompression"));
	assert_null(at(o, "configuration/attr/excludeUser"));
	assert_null(at(o, "configuration/attr/excludeKernel"));
	assert_string_equal(text_at(o, "cpus/1/state"), "no-pt");
	assert_string_equal(text_at(o, "cpus/1/why"), "this processor has no Intel PT");
	assert_null(at(o, "cpus/1/skewNSec"));
	assert_null(at(o, "cpus/1/copyBytesPerSec"));
	assert_null(at(o, "cpus/1/begin"));
	assert_null(at(o, "coverage/percent"));
	/* The recording's own note would say why. */
	assert_int_equal(length_at(o, "gaps"), 0);
	assert_int_equal(length_at(o, "processes"), 1);
	/* From the first record to the trigger, 20 us later: one that nobody is known
	 * of, four of 5 us and what is left. */
	assert_int_equal(length_at(o, "turns"), 2 * 6);
	assert_false(json_object_get_boolean(at(o, "turns/1/certain")));
	assert_int_equal(json_object_get_int64(at(o, "turns/2/atNSec")),
			 -20 * (int64_t)MAKE_ROUND - 5);
	assert_int_equal(json_object_get_int64(at(o, "turns/2/untilNSec")),
			 -16 * (int64_t)MAKE_ROUND + 750);
	assert_int_equal(json_object_get_int64(at(o, "turns/11/untilNSec")), 0);
	assert_int_equal(length_at(o, "threads"), 2);
	assert_int_equal(number_at(o, "threads/0/tid"), MAKE_TID);
	assert_int_equal(number_at(o, "threads/0/cpuNSec"), 2 * (4755 + 4950 + 200));
	assert_int_equal(number_at(o, "threads/0/instructions"), 0);
	assert_int_equal(length_at(o, "threads/0/lastBranches"), 0);
	assert_null(at(o, "threads/0/stack"));
	assert_int_equal(number_at(o, "threads/1/tid"), MAKE_TID + 1);
	assert_string_equal(text_at(o, "threads/1/comm"), "second");
	json_object_put(o);
}

static void report_write_without_any_pt_keeps_to_the_time_asked_for(void **state)
{
	const struct make_bundle how = {.rounds = 20,
					.rounds_per_turn = 5,
					.untraced = true,
					.state = "yielded",
					.monotonic = true,
					.last_ns = 3 * MAKE_ROUND};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	/* Without a reason in words the state is one. */
	assert_string_equal(text_at(o, "trace/why"), "yielded");
	assert_int_equal(length_at(o, "turns"), 2);
	assert_int_equal(json_object_get_int64(at(o, "turns/0/atNSec")), -3 * (int64_t)MAKE_ROUND);
	assert_int_equal(length_at(o, "threads"), 2);
	assert_int_equal(number_at(o, "threads/0/tid"), MAKE_TID + 1);
	assert_int_equal(number_at(o, "threads/0/cpuNSec"), 2 * MAKE_ROUND + 750);
	json_object_put(o);
}

static void report_write_one_cpu_without_trace_is_not_degraded(void **state)
{
	const struct make_bundle how = {.rounds = 20,
					.n_cpus = 2,
					.untraced = true,
					.first_untraced = 1,
					.state = "busy",
					.why = "perf (pid 7) has it"};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_false(json_object_get_boolean(at(o, "trace/degraded")));
	assert_null(at(o, "trace/why"));
	assert_string_equal(text_at(o, "cpus/0/state"), "tracing");
	assert_null(at(o, "cpus/0/why"));
	assert_int_equal(number_at(o, "cpus/0/stopOrder"), 0);
	assert_int_equal(number_at(o, "cpus/0/skewNSec"), 0);
	assert_true(number_at(o, "cpus/0/copyBytesPerSec") > 0);
	assert_string_equal(text_at(o, "cpus/1/state"), "busy");
	assert_int_equal(number_at(o, "totals/instructions"), make_bundle_insns(20));
	assert_int_equal(length_at(o, "gaps"), 0);
	/* The one that ran on both was traced: it is there once, with what was decoded. */
	assert_int_equal(length_at(o, "threads"), 1);
	assert_int_equal(number_at(o, "threads/0/instructions"), make_bundle_insns(20));
	assert_int_equal(length_at(o, "turns"), 1 + 2);
	json_object_put(o);
}

/* Branches and turns are there, and nothing relates the ones to the others. */
static void report_write_without_tsc_conversion_has_turns_of_the_records_clock(void **state)
{
	const struct make_bundle how = {
		.rounds = 20, .rounds_per_turn = 5, .monotonic = true, .last_ns = 3 * MAKE_ROUND};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_false(json_object_get_boolean(at(o, "trace/degraded")));
	assert_true(json_object_get_boolean(at(o, "trace/clockIsMonotonic")));
	/* The whole trace is decoded, as it is not known where in it the time asked for begins.
	 * Only order tells whose code it is, which is not enough for two threads of one program. */
	assert_int_equal(number_at(o, "cpus/0/psbs"), 1);
	assert_int_equal(number_at(o, "gapCounts/thread-uncertain"), 20);
	assert_int_equal(length_at(o, "gaps"), 20);
	assert_null(at(o, "cpus/0/gotNSec"));
	assert_int_equal(length_at(o, "turns"), 2);
	assert_int_equal(json_object_get_int64(at(o, "turns/0/atNSec")), -3 * (int64_t)MAKE_ROUND);
	json_object_put(o);
}

/* Its trace ended with it; the time that was asked for is counted from the trigger. */
static void report_write_cpu_that_was_away_has_what_was_asked_for(void **state)
{
	const struct make_bundle how = {.rounds = 100,
					.rounds_per_psb = 10,
					.last_ns = 15 * MAKE_ROUND,
					.untraced = true,
					.state = "offline",
					.kept = true};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_false(json_object_get_boolean(at(o, "trace/degraded")));
	assert_int_equal(signed_at(o, "cpus/0/begin/atNSec"), -20 * (int64_t)MAKE_ROUND);
	assert_null(at(o, "cpus/0/skewNSec"));
	json_object_put(o);
}

/* Two threads in turns of five rounds, 50 ns of idleness between them. */
static void report_write_turns_say_who_ran_when(void **state)
{
	const struct make_bundle how = {.rounds = 20, .rounds_per_turn = 5};
	size_t i, size;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_int_equal(length_at(o, "turns"), 5);
	for (i = 0; i < 5; i++) {
		struct json_object *turn = json_object_array_get_idx(at(o, "turns"), i);
		const int64_t from = (int64_t)i * 5000 - 20000;

		assert_int_equal(number_at(turn, "cpu"), 0);
		assert_int_equal(number_at(turn, "pid"), MAKE_PID);
		assert_int_equal(number_at(turn, "tid"), MAKE_TID + i % 2);
		assert_true(json_object_get_boolean(at(turn, "certain")));
		if (i > 0) /* between the idle task's OUT and the thread's IN */
			assert_in_range(signed_at(turn, "atNSec") - (from - 200), 0, 1);
		if (i < 4)
			assert_in_range(signed_at(turn, "untilNSec") - (from + 4750), 0, 1);
	}
	assert_string_equal(text_at(o, "turns/1/comm"), "second");
	/* Within the window: from the first PSB to the stop. */
	assert_int_equal(signed_at(o, "turns/0/atNSec"), -20000);
	assert_int_equal(signed_at(o, "turns/4/untilNSec"), 0);
	json_object_put(o);
}

static void report_write_turn_with_lost_records_claims_nobody(void **state)
{
	const struct make_bundle how = {.rounds = 20, .rounds_per_turn = 5, .lost_after = 8};
	size_t i, size, uncertain = 0;
	struct json_object *o = report_of(&how, 0, false, &size);

	(void)state;
	assert_true(number_at(o, "gapCounts/sideband-lost") > 0);
	for (i = 0; i < length_at(o, "turns"); i++) {
		struct json_object *turn = json_object_array_get_idx(at(o, "turns"), i);

		if (json_object_get_boolean(at(turn, "certain")))
			continue;
		uncertain++;
		assert_null(at(turn, "pid"));
		assert_null(at(turn, "tid"));
		assert_null(at(turn, "comm"));
	}
	assert_true(uncertain > 0 && uncertain < i);
	json_object_put(o);
}

static void report_write_turns_of_all_cpus_come_in_order(void **state)
{
	const struct make_bundle how = {.rounds = 20, .n_cpus = 3, .rounds_per_turn = 2};
	size_t i, size, n[3] = {0};
	struct json_object *o = report_of(&how, 0, false, &size);
	int64_t last = INT64_MIN;

	(void)state;
	for (i = 0; i < length_at(o, "turns"); i++) {
		struct json_object *turn = json_object_array_get_idx(at(o, "turns"), i);

		assert_true(signed_at(turn, "atNSec") >= last);
		assert_true(signed_at(turn, "atNSec") < signed_at(turn, "untilNSec"));
		last = signed_at(turn, "atNSec");
		n[number_at(turn, "cpu")]++;
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(n[i], 11);
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
	o = report_of_edited(&how, add_storm_notes, REPORT_DEFAULT_LIMIT, &size);
	free(records);
	assert_true(size <= REPORT_DEFAULT_LIMIT && size > REPORT_DEFAULT_LIMIT / 4 * 3);
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

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void cgroup_parse_finds_unit_and_container(void **state)
{
	const struct {
		const char *path, *unit, *container;
	} cases[] = {
		{NULL, "", ""},
		{"", "", ""},
		{"/", "", ""},
		{"/init.scope", "init.scope", ""},
		{"/system.slice/nginx.service", "nginx.service", ""},
		{"/user.slice/user-0.slice/user@0.service/app.slice/x.scope", "x.scope", ""},
		{"/system.slice/docker-" ID ".scope", "docker-" ID ".scope", ID},
		{"/docker/" ID, "", ID},
		{"/kubepods/besteffort/pod12/" ID "/x", "", ID},
		{"/kubepods.slice/cri-containerd-" ID ".scope", "cri-containerd-" ID ".scope", ID},
		{"/machine.slice/libpod-" ID ".scope/container", "libpod-" ID ".scope", ID},
		{"/kubepods.slice/kubepods-burstable.slice/crio-" ID ".scope", "crio-" ID ".scope",
		 ID},
		{"/system.slice/containerd.service/kubepods-burstable-pod1.slice:cri-containerd:" ID,
		 "containerd.service", ID},
		{"/machine.slice/libpod-conmon-" ID ".scope", "libpod-conmon-" ID ".scope", ""},
		{"/kubepods.slice/crio-conmon-" ID ".scope", "crio-conmon-" ID ".scope", ""},
		{"/docker/" ID "/system.slice/nginx.service", "nginx.service", ID},
		{"/lxc.payload.web1/system.slice/x.service", "x.service", "web1"},
		{"/lxc.payload/web1", "", "web1"},
		{"/lxc/web1/init.scope", "init.scope", "web1"},
		{"/lxc.monitor.web1", "", ""},
		{"/machine.slice/machine-my\\x2dbox.scope/payload", "machine-my\\x2dbox.scope",
		 "my-box"},
		{"/machine.slice/systemd-nspawn@box.service/payload", "systemd-nspawn@box.service",
		 "box"},
		{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt",
		 "machine-qemu\\x2d1\\x2dvm.scope", ""},
		{"/system.slice/data.mount", "data.mount", ""},
		{"/system.slice/_memory.service", "memory.service", ""},
		{"/system.slice/__a.service", "_a.service", ""},
		{"/a\\x0ab", "", ""},
		{"/lxc.payload.a\\x0ab", "", "a\\x0ab"},
		{"/a" ID, "", ""},
		{"/" ID "a", "", ""},
		{"/.service", "", ""},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct cgroup_names names = cgroup_parse(cases[i].path);

		if (names.unit_size != strlen(cases[i].unit) ||
		    strcmp(names.container, cases[i].container) != 0)
			fail_msg("%s", cases[i].path);
		if (names.unit_size > 0)
			assert_memory_equal(names.unit, cases[i].unit, names.unit_size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_write_loop_says_what_ran),
		cmocka_unit_test(report_write_times_count_from_trigger),
		cmocka_unit_test(report_write_unit_and_labels_are_told_where_there_are_any),
		cmocka_unit_test(report_write_stop_without_answer_ends_with_the_last_time),
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
		cmocka_unit_test(report_write_empty_trace_is_a_report),
		cmocka_unit_test(report_write_without_any_pt_tells_who_ran),
		cmocka_unit_test(report_write_without_any_pt_keeps_to_the_time_asked_for),
		cmocka_unit_test(report_write_one_cpu_without_trace_is_not_degraded),
		cmocka_unit_test(report_write_cpu_that_was_away_has_what_was_asked_for),
		cmocka_unit_test(
			report_write_without_tsc_conversion_has_turns_of_the_records_clock),
		cmocka_unit_test(report_write_turns_say_who_ran_when),
		cmocka_unit_test(report_write_turn_with_lost_records_claims_nobody),
		cmocka_unit_test(report_write_turns_of_all_cpus_come_in_order),
		cmocka_unit_test(report_write_note_is_a_gap_with_its_words),
		cmocka_unit_test(report_write_limit_leaves_something_of_every_list),
		cmocka_unit_test(report_write_storm_of_threads_hides_nothing),
		cmocka_unit_test(report_write_limit_keeps_the_newest_turns),
		cmocka_unit_test(report_write_limit_slightly_exceeded_still_fits),
		cmocka_unit_test(report_write_limit_too_small_is_e2big),
		cmocka_unit_test(cgroup_parse_finds_unit_and_container),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
