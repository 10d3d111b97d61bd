/*
 * Intel PT is handed back for a time, for ever, while a job captures, and by a source that cannot.
 */
#include "daemon/job/lease.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

struct fixture {
	sd_event *event;
	struct source source;
	struct lease lease;
	int answer;	   /* of the source */
	int yields, takes; /* calls of ops->yield */
	int done, last_done, changed;
};

static struct fixture *current;
static bool capturing;

/* In place of daemon/job/jobs.c. */
bool jobs_capturing(const struct jobs *j)
{
	(void)j;
	return capturing;
}

void jobs_fit_area(struct jobs *j)
{
	(void)j;
}

static int yield(struct source *s, bool away)
{
	assert_ptr_equal(s, &current->source);
	assert_false(capturing);
	if (current->answer == 0) {
		current->yields += away;
		current->takes += !away;
	}
	return current->answer;
}

static const struct source_ops able = {.name = "intel_pt", .yield = yield};
static const struct source_ops unable = {.name = "emulated"};

static void on_done(void *userdata, int r)
{
	struct fixture *f = userdata;

	f->done++;
	f->last_done = r;
}

static void on_changed(void *userdata)
{
	struct fixture *f = userdata;

	f->changed++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct lease_handler handler = {f, on_done, on_changed};

	assert_true(sd_event_new(&f->event) >= 0);
	f->source.ops = &able;
	lease_init(&f->lease, f->event, &f->source, NULL, &handler);
	current = f;
	capturing = false;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	lease_done(&f->lease);
	sd_event_unref(f->event);
	free(f);
	return 0;
}

static const struct ucred who = {.pid = 12, .uid = 34, .gid = 56};

static void lease_ask_for_a_time_takes_it_again_by_itself(void **state)
{
	struct fixture *f = *state;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(lease_ask(&f->lease, true, 1000, &who), 0);
	assert_true(f->lease.away);
	assert_int_equal(f->lease.uid, 34);
	assert_int_equal(f->lease.pid, 12);
	assert_true(f->lease.until_usec >= (uint64_t)now.tv_sec * 1000000u);
	assert_true(f->lease.until_usec != LEASE_FOR_EVER);
	assert_int_equal(f->changed, 1);
	while (f->lease.away)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(f->yields, 1);
	assert_int_equal(f->takes, 1);
	assert_int_equal(f->changed, 2);
	assert_true(f->lease.until_usec == LEASE_FOR_EVER);
}

static void lease_ask_for_ever_sets_no_timer(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lease_ask(&f->lease, true, LEASE_FOR_EVER, &who), 0);
	assert_null(f->lease.timer);
	assert_true(f->lease.until_usec == LEASE_FOR_EVER);
	assert_int_equal(lease_ask(&f->lease, false, LEASE_FOR_EVER, &who), 0);
	assert_false(f->lease.away);
}

static void lease_ask_again_replaces_the_time(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lease_ask(&f->lease, true, 1000, &who), 0);
	assert_int_equal(lease_ask(&f->lease, true, LEASE_FOR_EVER, &who), 0);
	assert_null(f->lease.timer);
	assert_int_equal(lease_ask(&f->lease, true, UINT64_MAX - 1, &who), 0);
	assert_true(f->lease.until_usec == LEASE_FOR_EVER);
	assert_int_equal(f->changed, 1);
}

static void lease_ask_during_a_capture_waits_for_its_end(void **state)
{
	struct fixture *f = *state;

	capturing = true;
	assert_int_equal(lease_ask(&f->lease, true, LEASE_FOR_EVER, &who), LEASE_LATER);
	assert_int_equal(f->yields, 0);
	lease_on_captured(&f->lease); /* another job still captures */
	assert_int_equal(f->done, 0);
	capturing = false;
	lease_on_captured(&f->lease);
	assert_int_equal(f->yields, 1);
	assert_int_equal(f->done, 1);
	assert_int_equal(f->last_done, 0);
	lease_on_captured(&f->lease);
	assert_int_equal(f->done, 1);
}

static void lease_ask_twice_during_a_capture_does_the_last(void **state)
{
	struct fixture *f = *state;

	capturing = true;
	assert_int_equal(lease_ask(&f->lease, true, LEASE_FOR_EVER, &who), LEASE_LATER);
	assert_int_equal(lease_ask(&f->lease, false, LEASE_FOR_EVER, &who), LEASE_LATER);
	capturing = false;
	lease_on_captured(&f->lease);
	assert_int_equal(f->yields, 0);
	assert_int_equal(f->takes, 1);
	assert_int_equal(f->done, 1);
	assert_false(f->lease.away);
}

static void lease_that_ends_during_a_capture_waits_too(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(lease_ask(&f->lease, true, 1000, &who), 0);
	capturing = true;
	while (!f->lease.waits)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_true(f->lease.away);
	capturing = false;
	lease_on_captured(&f->lease);
	assert_false(f->lease.away);
}

static void lease_ask_of_a_source_that_cannot_fails(void **state)
{
	struct fixture *f = *state;

	f->source.ops = &unable;
	assert_int_equal(lease_ask(&f->lease, true, 1000, &who), -EOPNOTSUPP);
	assert_false(f->lease.away);
}

static void lease_ask_that_the_source_refuses_changes_nothing(void **state)
{
	struct fixture *f = *state;

	f->answer = -ENODEV;
	assert_int_equal(lease_ask(&f->lease, true, 1000, &who), -ENODEV);
	assert_false(f->lease.away);
	assert_null(f->lease.timer);
	assert_int_equal(f->changed, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lease_ask_for_a_time_takes_it_again_by_itself),
		TEST(lease_ask_for_ever_sets_no_timer),
		TEST(lease_ask_again_replaces_the_time),
		TEST(lease_ask_during_a_capture_waits_for_its_end),
		TEST(lease_ask_twice_during_a_capture_does_the_last),
		TEST(lease_that_ends_during_a_capture_waits_too),
		TEST(lease_ask_of_a_source_that_cannot_fails),
		TEST(lease_ask_that_the_source_refuses_changes_nothing),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
