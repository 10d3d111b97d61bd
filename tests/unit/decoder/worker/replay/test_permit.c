/*
 * The processes of which a report may tell: the rule, and reports that hold to it.
 */
#include "decoder/worker/replay/permit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/decode_private.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"

#define USER  1000u
#define OTHER 1001u

/* The owner of the program of a made bundle. */
struct owner {
	uint32_t uid;
	uint64_t since;
	bool excluded;
};

static const struct owner since_ever = {USER, 1, false};

static struct bundle *owned_by(const struct make_bundle *how, const struct owner *owner)
{
	struct bundle *bundle = made_open(how);
	struct manifest *m = (struct manifest *)(uintptr_t)bundle_manifest(bundle);

	for (size_t i = 0; i < m->n_processes; i++) {
		if (m->processes[i].pid != MAKE_PID)
			continue;
		m->processes[i].uid = owner->uid;
		m->processes[i].uid_since_ns = owner->since;
		m->processes[i].excluded = owner->excluded;
	}
	m->sender_uid = OTHER;
	m->sender_pid = 99;
	m->reason = strdup("a secret reason");
	return bundle;
}

/* The report of such a bundle for UID (MANIFEST_ANY: for all), as text. */
static char *text_for(const struct make_bundle *how, const struct owner *owner, uint32_t uid)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT,
		.report_limit = REPORT_DEFAULT_LIMIT,
		.has_only_uid = uid != MANIFEST_ANY,
		.only_uid = uid,
	};
	struct bundle *bundle = owned_by(how, owner);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

static struct json_object *report_for(const struct make_bundle *how, const struct owner *owner,
				      uint32_t uid)
{
	CLEANUP_FREE char *text = text_for(how, owner, uid);
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	return o;
}

static void assert_nothing_of_the_program(const char *text)
{
	static const char *const words[] = {"loop",   "main",	 "leaf",   "0x4002",
					    "secret", "0xfffff", "471",	   "--for ever",
					    "abab",   "TSC",	 "kallsym"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(text, words[i]) != NULL)
			fail_msg("%s in %s", words[i], text);
}

static void assert_same(struct json_object *a, struct json_object *b, const char *path)
{
	if (!json_object_equal(at(a, path), at(b, path)))
		fail_msg("%s: %s and %s", path, text_at(a, path), text_at(b, path));
}

static void permit_thread_of_one_user_needs_him_for_certain_and_since_then(void **state)
{
	struct manifest_process processes[] = {
		{.pid = 1, .uid = USER, .uid_since_ns = 100},
		{.pid = 2, .uid = OTHER, .uid_since_ns = 100},
		{.pid = 3, .uid = USER, .uid_since_ns = MANIFEST_ABSENT},
		{.pid = 4, .uid = USER, .uid_since_ns = 100, .excluded = true},
		{.pid = 5, .uid = USER, .uid_since_ns = 100},
		{.pid = 5, .uid = USER, .uid_since_ns = 100},
	};
	const struct manifest m = {.processes = processes, .n_processes = ARRAY_SIZE(processes)};
	const struct decode_options options = {.has_only_uid = 1, .only_uid = USER};
	const struct timeline_thread old = {.pid = 1, .tid = 1, .begin = 50};
	const struct timeline_thread young = {.pid = 1, .tid = 7, .begin = 100};
	struct permit p;

	(void)state;
	assert_int_equal(permit_init(&p, &m, &options), 0);
	assert_int_equal(permit_thread(&p, &young, MANIFEST_ABSENT), PERMIT_YES);
	assert_int_equal(permit_thread(&p, &old, MANIFEST_ABSENT), PERMIT_NOT);
	assert_int_equal(permit_thread(&p, &old, 99), PERMIT_NOT);
	assert_int_equal(permit_thread(&p, &old, 100), PERMIT_YES);
	assert_int_equal(permit_thread(&p, NULL, 500), PERMIT_NOT);
	for (uint32_t pid = 2; pid < 7; pid++) {
		const struct timeline_thread other = {.pid = pid, .tid = pid, .begin = 200};

		assert_int_equal(permit_thread(&p, &other, 500),
				 pid == 4 ? PERMIT_EXCLUDED : PERMIT_NOT);
		assert_false(permit_pid(&p, pid));
	}
	assert_true(permit_pid(&p, 1));
	assert_false(permit_pid(&p, MANIFEST_ABSENT));
	assert_true(permit_process(&p, &processes[0]));
	assert_false(permit_process(&p, &processes[1]));
	assert_true(permit_address(&p, MAKE_MAIN));
	assert_false(permit_address(&p, MAKE_KERNEL));
	permit_done(&p);
}

static void permit_thread_of_all_leaves_out_whoever_is_excluded(void **state)
{
	struct manifest_process processes[] = {
		{.pid = 1, .uid = USER, .uid_since_ns = MANIFEST_ABSENT},
		{.pid = 2, .uid = USER, .excluded = true},
		{.pid = 2, .uid = USER},
	};
	const struct manifest m = {.processes = processes, .n_processes = ARRAY_SIZE(processes)};
	const struct decode_options options = {0};
	const struct timeline_thread one = {.pid = 1}, two = {.pid = 2}, unknown = {.pid = 3};
	struct permit p;

	(void)state;
	assert_int_equal(permit_init(&p, &m, &options), 0);
	assert_int_equal(permit_thread(&p, &one, 0), PERMIT_YES);
	assert_int_equal(permit_thread(&p, &two, 0), PERMIT_EXCLUDED);
	assert_int_equal(permit_thread(&p, &unknown, 0), PERMIT_YES);
	assert_int_equal(permit_thread(&p, NULL, 0), PERMIT_YES);
	assert_int_equal(permit_thread(NULL, &two, 0), PERMIT_YES);
	assert_true(permit_address(&p, MAKE_KERNEL));
	permit_done(&p);
}

static void permit_thread_where_some_are_excluded_leaves_out_whoever_is_not_listed(void **state)
{
	struct manifest_process processes[] = {
		{.pid = 1, .uid = USER, .uid_since_ns = MANIFEST_ABSENT},
	};
	const struct manifest m = {.processes = processes, .n_processes = 1, .excluding = true};
	const struct decode_options options = {0};
	const struct timeline_thread one = {.pid = 1}, unknown = {.pid = 3};
	struct permit p;

	(void)state;
	assert_int_equal(permit_init(&p, &m, &options), 0);
	assert_int_equal(permit_thread(&p, &one, 0), PERMIT_YES);
	assert_int_equal(permit_thread(&p, &unknown, 0), PERMIT_EXCLUDED);
	assert_int_equal(permit_thread(&p, NULL, 0), PERMIT_YES);
	permit_done(&p);
}

static void report_for_its_user_tells_of_a_program_what_the_full_one_does(void **state)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};
	struct json_object *full = report_for(&how, &since_ever, MANIFEST_ANY);
	struct json_object *own = report_for(&how, &since_ever, USER);

	(void)state;
	assert_int_equal(number_at(own, "onlyUid"), USER);
	assert_same(full, own, "threads");
	assert_same(full, own, "functions");
	assert_same(full, own, "turns");
	assert_same(full, own, "totals/instructions");
	assert_int_equal(length_at(own, "cpus"), 0);
	assert_int_equal(length_at(own, "gaps"), 1);
	assert_string_equal(text_at(own, "gaps/0/kind"), "not-permitted");
	assert_null(at(own, "gaps/0/atNSec"));
	assert_null(at(own, "trigger/reason"));
	assert_null(at(own, "trigger/sender"));
	assert_null(at(own, "processes/0/ppid"));
	assert_null(at(own, "coverage/percent"));
	assert_int_equal(number_at(own, "coverage/bytes"), 0);
	json_object_put(full);
	json_object_put(own);
}

static void report_for_another_user_tells_nothing_of_it(void **state)
{
	const struct make_bundle hows[] = {
		{.rounds = 20, .in_leaf = true},
		{.rounds = 20, .kernel = true},
		{.rounds = 20, .rounds_per_turn = 2, .n_cpus = 2},
		{.rounds = 20, .overflow = true, .note = "of a secret", .aux_flags = 1},
		{.rounds = 20, .untraced = true, .state = "busy", .why = "a secret"},
		{.rounds = 20, .lost_after = 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hows); i++) {
		CLEANUP_FREE char *text = text_for(&hows[i], &since_ever, OTHER);
		struct json_object *o = json_tokener_parse(text);

		json_object_object_del(at(o, "trigger"), "reason");
		json_object_object_del(at(o, "trigger"), "sender");
		assert_nothing_of_the_program(json_object_to_json_string(o));
		assert_int_equal(length_at(o, "threads"), 0);
		assert_int_equal(length_at(o, "turns"), 0);
		assert_int_equal(number_at(o, "totals/instructions"), 0);
		assert_int_equal(length_at(o, "gaps"), 1);
		json_object_put(o);
	}
}

static void report_for_its_user_of_a_trace_with_the_kernel_hides_its_addresses(void **state)
{
	const struct make_bundle how = {.rounds = 20, .kernel = true};
	CLEANUP_FREE char *text = text_for(&how, &since_ever, USER);
	struct json_object *o = json_tokener_parse(text);

	(void)state;
	assert_null(strstr(text, "0xffffffff"));
	assert_int_equal(length_at(o, "threads"), 1);
	json_object_put(o);
}

static void report_of_a_program_that_became_his_tells_only_of_then(void **state)
{
	const struct make_bundle how = {.rounds = 40, .rounds_per_turn = 4};
	const struct owner never = {USER, MANIFEST_ABSENT, false};
	const struct owner later = {USER, MAKE_TSC + 20 * MAKE_ROUND, false};
	struct json_object *all = report_for(&how, &since_ever, USER);
	struct json_object *part = report_for(&how, &later, USER);
	struct json_object *none = report_for(&how, &never, USER);

	(void)state;
	assert_int_equal(length_at(none, "threads"), 0);
	assert_int_equal(length_at(none, "processes"), 0);
	assert_int_equal(number_at(none, "totals/instructions"), 0);
	assert_in_range(number_at(part, "totals/instructions"), 1,
			number_at(all, "totals/instructions") * 6 / 10);
	assert_true(length_at(part, "turns") < length_at(all, "turns"));
	json_object_put(all);
	json_object_put(part);
	json_object_put(none);
}

static void report_of_an_excluded_program_has_gaps_of_that_name(void **state)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};
	const struct owner excluded = {USER, 1, true};
	struct json_object *o = report_for(&how, &excluded, MANIFEST_ANY);

	(void)state;
	assert_int_equal(length_at(o, "threads"), 0);
	assert_int_equal(length_at(o, "functions"), 0);
	assert_int_equal(number_at(o, "totals/instructions"), 0);
	assert_true(number_at(o, "gapCounts/excluded") > 0);
	for (size_t i = 0; i < length_at(o, "gaps"); i++) {
		struct json_object *gap = json_object_array_get_idx(at(o, "gaps"), i);

		assert_string_equal(text_at(gap, "kind"), "excluded");
		assert_null(at(gap, "place"));
		assert_non_null(at(gap, "offset"));
	}
	json_object_put(o);
	/* Neither is it told to himself. */
	o = report_for(&how, &excluded, USER);
	assert_int_equal(length_at(o, "threads"), 0);
	json_object_put(o);
}

struct cut {
	struct decode_job job;
	size_t stretches;
};

/* Each stretch twice, as if a batch had ended within it. */
static int on_cut_stretch(void *userdata, const struct replay_stretch *s)
{
	struct cut *c = userdata;
	struct replay_stretch more = *s;
	int r = decode_stretch(&c->job, s);

	c->stretches += !s->goes_on && s->n_items + s->n_gaps > 0;
	more.goes_on = true;
	return r == 0 ? decode_stretch(&c->job, &more) : r;
}

static void decode_stretch_of_an_excluded_program_that_goes_on_is_one_gap(void **state)
{
	const struct make_bundle how = {.rounds = 20, .in_leaf = true};
	const struct owner excluded = {USER, 1, true};
	struct bundle *bundle = owned_by(&how, &excluded);
	const struct decode_options options = {.view = WORKER_VIEW_REPORT};
	struct decode d;
	struct cut cut = {.job = {.d = &d, .options = &options, .views = {.options = &options}}};
	const struct replay_consumer consumer = {.stretch = on_cut_stretch, .userdata = &cut};
	struct replay *replay;
	struct permit permit = {0};

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	assert_int_equal(permit_init(&permit, bundle_manifest(bundle), &options), 0);
	replay->permit = &permit;
	assert_int_equal(decode_init(&d, replay), 0);
	assert_int_equal(replay_all(replay, &consumer), 0);
	assert_true(cut.stretches > 0);
	assert_int_equal(d.gaps.n, cut.stretches);
	decode_done(&d);
	replay_free(replay);
	permit_done(&permit);
	bundle_free(bundle);
}

static void decode_options_for_one_user_make_reports_only(void **state)
{
	const struct decode_options bad[] = {
		{.view = WORKER_VIEW_SUMMARY, .has_only_uid = 1},
		{.view = WORKER_VIEW_BRANCHES, .has_only_uid = 1},
		{.view = WORKER_VIEW_PACKETS, .has_only_uid = 1},
		{.view = WORKER_VIEW_REPORT, .has_only_uid = 1, .skim = WORKER_SKIM_TIP},
		{.view = WORKER_VIEW_REPORT, .has_only_uid = 1, .has_deadline = 1},
		{.view = WORKER_VIEW_REPORT, .has_only_uid = 1, .keep = 1},
		{.view = WORKER_VIEW_REPORT, .has_only_uid = 1, .gap = 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(decode_options_are_sound(&bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permit_thread_of_one_user_needs_him_for_certain_and_since_then),
		cmocka_unit_test(permit_thread_of_all_leaves_out_whoever_is_excluded),
		cmocka_unit_test(
			permit_thread_where_some_are_excluded_leaves_out_whoever_is_not_listed),
		cmocka_unit_test(report_for_its_user_tells_of_a_program_what_the_full_one_does),
		cmocka_unit_test(report_for_another_user_tells_nothing_of_it),
		cmocka_unit_test(
			report_for_its_user_of_a_trace_with_the_kernel_hides_its_addresses),
		cmocka_unit_test(report_of_a_program_that_became_his_tells_only_of_then),
		cmocka_unit_test(report_of_an_excluded_program_has_gaps_of_that_name),
		cmocka_unit_test(decode_stretch_of_an_excluded_program_that_goes_on_is_one_gap),
		cmocka_unit_test(decode_options_for_one_user_make_reports_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
