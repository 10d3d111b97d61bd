/*
 * The timeline as the recorder feeds it: the log, folding into the base, limits, and that the
 * written records say what the pushed ones said. Every allocation is counted.
 */
#include "sideband/timeline/timeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/support/timeline_look.h"
#include "tests/unit/sideband/load.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static uint64_t n_allocations;
static uint64_t fail_at; /* the number of the allocation that fails; 0: none */

static bool fails(void)
{
	return ++n_allocations == fail_at;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails() ? NULL : __real_reallocarray(p, n, size);
}

static void new_refuses_sizes_that_are_no_power_of_two(void **state)
{
	struct timeline *t;

	(void)state;
	assert_int_equal(timeline_new(0, 1 << 20, &t), -EINVAL);
	assert_int_equal(timeline_new(5000, 1 << 20, &t), -EINVAL);
}

static void write_of_an_unfolded_log_is_its_bytes(void **state)
{
	uint8_t buffer[256];
	struct timeline_stats stats;
	struct bytes_out out;
	struct timeline *t;
	size_t size;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	assert_int_equal(push(t, &COMM(0, 5, 1, 1, "a")), 0);
	assert_int_equal(push(t, &LOST(0, 6, 3)), 0);
	bytes_out_init(&out, 4096);
	assert_int_equal(timeline_write(t, &out), 0);
	assert_int_equal(perfrecord_compose(&COMM(0, 5, 1, 1, "a"), buffer, sizeof(buffer), &size),
			 0);
	assert_true(out.size > size);
	assert_memory_equal(out.data, buffer, size);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.log_bytes_used, out.size);
	assert_int_equal(stats.lost, 3);
	assert_int_equal(stats.records, 2);
	assert_int_equal(stats.folded, 0);
	assert_true(stats.horizon_ns == MANIFEST_ABSENT);
	bytes_out_done(&out);
	bytes_out_init(&out, 8);
	assert_int_equal(timeline_write(t, &out), -E2BIG);
	bytes_out_done(&out);
	timeline_free(t);
}

static void fold_keeps_what_is_and_forgets_what_was(void **state)
{
	struct timeline *t, *loaded;
	struct timeline_stats stats;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &FORK(0, 0, 0, 1, 1));
	push(t, &COMM(0, 0, 1, 1, "init"));
	push(t, &MMAP2(0, 0, 1, 0x1000, 0x1000, 1, "/init"));
	push(t, &FORK(0, 10, 1, 2, 2));
	push(t, &EXEC(0, 20, 2, "shell"));
	push(t, &MMAP2(0, 21, 2, 0x1000, 0x1000, 2, "/shell"));
	push(t, &FORK(0, 30, 2, 2, 3));
	push(t, &COMM(0, 31, 2, 3, "thread"));
	push(t, &FORK(0, 40, 2, 4, 4));
	push(t, &EXIT(0, 50, 4, 4));
	push(t, &LEAVES(0, 60, 1, 1, 2, 3));
	push(t, &ENTERS(1, 61, 0, 0));
	flush(t, 5 * SECOND);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.processes, 2);
	assert_int_equal(stats.mappings, 2);
	assert_int_equal(stats.horizon_ns, 5 * SECOND);
	assert_int_equal(stats.dropped, 0);
	loaded = written_and_loaded(t);
	assert_string_equal(path_at(loaded, 1, 0, 0x1000), "/init");
	assert_string_equal(path_at(loaded, 2, 0, 0x1000), "/shell");
	assert_null(timeline_space(loaded, 4, SPACE_NOW));
	assert_string_equal(timeline_comm(loaded, 2, 0), "shell");
	assert_string_equal(timeline_comm(loaded, 3, 0), "thread");
	assert_null(timeline_look_running(loaded, 0, 59, NULL, NULL));
	assert_int_equal(timeline_look_running(loaded, 0, 60, NULL, NULL)->tid, 3);
	assert_int_equal(timeline_look_running(loaded, 0, 60, NULL, NULL)->pid, 2);
	assert_int_equal(timeline_look_running(loaded, 0, 60, NULL, NULL)->ppid, 1);
	assert_null(timeline_look_running(loaded, 1, 61, NULL, NULL));
	timeline_free(loaded);
	timeline_free(t);
}

static void fold_keeps_build_ids(void **state)
{
	struct timeline *t, *loaded;
	const struct space_mapping *m;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &MMAP2_BUILD_ID(0, 10, 1, 0x1000, 0x1000, "/a", 20, 1, 2, 3));
	push(t, &MMAP2_BUILD_ID(0, 11, 1, 0x2000, 0x1000, "/a", 8, 9));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	m = space_find(timeline_space(loaded, 1, 0), 0, 0x1000);
	assert_int_equal(m->file->build_id_size, 20);
	assert_memory_equal(m->file->build_id, ((uint8_t[20]){1, 2, 3}), 20);
	assert_int_equal(m->file->ino, 0);
	m = space_find(timeline_space(loaded, 1, 0), 0, 0x2000);
	assert_int_equal(m->file->build_id_size, 8);
	assert_int_equal(m->file->build_id[0], 9);
	assert_int_equal(timeline_look_n_files(loaded), 2);
	timeline_free(loaded);
	timeline_free(t);
}

/* The fork is drained after the child's exec, and both have left the log by then. */
static void fold_puts_cpus_in_order_of_time(void **state)
{
	struct timeline *t, *loaded;

	(void)state;
	assert_int_equal(timeline_new(256, 1 << 20, &t), 0);
	push(t, &MMAP2(0, SECOND, 1, 0x1000, 0x1000, 1, "/parent"));
	push(t, &EXEC(0, SECOND + 300, 2, "child"));
	push(t, &MMAP2(0, SECOND + 301, 2, 0x9000, 0x1000, 2, "/child"));
	push(t, &MMAP2(1, SECOND + 10, 1, 0x3000, 0x1000, 3, "/plugin"));
	push(t, &FORK(1, SECOND + 100, 1, 2, 2));
	push(t, &FORK(1, SECOND + 110, 1, 3, 3));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_string_equal(path_at(loaded, 2, 0, 0x9000), "/child");
	assert_string_equal(path_at(loaded, 2, 0, 0x1000), "");
	assert_string_equal(path_at(loaded, 3, 0, 0x3000), "/plugin");
	assert_string_equal(path_at(loaded, 3, 0, 0x1000), "/parent");
	timeline_free(loaded);
	timeline_free(t);
}

/* The child's records are drained before the fork and have the same time. */
static void fold_puts_a_fork_before_what_else_was_then(void **state)
{
	struct timeline *t, *loaded;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &MMAP2(1, 10, 1, 0x1000, 0x1000, 1, "/parent"));
	push(t, &EXEC(0, 100, 2, "child"));
	push(t, &MMAP2(0, 100, 2, 0x9000, 0x1000, 2, "/child"));
	push(t, &FORK(1, 100, 1, 2, 2));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_string_equal(path_at(loaded, 2, 0, 0x9000), "/child");
	assert_string_equal(path_at(loaded, 2, 0, 0x1000), "");
	assert_string_equal(timeline_comm(loaded, 2, 0), "child");
	timeline_free(loaded);
	timeline_free(t);
}

/* Records of the scan arrive when live records are folded already. */
static void fold_of_the_scan_does_not_undo_live_records(void **state)
{
	struct timeline *t, *loaded;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &FORK(0, 10, 1, 2, 2));
	push(t, &EXEC(0, 20, 2, "new"));
	push(t, &MMAP2(0, 21, 2, 0x1000, 0x1000, 2, "/new"));
	flush(t, 5 * SECOND);
	push(t, &FORK(0, 0, 1, 2, 2));
	push(t, &COMM(0, 0, 2, 2, "old"));
	push(t, &MMAP2(0, 0, 2, 0x1000, 0x1000, 1, "/old"));
	flush(t, 5 * SECOND);
	loaded = written_and_loaded(t);
	assert_string_equal(path_at(loaded, 2, 0, 0x1000), "/new");
	assert_string_equal(timeline_comm(loaded, 2, 0), "new");
	timeline_free(loaded);
	timeline_free(t);
}

static void fold_keeps_a_process_whose_leader_is_gone(void **state)
{
	struct timeline *t;
	struct timeline_stats stats;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &FORK(0, 10, 1, 2, 2));
	push(t, &FORK(0, 11, 2, 2, 3));
	push(t, &EXIT(0, 12, 2, 2));
	flush(t, 5 * SECOND);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.processes, 1);
	push(t, &EXIT(0, 6 * SECOND, 2, 3));
	flush(t, 9 * SECOND);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.processes, 0);
	timeline_free(t);
}

static void base_beyond_its_limit_drops_ended_then_silent_processes(void **state)
{
	struct timeline *t, *loaded;
	struct timeline_stats stats;
	char path[64];

	(void)state;
	assert_int_equal(timeline_new(1024, 256 << 10, &t), 0);
	push(t, &MMAP2(0, 1, 7, 0x1000, 0x1000, 1, "/silent"));
	push(t, &MMAP2(0, 1, 8, 0x1000, 0x1000, 1, "/busy"));
	push(t, &COMM(0, 1, 8, 8, "busy"));
	for (uint32_t i = 0; i < 5000; i++) {
		snprintf(path, sizeof(path), "/file/number/%u", i);
		push(t, &FORK(0, 2 * SECOND + i, 1, 100 + i, 100 + i));
		push(t, &MMAP2(0, 2 * SECOND + i, 100 + i, 0x1000, 0x1000, i, path));
		push(t, &ENTERS(0, 2 * SECOND + i, 8, 8));
	}
	flush(t, 9 * SECOND);
	timeline_get_stats(t, &stats);
	assert_true(stats.dropped > 1000);
	assert_in_range(stats.base_bytes_used, 1024, 256 << 10);
	assert_true(stats.processes > 100);
	loaded = written_and_loaded(t);
	assert_string_equal(path_at(loaded, 8, 0, 0x1000), "/busy");
	assert_string_equal(path_at(loaded, 7, 0, 0x1000), "");
	assert_string_equal(path_at(loaded, 100 + 4999, 0, 0x1000), path);
	timeline_free(loaded);
	timeline_free(t);
}

static void push_of_a_record_larger_than_the_log_is_refused(void **state)
{
	struct timeline *t;
	struct timeline_stats stats;
	char path[512] = {0};

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	assert_int_equal(timeline_new(256, 1 << 20, &t), 0);
	assert_int_equal(push(t, &MMAP2(0, 1, 7, 0x1000, 0x1000, 1, path)), -ENOMEM);
	timeline_get_stats(t, &stats);
	assert_int_equal(stats.dropped, 1);
	timeline_free(t);
}

static uint32_t dice(uint64_t *random, uint32_t sides)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % sides;
}

/* One switch of CPU from thread *ON to another thread or to the idle task. The idle task may have
 * no record of its own. Now and then records are lost, or an AUX event begins. */
static void switch_once(struct timeline *t, uint64_t *random, uint32_t cpu, uint64_t time,
			uint32_t *on)
{
	uint32_t next = dice(random, 4) ? 1 + dice(random, 5) : 0;
	bool idle_tells = dice(random, 2);

	/* The kernel never switches from a thread to itself (kernel/sched/core.c, __schedule()). */
	next = next == *on ? 6 : next;

	if (dice(random, 40) == 0)
		push(t, &LOST(cpu, time, 1));
	if (dice(random, 40) == 0)
		push(t, &START(cpu, time + 1, *on, *on));
	if (*on != 0 || idle_tells)
		push(t, &LEAVES(cpu, time + 2, *on, *on, next, next));
	if (next != 0 || idle_tells)
		push(t, &ENTERS_AFTER(cpu, time + 3, next, next, *on, *on));
	*on = next;
}

static void write_all(const struct timeline *t, struct bytes_out *out)
{
	bytes_out_reset(out);
	assert_int_equal(timeline_write(t, out), 0);
}

/* Folding skips most switches. A timeline that is written after each switch skips none. */
static void fold_of_switches_is_the_same_as_one_by_one(void **state)
{
	struct bytes_out lazy, eager;
	struct timeline *t, *u;

	(void)state;
	bytes_out_init(&lazy, 1 << 20);
	bytes_out_init(&eager, 1 << 20);
	for (uint32_t n = 20; n < 300; n++) {
		uint64_t random[2] = {n, n};
		uint32_t on[2][2] = {{0}};

		assert_int_equal(timeline_new(1024, 1 << 20, &t), 0);
		assert_int_equal(timeline_new(1024, 1 << 20, &u), 0);
		for (uint32_t i = 0; i < n; i++) {
			switch_once(t, &random[0], i % 2, 10 + 10ull * i, &on[0][i % 2]);
			switch_once(u, &random[1], i % 2, 10 + 10ull * i, &on[1][i % 2]);
			write_all(u, &eager);
		}
		write_all(t, &lazy);
		assert_int_equal(lazy.size, eager.size);
		assert_memory_equal(lazy.data, eager.data, eager.size);
		timeline_free(t);
		timeline_free(u);
	}
	bytes_out_done(&lazy);
	bytes_out_done(&eager);
}

struct files_seen {
	char paths[16][16];
	unsigned n;
	unsigned end_at;
};

static int list_file(void *userdata, const struct space_file *file)
{
	struct files_seen *f = userdata;

	assert_true(f->n < 16);
	snprintf(f->paths[f->n++], sizeof(f->paths[0]), "%s", file->path);
	return f->n == f->end_at ? 17 : 0;
}

static bool has_file(const struct files_seen *f, const char *path)
{
	for (unsigned i = 0; i < f->n; i++)
		if (strcmp(f->paths[i], path) == 0)
			return true;
	return false;
}

/* The base has /a in two processes and /b in one; /gone is covered completely. The log has /c
 * twice, and /d is pending. */
static void foreach_file_gives_those_of_base_and_log(void **state)
{
	struct files_seen f = {0};
	struct timeline *t;

	(void)state;
	assert_int_equal(timeline_new(4096, 1 << 20, &t), 0);
	push(t, &MMAP2(0, 10, 1, 0x1000, 0x1000, 9, "/gone"));
	push(t, &MMAP2(0, 11, 1, 0x1000, 0x1000, 1, "/a"));
	push(t, &FORK(0, 12, 1, 2, 2));
	push(t, &MMAP2(0, 13, 2, 0x2000, 0x1000, 2, "/b"));
	flush(t, 5 * SECOND);
	push(t, &MMAP2(0, 5 * SECOND, 2, 0x4000, 0x1000, 4, "/d"));
	flush(t, 5 * SECOND + 1);
	push(t, &MMAP2(0, 6 * SECOND, 1, 0x3000, 0x1000, 3, "/c"));
	push(t, &MMAP2(0, 6 * SECOND, 2, 0x3000, 0x1000, 3, "/c"));
	push(t, &COMM(0, 6 * SECOND, 7, 7, "x"));
	assert_int_equal(timeline_foreach_file(t, list_file, &f), 0);
	assert_int_equal(f.n, 4);
	assert_true(has_file(&f, "/a") && has_file(&f, "/b") && has_file(&f, "/c") &&
		    has_file(&f, "/d"));
	f = (struct files_seen){.end_at = 2};
	assert_int_equal(timeline_foreach_file(t, list_file, &f), 17);
	assert_int_equal(f.n, 2);
	timeline_free(t);
}

/* Feeds what happens on a host: a shell starts a program with threads and libraries. */
static void live_a_little(struct timeline *t, uint32_t i)
{
	uint64_t time = 10 * SECOND + 1000000ull * i;
	uint32_t pid = 1000 + i % 20000;
	char path[64];

	push(t, &FORK(0, time, 1, pid, pid));
	push(t, &LEAVES(0, time + 1, 1, 1, pid, pid));
	push(t, &EXEC(1, time + 2, pid, "program"));
	for (uint32_t k = 0; k < 6; k++) {
		snprintf(path, sizeof(path), "/usr/lib/number-%u/lib%u.so", i, k);
		push(t, &MMAP2(1, time + 3 + k, pid, 0x10000ull * k, 0x8000, k + 1, path));
	}
	push(t, &FORK(1, time + 20, pid, pid, 500000 + i));
	push(t, &COMM(1, time + 21, pid, 500000 + i, "worker"));
	push(t, &ENTERS(2, time + 22, pid, 500000 + i));
	push(t, &EXIT(1, time + 30, pid, 500000 + i));
	push(t, &EXIT(1, time + 31, pid, pid));
	push(t, &LEAVES(0, time + 32, pid, pid, 1, 1));
	push(t, &ENTERS(0, time + 33, 1, 1));
	if (i % 7 == 0)
		push(t, &LOST(3, time + 34, 1));
}

/* The scan finds a child whose fork is told later. */
static void meet_a_child_by_scan(struct timeline *t)
{
	struct perfrecord parent = FORK(0, 0, 0, 1, 1), child = FORK(0, 0, 1, 2, 2);

	parent.misc = child.misc = PERF_RECORD_MISC_FORK_EXEC;
	push(t, &parent);
	push(t, &MMAP2(0, 0, 1, 0x1000, 0x1000, 1, "/a"));
	push(t, &child);
	push(t, &COMM(0, 0, 2, 2, "child"));
	push(t, &MMAP2(0, 0, 2, 0x1000, 0x1000, 2, "/b"));
	push(t, &FORK(0, 1, 1, 2, 2));
}

static void push_allocates_nothing_once_warm(void **state)
{
	struct timeline *t;
	struct timeline_stats stats;
	uint64_t before;

	(void)state;
	assert_int_equal(timeline_new(1 << 20, 8 << 20, &t), 0);
	for (uint32_t i = 0; i < 5000; i++)
		live_a_little(t, i);
	before = n_allocations;
	for (uint32_t i = 5000; i < 12000; i++)
		live_a_little(t, i);
	assert_int_equal(n_allocations, before);
	timeline_get_stats(t, &stats);
	assert_true(stats.folded > 100000);
	assert_int_equal(stats.dropped, 0);
	timeline_free(t);
}

/* For the time of the log, the answers are the same with and without folding. */
static void write_after_folding_answers_as_a_full_log_does(void **state)
{
	struct timeline *small, *large, *a, *b;
	struct timeline_stats stats;

	(void)state;
	assert_int_equal(timeline_new(16 << 10, 8 << 20, &small), 0);
	assert_int_equal(timeline_new(8 << 20, 8 << 20, &large), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		live_a_little(small, i);
		live_a_little(large, i);
	}
	timeline_get_stats(small, &stats);
	assert_true(stats.folded > 0);
	a = written_and_loaded(small);
	b = written_and_loaded(large);
	for (uint64_t time = stats.horizon_ns; time < 12 * SECOND; time += 100001)
		for (uint32_t cpu = 0; cpu < 3; cpu++) {
			const struct timeline_thread *x, *y;

			x = timeline_look_running(a, cpu, time, NULL, NULL);
			y = timeline_look_running(b, cpu, time, NULL, NULL);
			assert_int_equal(!x, !y);
			if (!x)
				continue;
			assert_int_equal(x->tid, y->tid);
			assert_string_equal(path_at(a, x->pid, time, 0x20000),
					    path_at(b, y->pid, time, 0x20000));
		}
	timeline_free(a);
	timeline_free(b);
	timeline_free(small);
	timeline_free(large);
}

/* Every allocation fails once. Nothing may leak or be left half done. */
static void any_allocation_may_fail(void **state)
{
	bool failed = true;

	(void)state;
	for (uint64_t at = 1; failed; at++) {
		struct timeline *t = NULL, *loaded = NULL;
		struct bytes_out out;
		uint64_t bad;

		n_allocations = 0;
		fail_at = at;
		if (timeline_new(4096, 1 << 20, &t) == 0) {
			meet_a_child_by_scan(t);
			for (uint32_t i = 0; i < 300; i++)
				live_a_little(t, i);
			bytes_out_init(&out, 1 << 20);
			if (timeline_write(t, &out) == 0)
				(void)timeline_load(out.data, out.size, &loaded, &bad);
			bytes_out_done(&out);
			timeline_free(loaded);
			timeline_free(t);
		}
		failed = n_allocations >= at;
		fail_at = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_refuses_sizes_that_are_no_power_of_two),
		cmocka_unit_test(write_of_an_unfolded_log_is_its_bytes),
		cmocka_unit_test(fold_keeps_what_is_and_forgets_what_was),
		cmocka_unit_test(fold_keeps_build_ids),
		cmocka_unit_test(fold_puts_cpus_in_order_of_time),
		cmocka_unit_test(fold_puts_a_fork_before_what_else_was_then),
		cmocka_unit_test(fold_of_the_scan_does_not_undo_live_records),
		cmocka_unit_test(fold_keeps_a_process_whose_leader_is_gone),
		cmocka_unit_test(base_beyond_its_limit_drops_ended_then_silent_processes),
		cmocka_unit_test(push_of_a_record_larger_than_the_log_is_refused),
		cmocka_unit_test(fold_of_switches_is_the_same_as_one_by_one),
		cmocka_unit_test(foreach_file_gives_those_of_base_and_log),
		cmocka_unit_test(push_allocates_nothing_once_warm),
		cmocka_unit_test(write_after_folding_answers_as_a_full_log_does),
		cmocka_unit_test(any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
