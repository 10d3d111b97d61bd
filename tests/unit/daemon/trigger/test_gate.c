/*
 * Limits of triggers and of users, with a clock of the test's own.
 */
#include "daemon/trigger/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SEC    1000000ull
#define NOBODY ENTRY_ABSENT
#define ALICE  12345u

struct fixture {
	struct config config;
	struct gate gate;
};

static int setup(void **state)
{
	static char *const argv[] = {
		"ptsnapd",	  "--trigger-burst=3",	 "--trigger-interval=30s",
		"--user-burst=2", "--user-interval=20s", NULL};
	struct fixture *f = calloc(1, sizeof(*f));
	char why[256];

	assert_int_equal(config_parse(5, argv, &f->config, why, sizeof(why)), 0);
	gate_use(&f->gate, f->config.triggers, &f->config, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	config_done(&f->config);
	free(f);
	return 0;
}

static uint64_t pass(struct fixture *f, const char *name, uint64_t uid, uint64_t now)
{
	return gate_pass(&f->gate, gate_find(&f->gate, name), uid, now);
}

static void gate_pass_counts_each_trigger_by_itself(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		assert_int_equal(pass(f, "signal", NOBODY, 0), 0);
	assert_int_equal(pass(f, "signal", NOBODY, 0), 10 * SEC);
	assert_int_equal(pass(f, "unit", NOBODY, 0), 0);
	assert_int_equal(pass(f, "signal", NOBODY, 10 * SEC), 0);
}

static void gate_pass_of_control_and_exit_has_no_limit_of_its_own(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(pass(f, "control", NOBODY, 0), 0);
		assert_int_equal(pass(f, "exit", NOBODY, 0), 0);
	}
}

static void gate_pass_counts_users_over_all_triggers(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	assert_int_equal(pass(f, "signal", ALICE, 0), 0);
	assert_int_equal(pass(f, "unit", ALICE, 0), 10 * SEC);
	assert_int_equal(pass(f, "control", ALICE + 1, 0), 0);
}

static void gate_pass_of_root_and_ourselves_is_not_counted_as_users(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 50; i++) {
		assert_int_equal(pass(f, "control", 0, 0), 0);
		assert_int_equal(pass(f, "control", geteuid(), 0), 0);
	}
}

static void gate_pass_refused_takes_neither_token(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	for (int i = 0; i < 10; i++)
		assert_int_not_equal(pass(f, "signal", ALICE, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pass(f, "signal", ALICE + 10 + i, 0), 0);
	/* Other users have used up the trigger, and this user can fire another one. */
	assert_int_not_equal(pass(f, "signal", ALICE + 1, 0), 0);
	assert_int_equal(pass(f, "control", ALICE + 1, 0), 0);
	assert_int_equal(pass(f, "control", ALICE + 1, 0), 0);
}

static void gate_pass_with_many_users_remembers_who_is_drained(void **state)
{
	struct fixture *f = *state;

	const unsigned last = ALICE + GATE_MAX_USERS - 1;

	/* The users in the first and the last place. */
	for (unsigned uid = ALICE; uid <= last; uid++)
		assert_int_equal(pass(f, "control", uid, 0), 0);
	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	assert_int_equal(pass(f, "control", last, 0), 0);
	for (unsigned i = 1; i <= 10 * GATE_MAX_USERS; i++)
		assert_int_equal(pass(f, "control", last + i, 0), 0);
	assert_int_not_equal(pass(f, "control", ALICE, 0), 0);
	assert_int_not_equal(pass(f, "control", last, 0), 0);
}

static void gate_use_keeps_counters_and_tokens_by_name(void **state)
{
	struct fixture *f = *state;

	gate_find(&f->gate, "signal")->fired = 7;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass(f, "signal", NOBODY, 0), 0);
	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	f->config.trigger_interval_usec = 3 * SEC;
	gate_use(&f->gate, f->config.triggers, &f->config, 0);
	assert_int_equal(gate_find(&f->gate, "signal")->fired, 7);
	assert_int_equal(pass(f, "signal", NOBODY, 0), 1 * SEC);
	assert_int_not_equal(pass(f, "control", ALICE, 0), 0);
	f->config.user_burst = 0;
	gate_use(&f->gate, f->config.triggers, &f->config, 0);
	assert_int_equal(pass(f, "control", ALICE, 0), 0);
	assert_null(gate_find(&f->gate, "none"));
}

/* Users have one share, and the recorder, root and our own user have another one: neither starves
 * the other. */
static void gate_pass_of_users_leaves_the_recorders_own_share(void **state)
{
	struct fixture *f = *state;
	const struct gate_share *own = &gate_find(&f->gate, "unit")->own;

	for (unsigned uid = ALICE; pass(f, "unit", uid, 0) == 0; uid++)
		;
	assert_int_equal(bucket_tokens(&own->bucket, 0), 3);
	assert_int_equal(pass(f, "unit", NOBODY, 0), 0);
	assert_int_equal(pass(f, "unit", 0, 0), 0);
	assert_int_equal(pass(f, "unit", geteuid(), 0), 0);
	assert_int_not_equal(pass(f, "unit", NOBODY, 0), 0);
	/* Users have tokens again as time passes. */
	assert_int_equal(pass(f, "unit", ALICE + 50, 10 * SEC), 0);
	assert_int_equal(pass(f, "unit", NOBODY, 10 * SEC), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(gate_pass_counts_each_trigger_by_itself),
		CASE(gate_pass_of_control_and_exit_has_no_limit_of_its_own),
		CASE(gate_pass_counts_users_over_all_triggers),
		CASE(gate_pass_of_root_and_ourselves_is_not_counted_as_users),
		CASE(gate_pass_refused_takes_neither_token),
		CASE(gate_pass_of_users_leaves_the_recorders_own_share),
		CASE(gate_pass_with_many_users_remembers_who_is_drained),
		CASE(gate_use_keeps_counters_and_tokens_by_name),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
