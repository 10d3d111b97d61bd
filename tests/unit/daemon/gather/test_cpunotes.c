/*
 * daemon/gather/host: what a manifest says of CPUs that do not trace.
 */
#include "daemon/gather/evidence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define CPUS 8

static void cpunotes_add_all_trace_says_nothing(void **state)
{
	struct source_cpu cpus[CPUS] = {0};
	struct source s = {.cpus = cpus, .n_cpus = CPUS};
	struct manifest m;

	(void)state;
	manifest_init(&m);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, 0);
	manifest_done(&m);
}

static void cpunotes_add_each_state_and_reason_is_one_note(void **state)
{
	static const struct {
		enum source_cpu_state state;
		const char *why;
	} are[CPUS] = {
		{SOURCE_CPU_BUSY, "perf (pid 1)"}, {SOURCE_CPU_TRACING, ""},
		{SOURCE_CPU_BUSY, "perf (pid 2)"}, {SOURCE_CPU_BUSY, "perf (pid 1)"},
		{SOURCE_CPU_OFFLINE, ""},	   {SOURCE_CPU_YIELDED, "for 10 minutes"},
		{SOURCE_CPU_FAILED, "EIO"},	   {SOURCE_CPU_NO_PT, "perf (pid 1)"},
	};
	static const struct {
		const char *kind;
		uint64_t count;
		const char *why;
	} expected[] = {
		{"pt-busy", 99, "of somebody else"},   {"pt-busy", 2, "perf (pid 1)"},
		{"pt-busy", 1, "perf (pid 2)"},	       {"cpu-offline", 1, NULL},
		{"pt-yielded", 1, "for 10 minutes"},   {"pt-failed", 1, "EIO"},
		{"pt-unavailable", 1, "perf (pid 1)"},
	};
	struct source_cpu cpus[CPUS] = {0};
	struct source s = {.cpus = cpus, .n_cpus = CPUS};
	struct manifest m;

	(void)state;
	for (size_t i = 0; i < CPUS; i++) {
		cpus[i].state = are[i].state;
		snprintf(cpus[i].why, sizeof(cpus[i].why), "%s", are[i].why);
	}
	manifest_init(&m);
	assert_int_equal(manifest_add_note(&m, "pt-busy", 99, "of somebody else"), 0);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(m.notes[i].kind, expected[i].kind);
		assert_int_equal(m.notes[i].count, expected[i].count);
		assert_true(!m.notes[i].why == !expected[i].why);
		if (expected[i].why)
			assert_string_equal(m.notes[i].why, expected[i].why);
	}
	manifest_done(&m);
}

static void cpunotes_add_more_reasons_than_there_is_room_are_left_out(void **state)
{
	struct source_cpu cpus[CPUS] = {0};
	struct source s = {.cpus = cpus, .n_cpus = CPUS};
	struct manifest m;

	(void)state;
	for (size_t i = 0; i < CPUS; i++) {
		cpus[i].state = SOURCE_CPU_FAILED;
		snprintf(cpus[i].why, sizeof(cpus[i].why), "%zu", i);
	}
	manifest_init(&m);
	for (size_t i = 0; i < MANIFEST_MAX_NOTES - 2; i++)
		assert_int_equal(manifest_add_note(&m, "lost", 1, NULL), 0);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, MANIFEST_MAX_NOTES);
	manifest_done(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpunotes_add_all_trace_says_nothing),
		cmocka_unit_test(cpunotes_add_each_state_and_reason_is_one_note),
		cmocka_unit_test(cpunotes_add_more_reasons_than_there_is_room_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
