/*
 * capture/ring/pulse: a ring that stands still, beside the time that user code ran.
 */
#include "capture/ring/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

#define PAGE 4096u
#define STEP 10u

struct fixture {
	uint8_t *memory;
	struct ring ring;
	struct pulse pulse;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct perf_event_mmap_page *page;

	f->memory = aligned_alloc(PAGE, 3 * PAGE);
	memset(f->memory, 0, 3 * PAGE);
	page = (struct perf_event_mmap_page *)f->memory;
	page->data_offset = PAGE;
	page->data_size = PAGE;
	page->aux_offset = 2 * PAGE;
	page->aux_size = PAGE;
	page->aux_head = 100;
	assert_int_equal(ring_init(&f->ring, page, 3 * PAGE, NULL), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->memory);
	free(f);
	return 0;
}

/* A stop at NS, a restart 5 ns later, and a reading of RAN another 5 ns later. */
static void stop(struct fixture *f, uint64_t ns, uint64_t ran)
{
	const struct pulse_times times = {
		.stop_ns = ns, .restart_ns = ns + 5, .read_ns = ns + 10, .ran_ns = ran};

	pulse_stop(&f->pulse, &f->ring);
	pulse_restart(&f->pulse, &times, STEP);
}

static void pulse_of_an_idle_cpu_stands_without_user_time(void **state)
{
	struct fixture *f = *state;

	stop(f, 1000, 500);
	assert_false(f->pulse.stands);
	stop(f, 2000, 500);
	assert_true(f->pulse.stands);
	assert_int_equal(f->pulse.since_ns, 1005);
	assert_int_equal(f->pulse.user_ns, 0);
}

/* Code that may have run behind the stop is not counted, however often the CPU is stopped. */
static void pulse_user_time_while_the_cpu_was_not_traced_does_not_count(void **state)
{
	struct fixture *f = *state;

	stop(f, 1000, 500);
	for (uint64_t i = 1; i < 50; i++) {
		stop(f, 1000 + 1000 * i, 500 + i * (10 + STEP));
		assert_true(f->pulse.stands);
		assert_int_equal(f->pulse.user_ns, 0);
	}
}

static void pulse_of_a_dead_unit_sums_up_what_ran(void **state)
{
	struct fixture *f = *state;

	stop(f, 1000, 500);
	stop(f, 2000, 500 + 300);
	assert_int_equal(f->pulse.user_ns, 300 - 10 - STEP);
	stop(f, 3000, 500 + 300 + 50);
	assert_int_equal(f->pulse.user_ns, 300 - 10 - STEP + 50 - 10 - STEP);
	assert_int_equal(f->pulse.since_ns, 1005);
	f->ring.page->aux_head = 101;
	stop(f, 4000, 2000);
	assert_false(f->pulse.stands);
	assert_int_equal(f->pulse.user_ns, 0);
	assert_int_equal(f->pulse.since_ns, 4005);
}

/* The unit wrote exactly a ring, or a multiple. */
static void pulse_same_head_with_other_bytes_is_life(void **state)
{
	struct fixture *f = *state;

	stop(f, 1000, 500);
	f->memory[2 * PAGE + 99] = 1;
	stop(f, 2000, 900);
	assert_false(f->pulse.stands);
}

static void pulse_unknown_times_claim_nothing(void **state)
{
	struct fixture *f = *state;

	stop(f, 1000, UINT64_MAX);
	stop(f, 2000, 900);
	assert_int_equal(f->pulse.user_ns, 0);
	stop(f, 3000, UINT64_MAX);
	assert_int_equal(f->pulse.user_ns, 0);
	stop(f, 4000, 900);
	stop(f, 5000, 800); /* the count was set back */
	assert_int_equal(f->pulse.user_ns, 0);
	f->pulse = (struct pulse){0};
	pulse_stop(&f->pulse, &f->ring);
	pulse_restart(&f->pulse,
		      &(struct pulse_times){MANIFEST_ABSENT, MANIFEST_ABSENT, MANIFEST_ABSENT, 100},
		      STEP);
	pulse_stop(&f->pulse, &f->ring);
	pulse_restart(&f->pulse,
		      &(struct pulse_times){MANIFEST_ABSENT, MANIFEST_ABSENT, MANIFEST_ABSENT, 900},
		      STEP);
	assert_int_equal(f->pulse.user_ns, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(pulse_of_an_idle_cpu_stands_without_user_time),
		CASE(pulse_user_time_while_the_cpu_was_not_traced_does_not_count),
		CASE(pulse_of_a_dead_unit_sums_up_what_ran),
		CASE(pulse_same_head_with_other_bytes_is_life),
		CASE(pulse_unknown_times_claim_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
