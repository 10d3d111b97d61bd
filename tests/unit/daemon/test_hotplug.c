/*
 * When the source is asked to look after its events, and what the log says of it.
 */
#include "daemon/manager_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/log.h"

#define N_CPUS 4

struct fixture {
	sd_event *event;
	struct source source;
	struct source_cpu cpus[N_CPUS];
	struct hotplug *hotplug;
	size_t changes; /* the result of ops->tend */
	int tended;
};

static struct fixture *current;
static bool capturing;
static char lines[8][256];
static bool degraded[8]; /* logged as LOG_EVENT_RINGS_DEGRADED */
static size_t n_lines;

/* In place of daemon/job/jobs.c and daemon/base/log.c. */
bool jobs_capturing(const struct jobs *j)
{
	(void)j;
	return capturing;
}

void jobs_fit_area(struct jobs *j)
{
	(void)j;
}

void log_line(int priority, const char *snapshot, const char *format, ...)
{
	(void)snapshot;
	(void)format;
	assert_int_equal(priority, LOG_DEBUG);
}

void log_event(int priority, const char *id, const struct log_fields *fields, const char *format,
	       ...)
{
	va_list args;

	(void)fields;
	assert_true(n_lines < 8);
	degraded[n_lines] = id && strcmp(id, LOG_EVENT_RINGS_DEGRADED) == 0;
	assert_int_equal(priority, degraded[n_lines] ? LOG_WARNING : LOG_INFO);
	va_start(args, format);
	vsnprintf(lines[n_lines++], sizeof(lines[0]), format, args);
	va_end(args);
}

static size_t tend(struct source *s)
{
	assert_ptr_equal(s, &current->source);
	assert_false(capturing);
	current->tended++;
	return current->changes;
}

static const struct source_ops ops = {.name = "intel_pt", .tend = tend};
static const struct source_ops emulated = {.name = "emulated"};

static void set(struct fixture *f, size_t cpu, enum source_cpu_state state, const char *why)
{
	f->cpus[cpu].state = state;
	snprintf(f->cpus[cpu].why, sizeof(f->cpus[cpu].why), "%s", why);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_true(sd_event_new(&f->event) >= 0);
	f->source = (struct source){.ops = &ops, .cpus = f->cpus, .n_cpus = N_CPUS};
	for (uint32_t i = 0; i < N_CPUS; i++)
		f->cpus[i].cpu = 10 + i;
	current = f;
	capturing = false;
	n_lines = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	hotplug_free(f->hotplug);
	sd_event_unref(f->event);
	free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	assert_int_equal(hotplug_new(f->event, &f->source, NULL, &f->hotplug), 0);
}

static void hotplug_new_tells_what_is_not_traced_in_one_line(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 1; i < N_CPUS; i++)
		set(f, i, SOURCE_CPU_BUSY, "perf has it");
	begin(f);
	assert_int_equal(n_lines, 1);
	assert_string_equal(lines[0], "CPU 11 and others: busy: perf has it");
	assert_true(degraded[0]);
}

static void hotplug_look_tells_each_change_once(void **state)
{
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(n_lines, 0);
	set(f, 2, SOURCE_CPU_OFFLINE, "CPU 12 is offline");
	hotplug_look(f->hotplug);
	hotplug_look(f->hotplug);
	assert_int_equal(n_lines, 1);
	assert_string_equal(lines[0], "CPU 12: offline: CPU 12 is offline");
	set(f, 2, SOURCE_CPU_TRACING, "");
	set(f, 3, SOURCE_CPU_FAILED, "no memory");
	hotplug_look(f->hotplug);
	assert_int_equal(n_lines, 3);
	assert_string_equal(lines[1], "CPU 12: tracing");
	assert_string_equal(lines[2], "CPU 13: failed: no memory");
	assert_false(degraded[0] || degraded[1]);
	assert_true(degraded[2]);
	assert_int_equal(f->tended, 3);
}

static void hotplug_looks_later_while_a_job_has_the_events(void **state)
{
	struct fixture *f = *state;

	begin(f);
	capturing = true;
	hotplug_look(f->hotplug);
	hotplug_on_captured(f->hotplug); /* the next job has begun to capture */
	assert_int_equal(f->tended, 0);
	capturing = false;
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 1);
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 1);
}

static void hotplug_looks_at_once_when_a_cpu_does_not_trace_behind_a_snapshot(void **state)
{
	struct fixture *f = *state;

	begin(f);
	dark_add(&f->cpus[1].dark, DARK_COPY, NULL, 10, 20);
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 0);
	dark_begin(&f->cpus[1].dark, "pt-failed", "refused", 30);
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 1);
	/* A CPU that is known not to trace has its own looks. */
	set(f, 1, SOURCE_CPU_BUSY, "perf has it");
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 1);
}

/* Runs the loop until the source was looked after N times. */
static void await_looks(struct fixture *f, int n)
{
	while (f->tended < n)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

static void hotplug_looks_soon_when_the_kernel_has_stopped_an_event(void **state)
{
	struct fixture *f = *state;

	begin(f);
	dark_add(&f->cpus[1].dark, DARK_COPY, NULL, 10, 20);
	f->cpus[1].aux_ns = 15; /* the stop before the copy */
	hotplug_on_stop(f->hotplug);
	assert_int_equal(sd_event_run(f->event, 0), 0);
	f->cpus[1].aux_ns = 25;
	hotplug_on_stop(f->hotplug);
	hotplug_on_stop(f->hotplug);
	await_looks(f, 1);
	assert_int_equal(f->tended, 1);
	capturing = true;
	hotplug_on_stop(f->hotplug);
	capturing = false;
	hotplug_on_stop(f->hotplug);
	await_looks(f, 2);
}

static void hotplug_tells_for_how_long_a_cpu_was_not_traced(void **state)
{
	struct fixture *f = *state;

	begin(f);
	dark_add(&f->cpus[1].dark, DARK_COPY, NULL, 10, 20);
	dark_add(&f->cpus[1].dark, "pt-failed", "the event had stopped", 30, 2003000030);
	hotplug_look(f->hotplug);
	hotplug_look(f->hotplug);
	assert_int_equal(n_lines, 1);
	assert_string_equal(lines[0],
			    "CPU 11 was not traced for 2.003000 s: the event had stopped");
	assert_true(degraded[0]);
}

static void hotplug_is_impatient_where_there_is_hope(void **state)
{
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(hotplug_period_usec(f->hotplug), 10000000);
	set(f, 0, SOURCE_CPU_BUSY, "perf has it");
	hotplug_look(f->hotplug);
	assert_int_equal(hotplug_period_usec(f->hotplug), 1000000);
	set(f, 0, SOURCE_CPU_NO_PT, "none");
	hotplug_look(f->hotplug);
	assert_int_equal(hotplug_period_usec(f->hotplug), 10000000);
}

static void hotplug_gets_patient_with_time(void **state)
{
	static const uint64_t periods[] = {2, 4, 8, 16, 30, 30};
	struct fixture *f = *state;

	set(f, 0, SOURCE_CPU_BUSY, "perf has it");
	begin(f);
	assert_int_equal(hotplug_period_usec(f->hotplug), 1000000);
	for (size_t i = 0; i < 6; i++) {
		capturing = true; /* looks as the timer does, without waiting for the timer */
		hotplug_look(f->hotplug);
		capturing = false;
		hotplug_on_captured(f->hotplug);
		assert_int_equal(hotplug_period_usec(f->hotplug), periods[i] * 1000000);
	}
	f->changes = 1;
	capturing = true;
	hotplug_look(f->hotplug);
	capturing = false;
	hotplug_on_captured(f->hotplug);
	assert_int_equal(hotplug_period_usec(f->hotplug), 1000000);
}

static void hotplug_of_a_source_that_needs_no_care_does_nothing(void **state)
{
	struct fixture *f = *state;

	f->source.ops = &emulated;
	begin(f);
	hotplug_look(f->hotplug);
	hotplug_on_captured(f->hotplug);
	assert_int_equal(f->tended, 0);
}

#define EVENT(text) hotplug_is_cpu_event(text, sizeof(text))

static void hotplug_is_cpu_event_knows_them(void **state)
{
	(void)state;
	assert_true(EVENT("online@/devices/system/cpu/cpu3\0ACTION=online\0"
			  "DEVPATH=/devices/system/cpu/cpu3\0SUBSYSTEM=cpu\0SEQNUM=12"));
	assert_true(EVENT("offline@/x\0SUBSYSTEM=cpu\0ACTION=offline"));
	assert_false(EVENT("online@/x\0ACTION=online\0SUBSYSTEM=memory"));
	assert_false(EVENT("change@/x\0ACTION=change\0SUBSYSTEM=cpu"));
	assert_false(EVENT("online@/x\0ACTION=online\0SUBSYSTEM=cpufreq"));
	assert_false(EVENT("libudev\0\376\355\312\376\0ACTION=online\0SUBSYSTEM=cpu"));
	assert_false(EVENT(""));
	assert_false(hotplug_is_cpu_event("online@/x", 0));
	/* The kernel's messages end in a NUL. */
	assert_false(hotplug_is_cpu_event("online@/x\0ACTION=online\0SUBSYSTEM=cpu", 37));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hotplug_new_tells_what_is_not_traced_in_one_line),
		TEST(hotplug_look_tells_each_change_once),
		TEST(hotplug_looks_later_while_a_job_has_the_events),
		TEST(hotplug_looks_at_once_when_a_cpu_does_not_trace_behind_a_snapshot),
		TEST(hotplug_looks_soon_when_the_kernel_has_stopped_an_event),
		TEST(hotplug_tells_for_how_long_a_cpu_was_not_traced),
		TEST(hotplug_is_impatient_where_there_is_hope),
		TEST(hotplug_gets_patient_with_time),
		TEST(hotplug_of_a_source_that_needs_no_care_does_nothing),
		cmocka_unit_test(hotplug_is_cpu_event_knows_them),
	};

	return cmocka_run_group_tests_name("hotplug", tests, NULL, NULL);
}
