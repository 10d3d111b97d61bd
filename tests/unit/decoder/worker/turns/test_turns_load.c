/*
 * The turns that a timeline gives: which of them can have no user code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decoder/worker/turns/turns.h"
#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/unit/sideband/load.h"

/* Whether turn TURN of CPU 0 is silent. Frees T. */
static bool is_silent(struct timeline *t, size_t turn)
{
	struct turns turns;
	bool silent;

	assert_int_equal(turns_init(&turns, 1), 0);
	assert_int_equal(turns_load(&turns, 0, t, 0, MANIFEST_ABSENT), 0);
	assert_true(turn < turns.cpus[0].n);
	silent = turns.cpus[0].list[turn].silent;
	turns_done(&turns);
	timeline_free(t);
	return silent;
}

static void load_turn_of_a_thread_that_maps_nothing_is_silent(void **state)
{
	(void)state;
	assert_true(is_silent(LOAD(FORK(0, 1, 2, 7, 7), LEAVES(0, 10, 1, 1, 7, 7),
				   LEAVES(0, 20, 7, 7, 1, 1), LEAVES(0, 30, 1, 1, 7, 7)),
			      1));
}

static void load_turn_of_a_program_is_not_silent(void **state)
{
	(void)state;
	assert_false(is_silent(LOAD(MMAP2(0, 1, 7, 0x1000, 0x1000, 3, "/bin/a"),
				    LEAVES(0, 10, 1, 1, 7, 7), LEAVES(0, 20, 7, 7, 1, 1)),
			       1));
}

/* Behind the exec, a program maps nothing yet. Before it, the old program ran. */
static void load_turn_that_ends_in_an_exec_is_not_silent(void **state)
{
	(void)state;
	assert_false(is_silent(LOAD(MMAP2(0, 1, 7, 0x1000, 0x1000, 3, "/bin/a"),
				    LEAVES(0, 10, 1, 1, 7, 7), EXEC(0, 19, 7, "b"),
				    LEAVES(0, 20, 7, 7, 1, 1), LEAVES(0, 30, 1, 1, 7, 7),
				    MMAP2(0, 31, 7, 0x1000, 0x1000, 4, "/bin/b")),
			       1));
}

static void load_turn_within_an_exec_is_silent(void **state)
{
	(void)state;
	assert_true(is_silent(LOAD(MMAP2(0, 1, 7, 0x1000, 0x1000, 3, "/bin/a"),
				   LEAVES(0, 10, 1, 1, 7, 7), EXEC(0, 19, 7, "b"),
				   LEAVES(0, 20, 7, 7, 1, 1), LEAVES(0, 30, 1, 1, 7, 7),
				   LEAVES(0, 40, 7, 7, 1, 1), LEAVES(0, 50, 1, 1, 7, 7),
				   MMAP2(0, 51, 7, 0x1000, 0x1000, 4, "/bin/b")),
			      3));
}

/* Two execs: the program between them ran, though nothing is mapped where the turn begins and ends.
 */
static void load_turn_between_two_execs_is_not_silent(void **state)
{
	(void)state;
	assert_false(is_silent(LOAD(MMAP2(0, 1, 7, 0x1000, 0x1000, 3, "/bin/a"), EXEC(0, 9, 7, "b"),
				    LEAVES(0, 10, 1, 1, 7, 7),
				    MMAP2(0, 12, 7, 0x1000, 0x1000, 4, "/bin/b"),
				    EXEC(0, 19, 7, "c"), LEAVES(0, 20, 7, 7, 1, 1)),
			       1));
}

/* Loads two turns that begin at 10 and 20. Before them, records were forgotten up to HORIZON. */
static void load_two(struct turns *turns, uint64_t horizon)
{
	struct timeline *t = LOAD(ENTERS(0, 10, 7, 7), LEAVES(0, 20, 7, 7, 1, 1));

	assert_int_equal(turns_init(turns, 1), 0);
	assert_int_equal(turns_load(turns, 0, t, 0, horizon), 0);
	timeline_free(t);
}

static void load_behind_a_horizon_begins_uncertain(void **state)
{
	struct turns turns;

	(void)state;
	load_two(&turns, 15);
	assert_int_equal(turns.cpus[0].n, 3);
	assert_true(turns.cpus[0].list[0].uncertain && turns.cpus[0].list[0].until == 10);
	assert_false(turns.cpus[0].list[1].uncertain);
	assert_int_equal(turns.cpus[0].list[1].since, 10);
	turns_done(&turns);
}

/* The CPU came later than the horizon, or nothing was forgotten. */
static void load_without_a_horizon_before_begins_with_the_first_turn(void **state)
{
	struct turns turns;

	(void)state;
	load_two(&turns, 5);
	assert_int_equal(turns.cpus[0].n, 2);
	turns_done(&turns);
	load_two(&turns, MANIFEST_ABSENT);
	assert_int_equal(turns.cpus[0].n, 2);
	turns_done(&turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_turn_of_a_thread_that_maps_nothing_is_silent),
		cmocka_unit_test(load_turn_of_a_program_is_not_silent),
		cmocka_unit_test(load_turn_that_ends_in_an_exec_is_not_silent),
		cmocka_unit_test(load_turn_within_an_exec_is_silent),
		cmocka_unit_test(load_turn_between_two_execs_is_not_silent),
		cmocka_unit_test(load_behind_a_horizon_begins_uncertain),
		cmocka_unit_test(load_without_a_horizon_before_begins_with_the_first_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
