/*
 * daemon/record/silence: when a trace unit is said to be silent, and when a CPU is only idle.
 */
#include "daemon/record/intake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/log.h"

static unsigned warnings, notices;

/* In place of daemon/base/log.c. */
void log_event(int priority, const char *id, const struct log_fields *fields, const char *format,
	       ...)
{
	(void)id;
	(void)fields;
	assert_non_null(strstr(format, "the trace unit writes"));
	warnings += priority == LOG_WARNING;
	notices += priority == LOG_INFO;
}

struct fixture {
	struct source source;
	struct source_cpu cpu;
	struct intake_cpu seen;
	struct intake in;
};

/* A CPU whose ring stood still from 1000 to the stop at 5000, while user code ran for 700. */
static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->cpu = (struct source_cpu){
		.cpu = 3,
		.frozen_ns = 5000,
		.pulse = {.known = true, .stands = true, .since_ns = 1000, .user_ns = 700}};
	f->source = (struct source){.cpus = &f->cpu, .n_cpus = 1, .trace_user = true};
	f->seen = (struct intake_cpu){.turn_ns = 2000, .partial_ns = MANIFEST_ABSENT};
	f->in = (struct intake){.source = &f->source, .cpus = &f->seen};
	warnings = notices = 0;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void silence_judge_dead_unit_is_told_once_with_its_times(void **state)
{
	struct fixture *f = *state;

	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
	assert_int_equal(f->seen.silence.since_ns, 1000);
	assert_int_equal(f->seen.silence.until_ns, 5000);
	assert_int_equal(f->seen.silence.user_ns, 700);
	f->cpu.frozen_ns = 9000;
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
	assert_int_equal(f->seen.silence.until_ns, 9000);
	assert_int_equal(f->in.silences, 1);
	assert_int_equal(warnings, 1);
	f->cpu.pulse.stands = false;
	silence_judge(&f->in);
	assert_false(f->seen.silence.is);
	assert_int_equal(notices, 1);
}

static void expect_quiet(struct fixture *f)
{
	silence_judge(&f->in);
	assert_false(f->seen.silence.is);
	assert_int_equal(warnings + notices, 0);
}

static void silence_judge_idle_cpu_is_no_fault(void **state)
{
	struct fixture *f = *state;

	f->cpu.pulse.user_ns = 0;
	f->seen.turn_ns = 0;
	expect_quiet(f);
}

/* Threads of the kernel, and threads that run in the kernel only, where the kernel is not traced.
 */
static void silence_judge_turns_without_user_time_are_no_fault(void **state)
{
	struct fixture *f = *state;

	f->cpu.pulse.user_ns = 0;
	f->seen.busy = true;
	expect_quiet(f);
}

/* Two witnesses that contradict each other accuse nobody. */
static void silence_judge_user_time_without_a_thread_is_no_fault(void **state)
{
	struct fixture *f = *state;

	f->seen.turn_ns = 0;
	expect_quiet(f);
	f->seen.turn_ns = 5001; /* behind the stop */
	expect_quiet(f);
}

static void silence_judge_thread_that_has_the_cpu_all_the_time_counts(void **state)
{
	struct fixture *f = *state;

	f->seen.turn_ns = 0;
	f->seen.busy = true;
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
}

static void silence_judge_unit_that_writes_is_no_fault(void **state)
{
	struct fixture *f = *state;

	f->cpu.pulse.stands = false;
	expect_quiet(f);
}

static void silence_judge_kvm_has_its_own_gap(void **state)
{
	struct fixture *f = *state;

	f->seen.partial_ns = 4999;
	expect_quiet(f);
	f->seen.partial_ns = 999;
	f->seen.turn_ns = 2000;
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
}

static void silence_judge_traced_kernel_needs_a_switch_only(void **state)
{
	struct fixture *f = *state;

	f->cpu.pulse.user_ns = 0;
	f->source.trace_kernel = true;
	f->source.trace_user = false;
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
	f->cpu.pulse.stands = false;
	silence_judge(&f->in);
	/* User code is not to be traced. */
	f->cpu.pulse.stands = true;
	f->cpu.pulse.user_ns = 700;
	f->seen.busy = true;
	silence_judge(&f->in);
	assert_false(f->seen.silence.is);
}

/* The fault outlives a ring that was opened anew, until the next two stops say otherwise. */
static void silence_judge_new_ring_proves_nothing(void **state)
{
	struct fixture *f = *state;

	silence_judge(&f->in);
	f->cpu.pulse = (struct pulse){0};
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
	f->cpu.state = SOURCE_CPU_OFFLINE;
	f->cpu.pulse = (struct pulse){.known = true};
	silence_judge(&f->in);
	assert_true(f->seen.silence.is);
	assert_int_equal(notices, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(silence_judge_dead_unit_is_told_once_with_its_times),
		TEST(silence_judge_idle_cpu_is_no_fault),
		TEST(silence_judge_turns_without_user_time_are_no_fault),
		TEST(silence_judge_user_time_without_a_thread_is_no_fault),
		TEST(silence_judge_thread_that_has_the_cpu_all_the_time_counts),
		TEST(silence_judge_unit_that_writes_is_no_fault),
		TEST(silence_judge_kvm_has_its_own_gap),
		TEST(silence_judge_traced_kernel_needs_a_switch_only),
		TEST(silence_judge_new_ring_proves_nothing),
	};

	return cmocka_run_group_tests_name("silence", tests, NULL, NULL);
}
