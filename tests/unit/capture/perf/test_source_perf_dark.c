/*
 * capture/perf/source_perf over a perf core in memory: restarts are confirmed, and each time in
 * which a CPU was not traced is listed with its begin and end.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "proto/base.h"
#include "tests/unit/capture/perf_host.h"

#define SECOND 1000000000u

static uint64_t now(const struct perf_host *h)
{
	return source_now_ns(h->source, 0);
}

/* Lets a second pass by the perf clock in which no event runs. */
static void pass_second(struct perf_host *h)
{
	h->source->clock.time_zero += SECOND;
}

static int stop(struct perf_host *h)
{
	int ret[4];

	h->source->ops->disable_all(h->source, UINT32_MAX, ret);
	return ret[0];
}

static int restart(struct perf_host *h, uint32_t index)
{
	return h->source->ops->enable(h->source, index);
}

static const struct dark *dark_of(const struct perf_host *h, uint32_t index)
{
	return &h->source->cpus[index].dark;
}

static const struct dark_span *newest(const struct perf_host *h, uint32_t index)
{
	const struct dark *d = dark_of(h, index);

	assert_true(d->n > 0);
	return dark_at(d, d->n - 1);
}

static void assert_span(const struct dark_span *s, const char *kind, uint64_t since_least,
			uint64_t since_most)
{
	assert_string_equal(s->kind, kind);
	assert_in_range(s->since_ns, since_least, since_most);
}

static void open_every_cpu_was_dark_until_its_event_ran(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(dark_of(h, i)->n, 1);
		assert_span(newest(h, i), DARK_START, 0, now(h));
		assert_in_range(newest(h, i)->until_ns, newest(h, i)->since_ns, now(h));
		assert_false(newest(h, i)->open);
	}
}

static void enable_that_the_kernel_only_says_it_did_is_tried_again_at_once(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(stop(h), 0);
	fake_perf.refuse[1] = PERF_EVENT_RESTARTS - 1;
	assert_int_equal(restart(h, 1), 0);
	assert_int_equal(fake_perf_running(1), 1);
}

static void enable_of_an_event_that_stays_in_error_is_no_success(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(stop(h), 0);
	fake_perf.refuse[1] = PERF_EVENT_RESTARTS;
	assert_int_equal(restart(h, 1), -EIO);
	assert_int_equal(fake_perf_running(1), 0);
	assert_int_equal(restart(h, 2), 0);
}

/* The event's own count of the time before the stop is no sign of life. */
static void enable_of_an_event_that_is_off_is_no_success(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	assert_int_equal(stop(h), 0);
	fake_perf_offline(3);
	assert_int_equal(restart(h, 3), -EIO);
	assert_int_equal(perf_host_state(h, 3), SOURCE_CPU_TRACING);
}

static void tend_after_a_refused_restart_opens_anew_and_ends_the_span(void **state)
{
	struct perf_host *h = *state;
	uint64_t stopped, mended;

	perf_host_must_open(h);
	assert_int_equal(stop(h), 0);
	fake_perf.refuse[1] = 2 * PERF_EVENT_RESTARTS;
	stopped = now(h);
	assert_int_equal(restart(h, 1), -EIO);
	/* The steps of freeze_snapshot(). */
	dark_begin(&h->source->cpus[1].dark, "pt-failed", "", stopped);
	mended = now(h);
	perf_host_tend(h);
	assert_int_equal(fake_perf_running(1), 1);
	assert_span(newest(h, 1), "pt-failed", stopped, stopped);
	assert_in_range(newest(h, 1)->until_ns, mended, now(h));
}

static void tend_event_that_fell_into_error_was_dark_since_its_aux_record(void **state)
{
	struct perf_host *h = *state;
	uint64_t died, found;

	perf_host_must_open(h);
	perf_host_tend(h);
	assert_int_equal(dark_of(h, 0)->n, 1);
	died = now(h);
	fake_perf_fail(0, true);
	h->source->cpus[0].aux_ns = died;
	pass_second(h);
	found = now(h);
	fake_perf.open_pt[0] = -EBUSY;
	/* The clock that tend() reads has no such second. */
	fake_perf.clock_zero = h->source->clock.time_zero;
	perf_host_tend(h);
	assert_int_equal(dark_of(h, 0)->n, 3);
	assert_span(dark_at(dark_of(h, 0), 1), "pt-failed", died, died);
	assert_in_range(dark_at(dark_of(h, 0), 1)->until_ns, found, now(h));
	assert_span(newest(h, 0), "pt-busy", found, now(h));
	assert_true(newest(h, 0)->open);
	assert_non_null(strstr(newest(h, 0)->why, "another user"));
}

static void tend_cpu_that_went_offline_is_dark_since_its_event_ended(void **state)
{
	struct perf_host *h = *state;
	uint64_t before, after, back;

	perf_host_must_open(h);
	before = now(h);
	fake_perf_offline(2);
	after = now(h);
	perf_host_online(h, "0-1,3\n");
	perf_host_tend(h);
	/* The event's own count is as exact as the clocks agree. */
	assert_span(newest(h, 2), "cpu-offline", before - 1000000, after + 1000000);
	assert_true(newest(h, 2)->open);
	perf_host_online(h, "0-3\n");
	back = now(h);
	perf_host_tend(h);
	assert_int_equal(perf_host_state(h, 2), SOURCE_CPU_TRACING);
	assert_in_range(newest(h, 2)->until_ns, back, now(h));
	assert_int_equal(dark_of(h, 2)->n, 2);
}

static void tend_cpu_that_was_away_unseen_was_dark(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	fake_perf_offline(1);
	perf_host_tend(h);
	assert_int_equal(perf_host_state(h, 1), SOURCE_CPU_TRACING);
	assert_int_equal(dark_of(h, 1)->n, 2);
	assert_span(newest(h, 1), "pt-failed", 0, now(h));
	assert_false(newest(h, 1)->open);
}

static void yield_is_one_span_up_to_the_return(void **state)
{
	struct perf_host *h = *state;
	uint64_t away, back;

	perf_host_must_open(h);
	away = now(h);
	assert_int_equal(h->source->ops->yield(h->source, true), 0);
	assert_span(newest(h, 3), "pt-yielded", away, now(h));
	assert_true(newest(h, 3)->open);
	perf_host_tend(h);
	back = now(h);
	assert_int_equal(h->source->ops->yield(h->source, false), 0);
	assert_int_equal(dark_of(h, 3)->n, 2);
	assert_in_range(newest(h, 3)->until_ns, back, now(h));
}

/* An event that fell into error before a snapshot stopped it. */
static void restart_of_an_event_in_error_tells_since_when_it_did_not_run(void **state)
{
	struct perf_host *h = *state;
	uint64_t died, stopped;

	perf_host_must_open(h);
	died = now(h);
	fake_perf_fail(2, false);
	pass_second(h);
	stopped = now(h);
	assert_int_equal(stop(h), 0);
	assert_int_equal(restart(h, 2), 0);
	assert_int_equal(dark_of(h, 2)->n, 2);
	/* Reading the clock and failing take less than the slack of a millisecond and a second. */
	assert_span(newest(h, 2), "pt-failed", 0, died + 2 * SECOND / 1000);
	assert_in_range(newest(h, 2)->until_ns, stopped, now(h));
	assert_true(newest(h, 2)->until_ns - newest(h, 2)->since_ns >= SECOND - SECOND / 100);
}

static void restart_of_an_event_that_paused_unseen_tells_for_how_long(void **state)
{
	struct perf_host *h = *state;
	uint64_t opened;
	unsigned us = 0;

	perf_host_must_open(h);
	opened = newest(h, 2)->until_ns;
	pass_second(h);
	assert_int_equal(stop(h), 0);
	assert_int_equal(restart(h, 2), 0);
	assert_int_equal(dark_of(h, 2)->n, 2);
	/* The pause was somewhere in this time. */
	assert_span(newest(h, 2), "pt-failed", 0, opened);
	assert_int_equal(
		sscanf(newest(h, 2)->why, "the kernel did not run the event for %u us", &us), 1);
	assert_in_range(us, 900000, 1000000);
	assert_int_equal(stop(h), 0);
	assert_int_equal(restart(h, 2), 0);
	assert_int_equal(dark_of(h, 2)->n, 2);
}

static struct perf_host *slow_host;

static void on_read(void)
{
	slow_host->source->clock.time_zero += SECOND / 100;
	fake_perf.later += SECOND / 100;
}

/* The kernel reads the event's time on the event's CPU, and the answer takes long. */
static void tend_and_restart_with_slow_answers_list_nothing(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	slow_host = h;
	fake_perf.on_read = on_read;
	for (int i = 0; i < 20; i++) {
		fake_perf.clock_zero = h->source->clock.time_zero;
		perf_host_tend(h);
		assert_int_equal(stop(h), 0);
		assert_int_equal(restart(h, 0), 0);
	}
	fake_perf.on_read = NULL;
	assert_int_equal(dark_of(h, 0)->count, 1);
}

static void restart_of_an_event_that_ran_up_to_its_stop_lists_nothing(void **state)
{
	struct perf_host *h = *state;

	perf_host_must_open(h);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(stop(h), 0);
		assert_int_equal(restart(h, 0), 0);
		perf_host_tend(h);
	}
	assert_int_equal(dark_of(h, 0)->n, 1);
	assert_int_equal(dark_of(h, 0)->count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, perf_host_set_up, perf_host_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(open_every_cpu_was_dark_until_its_event_ran),
		TEST(enable_that_the_kernel_only_says_it_did_is_tried_again_at_once),
		TEST(enable_of_an_event_that_stays_in_error_is_no_success),
		TEST(enable_of_an_event_that_is_off_is_no_success),
		TEST(tend_after_a_refused_restart_opens_anew_and_ends_the_span),
		TEST(tend_event_that_fell_into_error_was_dark_since_its_aux_record),
		TEST(tend_cpu_that_went_offline_is_dark_since_its_event_ended),
		TEST(tend_cpu_that_was_away_unseen_was_dark),
		TEST(yield_is_one_span_up_to_the_return),
		TEST(restart_of_an_event_in_error_tells_since_when_it_did_not_run),
		TEST(restart_of_an_event_that_paused_unseen_tells_for_how_long),
		TEST(tend_and_restart_with_slow_answers_list_nothing),
		TEST(restart_of_an_event_that_ran_up_to_its_stop_lists_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
