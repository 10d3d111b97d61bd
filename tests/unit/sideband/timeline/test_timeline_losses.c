/*
 * The timeline after records were lost: which processes' mappings are certain, for how long, and
 * that a loss is remembered when it is folded into the base.
 */
#include "sideband/timeline/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/sideband/load.h"

#define LATE (SPACE_NOW - 1)

static bool doubted(const struct timeline *t, uint32_t pid, uint64_t time)
{
	return timeline_space_uncertain(t, pid, time);
}

static void without_losses_all_is_certain(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), AUX(0, 15, PERF_AUX_FLAG_TRUNCATED));

	(void)state;
	assert_false(doubted(t, 5, LATE) || doubted(t, 1, LATE) || doubted(t, 99, SPACE_NOW));
	timeline_free(t);
}

static void loss_makes_all_uncertain_from_the_record_before_it(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), MMAP2(0, 20, 5, 0x1000, 0x1000, 1, "/a"),
				  COMM(0, 25, 5, 5, "a"), LOST(0, 40, 1), ENTERS(0, 45, 7, 7));

	(void)state;
	assert_false(doubted(t, 5, 24));
	assert_true(doubted(t, 5, 25));
	assert_true(doubted(t, 5, 40));
	assert_true(doubted(t, 5, LATE));
	/* A process without an earlier record, and one without any record. */
	assert_true(doubted(t, 7, LATE));
	assert_true(doubted(t, 99, LATE));
	assert_false(doubted(t, 99, 24));
	timeline_free(t);
}

static void exec_after_the_loss_makes_certain_again(void **state)
{
	struct timeline *t =
		LOAD(FORK(0, 10, 1, 5, 5), FORK(0, 11, 1, 6, 6), LOST(0, 40, 1),
		     EXEC(0, 40, 5, "same time, same CPU"), EXEC(1, 30, 6, "too early"),
		     FORK(1, 50, 1, 8, 8), EXEC(1, 60, 6, "late"), LOST(1, 80, 1));

	(void)state;
	assert_true(doubted(t, 5, 39));
	assert_false(doubted(t, 5, 40));
	/* Records without a CPU do not bound what CPU 0 lost. */
	assert_false(doubted(t, 5, 59));
	assert_true(doubted(t, 6, 35));
	assert_true(doubted(t, 6, 59));
	/* The second loss counts from the last record of CPU 1 on. */
	assert_true(doubted(t, 5, 60));
	assert_true(doubted(t, 6, 60));
	timeline_free(t);
}

/* The FORK that says that the recorder has read all mappings of PID again. */
static struct perfrecord read_again(uint64_t time, uint32_t pid)
{
	struct perfrecord r = FORK(UINT32_MAX, time, 1, pid, pid);

	r.misc = PERF_RECORD_MISC_FORK_EXEC;
	return r;
}

static void mappings_read_again_after_the_loss_are_certain(void **state)
{
	struct timeline *t =
		LOAD(FORK(0, 10, 1, 5, 5), COMM(0, 11, 5, 5, "server"), FORK(0, 12, 5, 5, 6),
		     MMAP2(0, 13, 5, 0x1000, 0x1000, 1, "/old"),
		     MMAP2(0, 14, 5, 0x3000, 0x1000, 3, "/both"), LOST(0, 40, 1), read_again(50, 5),
		     MMAP2(UINT32_MAX, 50, 5, 0x2000, 0x1000, 2, "/lost"),
		     MMAP2(UINT32_MAX, 50, 5, 0x3000, 0x1000, 3, "/both"), COMM(0, 60, 1, 1, "x"),
		     COMM(UINT32_MAX, 70, 5, 5, "server"), LOST(0, 80, 1));

	(void)state;
	assert_true(doubted(t, 5, 49));
	assert_false(doubted(t, 5, 50));
	assert_string_equal(path_at(t, 5, 49, 0x1000), "/old");
	assert_string_equal(path_at(t, 5, 50, 0x1000), "");
	assert_string_equal(path_at(t, 5, 50, 0x2000), "/lost");
	/* Both threads live on, with their names. */
	assert_string_equal(timeline_comm(t, 5, LATE), "server");
	assert_int_equal(timeline_last_thread(t, 6)->begin, 12);
	/* Records without a CPU do not bound what CPU 0 lost. */
	assert_false(doubted(t, 5, 59));
	assert_true(doubted(t, 5, 60));
	timeline_free(t);
}

/* A process whose birth was lost has the pid of one that ended. */
static void mappings_read_again_of_a_reused_pid_are_the_new_process(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), EXIT(0, 20, 5, 5), LOST(0, 40, 1),
				  read_again(50, 5), COMM(UINT32_MAX, 50, 5, 5, "new"),
				  MMAP2(UINT32_MAX, 50, 5, 0x2000, 0x1000, 2, "/new"));

	(void)state;
	assert_int_equal(timeline_last_thread(t, 5)->begin, 50);
	assert_string_equal(path_at(t, 5, 60, 0x2000), "/new");
	assert_false(doubted(t, 5, 60));
	timeline_free(t);
}

static void child_is_as_certain_as_its_parent(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), LOST(0, 40, 1), FORK(0, 50, 5, 6, 6),
				  EXEC(0, 60, 5, "anew"), FORK(0, 70, 5, 7, 7),
				  FORK(0, 71, 6, 8, 8), FORK(0, 72, 99, 9, 9));

	(void)state;
	assert_true(doubted(t, 6, 50));
	assert_true(doubted(t, 6, LATE));
	assert_false(doubted(t, 7, LATE));
	assert_true(doubted(t, 8, LATE));
	/* The child of an unknown parent. */
	assert_true(doubted(t, 9, LATE));
	timeline_free(t);
}

static void child_made_in_the_lost_span_is_uncertain(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 12, 5, 5), COMM(0, 20, 1, 1, "x"),
				  FORK(1, 30, 5, 6, 6), LOST(0, 40, 1));

	(void)state;
	assert_true(doubted(t, 6, 30));
	timeline_free(t);
}

/* Process 5 has CPU 1 before, during and after the time in which CPU 0 lost records. */
static void process_on_another_cpu_all_the_time_is_certain(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 12, 5, 5), FORK(0, 13, 1, 6, 6),
				  ENTERS(2, 14, 6, 6), FORK(0, 15, 6, 6, 7), ENTERS(3, 14, 8, 8),
				  COMM(0, 20, 1, 1, "x"), LOST(0, 40, 1), LEAVES(1, 50, 5, 5, 0, 0),
				  FORK(1, 50, 5, 9, 9));

	(void)state;
	assert_false(doubted(t, 5, LATE));
	assert_false(doubted(t, 9, LATE));
	/* A process with two threads, and a process that may have more than one. */
	assert_true(doubted(t, 6, 20));
	assert_true(doubted(t, 8, 20));
	timeline_free(t);
}

static void process_on_another_cpu_for_a_part_is_uncertain(void **state)
{
	struct timeline *late =
		LOAD(FORK(0, 10, 1, 5, 5), COMM(0, 20, 1, 1, "x"), ENTERS(1, 25, 5, 5),
		     LOST(0, 40, 1), LEAVES(1, 50, 5, 5, 0, 0));
	struct timeline *left =
		LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 12, 5, 5), COMM(0, 20, 1, 1, "x"),
		     LEAVES(1, 35, 5, 5, 0, 0), LOST(0, 40, 1));
	struct timeline *same = LOAD(FORK(1, 10, 1, 5, 5), ENTERS(0, 12, 5, 5), LOST(0, 40, 1));
	/* A thread begins and ends in the lost span. */
	struct timeline *threads =
		LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 12, 5, 5), COMM(0, 20, 1, 1, "x"),
		     FORK(1, 30, 5, 5, 6), EXIT(2, 31, 5, 6), LOST(0, 40, 1));
	/* A thread ends in the lost span. */
	struct timeline *exited =
		LOAD(FORK(0, 10, 1, 5, 5), FORK(0, 11, 5, 5, 6), ENTERS(1, 12, 5, 5),
		     COMM(0, 20, 1, 1, "x"), EXIT(2, 30, 5, 6), LOST(0, 40, 1));
	/* The base does not say since when a thread had the CPU. */
	struct timeline *base = LOAD(FORK(0, 0, 1, 5, 5), ENTERS(1, 0, 5, 5), LOST(0, 40, 1),
				     LEAVES(1, 50, 5, 5, 0, 0));

	(void)state;
	assert_true(doubted(late, 5, 20) && doubted(left, 5, 20) && doubted(same, 5, 20));
	assert_true(doubted(threads, 5, 20) && doubted(exited, 5, 20) && doubted(base, 5, 20));
	timeline_free(late);
	timeline_free(left);
	timeline_free(same);
	timeline_free(threads);
	timeline_free(exited);
	timeline_free(base);
}

/* CPU 1 loses records, too, before the lost span of CPU 0 ends: 5 may have been on either CPU. */
static void lost_spans_that_overlap_exempt_nobody(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 12, 5, 5), COMM(0, 20, 1, 1, "x"),
				  LOST(0, 40, 1), COMM(1, 30, 5, 5, "y"), LOST(1, 60, 1),
				  LEAVES(1, 70, 5, 5, 0, 0));

	(void)state;
	assert_true(doubted(t, 5, 20));
	timeline_free(t);
}

/* The lost spans of two CPUs end in one nanosecond; and one of two such spans is empty. */
static void lost_spans_that_end_together_exempt_nobody(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(1, 11, 5, 5), COMM(0, 12, 1, 1, "x"),
				  COMM(1, 20, 5, 5, "y"), LOST(0, 40, 1), LOST(1, 40, 1));
	struct timeline *empty = LOAD(FORK(0, 10, 1, 5, 5), ENTERS(0, 12, 5, 5),
				      COMM(1, 40, 1, 1, "x"), LOST(1, 40, 1), LOST(0, 40, 1));

	(void)state;
	assert_true(doubted(t, 5, 20));
	assert_true(doubted(empty, 5, 20));
	timeline_free(t);
	timeline_free(empty);
}

/* The pid's last process had another CPU in the lost span. The new one inherits from a parent that
 * may lack mappings. */
static void reused_pid_is_not_exempt_by_its_predecessor(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), FORK(0, 11, 1, 6, 6), ENTERS(1, 12, 5, 5),
				  COMM(0, 20, 1, 1, "x"), LOST(0, 40, 1), EXIT(1, 50, 5, 5),
				  FORK(0, 60, 6, 5, 5));

	(void)state;
	/* Records without a CPU do not bound what CPU 0 lost. */
	assert_false(doubted(t, 5, 59));
	assert_true(doubted(t, 5, 60));
	timeline_free(t);
}

/* --- Losses in the base --- */

static struct timeline *new_small(void)
{
	struct timeline *t = NULL;

	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	return t;
}

static void folded_loss_leaves_nobody_on_the_cpu(void **state)
{
	struct timeline *t = new_small(), *loaded;
	struct timeline_turn turn;

	(void)state;
	push(t, &LEAVES(0, 10, 1, 1, 2, 2));
	push(t, &LEAVES(1, 10, 3, 3, 4, 4));
	push(t, &LOST(0, 30, 3));
	push(t, &LOST(0, 40, 4));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_int_equal(timeline_n_turns(loaded, 0), 1);
	timeline_get_turn(loaded, 0, 0, &turn);
	assert_true(turn.uncertain && turn.since == 0 && turn.until == SPACE_NOW);
	assert_int_equal(tid_on(loaded, 1, 10), 4);
	assert_int_equal(timeline_loss(loaded, 0)->lost, 7);
	assert_int_equal(timeline_loss(loaded, 0)->time, 40);
	timeline_free(loaded);
	/* The thread that leaves has had the CPU since the loss, not before. */
	push(t, &LEAVES(0, 6 * SECOND, 5, 5, 6, 6));
	loaded = written_and_loaded(t);
	assert_int_equal(tid_on(loaded, 0, 39), 0);
	assert_int_equal(tid_on(loaded, 0, 40), 5);
	assert_int_equal(tid_on(loaded, 0, 6 * SECOND), 6);
	timeline_free(loaded);
	/* When the switch is folded too, the next thread is known from its time on and not before.
	 */
	flush(t, 9 * SECOND);
	loaded = written_and_loaded(t);
	assert_int_equal(tid_on(loaded, 0, 6 * SECOND - 1), 0);
	assert_int_equal(tid_on(loaded, 0, 6 * SECOND), 6);
	timeline_free(loaded);
	timeline_free(t);
}

/* The switch out is folded and the switch in is not: they still fit together. */
static void fold_between_out_and_in_contradicts_nothing(void **state)
{
	struct timeline *t = new_small(), *loaded;
	struct timeline_turn turn;

	(void)state;
	push(t, &LEAVES(0, 10, 1, 1, 2, 2));
	push(t, &LOST(1, 10, 1));
	push(t, &LEAVES(1, 11, 1, 1, 3, 3));
	flush(t, 5 * SECOND);
	push(t, &ENTERS_AFTER(0, 6 * SECOND, 2, 2, 1, 1));
	push(t, &ENTERS_AFTER(1, 6 * SECOND, 3, 3, 1, 1));
	loaded = written_and_loaded(t);
	timeline_get_turn(loaded, 0, 0, &turn);
	assert_true(turn.since == 10 && turn.thread && turn.thread->tid == 2 && !turn.uncertain);
	assert_int_equal(tid_on(loaded, 1, 11), 3);
	assert_int_equal(tid_on(loaded, 1, 5 * SECOND), 3);
	timeline_free(loaded);
	timeline_free(t);
}

static void folded_loss_keeps_processes_uncertain_until_told(void **state)
{
	struct timeline *t = new_small(), *loaded;

	(void)state;
	push(t, &FORK(0, 0, 0, 1, 1));
	push(t, &MMAP2(0, 0, 1, 0x1000, 0x1000, 1, "/init"));
	push(t, &FORK(0, 10, 1, 2, 2));
	push(t, &FORK(0, 11, 1, 3, 3));
	push(t, &FORK(0, 12, 1, 8, 8));
	push(t, &LOST(0, 20, 1));
	push(t, &EXEC(0, 30, 2, "told"));
	push(t, &MMAP2(0, 31, 2, 0x1000, 0x1000, 2, "/told"));
	push(t, &FORK(0, 40, 2, 4, 4));
	push(t, &FORK(0, 41, 3, 5, 5));
	flush(t, 5 * SECOND);
	push(t, &FORK(1, 6 * SECOND, 2, 6, 6));
	push(t, &FORK(1, 6 * SECOND, 3, 7, 7));
	push(t, &EXEC(1, 7 * SECOND, 8, "told late"));
	loaded = written_and_loaded(t);
	assert_true(doubted(loaded, 1, 0) && doubted(loaded, 1, LATE));
	assert_false(doubted(loaded, 2, 0) || doubted(loaded, 2, LATE));
	assert_true(doubted(loaded, 3, LATE));
	assert_false(doubted(loaded, 4, LATE));
	assert_true(doubted(loaded, 5, LATE));
	assert_false(doubted(loaded, 6, LATE));
	assert_true(doubted(loaded, 7, LATE));
	assert_true(doubted(loaded, 8, 7 * SECOND - 1));
	assert_false(doubted(loaded, 8, 7 * SECOND));
	assert_string_equal(path_at(loaded, 2, 0, 0x1000), "/told");
	timeline_free(loaded);
	/* After one more loss no process is certain any more. */
	push(t, &LOST(1, 8 * SECOND, 1));
	loaded = written_and_loaded(t);
	for (uint32_t pid = 1; pid <= 8; pid++)
		assert_true(doubted(loaded, pid, LATE));
	timeline_free(loaded);
	timeline_free(t);
}

static void folded_mappings_read_again_are_certain(void **state)
{
	struct perfrecord again = read_again(30, 5);
	struct timeline *t = new_small(), *loaded;

	(void)state;
	push(t, &FORK(0, 10, 1, 5, 5));
	push(t, &FORK(0, 11, 5, 5, 6));
	push(t, &COMM(0, 12, 5, 6, "worker"));
	push(t, &MMAP2(0, 13, 5, 0x1000, 0x1000, 1, "/old"));
	push(t, &LOST(0, 20, 1));
	push(t, &again);
	push(t, &MMAP2(UINT32_MAX, 30, 5, 0x2000, 0x1000, 2, "/lost"));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_false(doubted(loaded, 5, LATE));
	assert_string_equal(path_at(loaded, 5, LATE, 0x1000), "");
	assert_string_equal(path_at(loaded, 5, LATE, 0x2000), "/lost");
	assert_string_equal(timeline_comm(loaded, 6, LATE), "worker");
	timeline_free(loaded);
	timeline_free(t);
}

/* The leader exits, another thread becomes the leader by exec, and then the process ends. */
static void fold_of_an_exec_by_a_thread_keeps_one_process(void **state)
{
	struct timeline *t = new_small(), *loaded;
	struct timeline_stats stats;

	(void)state;
	push(t, &FORK(0, 10, 1, 5, 5));
	push(t, &FORK(0, 11, 5, 5, 6));
	push(t, &COMM(0, 12, 5, 6, "worker"));
	push(t, &ENTERS(1, 13, 5, 6));
	push(t, &EXIT(0, 20, 5, 5));
	push(t, &EXEC(1, 30, 5, "new"));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_string_equal(timeline_comm(loaded, 5, LATE), "new");
	assert_null(timeline_comm(loaded, 6, LATE));
	assert_int_equal(tid_on(loaded, 1, 29), 0);
	assert_int_equal(tid_on(loaded, 1, 30), 5);
	timeline_free(loaded);
	push(t, &EXIT(1, 6 * SECOND, 5, 5));
	flush(t, 9 * SECOND);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.processes, 0);
	timeline_free(t);
}

/* A source reports the mappings again by an exec record of a thread whose leader is gone. Such a
 * record is no exec. */
static void fold_of_mappings_told_anew_keeps_the_other_threads(void **state)
{
	struct perfrecord again = EXEC(1, 30, 5, "worker");
	struct timeline *t = new_small(), *loaded;

	(void)state;
	again.tid = again.u.comm.tid = 6;
	push(t, &FORK(0, 10, 1, 5, 5));
	push(t, &FORK(0, 11, 5, 5, 6));
	push(t, &FORK(0, 12, 5, 5, 7));
	push(t, &COMM(0, 13, 5, 7, "other"));
	push(t, &EXIT(0, 20, 5, 5));
	push(t, &again);
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_string_equal(timeline_comm(loaded, 6, LATE), "worker");
	assert_string_equal(timeline_comm(loaded, 7, LATE), "other");
	timeline_free(loaded);
	timeline_free(t);
}

/* For the time of the log, folding makes nothing certain that is uncertain in a full log. */
static void folded_losses_claim_no_more_than_a_full_log(void **state)
{
	struct timeline *small, *large, *a, *b;
	struct timeline_stats stats;
	uint32_t on[] = {1, 1, 1, 1}, cpu, other;
	uint64_t seed = 1, time = SECOND;

	(void)state;
	assert_int_equal(timeline_new(4096, 8 << 20, &small), 0);
	assert_int_equal(timeline_new(4 << 20, 8 << 20, &large), 0);
	for (uint32_t i = 0; i < 4000; i++) {
		struct perfrecord r;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		cpu = seed >> 33 & 3;
		other = 1 + (uint32_t)(seed >> 40 & 7);
		time += 1000;
		r = LEAVES(cpu, time, on[cpu], on[cpu], other, other);
		if ((seed >> 50) % 16 == 0)
			r = LOST(cpu, time, 1);
		else if ((seed >> 50) % 16 == 1)
			r = EXEC(cpu, time, other, "anew");
		else if ((seed >> 50) % 16 == 2)
			r = FORK(cpu, time, other, 1 + other % 8, 1 + other % 8);
		else
			on[cpu] = other;
		push(small, &r);
		push(large, &r);
	}
	timeline_get_stats(small, &stats);
	assert_true(stats.folded > 3000);
	a = written_and_loaded(small);
	b = written_and_loaded(large);
	for (uint64_t at = stats.horizon_ns; at < time; at += 777)
		for (uint32_t k = 0; k < 4; k++)
			assert_true(tid_on(a, k, at) == 0 || tid_on(a, k, at) == tid_on(b, k, at));
	for (uint64_t at = stats.horizon_ns; at < time; at += 777)
		for (uint32_t pid = 1; pid < 9; pid++)
			assert_true(doubted(a, pid, at) || !doubted(b, pid, at));
	timeline_free(a);
	timeline_free(b);
	timeline_free(small);
	timeline_free(large);
}

/* The load looks at all CPUs for each loss, and a fork server has children in each lost span. The
 * time must not grow with the square of the losses. */
static void load_of_many_losses_stays_quick(void **state)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	(void)state;
	bytes_out_init(&out, 64 << 20);
	for (uint32_t i = 0; i < 4096; i++) {
		put(&out, &FORK(i, 1, 1, 10 + i, 10 + i));
		put(&out, &ENTERS(i, 2, 10 + i, 10 + i));
	}
	for (uint32_t i = 0; i < 60000; i++) {
		put(&out, &LOST(0, 10 + 3ull * i, 1));
		put(&out, &COMM(0, 11 + 3ull * i, 10, 10, "x"));
		put(&out, &FORK(1, 12 + 3ull * i, 11, 100000 + i, 100000 + i));
	}
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_int_equal(bad, 0);
	assert_true(doubted(t, 100000, LATE));
	timeline_free(t);
	bytes_out_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_losses_all_is_certain),
		cmocka_unit_test(loss_makes_all_uncertain_from_the_record_before_it),
		cmocka_unit_test(exec_after_the_loss_makes_certain_again),
		cmocka_unit_test(mappings_read_again_after_the_loss_are_certain),
		cmocka_unit_test(mappings_read_again_of_a_reused_pid_are_the_new_process),
		cmocka_unit_test(folded_mappings_read_again_are_certain),
		cmocka_unit_test(child_is_as_certain_as_its_parent),
		cmocka_unit_test(child_made_in_the_lost_span_is_uncertain),
		cmocka_unit_test(process_on_another_cpu_all_the_time_is_certain),
		cmocka_unit_test(process_on_another_cpu_for_a_part_is_uncertain),
		cmocka_unit_test(lost_spans_that_overlap_exempt_nobody),
		cmocka_unit_test(lost_spans_that_end_together_exempt_nobody),
		cmocka_unit_test(reused_pid_is_not_exempt_by_its_predecessor),
		cmocka_unit_test(folded_loss_leaves_nobody_on_the_cpu),
		cmocka_unit_test(fold_between_out_and_in_contradicts_nothing),
		cmocka_unit_test(folded_loss_keeps_processes_uncertain_until_told),
		cmocka_unit_test(fold_of_an_exec_by_a_thread_keeps_one_process),
		cmocka_unit_test(fold_of_mappings_told_anew_keeps_the_other_threads),
		cmocka_unit_test(folded_losses_claim_no_more_than_a_full_log),
		cmocka_unit_test(load_of_many_losses_stays_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
