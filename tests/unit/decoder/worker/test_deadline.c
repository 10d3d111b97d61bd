#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"

/* Time passes with each look at the clock. */
struct clock {
	uint64_t now, step;
	uint64_t looks, stops_after; /* after so many it is late; 0: never */
};

static uint64_t elapsed(void *userdata)
{
	struct clock *clock = userdata;

	clock->looks++;
	clock->now += clock->step;
	if (clock->stops_after != 0 && clock->looks > clock->stops_after)
		clock->now = UINT64_MAX / 2;
	return clock->now;
}

static int decode(const struct make_bundle *how, const struct decode_options *options,
		  struct clock *clock, struct json_object **ret)
{
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t", .elapsed = elapsed, .userdata = clock};
	uint64_t faults;
	size_t size;
	char *text;
	int r;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	r = decode_run(bundle, options, &sink, &faults);
	bundle_free(bundle);
	text = made_text(sink.fd, &size);
	*ret = json_tokener_parse(text);
	free(text);
	return r;
}

static struct json_object *report(const struct make_bundle *how, uint64_t deadline,
				  struct clock *clock)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT,
					       .threads = 1, /* the clock counts batches */
					       .has_deadline = 1,
					       .deadline_ns = deadline};
	struct json_object *o;

	assert_int_equal(decode(how, &options, clock, &o), 0);
	assert_non_null(o);
	return o;
}

static struct json_object *whole(const struct make_bundle *how)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT};
	struct json_object *o;

	assert_int_equal(decode(how, &options, &(struct clock){0}, &o), 0);
	assert_non_null(o);
	return o;
}

/* The first half is another thread's, which does not run again. */
#define HALF 4000u
static const struct make_bundle halves = {
	.rounds = 2 * HALF, .rounds_per_psb = 40, .rounds_per_turn = HALF};

static struct json_object *thread_of(struct json_object *o, uint64_t tid)
{
	size_t i;

	for (i = 0; i < length_at(o, "threads"); i++) {
		struct json_object *t = json_object_array_get_idx(at(o, "threads"), i);

		if (number_at(t, "tid") == tid)
			return t;
	}
	return NULL;
}

static void decode_run_without_deadline_says_nothing_of_it(void **state)
{
	struct json_object *o = whole(&halves);

	(void)state;
	assert_false(json_object_object_get_ex(o, "decoded", NULL));
	assert_false(json_object_object_get_ex(at(o, "threads/0"), "window", NULL));
	assert_false(json_object_object_get_ex(at(o, "threads/0"), "olderFrames", NULL));
	json_object_put(o);
}

static void decode_run_deadline_0_is_the_newest_segment(void **state)
{
	struct clock clock = {.step = 1};
	struct json_object *o = report(&halves, 0, &clock);
	uint64_t bytes = number_at(o, "decoded/bytes");

	(void)state;
	assert_false(json_object_get_boolean(at(o, "decoded/complete")));
	assert_int_equal(number_at(o, "decoded/deadlineNSec"), 0);
	assert_int_equal(number_at(o, "decoded/rounds"), 1);
	assert_in_range(bytes, 1, 4096);
	assert_true(number_at(o, "decoded/traceBytes") > 10 * bytes);
	assert_int_equal(number_at(o, "coverage/bytes"), bytes);
	assert_true(json_object_get_int64(at(o, "decoded/sinceNSec")) < 0);
	assert_true(json_object_get_int64(at(o, "decoded/sinceNSec")) >
		    json_object_get_int64(at(o, "decoded/traceSinceNSec")));
	assert_int_equal(length_at(o, "threads"), 2);
	assert_string_equal(text_at(o, "threads/0/window"), "decoded");
	assert_null(at(o, "threads/1/window"));
	assert_null(at(o, "threads/1/stack"));
	/* The last switch gives it the CPU again. */
	assert_string_equal(text_at(o, "threads/0/state/kind"), "blocked");
	assert_string_equal(text_at(o, "threads/1/state/kind"), "running");
	assert_int_equal(number_at(o, "decoded/lastStretches"), 0);
	assert_int_equal(number_at(o, "decoded/lastStretchesLeft"), 1);
	json_object_put(o);
}

/* Too short for a second round, but not for a look at who ran before. */
#define SHORT 60000u

static void decode_run_short_deadline_reaches_threads_that_ran_before(void **state)
{
	struct clock clock = {.step = 1};
	struct json_object *o = report(&halves, SHORT, &clock), *all = whole(&halves);
	struct json_object *t, *other, *gone = NULL;
	size_t i;

	(void)state;
	assert_int_equal(number_at(o, "decoded/rounds"), 1);
	assert_int_equal(number_at(o, "decoded/lastStretches"), 1);
	assert_int_equal(number_at(o, "decoded/lastStretchesLeft"), 0);
	assert_int_equal(length_at(o, "threads"), 2);
	for (i = 0; i < 2; i++)
		if (strcmp(text_at(json_object_array_get_idx(at(o, "threads"), i), "window"),
			   "last-stretch") == 0)
			gone = json_object_array_get_idx(at(o, "threads"), i);
	assert_non_null(gone);
	assert_true(json_object_get_boolean(at(gone, "olderFrames")));
	other = thread_of(all, number_at(gone, "tid"));
	assert_true(json_object_equal(at(gone, "lastBranches"), at(other, "lastBranches")));
	assert_true(json_object_equal(at(gone, "stack"), at(other, "stack")));
	assert_int_equal(length_at(gone, "lastBranches"), 64);
	assert_true(number_at(gone, "instructions") < number_at(other, "instructions"));
	/* It counts nowhere else. */
	t = thread_of(o, number_at(gone, "tid") == MAKE_TID ? MAKE_TID + 1 : MAKE_TID);
	assert_int_equal(number_at(o, "totals/instructions"), number_at(t, "instructions"));
	assert_int_equal(length_at(o, "gaps"), 0);
	json_object_put(all);
	json_object_put(o);
}

#define SWITCH(n_cpu, at, number, leaves)                                                    \
	{                                                                                    \
		.type = PERF_RECORD_SWITCH_CPU_WIDE,                                         \
		.misc = (leaves) ? PERF_RECORD_MISC_SWITCH_OUT : 0, .time = MAKE_TSC + (at), \
		.cpu = (n_cpu), .pid = MAKE_PID, .tid = MAKE_TID + (number),                 \
	}

/* A third thread ran on CPUs without a trace, and last on the one that has a trace, where the CPU
 * was idle. */
static void decode_run_thread_from_cpu_without_trace_looks_no_further(void **state)
{
	const uint64_t idle = (uint64_t)(HALF - 1) * MAKE_ROUND + 760;
	const struct perfrecord records[] = {
		{.type = PERF_RECORD_COMM,
		 .u.comm = {.pid = MAKE_PID, .tid = MAKE_TID + 2, .comm = "third"}},
		SWITCH(8, 100, 2, false),
		SWITCH(8, 200, 2, true),
		SWITCH(9, 300, 2, false),
		SWITCH(9, 400, 2, true),
		SWITCH(0, idle, 2, false),
		SWITCH(0, idle + 20, 2, true),
	};
	struct make_bundle how = halves;
	struct clock clock = {.step = 1};
	struct json_object *o;

	(void)state;
	how.records = records;
	how.n_records = ARRAY_SIZE(records);
	o = report(&how, SHORT, &clock);
	assert_int_equal(number_at(o, "decoded/lastStretchesLeft"), 0);
	json_object_put(o);
}

/* Behind its last user code, the thread was in the kernel for longer than a few PSB segments. */
static void decode_run_turn_that_ends_in_the_kernel_is_followed_back(void **state)
{
	struct make_bundle how = halves;
	struct json_object *all, *o, *gone, *other;

	(void)state;
	how.quiet_psbs = 20;
	all = whole(&how);
	o = report(&how, SHORT, &(struct clock){.step = 1});
	assert_int_equal(number_at(o, "decoded/rounds"), 1);
	assert_int_equal(number_at(o, "decoded/lastStretches"), 1);
	gone = thread_of(o, MAKE_TID);
	other = thread_of(all, MAKE_TID);
	assert_string_equal(text_at(gone, "window"), "last-stretch");
	assert_true(json_object_equal(at(gone, "lastBranches"), at(other, "lastBranches")));
	json_object_put(all);
	json_object_put(o);
}

/* The fourth thread's turn lies in the segment in which the third one's ends. */
static void decode_run_threads_of_one_segment_count_once(void **state)
{
	const uint64_t third = 990 * MAKE_ROUND + 750, fourth = 1005 * MAKE_ROUND + 750;
	const uint64_t back = 1010 * MAKE_ROUND + 750;
	const struct perfrecord records[] = {
		{.type = PERF_RECORD_COMM,
		 .u.comm = {.pid = MAKE_PID, .tid = MAKE_TID + 2, .comm = "third"}},
		{.type = PERF_RECORD_COMM,
		 .u.comm = {.pid = MAKE_PID, .tid = MAKE_TID + 3, .comm = "fourth"}},
		SWITCH(0, third, 0, true),
		SWITCH(0, third, 2, false),
		SWITCH(0, fourth, 2, true),
		SWITCH(0, fourth, 3, false),
		SWITCH(0, back, 3, true),
		SWITCH(0, back, 0, false),
	};
	struct make_bundle how = halves;
	struct json_object *o, *all;

	(void)state;
	how.records = records;
	how.n_records = ARRAY_SIZE(records);
	o = report(&how, SHORT, &(struct clock){.step = 1});
	assert_int_equal(number_at(o, "decoded/lastStretches"), 3);
	all = whole(&how);
	for (uint64_t tid = MAKE_TID + 2; tid <= MAKE_TID + 3; tid++)
		assert_int_equal(number_at(thread_of(o, tid), "instructions"),
				 number_at(thread_of(all, tid), "instructions"));
	json_object_put(all);
	json_object_put(o);
}

/* Removes what a deadline adds. */
static void forget_parts(struct json_object *o)
{
	json_object_object_del(o, "decoded");
	for (size_t i = 0; i < length_at(o, "threads"); i++) {
		struct json_object *t = json_object_array_get_idx(at(o, "threads"), i);

		json_object_object_del(t, "window");
		json_object_object_del(t, "olderFrames");
	}
}

/* A thread that ran before the window is where it was at the end of its last turn. */
static void decode_run_window_of_time_reaches_threads_that_ran_before(void **state)
{
	struct make_bundle how = halves;
	struct json_object *all = whole(&halves), *o, *gone, *other;

	(void)state;
	how.last_ns = 100 * MAKE_ROUND;
	o = whole(&how);
	assert_int_equal(length_at(o, "threads"), 2);
	gone = json_object_array_get_idx(at(o, "threads"), 1);
	assert_string_equal(text_at(gone, "window"), "last-stretch");
	/* The last switch gives it the CPU again. */
	assert_string_equal(text_at(gone, "state/kind"), "running");
	assert_string_equal(text_at(o, "threads/0/state/kind"), "blocked");
	assert_true(json_object_get_boolean(at(o, "threads/0/state/certain")));
	assert_true(json_object_get_int64(at(o, "threads/0/state/sinceNSec")) >
		    -(int64_t)MAKE_ROUND);
	other = thread_of(all, number_at(gone, "tid"));
	assert_true(json_object_equal(at(gone, "lastBranches"), at(other, "lastBranches")));
	assert_true(json_object_equal(at(gone, "stack"), at(other, "stack")));
	assert_true(json_object_equal(at(gone, "state"), at(other, "state")));
	assert_int_equal(number_at(o, "totals/instructions"),
			 number_at(o, "threads/0/instructions"));
	assert_true(json_object_get_int64(at(o, "window/ringsSinceNSec")) <
		    -(int64_t)(2 * HALF - 2) * MAKE_ROUND);
	assert_int_equal(number_at(o, "window/lastStretchesLeft"), 0);
	json_object_put(all);
	json_object_put(o);
}

static void decode_run_long_deadline_is_the_whole_report(void **state)
{
	const struct make_bundle ways[] = {
		halves,
		{.rounds = 100, .n_cpus = 3, .rounds_per_turn = 2, .lost_after = 40},
		{.rounds = 5000, .rounds_per_psb = 50, .last_ns = 2000 * MAKE_ROUND},
		{.rounds = 10, .overflow = true},
		{.rounds = 5, .no_psb = true},
		{.rounds = 0},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		struct clock clock = {.step = 1};
		struct json_object *o = report(&ways[i], UINT64_C(1000000000000), &clock);
		struct json_object *all = whole(&ways[i]);

		assert_true(json_object_get_boolean(at(o, "decoded/complete")));
		forget_parts(o);
		forget_parts(all);
		assert_true(json_object_equal(o, all));
		json_object_put(all);
		json_object_put(o);
	}
}

static void decode_run_summary_with_deadline_says_whether_it_is_all(void **state)
{
	struct decode_options options = {
		.view = WORKER_VIEW_SUMMARY, .threads = 1, .has_deadline = 1};
	struct json_object *o;

	(void)state;
	assert_int_equal(decode(&halves, &options, &(struct clock){.step = 1}, &o), 0);
	assert_false(json_object_get_boolean(at(o, "complete")));
	assert_true(number_at(o, "bytes") < number_at(o, "traceBytes"));
	json_object_put(o);
	options.deadline_ns = UINT64_C(1000000000000);
	assert_int_equal(decode(&halves, &options, &(struct clock){.step = 1}, &o), 0);
	assert_true(json_object_get_boolean(at(o, "complete")));
	assert_int_equal(number_at(o, "bytes"), number_at(o, "traceBytes"));
	assert_int_equal(number_at(o, "instructions"), make_bundle_insns(2 * HALF));
	json_object_put(o);
}

/* Wherever time is up, what was done before is a report. */
static void decode_run_late_anywhere_gives_the_round_before(void **state)
{
	const struct make_bundle how = {.rounds = 8000, .rounds_per_psb = 40, .rounds_per_turn = 7};
	struct clock count = {.step = 1};
	uint64_t bytes = 0, insns = 0, given_up = 0, i;

	(void)state;
	json_object_put(report(&how, UINT64_C(1000000000), &count));
	for (i = 1; i < count.looks; i += 1 + count.looks / 50) {
		struct clock clock = {.step = 1, .stops_after = i};
		struct json_object *o = report(&how, UINT64_C(1000000000), &clock);
		uint64_t now = number_at(o, "decoded/bytes");

		assert_int_equal(number_at(o, "coverage/bytes"), now);
		assert_true(now >= bytes);
		/* Nothing of the one that was given up is in it. */
		if (now == bytes)
			assert_int_equal(number_at(o, "totals/instructions"), insns);
		else
			assert_true(number_at(o, "totals/instructions") > insns);
		insns = number_at(o, "totals/instructions");
		given_up += now == bytes;
		bytes = now;
		json_object_put(o);
	}
	assert_true(given_up > 5);
}

static void decode_run_repeat_gives_the_same_and_its_times(void **state)
{
	const struct decode_options once = {.view = WORKER_VIEW_SUMMARY, .hash = 1};
	const struct decode_options often = {.view = WORKER_VIEW_SUMMARY, .hash = 1, .repeat = 3};
	const struct make_bundle how = {.rounds = 200, .n_cpus = 2, .rounds_per_turn = 5};
	struct json_object *a, *b;
	struct clock clock = {0};

	(void)state;
	assert_int_equal(decode(&how, &once, &clock, &a), 0);
	assert_int_equal(decode(&how, &often, &clock, &b), 0);
	assert_false(json_object_object_get_ex(a, "passes", NULL));
	assert_int_equal(length_at(b, "passes"), 3);
	assert_int_equal(length_at(b, "passesElapsed"), 3);
	json_object_object_del(b, "passes");
	json_object_object_del(b, "passesElapsed");
	assert_true(json_object_equal(a, b));
	json_object_put(a);
	json_object_put(b);
}

static void decode_options_senseless_are_not_sound(void **state)
{
	const struct decode_options bad[] = {
		{.view = WORKER_VIEW_CALLS + 1},
		{.view = WORKER_VIEW_REPORT, .repeat = 1},
		{.view = WORKER_VIEW_SUMMARY, .repeat = WORKER_MAX_REPEAT + 1},
		{.view = WORKER_VIEW_SUMMARY, .repeat = 1, .has_deadline = 1},
		{.view = WORKER_VIEW_REPORT, .threads = WORKER_MAX_THREADS + 1},
		{.view = WORKER_VIEW_REPORT, .skim = WORKER_SKIM_TIP + 1},
		{.view = WORKER_VIEW_REPORT, .skim = WORKER_SKIM_TIP, .has_deadline = 1},
		{.view = WORKER_VIEW_SUMMARY, .skim = WORKER_SKIM_TIP, .hash = 1},
		{.view = WORKER_VIEW_BRANCHES, .has_deadline = 1},
		{.view = WORKER_VIEW_PACKETS, .has_deadline = 1},
		{.view = WORKER_VIEW_INSNS, .skim = WORKER_SKIM_PSB},
		{.view = WORKER_VIEW_REPORT, .keep = 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(decode_options_are_sound(&bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_run_without_deadline_says_nothing_of_it),
		cmocka_unit_test(decode_run_deadline_0_is_the_newest_segment),
		cmocka_unit_test(decode_run_short_deadline_reaches_threads_that_ran_before),
		cmocka_unit_test(decode_run_thread_from_cpu_without_trace_looks_no_further),
		cmocka_unit_test(decode_run_turn_that_ends_in_the_kernel_is_followed_back),
		cmocka_unit_test(decode_run_threads_of_one_segment_count_once),
		cmocka_unit_test(decode_run_window_of_time_reaches_threads_that_ran_before),
		cmocka_unit_test(decode_run_long_deadline_is_the_whole_report),
		cmocka_unit_test(decode_run_summary_with_deadline_says_whether_it_is_all),
		cmocka_unit_test(decode_run_late_anywhere_gives_the_round_before),
		cmocka_unit_test(decode_run_repeat_gives_the_same_and_its_times),
		cmocka_unit_test(decode_options_senseless_are_not_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
