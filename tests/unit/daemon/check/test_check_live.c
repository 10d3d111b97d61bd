/*
 * The findings of a running recorder about itself, and the one word for its state.
 */
#include "daemon/check/check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/record/intake.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/daemon/ring_source.h"
#include "tests/unit/daemon/scratch_dir.h"

#define N_CPUS 4

struct fixture {
	struct ring_source *source;
	struct source *base;
	struct intake_cpu cpus[N_CPUS];
	struct intake intake;
	struct command command;
	struct lease lease;
	struct status_from from;
	struct finding all[16];
	size_t n;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->source = ring_source_new(N_CPUS);
	f->base = ring_source_base(f->source);
	f->intake.source = f->base;
	f->intake.cpus = f->cpus;
	assert_int_equal(drain_new(1u << 20, 1000000, &f->intake.drain), 0);
	f->from = (struct status_from){
		.intake = &f->intake, .command = &f->command, .lease = &f->lease};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	drain_free(f->intake.drain);
	ring_source_free(f->source);
	free(f);
	return 0;
}

static void set(struct fixture *f, size_t from, size_t to, enum source_cpu_state state,
		const char *why)
{
	for (size_t i = from; i <= to; i++) {
		f->base->cpus[i].state = state;
		snprintf(f->base->cpus[i].why, SOURCE_WHY_SIZE, "%s", why);
	}
}

static void keep(void *userdata, const struct finding *finding)
{
	struct fixture *f = userdata;

	assert_true(f->n < 16);
	f->all[f->n++] = *finding;
}

/* Expects finding number I to be this one. */
static void expect(const struct fixture *f, size_t i, enum finding_level level, const char *what,
		   const char *text, const char *fix)
{
	assert_true(i < f->n);
	assert_int_equal(f->all[i].level, level);
	assert_string_equal(f->all[i].what, what);
	assert_string_equal(f->all[i].text, text);
	assert_non_null(strstr(f->all[i].fix, fix));
}

static void check_live_of_a_recorder_that_traces_says_how_many(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(status_state(&f->from), "tracing");
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 1);
	expect(f, 0, FINDING_OK, "recorder", "4 of 4 CPUs are traced (emulated)", "");
}

static void check_live_joins_cpus_with_the_same_reason(void **state)
{
	struct fixture *f = *state;

	set(f, 0, 1, SOURCE_CPU_BUSY, "perf (pid 7) has it");
	set(f, 2, 2, SOURCE_CPU_BUSY, "gdb (pid 8) has it");
	assert_string_equal(status_state(&f->from), "partial");
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 3);
	expect(f, 0, FINDING_OK, "recorder", "1 of 4 CPUs are traced (emulated)", "");
	expect(f, 1, FINDING_WARNING, "cpus", "CPU 0 and others: busy: perf (pid 7) has it",
	       "as soon as it is free");
	expect(f, 2, FINDING_WARNING, "cpus", "CPU 2: busy: gdb (pid 8) has it",
	       "as soon as it is free");
}

static void check_live_of_a_recorder_that_traces_nothing_is_a_failure(void **state)
{
	struct fixture *f = *state;

	set(f, 0, 2, SOURCE_CPU_NO_PT, "no Intel PT");
	set(f, 3, 3, SOURCE_CPU_FAILED, "no memory");
	assert_string_equal(status_state(&f->from), "degraded");
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 2);
	expect(f, 0, FINDING_FAILURE, "recorder",
	       "no CPU is traced: only the kernel's records are recorded (degraded)",
	       "other lines");
	expect(f, 1, FINDING_WARNING, "cpus", "CPU 3: failed: no memory", "tried again");
}

static void check_live_of_cpus_that_are_away_notes_them(void **state)
{
	struct fixture *f = *state;

	set(f, 3, 3, SOURCE_CPU_OFFLINE, "CPU 3 is offline");
	assert_string_equal(status_state(&f->from), "tracing");
	check_live(&f->from, keep, f);
	expect(f, 0, FINDING_OK, "recorder", "3 of 3 CPUs are traced (emulated)", "");
	expect(f, 1, FINDING_NOTE, "cpus", "CPU 3: offline: CPU 3 is offline", "");
}

static void check_live_of_a_yielded_recorder_is_no_failure(void **state)
{
	struct fixture *f = *state;

	set(f, 0, 3, SOURCE_CPU_YIELDED, "handed back");
	f->lease.away = true;
	assert_string_equal(status_state(&f->from), "yielded");
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 1);
	expect(f, 0, FINDING_NOTE, "recorder", "Intel PT is handed back: no CPU is traced",
	       "yield --end");
}

static void check_live_tells_of_small_rings_and_losses(void **state)
{
	struct fixture *f = *state;

	f->base->sizes_note = "trace ring 4M instead of 8M";
	f->base->sideband_missing = "text_poke";
	f->cpus[1].lost = 3;
	f->cpus[2].lost = 4;
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 4);
	expect(f, 1, FINDING_WARNING, "rings", "trace ring 4M instead of 8M", "RingBudget=");
	expect(f, 2, FINDING_WARNING, "rings", "recorded without: text_poke", "newer kernel");
	expect(f, 3, FINDING_WARNING, "lost",
	       "7 sideband records were lost since the start: which thread ran when is "
	       "less certain",
	       "--data-size=, SidebandRingSize=");
}

/* A stored snapshot of SIZE bytes, pinned. */
static void check_live_tells_of_silent_units_and_stopped_events(void **state)
{
	struct fixture *f = *state;

	f->cpus[1].silence = f->cpus[3].silence =
		(struct silence){.is = true, .user_ns = 120000000};
	dark_add(&f->base->cpus[0].dark, DARK_COPY, NULL, 10, 20);
	dark_add(&f->base->cpus[0].dark, "pt-failed", "stopped", 0, 3000000000);
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 3);
	expect(f, 1, FINDING_WARNING, "silent",
	       "CPU 1 and others: user code ran for 120 ms, and the trace unit wrote nothing "
	       "(pt-silent)",
	       "yield");
	expect(f, 2, FINDING_NOTE, "dark",
	       "the kernel stopped or refused to trace CPUs 1 times, for 3000 ms in all; they are "
	       "traced again",
	       "");
}

static void pin_one(struct store *s, size_t size)
{
	CLEANUP_FREE char *bytes = calloc(1, size);
	struct store_pins pins;
	struct entry e;
	int fd;

	assert_int_equal(memfd_new("test", 0, &fd), 0);
	assert_int_equal(memfd_write_all(fd, bytes, size), 0);
	entry_init(&e);
	store_new_id(s, 1, "abcdef01", e.id);
	assert_int_equal(store_add(s, &e), 0);
	assert_int_equal(store_file_put(store_dir_fd(s), e.id, STORE_BUNDLE, fd, size), 0);
	close(fd);
	e.state = ENTRY_DONE;
	store_end(s, &e, -EBADF, -EBADF);
	assert_int_equal(store_pin(s, e.id, true, &pins), 0);
}

static void check_live_tells_of_pinned_ones_that_leave_too_little(void **state)
{
	struct store_limits limits = {30u << 20, 10, 2};
	struct fixture *f = *state;
	char dir[SCRATCH_DIR_SIZE], why[256];
	struct store *s;

	scratch_dir_make(dir);
	for (size_t i = 0; i < N_CPUS; i++)
		f->base->cpus[i].pt.aux_size = 4u << 20;
	assert_int_equal(store_new(dir, &limits, &s, why, sizeof(why)), 0);
	f->from.store = s;
	pin_one(s, 10u << 20);
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 1);
	limits.max_use = 25u << 20;
	store_use_limits(s, &limits);
	check_live(&f->from, keep, f);
	assert_int_equal(f->n, 3);
	expect(f, 2, FINDING_WARNING, "pinned",
	       "pinned snapshots (1) leave 15 MiB of MaxUse= to new ones, and a snapshot of all "
	       "rings takes 16 MiB",
	       "ptsnapctl unpin");
	for (size_t i = 0; i < N_CPUS; i++)
		f->base->cpus[i].pt.aux_size = RING_SOURCE_AUX;
	store_free(s);
	scratch_dir_remove(dir);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(check_live_of_a_recorder_that_traces_says_how_many),
		TEST(check_live_joins_cpus_with_the_same_reason),
		TEST(check_live_of_a_recorder_that_traces_nothing_is_a_failure),
		TEST(check_live_of_cpus_that_are_away_notes_them),
		TEST(check_live_of_a_yielded_recorder_is_no_failure),
		TEST(check_live_tells_of_small_rings_and_losses),
		TEST(check_live_tells_of_silent_units_and_stopped_events),
		TEST(check_live_tells_of_pinned_ones_that_leave_too_little),
	};

	return cmocka_run_group_tests_name("check_live", tests, NULL, NULL);
}
