/*
 * The timeline's turns: which thread had a CPU from when to when, and what stays uncertain.
 */
#include "sideband/timeline/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/timeline_look.h"
#include "tests/unit/sideband/load.h"

#define NOW SPACE_NOW

/* A turn of thread TID (0: none) that begins at SINCE. */
struct expected {
	uint64_t since;
	uint32_t tid;
	bool uncertain, preempted;
};

/* Checks all turns of CPU, and that they follow each other without a break up to now. */
static void expect(const struct timeline *t, uint32_t cpu, const struct expected *e, size_t n)
{
	struct timeline_turn turn;

	assert_int_equal(timeline_n_turns(t, cpu), n);
	for (size_t i = 0; i < n; i++) {
		timeline_get_turn(t, cpu, i, &turn);
		assert_int_equal(turn.since, e[i].since);
		assert_true(turn.until == (i + 1 < n ? e[i + 1].since : NOW));
		assert_int_equal(turn.thread ? turn.thread->tid : 0, e[i].tid);
		assert_int_equal(turn.uncertain, e[i].uncertain);
		assert_int_equal(turn.preempted, e[i].preempted);
	}
}

#define EXPECT(t_, cpu_, ...)                                    \
	expect(t_, cpu_, (const struct expected[]){__VA_ARGS__}, \
	       sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected))

static void turns_of_an_unknown_cpu_are_none(void **state)
{
	struct timeline *t = LOAD(COMM(0, 1, 1, 1, "a"));
	struct timeline_turn turn;

	(void)state;
	assert_int_equal(timeline_n_turns(t, 0), 0);
	assert_int_equal(timeline_n_turns(t, UINT32_MAX), 0);
	assert_int_equal(timeline_look_find_turn(t, 0, 5), 0);
	timeline_get_turn(t, 0, 0, &turn);
	assert_true(turn.since == 0 && turn.until == NOW && !turn.thread && !turn.uncertain);
	timeline_free(t);
}

static void turns_follow_switches_and_tell_who_was_preempted(void **state)
{
	struct timeline *t = LOAD(PREEMPTED(0, 10, 1, 1, 2, 3), ENTERS_AFTER(0, 11, 2, 3, 1, 1),
				  LEAVES(0, 20, 2, 3, 0, 0), ENTERS_AFTER(0, 21, 0, 0, 2, 3),
				  LEAVES(0, 30, 0, 0, 1, 1), ENTERS_AFTER(0, 31, 1, 1, 0, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, false, true}, {10, 3, 0, 0}, {20, 0, 0, 0}, {30, 1, 0, 0});
	assert_int_equal(timeline_look_find_turn(t, 0, 0), 0);
	assert_int_equal(timeline_look_find_turn(t, 0, 9), 0);
	assert_int_equal(timeline_look_find_turn(t, 0, 10), 1);
	assert_int_equal(timeline_look_find_turn(t, 0, NOW), 3);
	timeline_free(t);
}

/* If a CPU's first record is a switch in, the thread before had the CPU until then, if it has a
 * number. */
static void first_switch_in_tells_who_was_before(void **state)
{
	struct timeline *t = LOAD(ENTERS_AFTER(0, 10, 1, 2, 3, 4), ENTERS(1, 10, 1, 1));
	struct timeline_turn turn;

	(void)state;
	EXPECT(t, 0, {0, 4, 0, 0}, {10, 2, 0, 0});
	EXPECT(t, 1, {10, 1, 0, 0});
	assert_int_equal(timeline_look_find_turn(t, 1, 9), 1);
	timeline_get_turn(t, 1, 1, &turn);
	assert_true(turn.since == 0 && turn.until == 10 && !turn.thread);
	timeline_free(t);
}

/* Several switches in one nanosecond: there are no turns without length. */
static void turns_of_no_length_are_left_out(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LEAVES(0, 10, 2, 2, 3, 3),
				  PREEMPTED(0, 20, 3, 3, 4, 4), LEAVES(0, 20, 4, 4, 3, 3));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 3, 0, 0});
	timeline_free(t);
}

/* A reaped thread has no number when it leaves, and a thread of another pid namespace never has. */
static void thread_without_a_number_contradicts_nothing(void **state)
{
	struct timeline *t =
		LOAD(ENTERS(0, 10, 5, 6), EXIT(0, 15, 5, 6), LEAVES(0, 20, 5, UINT32_MAX, 5, 5),
		     ENTERS_AFTER(0, 21, 5, 5, UINT32_MAX, UINT32_MAX));

	(void)state;
	EXPECT(t, 0, {10, 6, 0, 0}, {20, 5, 0, 0});
	timeline_free(t);
}

static void contradiction_makes_the_turn_uncertain(void **state)
{
	/* Thread 1 had the CPU, and 2 leaves. */
	struct timeline *left = LOAD(ENTERS(0, 10, 1, 1), LEAVES(0, 20, 2, 2, 3, 3));
	/* Thread 2 was announced, and 3 comes. */
	struct timeline *came = LOAD(LEAVES(0, 10, 1, 1, 2, 2), ENTERS_AFTER(0, 20, 3, 3, 4, 4));
	/* Thread 1 had the CPU, and comes again after 2. */
	struct timeline *again = LOAD(ENTERS(0, 10, 1, 1), ENTERS_AFTER(0, 20, 1, 1, 2, 2));
	struct timeline *started = LOAD(ENTERS(0, 10, 1, 1), START(0, 20, 2, 2));

	(void)state;
	EXPECT(left, 0, {10, 0, true, 0}, {20, 3, 0, 0});
	EXPECT(came, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {20, 3, 0, 0});
	EXPECT(again, 0, {10, 0, true, 0}, {20, 1, 0, 0});
	EXPECT(started, 0, {10, 0, true, 0}, {20, 2, 0, 0});
	timeline_free(left);
	timeline_free(came);
	timeline_free(again);
	timeline_free(started);
}

/* --- Losses --- */

static void task_without_records_of_its_own_is_certain(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 0, 0), ENTERS_AFTER(0, 20, 2, 2, 0, 0),
				  LEAVES(0, 30, 2, 2, 3, 4), ENTERS_AFTER(0, 40, 1, 1, 3, 4),
				  LEAVES(0, 50, 1, 1, 2, 2), ENTERS_AFTER(0, 60, 1, 1, 0, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, 0, 0}, {20, 2, 0, 0}, {30, 4, 0, 0}, {40, 1, 0, 0},
	       {50, 0, true, false}, {60, 1, 0, 0});
	timeline_free(t);
}

static void loss_is_uncertain_from_the_record_before_it(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), MMAP2(0, 15, 2, 0x1000, 1, 1, "/a"),
				  LOST(0, 30, 3), PREEMPTED(0, 40, 4, 4, 5, 5));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 2, 0, 0}, {15, 0, true, 0}, {30, 4, false, true},
	       {40, 5, 0, 0});
	assert_null(timeline_look_running(t, 0, 15, NULL, NULL));
	timeline_free(t);
}

static void loss_is_of_its_cpu_alone(void **state)
{
	struct timeline *t =
		LOAD(LEAVES(0, 10, 1, 1, 2, 2), LEAVES(1, 20, 3, 3, 4, 4), LOST(0, 30, 3));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0});
	EXPECT(t, 1, {0, 3, 0, 0}, {20, 4, 0, 0});
	timeline_free(t);
}

static void switch_in_after_a_loss_tells_who_left(void **state)
{
	struct timeline *t =
		LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3), ENTERS_AFTER(0, 40, 4, 4, 3, 3));
	struct timeline *idle =
		LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3), ENTERS_AFTER(0, 40, 4, 4, 0, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {30, 3, 0, 0}, {40, 4, 0, 0});
	EXPECT(idle, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {30, 0, 0, 0}, {40, 4, 0, 0});
	timeline_free(t);
	timeline_free(idle);
}

static void nobody_is_known_after_a_loss_that_nothing_follows(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3),
				  MMAP2(0, 35, 2, 0x1000, 1, 1, "/a"));
	/* The thread that leaves has no number. */
	struct timeline *dead = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3),
				     LEAVES(0, 40, UINT32_MAX, UINT32_MAX, 5, 5));
	struct timeline *start =
		LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3), START(0, 40, 5, 5));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0});
	EXPECT(dead, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {40, 5, 0, 0});
	EXPECT(start, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {40, 5, 0, 0});
	timeline_free(t);
	timeline_free(dead);
	timeline_free(start);
}

static void losses_in_a_row_are_one_until_somebody_is_named(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3), COMM(0, 31, 9, 9, "a"),
				  LOST(0, 50, 1), COMM(0, 51, 9, 9, "b"), LEAVES(0, 60, 3, 3, 4, 4),
				  LOST(0, 60, 1), LEAVES(0, 70, 5, 5, 0, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {50, 3, 0, 0}, {60, 5, 0, 0}, {70, 0, 0, 0});
	timeline_free(t);
}

static void loss_before_anything_is_uncertain_from_the_beginning(void **state)
{
	struct timeline *t = LOAD(LOST(0, 30, 3), LEAVES(0, 40, 4, 4, 5, 5));
	struct timeline *base = LOAD(ENTERS(0, 0, 1, 1), LOST(0, 30, 3), LEAVES(0, 40, 4, 4, 5, 5));

	(void)state;
	EXPECT(t, 0, {0, 0, true, 0}, {30, 4, 0, 0}, {40, 5, 0, 0});
	EXPECT(base, 0, {0, 0, true, 0}, {30, 4, 0, 0}, {40, 5, 0, 0});
	timeline_free(t);
	timeline_free(base);
}

/* Older kernels write the LOST record when the record behind it has its time already. */
static void record_stamped_before_the_loss_that_precedes_it_counts_after_it(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 3),
				  LEAVES(0, 28, 4, 4, 5, 5), LEAVES(0, 40, 5, 5, 0, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {28, 5, 0, 0}, {40, 0, 0, 0});
	timeline_free(t);
}

/* The PT event may have another ring, which was drained before. An AUX record says nothing of lost
 * switches. */
static void records_of_the_pt_event_bound_no_loss(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), AUX(0, 29, 0), LOST(0, 30, 3),
				  LEAVES(0, 40, 4, 4, 5, 5));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 0, true, 0}, {30, 4, 0, 0}, {40, 5, 0, 0});
	timeline_free(t);
}

static void loss_of_nothing_is_none(void **state)
{
	struct timeline *t = LOAD(LEAVES(0, 10, 1, 1, 2, 2), LOST(0, 30, 0));

	(void)state;
	EXPECT(t, 0, {0, 1, 0, 0}, {10, 2, 0, 0});
	assert_null(timeline_loss(t, 0));
	timeline_free(t);
}

/* --- Threads --- */

/* The thread's FORK comes from another ring and has the same time. */
static void switch_in_the_nanosecond_of_the_fork_is_the_threads(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 20, 5, 6), FORK(0, 20, 5, 5, 6),
				  ENTERS(2, 30, 7, 7), EXEC(2, 30, 7, "child"),
				  MMAP2(0, 25, 5, 0x1000, 0x1000, 1, "/a"), FORK(0, 30, 5, 7, 7));

	(void)state;
	EXPECT(t, 1, {20, 6, 0, 0});
	assert_int_equal(timeline_n_threads(t), 3);
	assert_int_equal(timeline_thread(t, 1)->begin, 20);
	assert_int_equal(timeline_thread(t, 1)->ppid, 1);
	assert_int_equal(timeline_thread(t, 2)->ppid, 5);
	assert_string_equal(path_at(t, 7, 30, 0x1000), "");
	assert_string_equal(timeline_comm(t, 7, 30), "child");
	timeline_free(t);
}

/* Thread 6 calls exec: leader 5 exits, and 6 becomes 5 without a switch. */
static void exec_by_a_thread_goes_on_as_the_leader(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), MMAP2(0, 11, 5, 0x1000, 0x1000, 1, "/old"),
				  FORK(0, 12, 5, 5, 6), FORK(0, 13, 5, 5, 7), ENTERS(1, 20, 5, 6),
				  EXIT(0, 30, 5, 5), EXIT(2, 31, 5, 7), EXEC(1, 40, 5, "new"),
				  MMAP2(1, 41, 5, 0x1000, 0x1000, 2, "/new"),
				  LEAVES(1, 50, 5, 5, 0, 0), EXIT(1, 60, 5, 5));

	(void)state;
	EXPECT(t, 1, {20, 6, 0, 0}, {40, 5, 0, 0}, {50, 0, 0, 0});
	assert_int_equal(timeline_n_threads(t), 4);
	assert_int_equal(timeline_thread(t, 0)->end, 30);
	assert_int_equal(timeline_thread(t, 1)->end, 40);
	assert_int_equal(timeline_thread(t, 3)->tid, 5);
	assert_int_equal(timeline_thread(t, 3)->begin, 40);
	assert_int_equal(timeline_thread(t, 3)->end, 60);
	assert_ptr_equal(timeline_look_running(t, 1, 45, NULL, NULL), timeline_thread(t, 3));
	assert_string_equal(path_at(t, 5, 39, 0x1000), "/old");
	assert_string_equal(path_at(t, 5, 41, 0x1000), "/new");
	timeline_free(t);
}

/* A source reports a process' mappings again by an exec record of the thread that has the CPU. Such
 * a record is no exec. */
static void mappings_told_anew_by_a_thread_end_no_turn(void **state)
{
	struct perfrecord again = EXEC(1, 40, 5, "same");
	struct timeline *t;

	(void)state;
	again.tid = again.u.comm.tid = 6;
	t = LOAD(FORK(0, 10, 1, 5, 5), FORK(0, 12, 5, 5, 6), ENTERS(1, 20, 5, 6), again,
		 LEAVES(1, 50, 5, 6, 0, 0));
	EXPECT(t, 1, {20, 6, 0, 0}, {50, 0, 0, 0});
	assert_int_equal(timeline_n_threads(t), 2);
	assert_true(timeline_thread(t, 0)->end == NOW && timeline_thread(t, 1)->end == NOW);
	timeline_free(t);
}

static void leader_that_exits_first_leaves_the_others_their_turns(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), MMAP2(0, 11, 5, 0x1000, 0x1000, 1, "/a"),
				  FORK(0, 12, 5, 5, 6), EXIT(0, 20, 5, 5), ENTERS(1, 25, 5, 6),
				  EXIT(1, 30, 5, 6), LEAVES(1, 31, 5, 6, 0, 0));

	(void)state;
	EXPECT(t, 1, {25, 6, 0, 0}, {31, 0, 0, 0});
	assert_string_equal(path_at(t, 5, 28, 0x1000), "/a");
	timeline_free(t);
}

static void reused_pid_has_turns_of_its_own(void **state)
{
	struct timeline *t =
		LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 11, 5, 5), EXIT(1, 20, 5, 5),
		     LEAVES(1, 21, 5, 5, 0, 0), FORK(0, 30, 1, 5, 5), LEAVES(1, 31, 0, 0, 5, 5));

	(void)state;
	EXPECT(t, 1, {11, 5, 0, 0}, {21, 0, 0, 0}, {31, 5, 0, 0});
	assert_ptr_equal(timeline_look_running(t, 1, 15, NULL, NULL), timeline_thread(t, 0));
	assert_ptr_equal(timeline_look_running(t, 1, 35, NULL, NULL), timeline_thread(t, 1));
	timeline_free(t);
}

static void thread_whose_exit_was_lost_ends_where_its_number_is_used_again(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), LOST(0, 20, 1), FORK(0, 30, 1, 5, 5),
				  FORK(0, 40, 1, 6, 5));

	(void)state;
	assert_int_equal(timeline_n_threads(t), 3);
	assert_int_equal(timeline_thread(t, 0)->end, 30);
	assert_int_equal(timeline_thread(t, 1)->end, 40);
	assert_true(timeline_thread(t, 2)->end == NOW);
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_of_an_unknown_cpu_are_none),
		cmocka_unit_test(turns_follow_switches_and_tell_who_was_preempted),
		cmocka_unit_test(first_switch_in_tells_who_was_before),
		cmocka_unit_test(turns_of_no_length_are_left_out),
		cmocka_unit_test(thread_without_a_number_contradicts_nothing),
		cmocka_unit_test(contradiction_makes_the_turn_uncertain),
		cmocka_unit_test(task_without_records_of_its_own_is_certain),
		cmocka_unit_test(loss_is_uncertain_from_the_record_before_it),
		cmocka_unit_test(loss_is_of_its_cpu_alone),
		cmocka_unit_test(switch_in_after_a_loss_tells_who_left),
		cmocka_unit_test(nobody_is_known_after_a_loss_that_nothing_follows),
		cmocka_unit_test(losses_in_a_row_are_one_until_somebody_is_named),
		cmocka_unit_test(loss_before_anything_is_uncertain_from_the_beginning),
		cmocka_unit_test(record_stamped_before_the_loss_that_precedes_it_counts_after_it),
		cmocka_unit_test(records_of_the_pt_event_bound_no_loss),
		cmocka_unit_test(loss_of_nothing_is_none),
		cmocka_unit_test(switch_in_the_nanosecond_of_the_fork_is_the_threads),
		cmocka_unit_test(exec_by_a_thread_goes_on_as_the_leader),
		cmocka_unit_test(mappings_told_anew_by_a_thread_end_no_turn),
		cmocka_unit_test(leader_that_exits_first_leaves_the_others_their_turns),
		cmocka_unit_test(reused_pid_has_turns_of_its_own),
		cmocka_unit_test(thread_whose_exit_was_lost_ends_where_its_number_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
