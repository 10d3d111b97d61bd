/*
 * The timeline as the decoder uses it: loads records, and answers by time.
 */
#include "sideband/timeline/timeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/timeline_look.h"
#include "tests/unit/sideband/load.h"

static void load_nothing_answers_nothing(void **state)
{
	struct timeline *t = NULL;
	uint64_t bad = 7, since = 7, until = 7;

	(void)state;
	assert_int_equal(timeline_load(NULL, 0, &t, &bad), 0);
	assert_int_equal(bad, 0);
	assert_null(timeline_look_running(t, 0, 5, &since, &until));
	assert_true(since == 0 && until == SPACE_NOW);
	assert_null(timeline_look_running(t, UINT32_MAX, 5, NULL, NULL));
	assert_null(timeline_space(t, 1, 5));
	assert_null(timeline_comm(t, 1, 5));
	assert_null(timeline_thread(t, 0));
	assert_null(timeline_look_file(t, 0));
	assert_null(timeline_loss(t, 0));
	timeline_free(t);
}

static void space_after_fork_is_the_parents_at_that_time(void **state)
{
	struct timeline *t = LOAD(MMAP2(0, 10, 1, 0x1000, 0x1000, 1, "/a"), FORK(0, 20, 1, 2, 2),
				  MMAP2(0, 30, 1, 0x1000, 0x1000, 2, "/b"));

	(void)state;
	assert_string_equal(path_at(t, 2, 40, 0x1000), "/a");
	assert_string_equal(path_at(t, 1, 40, 0x1000), "/b");
	assert_string_equal(path_at(t, 1, 29, 0x1000), "/a");
	assert_null(timeline_space(t, 2, 19));
	timeline_free(t);
}

static void space_after_exec_is_new_and_empty(void **state)
{
	struct timeline *t = LOAD(MMAP2(0, 10, 1, 0x1000, 0x1000, 1, "/a"), EXEC(0, 20, 1, "b"),
				  MMAP2(0, 21, 1, 0x8000, 0x1000, 2, "/b"));

	(void)state;
	assert_string_equal(path_at(t, 1, 19, 0x1000), "/a");
	assert_string_equal(path_at(t, 1, 20, 0x1000), "");
	assert_string_equal(path_at(t, 1, 21, 0x8000), "/b");
	assert_ptr_not_equal(timeline_space(t, 1, 19), timeline_space(t, 1, 20));
	timeline_free(t);
}

static void space_of_a_reused_pid_is_that_of_the_time(void **state)
{
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), MMAP2(0, 11, 5, 0x1000, 0x1000, 1, "/a"),
				  EXIT(0, 20, 5, 5), FORK(0, 30, 1, 5, 5),
				  MMAP2(0, 31, 5, 0x1000, 0x1000, 2, "/b"));

	(void)state;
	assert_string_equal(path_at(t, 5, 25, 0x1000), "/a");
	assert_string_equal(path_at(t, 5, 30, 0x1000), "");
	assert_string_equal(path_at(t, 5, 31, 0x1000), "/b");
	assert_int_equal(timeline_n_threads(t), 2);
	assert_int_equal(timeline_thread(t, 0)->end, 20);
	assert_int_equal(timeline_thread(t, 1)->begin, 30);
	assert_int_equal(timeline_thread(t, 1)->ppid, 1);
	timeline_free(t);
}

/* A fork on one CPU; the child's records come from another CPU, which was drained before. */
static void load_puts_cpus_in_order_of_time(void **state)
{
	struct timeline *t = LOAD(EXEC(0, 30, 2, "child"), MMAP2(0, 31, 2, 0x9000, 0x1000, 2, "/b"),
				  MMAP2(1, 10, 1, 0x1000, 0x1000, 1, "/a"), FORK(1, 20, 1, 2, 2));

	(void)state;
	assert_string_equal(path_at(t, 2, 25, 0x1000), "/a");
	assert_string_equal(path_at(t, 2, 31, 0x1000), "");
	assert_string_equal(path_at(t, 2, 31, 0x9000), "/b");
	timeline_free(t);
}

/* A plug-in is unloaded, which leaves no record, and another one is loaded over it. Its record was
 * drained before. */
static void address_means_what_it_meant_then(void **state)
{
	struct timeline *t = LOAD(MMAP2(0, 30, 1, 0x2000, 0x2000, 2, "/second"),
				  MMAP2(1, 10, 1, 0x1000, 0x3000, 1, "/first"),
				  MMAP2(1, 50, 1, 0x1000, 0x3000, 1, "/first"),
				  MMAP2(1, 10, 2, 0x1000, 0x3000, 9, "/other"));

	(void)state;
	assert_string_equal(path_at(t, 1, 9, 0x2000), "");
	assert_string_equal(path_at(t, 1, 29, 0x2000), "/first");
	assert_string_equal(path_at(t, 1, 30, 0x1fff), "/first");
	assert_string_equal(path_at(t, 1, 30, 0x2000), "/second");
	assert_string_equal(path_at(t, 1, 30, 0x3fff), "/second");
	assert_string_equal(path_at(t, 1, 50, 0x2000), "/first");
	assert_string_equal(path_at(t, 2, 40, 0x2000), "/other");
	timeline_free(t);
}

static const struct space_file *file_at(const struct timeline *t, uint64_t time, uint64_t address)
{
	const struct space *s = timeline_space(t, 1, time);
	const struct space_mapping *m = s ? space_find(s, time, address) : NULL;

	assert_non_null(m);
	return m->file;
}

/* Two files with one name; the first file again; a file with a shorter id; and one without. */
static void files_with_a_build_id_are_told_apart_by_it(void **state)
{
	struct timeline *t = LOAD(MMAP2_BUILD_ID(0, 10, 1, 0x1000, 0x1000, "/a", 20, 1, 2, 3),
				  MMAP2_BUILD_ID(0, 20, 1, 0x1000, 0x1000, "/a", 20, 1, 2, 4),
				  MMAP2_BUILD_ID(0, 30, 1, 0x1000, 0x1000, "/a", 20, 1, 2, 3),
				  MMAP2_BUILD_ID(0, 40, 1, 0x2000, 0x1000, "/a", 2, 1, 2),
				  MMAP2(0, 50, 1, 0x3000, 0x1000, 7, "/a"));

	(void)state;
	assert_int_equal(timeline_look_n_files(t), 4);
	assert_int_equal(file_at(t, 10, 0x1000)->build_id[2], 3);
	assert_int_equal(file_at(t, 20, 0x1000)->build_id[2], 4);
	assert_ptr_equal(file_at(t, 30, 0x1000), file_at(t, 10, 0x1000));
	assert_int_equal(file_at(t, 40, 0x2000)->build_id_size, 2);
	assert_int_equal(file_at(t, 40, 0x2000)->ino, 0);
	assert_int_equal(file_at(t, 50, 0x3000)->build_id_size, 0);
	assert_int_equal(file_at(t, 50, 0x3000)->ino, 7);
	timeline_free(t);
}

static bool is_writable(const struct timeline *t, uint32_t pid, uint64_t time, uint64_t address)
{
	return space_find(timeline_space(t, pid, time), time, address)->prot & PROT_WRITE;
}

/* mprotect(2) that makes code executable again is a record; it may have been written to before. */
static void code_that_is_made_executable_again_may_have_been_written_to(void **state)
{
	struct timeline *t = LOAD(
		MMAP2(0, 10, 2, 0x1000, 0x4000, 1, "/a"), MMAP2(0, 20, 2, 0x1000, 0x4000, 1, "/a"),
		MMAP2(0, 30, 2, 0x1000, 0x4000, 2, "/b"), MMAP2(0, 40, 2, 0x1000, 0x4000, 1, "/a"),
		MMAP2(0, 10, 3, 0x1000, 0x1000, 0, "//anon"),
		MMAP2(0, 20, 3, 0x1000, 0x1000, 0, "//anon"), FORK(0, 25, 2, 4, 4));

	(void)state;
	assert_false(is_writable(t, 2, 19, 0x1000));
	assert_true(is_writable(t, 2, 20, 0x1000));
	assert_true(is_writable(t, 4, 25, 0x4000));
	/* Another file, and then the first one again: each was mapped anew. */
	assert_false(is_writable(t, 2, 30, 0x1000));
	assert_false(is_writable(t, 2, 40, 0x1000));
	/* The recorder knows more about memory. */
	assert_false(is_writable(t, 3, 20, 0x1000));
	assert_int_equal(space_generation(timeline_space(t, 3, 50), 50), 1);
	timeline_free(t);
}

static void namespaces_are_read_and_mean_nothing(void **state)
{
	static const uint8_t body[8 + 8 + 7 * 16] = {5, 0, 0, 0, 5, 0, 0, 0, 7};
	struct perfrecord r = {AT(NAMESPACES, 0, 11, 1, 1), .u.raw = {body, sizeof(body)}};
	struct timeline *t = LOAD(FORK(0, 10, 1, 5, 5), r, ENTERS(1, 12, 5, 5));

	(void)state;
	assert_int_equal(timeline_n_threads(t), 1);
	assert_int_equal(tid_on(t, 1, 12), 5);
	timeline_free(t);
}

/* The scan finds process 2 after its exec; live records tell some of the same. */
static void scan_and_live_records_make_one_state(void **state)
{
	struct timeline *t = LOAD(EXEC(0, 30, 2, "child"), MMAP2(0, 31, 2, 0x9000, 0x1000, 2, "/b"),
				  FORK(0, 0, 0, 1, 1), MMAP2(0, 0, 1, 0x1000, 0x1000, 1, "/a"),
				  FORK(0, 0, 1, 2, 2), COMM(0, 0, 2, 2, "child"),
				  MMAP2(0, 0, 2, 0x9000, 0x1000, 2, "/b"), FORK(0, 0, 1, 3, 3),
				  MMAP2(0, 0, 3, 0x5000, 0x1000, 1, "/a"),
				  MMAP2(1, 40, 3, 0x5000, 0x1000, 1, "/a"));

	(void)state;
	/* A child that the scan found inherits nothing. */
	assert_string_equal(path_at(t, 3, 0, 0x1000), "");
	assert_string_equal(path_at(t, 2, 31, 0x9000), "/b");
	/* A live record may be of an mprotect(2) of what the scan found. */
	assert_int_equal(space_generation(timeline_space(t, 3, 50), 50), 2);
	assert_int_equal(space_generation(timeline_space(t, 2, 50), 50), 1);
	assert_int_equal(timeline_n_threads(t), 3);
	assert_int_equal(timeline_thread(t, 1)->begin, 0);
	assert_int_equal(timeline_thread(t, 1)->ppid, 1);
	assert_int_equal(timeline_look_n_files(t), 2);
	assert_int_equal(timeline_look_file(t, 1)->index, 1);
	timeline_free(t);
}

static void running_follows_switches(void **state)
{
	struct timeline *t =
		LOAD(LEAVES(0, 10, 1, 1, 2, 3), ENTERS(0, 11, 2, 3), LEAVES(0, 20, 2, 3, 0, 0),
		     ENTERS(0, 21, 0, 0), ENTERS(0, 30, 1, 1), ENTERS(4, 15, 2, 2));
	uint64_t since, until;

	(void)state;
	assert_int_equal(tid_on(t, 0, 9), 1);
	assert_int_equal(timeline_look_running(t, 0, 11, &since, &until)->tid, 3);
	assert_int_equal(since, 10);
	assert_int_equal(until, 20);
	assert_null(timeline_look_running(t, 0, 25, &since, &until));
	assert_int_equal(since, 20);
	assert_int_equal(until, 30);
	timeline_look_running(t, 0, 30, &since, &until);
	assert_int_equal(since, 30);
	assert_true(until == SPACE_NOW);
	assert_int_equal(tid_on(t, 4, 14), 0);
	assert_int_equal(tid_on(t, 4, 15), 2);
	assert_int_equal(tid_on(t, 3, 15), 0);
	timeline_free(t);
}

static void running_without_switches_is_who_started(void **state)
{
	struct timeline *alone = LOAD(START(0, 10, 1, 2));
	struct timeline *switched = LOAD(START(0, 10, 1, 2), LEAVES(0, 20, 1, 2, 0, 0));
	struct timeline *base = LOAD(START(0, 0, 1, 2), LEAVES(0, 20, 1, 2, 3, 3));

	(void)state;
	assert_int_equal(tid_on(alone, 0, 0), 2);
	assert_int_equal(tid_on(alone, 0, 1000), 2);
	assert_int_equal(tid_on(switched, 0, 9), 0);
	assert_int_equal(tid_on(switched, 0, 10), 2);
	assert_int_equal(tid_on(switched, 0, 20), 0);
	assert_int_equal(tid_on(base, 0, 19), 2);
	assert_int_equal(tid_on(base, 0, 20), 3);
	timeline_free(alone);
	timeline_free(switched);
	timeline_free(base);
}

static void threads_end_and_leader_takes_no_other_along(void **state)
{
	struct timeline *t =
		LOAD(FORK(0, 10, 1, 5, 5), FORK(0, 12, 5, 5, 6), EXIT(0, 20, 5, 5),
		     ENTERS(0, 25, 5, 6), EXIT(0, 30, 5, 6), LEAVES(0, 31, 5, 6, 0, 0));

	(void)state;
	assert_int_equal(timeline_n_threads(t), 2);
	assert_int_equal(timeline_thread(t, 1)->tid, 6);
	assert_int_equal(timeline_thread(t, 1)->pid, 5);
	assert_int_equal(timeline_thread(t, 1)->begin, 12);
	assert_int_equal(timeline_thread(t, 1)->end, 30);
	assert_int_equal(timeline_thread(t, 0)->end, 20);
	assert_int_equal(tid_on(t, 0, 25), 6);
	assert_non_null(timeline_space(t, 5, 25));
	timeline_free(t);
}

static void comm_is_that_of_the_time_and_inherited(void **state)
{
	struct timeline *t = LOAD(COMM(0, 0, 1, 1, "init"), FORK(0, 10, 1, 2, 2),
				  EXEC(0, 20, 2, "exactly15chars!"), FORK(0, 30, 2, 2, 7),
				  COMM(0, 40, 2, 7, "worker"));

	(void)state;
	assert_string_equal(timeline_comm(t, 1, 0), "init");
	assert_null(timeline_comm(t, 2, 9));
	assert_string_equal(timeline_comm(t, 2, 10), "init");
	assert_string_equal(timeline_comm(t, 2, 20), "exactly15chars!");
	assert_string_equal(timeline_comm(t, 7, 30), "exactly15chars!");
	assert_string_equal(timeline_comm(t, 7, 41), "worker");
	timeline_free(t);
}

static void losses_come_in_order_of_time(void **state)
{
	struct timeline *t = LOAD(COMM(1, 12, 1, 1, "x"), LOST(1, 20, 5),
				  AUX(0, 10, PERF_AUX_FLAG_PARTIAL), AUX(0, 15, 0));

	(void)state;
	assert_int_equal(timeline_loss(t, 0)->time, 10);
	assert_int_equal(timeline_loss(t, 0)->aux_flags, PERF_AUX_FLAG_PARTIAL);
	assert_int_equal(timeline_loss(t, 0)->lost, 0);
	assert_int_equal(timeline_loss(t, 1)->cpu, 1);
	assert_int_equal(timeline_loss(t, 1)->lost, 5);
	assert_int_equal(timeline_loss(t, 1)->since, 12);
	assert_null(timeline_loss(t, 2));
	timeline_free(t);
}

static void nobodys_records_are_left_out(void **state)
{
	struct timeline *t =
		LOAD(FORK(0, 1, 0, 0, 0), COMM(0, 1, UINT32_MAX, UINT32_MAX, "x"),
		     MMAP2(0, 1, UINT32_MAX, 0, UINT64_MAX, 0, "[kernel]"),
		     ENTERS(0, 2, UINT32_MAX, UINT32_MAX), ENTERS(UINT32_MAX, 2, 1, 1));

	(void)state;
	assert_int_equal(timeline_n_threads(t), 0);
	assert_null(timeline_space(t, UINT32_MAX, 5));
	timeline_free(t);
}

static void load_skips_and_counts_bad_records(void **state)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	(void)state;
	bytes_out_init(&out, 1 << 20);
	put(&out, &COMM(0, 1, 1, 1, "one"));
	/* A COMM record that is too short for its fields, but has a size. */
	bytes_put_u32(&out, PERF_RECORD_COMM);
	bytes_put_u16(&out, 0);
	bytes_put_u16(&out, 16);
	bytes_put_u64(&out, 0);
	put(&out, &COMM(0, 2, 2, 2, "two"));
	bytes_put_u64(&out, 0);
	put(&out, &COMM(0, 3, 3, 3, "unreachable"));
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_int_equal(bad, 2);
	assert_string_equal(timeline_comm(t, 1, 1), "one");
	assert_string_equal(timeline_comm(t, 2, 2), "two");
	assert_null(timeline_comm(t, 3, 3));
	timeline_free(t);
	bytes_out_done(&out);
}

/* Each fork copies all mappings, so memory would grow with the square of the records. */
static void load_of_a_fork_bomb_is_limited(void **state)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	(void)state;
	bytes_out_init(&out, 64 << 20);
	for (uint32_t i = 0; i < 4000; i++)
		put(&out, &MMAP2(0, 1, 1, 0x1000ull * i, 0x1000, i + 1, "/a"));
	for (uint32_t i = 1; i < 4000; i++)
		put(&out, &FORK(0, 1 + i, i, i + 1, i + 1));
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_true(bad > 0);
	assert_string_equal(path_at(t, 100, 5000, 0x5000), "/a");
	timeline_free(t);
	bytes_out_done(&out);
}

static void load_of_too_many_mappings_goes_on(void **state)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	(void)state;
	bytes_out_init(&out, 64 << 20);
	for (uint32_t i = 0; i < 66000; i++)
		put(&out, &MMAP2(0, 1 + i, 1, 0x2000ull * i, 0x1000, 1, "/a"));
	put(&out, &MMAP2(0, 70000, 2, 0x1000, 0x1000, 1, "/b"));
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_int_equal(bad, 66000 - 65536);
	assert_string_equal(path_at(t, 1, 70000, 0x2000), "/a");
	assert_string_equal(path_at(t, 2, 70000, 0x1000), "/b");
	timeline_free(t);
	bytes_out_done(&out);
}

static void load_of_many_records_stays_quick(void **state)
{
	struct timeline *t = NULL;
	struct bytes_out out;
	uint64_t bad;

	(void)state;
	bytes_out_init(&out, 64 << 20);
	for (uint32_t i = 0; i < 100000; i++)
		put(&out, &COMM(0, 1 + i, 1, 1, i % 2 ? "odd" : "even"));
	for (uint32_t i = 0; i < 100000; i++)
		put(&out, &ENTERS(i % 4, 1 + i, i * 42949u, i * 42949u));
	assert_int_equal(timeline_load(out.data, out.size, &t, &bad), 0);
	assert_int_equal(bad, 0);
	for (uint32_t i = 1; i < 100000; i++) {
		assert_string_equal(timeline_comm(t, 1, 1 + i), i % 2 ? "odd" : "even");
		assert_int_equal(tid_on(t, i % 4, 1 + i), i * 42949u);
	}
	timeline_free(t);
	bytes_out_done(&out);
}

/* During the scan of /proc the parent (1) forks a child (2) and executes another program. Then the
 * scan reads the parent, and at last the child, which still executes the parent's first program. */
static struct timeline *load_a_race(uint64_t lost)
{
	struct perfrecord parent = FORK(0, 0, 0, 1, 1), child = FORK(0, 0, 1, 2, 2);

	parent.misc = child.misc = PERF_RECORD_MISC_FORK_EXEC;
	return LOAD(parent, COMM(0, 0, 1, 1, "after"), MMAP2(0, 0, 1, 0x1000, 0x1000, 1, "/after"),
		    MMAP2(0, 0, 1, 0x5000, 0x1000, 1, "/more"), child, COMM(0, 0, 2, 2, "before"),
		    MMAP2(0, 0, 2, 0x1000, 0x1000, 2, "/before"), LOST(0, 10, lost),
		    FORK(0, 20, 1, 2, 2), EXEC(0, 30, 1, "after"),
		    MMAP2(0, 31, 1, 0x1000, 0x1000, 1, "/after"), EXEC(0, 40, 2, "child"),
		    EXIT(0, 50, 2, 2), FORK(0, 60, 1, 2, 2));
}

static void scan_of_a_child_stays_when_its_fork_is_told(void **state)
{
	struct timeline *t = load_a_race(0);

	(void)state;
	assert_string_equal(path_at(t, 2, 25, 0x1000), "/before");
	assert_string_equal(timeline_comm(t, 2, 25), "before");
	/* After its exec the child is like any process, and so is the next process of that number.
	 */
	assert_string_equal(path_at(t, 2, 40, 0x1000), "");
	assert_string_equal(timeline_comm(t, 2, 40), "child");
	assert_string_equal(path_at(t, 2, 60, 0x1000), "/after");
	assert_string_equal(timeline_comm(t, 2, 60), "after");
	timeline_free(t);
}

static void scan_of_a_thread_stays_when_its_fork_is_told(void **state)
{
	struct perfrecord leader = FORK(0, 0, 0, 1, 1), thread = FORK(0, 0, 1, 1, 5);
	struct timeline *t;

	(void)state;
	leader.misc = thread.misc = PERF_RECORD_MISC_FORK_EXEC;
	t = LOAD(leader, COMM(0, 0, 1, 1, "later"), thread, COMM(0, 0, 1, 5, "worker"),
		 FORK(0, 20, 1, 1, 5), COMM(0, 21, 1, 1, "later"), EXIT(0, 30, 1, 5),
		 FORK(0, 40, 1, 1, 5));
	assert_string_equal(timeline_comm(t, 5, 25), "worker");
	assert_string_equal(timeline_comm(t, 5, 40), "later");
	timeline_free(t);
}

/* The lost records may include the EXIT of the process that the scan read. */
static void scan_of_a_child_goes_when_records_were_lost(void **state)
{
	struct timeline *t = load_a_race(1);

	(void)state;
	assert_string_equal(path_at(t, 2, 25, 0x1000), "/after");
	assert_string_equal(timeline_comm(t, 2, 25), "after");
	timeline_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_nothing_answers_nothing),
		cmocka_unit_test(space_after_fork_is_the_parents_at_that_time),
		cmocka_unit_test(space_after_exec_is_new_and_empty),
		cmocka_unit_test(space_of_a_reused_pid_is_that_of_the_time),
		cmocka_unit_test(load_puts_cpus_in_order_of_time),
		cmocka_unit_test(address_means_what_it_meant_then),
		cmocka_unit_test(files_with_a_build_id_are_told_apart_by_it),
		cmocka_unit_test(code_that_is_made_executable_again_may_have_been_written_to),
		cmocka_unit_test(namespaces_are_read_and_mean_nothing),
		cmocka_unit_test(scan_and_live_records_make_one_state),
		cmocka_unit_test(scan_of_a_child_stays_when_its_fork_is_told),
		cmocka_unit_test(scan_of_a_thread_stays_when_its_fork_is_told),
		cmocka_unit_test(scan_of_a_child_goes_when_records_were_lost),
		cmocka_unit_test(running_follows_switches),
		cmocka_unit_test(running_without_switches_is_who_started),
		cmocka_unit_test(threads_end_and_leader_takes_no_other_along),
		cmocka_unit_test(comm_is_that_of_the_time_and_inherited),
		cmocka_unit_test(losses_come_in_order_of_time),
		cmocka_unit_test(nobodys_records_are_left_out),
		cmocka_unit_test(load_skips_and_counts_bad_records),
		cmocka_unit_test(load_of_a_fork_bomb_is_limited),
		cmocka_unit_test(load_of_too_many_mappings_goes_on),
		cmocka_unit_test(load_of_many_records_stays_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
