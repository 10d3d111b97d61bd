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

static void assert_note(const struct manifest_note *n, const char *kind, uint32_t cpu,
			uint64_t since, uint64_t until)
{
	assert_string_equal(n->kind, kind);
	assert_int_equal(n->cpu, cpu);
	assert_int_equal(n->since_ns, since);
	assert_int_equal(n->until_ns, until);
	assert_int_equal(n->count, 1);
}

/* A CPU that was away or yielded and is back, one that is away, and the snapshot's own copy. */
static void cpunotes_add_each_dark_time_before_the_stop_is_a_note(void **state)
{
	struct source_cpu cpus[3] = {{.cpu = 10, .frozen_ns = 1000},
				     {.cpu = 11, .frozen_ns = 1010},
				     {.cpu = 12, .frozen_ns = 1010}};
	struct source s = {.cpus = cpus, .n_cpus = 3};
	struct manifest m;

	(void)state;
	dark_add(&cpus[0].dark, "pt-yielded", "on request", 100, 300);
	dark_add(&cpus[0].dark, DARK_COPY, NULL, 400, 420);
	dark_add(&cpus[0].dark, DARK_COPY, NULL, 1000, 1050);
	dark_begin(&cpus[1].dark, "pt-failed", "refused", 1010);
	cpus[2].state = SOURCE_CPU_OFFLINE;
	dark_begin(&cpus[2].dark, "cpu-offline", "CPU 12 is offline", 700);
	manifest_init(&m);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, 3);
	assert_note(&m.notes[0], DARK_COPY, 10, 400, 420);
	assert_null(m.notes[0].why);
	assert_note(&m.notes[1], "pt-yielded", 10, 100, 300);
	assert_string_equal(m.notes[1].why, "on request");
	assert_note(&m.notes[2], "cpu-offline", 12, 700, 1010);
	manifest_done(&m);
}

static void cpunotes_add_without_a_clock_the_state_is_told(void **state)
{
	struct source_cpu cpu = {
		.state = SOURCE_CPU_BUSY, .why = "perf has it", .frozen_ns = MANIFEST_ABSENT};
	struct source s = {.cpus = &cpu, .n_cpus = 1};
	struct manifest m;

	(void)state;
	dark_add(&cpu.dark, DARK_COPY, NULL, MANIFEST_ABSENT, MANIFEST_ABSENT);
	dark_add(&cpu.dark, "pt-failed", "stopped", MANIFEST_ABSENT, MANIFEST_ABSENT);
	dark_begin(&cpu.dark, "pt-busy", "perf has it", MANIFEST_ABSENT);
	manifest_init(&m);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, 2);
	assert_string_equal(m.notes[0].kind, "pt-busy");
	assert_int_equal(m.notes[0].cpu, MANIFEST_ANY);
	assert_note(&m.notes[1], "pt-failed", 0, MANIFEST_ABSENT, MANIFEST_ABSENT);
	manifest_done(&m);
}

static void cpunotes_add_counts_what_has_no_room(void **state)
{
	struct source_cpu cpu = {.cpu = 5, .frozen_ns = 100000};
	struct source s = {.cpus = &cpu, .n_cpus = 1};
	struct manifest m;

	(void)state;
	for (uint64_t i = 0; i < DARK_SPANS + 7; i++)
		dark_add(&cpu.dark, DARK_COPY, NULL, 10 * i, 10 * i + 4);
	manifest_init(&m);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, DARK_SPANS + 1);
	assert_string_equal(m.notes[DARK_SPANS].kind, DARK_UNLISTED);
	assert_int_equal(m.notes[DARK_SPANS].cpu, 5);
	assert_int_equal(m.notes[DARK_SPANS].count, 7);
	assert_int_equal(m.notes[DARK_SPANS].until_ns, 64);
	manifest_done(&m);
	manifest_init(&m);
	while (m.n_notes < MANIFEST_MAX_NOTES - 260)
		assert_int_equal(manifest_add_note(&m, "lost", 1, NULL), 0);
	assert_int_equal(cpunotes_add(&s, &m), 0);
	assert_int_equal(m.n_notes, MANIFEST_MAX_NOTES - 255);
	assert_note(&m.notes[m.n_notes - 2], DARK_COPY, 5, 10 * (DARK_SPANS + 3),
		    10 * (DARK_SPANS + 3) + 4);
	assert_string_equal(m.notes[m.n_notes - 1].kind, DARK_UNLISTED);
	assert_int_equal(m.notes[m.n_notes - 1].count, DARK_SPANS - 4 + 7);
	manifest_done(&m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpunotes_add_all_trace_says_nothing),
		cmocka_unit_test(cpunotes_add_each_state_and_reason_is_one_note),
		cmocka_unit_test(cpunotes_add_each_dark_time_before_the_stop_is_a_note),
		cmocka_unit_test(cpunotes_add_without_a_clock_the_state_is_told),
		cmocka_unit_test(cpunotes_add_counts_what_has_no_room),
		cmocka_unit_test(cpunotes_add_more_reasons_than_there_is_room_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
