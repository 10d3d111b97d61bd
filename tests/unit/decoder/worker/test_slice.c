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

#define ROUNDS 2000u
#define ALL    ((uint64_t)ROUNDS * MAKE_ROUND)

/* Two threads take turns on two CPUs, which have the same trace. */
static const struct make_bundle turns = {
	.rounds = ROUNDS, .rounds_per_psb = 20, .rounds_per_turn = 100, .n_cpus = 2};
/* The first half is another thread's. */
static const struct make_bundle halves = {
	.rounds = ROUNDS, .rounds_per_psb = 20, .rounds_per_turn = ROUNDS / 2};

static int decode(const struct make_bundle *how, const struct decode_slice *slice,
		  struct json_object **ret)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT, .slice = *slice};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;
	char *text;
	int r;

	assert_true(decode_options_are_sound(&options));
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	r = decode_run(bundle, &options, &sink, &faults);
	bundle_free(bundle);
	text = made_text(sink.fd, &size);
	*ret = json_tokener_parse(text);
	free(text);
	return r;
}

static struct json_object *report(const struct make_bundle *how, struct decode_slice slice)
{
	struct json_object *o;

	assert_int_equal(decode(how, &slice, &o), 0);
	assert_non_null(o);
	return o;
}

/* From FROM to TO, ns from the begin of the trace on. */
static struct decode_slice span(uint64_t from, uint64_t to)
{
	return (struct decode_slice){
		.from = WORKER_TIME_BEGIN, .to = WORKER_TIME_BEGIN, .from_ns = from, .to_ns = to};
}

static uint64_t sum_of(struct json_object *o, const char *list, const char *key)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < length_at(o, list); i++)
		sum += number_at(json_object_array_get_idx(at(o, list), i), key);
	return sum;
}

static void decode_run_without_slice_has_no_key(void **state)
{
	struct json_object *o = report(&halves, (struct decode_slice){0});

	(void)state;
	assert_false(json_object_object_get_ex(o, "slice", NULL));
	json_object_put(o);
}

static void decode_run_span_has_its_own_thread_alone(void **state)
{
	struct json_object *all = report(&halves, (struct decode_slice){0});
	struct json_object *first = report(&halves, span(ALL / 8, ALL / 4));
	const uint64_t whole = number_at(all, "totals/instructions");

	(void)state;
	/* An eighth, and the rest of two segments. */
	assert_in_range(number_at(first, "totals/instructions"), whole / 8, whole / 8 + whole / 40);
	assert_int_equal(length_at(first, "threads"), 1);
	assert_int_equal(number_at(first, "threads/0/instructions"),
			 number_at(first, "totals/instructions"));
	assert_int_equal(length_at(first, "turns"), 1);
	assert_int_equal(length_at(first, "gaps"), 0);
	assert_true(json_object_get_double(at(first, "coverage/percent")) == 100);
	assert_true(json_object_get_int64(at(first, "slice/fromNSec")) <
		    json_object_get_int64(at(first, "slice/toNSec")));
	assert_null(at(first, "slice/pid"));
	/* What the thread did behind the slice is not known. */
	assert_null(at(first, "threads/0/state"));
	assert_int_equal(length_at(first, "suspects"), 0);
	json_object_put(first);
	json_object_put(all);
}

static void decode_run_span_lies_within_its_segments(void **state)
{
	struct json_object *o = report(&halves, span(ALL / 2, ALL * 3 / 4));
	const int64_t from = json_object_get_int64(at(o, "slice/fromNSec"));
	const int64_t to = json_object_get_int64(at(o, "slice/toNSec"));
	const int64_t segment = 20 * MAKE_ROUND + 1000;

	(void)state;
	assert_in_range(from - json_object_get_int64(at(o, "cpus/0/begin/atNSec")), 0, segment);
	assert_in_range(json_object_get_int64(at(o, "cpus/0/end/atNSec")) - to, 0, segment);
	assert_true(number_at(o, "coverage/bytes") == number_at(o, "coverage/bytesDecoded"));
	json_object_put(o);
}

static void decode_run_spans_side_by_side_have_everything(void **state)
{
	struct json_object *all = report(&turns, (struct decode_slice){0});
	uint64_t sum = 0;

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		struct json_object *o = report(&turns, span(ALL * i / 8, ALL * (i + 1) / 8 + 1));

		sum += number_at(o, "totals/instructions");
		assert_int_equal(length_at(o, "gaps"), 0);
		json_object_put(o);
	}
	assert_true(sum >= number_at(all, "totals/instructions"));
	json_object_put(all);
}

static void decode_run_span_to_the_end_knows_states_and_who_ran_before(void **state)
{
	struct json_object *o = report(
		&halves, (struct decode_slice){.from = WORKER_TIME_TRIGGER, .from_ns = ALL / 8});
	size_t before = 0;

	(void)state;
	assert_null(at(o, "slice/toNSec"));
	assert_int_equal(length_at(o, "threads"), 2);
	for (size_t i = 0; i < 2; i++) {
		struct json_object *t = json_object_array_get_idx(at(o, "threads"), i);

		assert_non_null(at(t, "state"));
		before += strcmp(text_at(t, "window"), "last-stretch") == 0;
	}
	assert_int_equal(before, 1);
	json_object_put(o);
}

static void decode_run_empty_span_is_an_error(void **state)
{
	const struct decode_slice none = span(ALL / 2, ALL / 2), behind = span(9 * ALL, 10 * ALL);
	struct json_object *o;

	(void)state;
	assert_int_equal(decode(&halves, &none, &o), -ERANGE);
	assert_int_equal(decode(&halves, &behind, &o), -ERANGE);
}

static void decode_run_span_without_times_is_an_error(void **state)
{
	const struct decode_slice half = span(0, ALL / 2);
	struct make_bundle how = halves;
	struct json_object *o;

	(void)state;
	how.monotonic = true;
	how.rounds_per_turn = 0;
	assert_int_equal(decode(&how, &half, &o), -ENOTSUP);
}

static void decode_run_threads_and_cpus_add_up_to_all(void **state)
{
	struct json_object *all = report(&turns, (struct decode_slice){0});
	const struct decode_slice parts[][2] = {
		{{.has_tid = 1, .tid = MAKE_TID}, {.has_tid = 1, .tid = MAKE_TID + 1}},
		{{.has_cpu = 1, .cpu = 0}, {.has_cpu = 1, .cpu = 1}},
	};

	(void)state;
	assert_true(number_at(all, "totals/instructions") > 0);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct json_object *one = report(&turns, parts[i][0]);
		struct json_object *two = report(&turns, parts[i][1]);

		assert_true(sum_of(one, "functions", "selfInstructions") > 0);
		assert_int_equal(sum_of(one, "functions", "selfInstructions") +
					 sum_of(two, "functions", "selfInstructions"),
				 sum_of(all, "functions", "selfInstructions"));
		/* Totals are of all. */
		assert_int_equal(number_at(one, "totals/instructions"),
				 number_at(all, "totals/instructions"));
		assert_int_equal(length_at(one, "suspects"), 0);
		json_object_put(one);
		json_object_put(two);
	}
	json_object_put(all);
}

static void decode_run_name_selects_threads(void **state)
{
	struct json_object *all = report(&turns, (struct decode_slice){0});
	struct json_object *same = report(&turns, (struct decode_slice){.comm = "*"});
	struct json_object *none = report(&turns, (struct decode_slice){.comm = "nobody?"});

	(void)state;
	assert_int_equal(sum_of(same, "functions", "selfInstructions"),
			 sum_of(all, "functions", "selfInstructions"));
	assert_int_equal(sum_of(none, "functions", "selfInstructions"), 0);
	json_object_put(none);
	json_object_put(same);
	json_object_put(all);
}

static void decode_options_slices_go_with_some_views(void **state)
{
	const struct decode_slice half = span(0, ALL / 2), one = {.has_pid = 1, .pid = 4};
	const struct decode_options bad[] = {
		{.view = WORKER_VIEW_SUMMARY, .slice = half},
		{.view = WORKER_VIEW_CALLS, .slice = one},
		{.view = WORKER_VIEW_REPORT, .slice = half, .has_deadline = 1},
		{.view = WORKER_VIEW_REPORT, .slice = half, .skim = WORKER_SKIM_PSB},
		{.view = WORKER_VIEW_REPORT, .slice = half, .keep = 1},
		{.view = WORKER_VIEW_REPORT, .slice = one, .has_only_uid = 1},
		{.view = WORKER_VIEW_REPORT, .slice = {.has_cpu = 2}},
		{.view = WORKER_VIEW_REPORT, .slice = {.from = WORKER_TIME_TRIGGER + 1}},
		{.view = WORKER_VIEW_BRANCHES, .slice = half},
	};
	struct decode_options open = {.view = WORKER_VIEW_REPORT};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(decode_options_are_sound(&bad[i]));
	memset(open.slice.comm, 'a', sizeof(open.slice.comm));
	assert_false(decode_options_are_sound(&open));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decode_run_without_slice_has_no_key),
		cmocka_unit_test(decode_run_span_has_its_own_thread_alone),
		cmocka_unit_test(decode_run_span_lies_within_its_segments),
		cmocka_unit_test(decode_run_spans_side_by_side_have_everything),
		cmocka_unit_test(decode_run_span_to_the_end_knows_states_and_who_ran_before),
		cmocka_unit_test(decode_run_empty_span_is_an_error),
		cmocka_unit_test(decode_run_span_without_times_is_an_error),
		cmocka_unit_test(decode_run_threads_and_cpus_add_up_to_all),
		cmocka_unit_test(decode_run_name_selects_threads),
		cmocka_unit_test(decode_options_slices_go_with_some_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
