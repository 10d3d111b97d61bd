/*
 * What a report says of threads, functions, turns and CPUs, and of the trigger.
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

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/report.h"
#include "tests/unit/decoder/worker/report/made_report.h"

static void report_write_loop_says_what_ran(void **state)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};
	size_t size;
	struct json_object *o = report_of(&how, 0, false, &size), *place;

	(void)state;
	assert_string_equal(text_at(o, "schemaVersion"), REPORT_SCHEMA_VERSION);
	assert_int_equal(number_at(o, "totals/instructions"), make_bundle_insns(20) + 3);
	assert_int_equal(length_at(o, "threads"), 1);
	assert_int_equal(number_at(o, "threads/0/tid"), MAKE_TID);
	assert_int_equal(number_at(o, "threads/0/instructions"), make_bundle_insns(20) + 3);
	assert_string_equal(text_at(o, "threads/0/comm"), "loop\x1b[1m");
	assert_int_equal(length_at(o, "threads/0/lastBranches"), 64);
	assert_string_equal(text_at(o, "threads/0/lastBranches/63/kind"), "disable");
	place = place_of(o, "threads/0/lastBranches/63/from");
	assert_string_equal(text_at(place, "name"), "leaf");
	assert_int_equal(number_at(place, "offset"), 2);
	assert_null(at(o, "threads/0/lastBranches/63/to"));
	assert_string_equal(text_at(place_of(o, "threads/0/lastBranches/62/to"), "name"), "leaf");
	assert_int_equal(length_at(o, "threads/0/stack"), 2);
	assert_ptr_equal(place_of(o, "threads/0/stack/0"), place);
	place = place_of(o, "threads/0/stack/1");
	assert_string_equal(text_at(place, "name"), "main");
	assert_int_equal(number_at(place, "image"), 0);
	assert_int_equal(number_at(place, "function"), 1);
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

static void add_unit_and_labels(struct manifest *m, uint64_t begin, uint64_t end)
{
	(void)begin;
	(void)end;
	m->unit = strdup("web.service");
	m->sender_unit = strdup("cron.service");
	add_label(m, "a", "1");
	add_label(m, "c", "3");
	/* A stranger may have written the manifest: each key comes out once. */
	add_label(m, "b", "2");
	add_label(m, "c", "4");
}

static void report_write_unit_and_labels_are_told_where_there_are_any(void **state)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT};
	const struct make_bundle how = {.rounds = 2};
	size_t size;
	char *text = report_text_of(&how, add_unit_and_labels, &options, &size);
	struct json_object *o = json_tokener_parse(text);

	(void)state;
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
		cmocka_unit_test(report_write_empty_trace_is_a_report),
		cmocka_unit_test(report_write_without_any_pt_tells_who_ran),
		cmocka_unit_test(report_write_without_any_pt_keeps_to_the_time_asked_for),
		cmocka_unit_test(report_write_one_cpu_without_trace_is_not_degraded),
		cmocka_unit_test(
			report_write_without_tsc_conversion_has_turns_of_the_records_clock),
		cmocka_unit_test(report_write_cpu_that_was_away_has_what_was_asked_for),
		cmocka_unit_test(report_write_turns_say_who_ran_when),
		cmocka_unit_test(report_write_turn_with_lost_records_claims_nobody),
		cmocka_unit_test(report_write_turns_of_all_cpus_come_in_order),
		cmocka_unit_test(cgroup_parse_finds_unit_and_container),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
