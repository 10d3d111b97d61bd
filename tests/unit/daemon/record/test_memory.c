/*
 * The processes that have code in memory, as told by records.
 */
#include "daemon/record/memory.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "daemon/gather/evidence.h"

static struct memory *new_memory(uint32_t max)
{
	struct memory *m;

	assert_int_equal(memory_new(max, &m), 0);
	return m;
}

static void see(struct memory *m, uint32_t pid, uint64_t time, uint64_t addr, uint64_t len,
		const char *name)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid, .time = time};

	r.u.mmap2.pid = r.u.mmap2.tid = pid;
	r.u.mmap2.addr = addr;
	r.u.mmap2.len = len;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.flags = MAP_PRIVATE;
	r.u.mmap2.filename = name;
	memory_see(m, &r, time);
}

/* Memory that can be written to and executed. */
static void see_open(struct memory *m, uint32_t pid, uint64_t time, uint64_t addr, uint64_t len)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid, .time = time};

	r.u.mmap2.pid = r.u.mmap2.tid = pid;
	r.u.mmap2.addr = addr;
	r.u.mmap2.len = len;
	r.u.mmap2.prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	r.u.mmap2.flags = MAP_PRIVATE;
	r.u.mmap2.filename = "//anon";
	memory_see(m, &r, time);
}

/* Compares with "PID:ADDRESS+SIZE " of each region; v: a vDSO. */
static void check(const struct memory *m, const char *expected)
{
	struct memory_region *list;
	char text[512] = "";
	size_t n, used = 0;

	assert_int_equal(memory_regions(m, &list, &n), 0);
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%u:%lx+%lx%s ",
					 list[i].pid, (unsigned long)list[i].address,
					 (unsigned long)list[i].size, list[i].vdso ? "v" : "");
	assert_string_equal(text, expected);
	free(list);
}

static void memory_see_what_is_no_file_is_remembered(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x1000, 0x1000, "//anon");
	see(m, 7, 10, 0x4000, 0x1000, "[heap]");
	see(m, 7, 10, 0x6000, 0x1000, "/dev/zero (deleted)");
	see(m, 7, 10, 0x8000, 0x1000, "/anon_hugepage (deleted)");
	see(m, 7, 10, 0xa000, 0x1000, "/usr/bin/true");
	see(m, 7, 10, 0xc000, 0x1000, "/memfd:code (deleted)");
	see(m, 7, 10, 0xe000, 0x1000, "[vsyscall]");
	see(m, 7, 10, 0x10000, 0x1000, "[guest]");
	see(m, 7, 10, 0x12000, 0, "//anon");
	see(m, 7, 10, UINT64_MAX - 5, 0x1000, "//anon");
	check(m, "7:1000+1000 7:4000+1000 7:6000+1000 7:8000+1000 7:c000+1000 ");
	memory_free(m);
}

/* Where a process can write, it does not matter since when. */
static void memory_see_regions_that_touch_and_are_alike_are_one(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see_open(m, 7, 10, 0x5000, 0x1000);
	see_open(m, 7, 11, 0x1000, 0x1000);
	see_open(m, 7, 12, 0x3000, 0x1000);
	check(m, "7:1000+1000 7:3000+1000 7:5000+1000 ");
	see_open(m, 7, 13, 0x2000, 0x1000);
	check(m, "7:1000+3000 7:5000+1000 ");
	see_open(m, 7, 14, 0x1800, 0x3000);
	see_open(m, 7, 14, 0x5000, 0x1000);
	check(m, "7:1000+3800 7:5000+1000 ");
	see_open(m, 7, 15, 0, 0x10000);
	check(m, "7:0+10000 ");
	/* The newest record tells which memory cannot be written to. */
	see(m, 8, 20, 0x1000, 0x1000, "//anon");
	see(m, 8, 20, 0x2000, 0x1000, "//anon");
	see(m, 8, 21, 0x3000, 0x1000, "//anon");
	see_open(m, 8, 22, 0x4000, 0x1000);
	check(m, "8:1000+2000 8:3000+1000 8:4000+1000 7:0+10000 ");
	see(m, 8, 23, 0x1800, 0x1000, "//anon");
	check(m, "8:1000+800 8:1800+1000 8:2800+800 8:3000+1000 8:4000+1000 7:0+10000 ");
	see(m, 8, 24, 0x1000, 0x4000, "//anon");
	check(m, "8:1000+4000 7:0+10000 ");
	memory_free(m);
}

static void memory_unchanged_is_told_by_the_newest_record(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x1000, 0x2000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x2000), 10);
	assert_int_equal(memory_unchanged(m, 7, 0x1800, 0x100), 10);
	/* A part is made executable again: it may have been written to meanwhile. */
	see(m, 7, 20, 0x2000, 0x1000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x1000), 10);
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x2000), 20);
	/* It can be written to, and then not any more. */
	see_open(m, 7, 30, 0x2000, 0x1000);
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x1000), 10);
	assert_true(memory_unchanged(m, 7, 0x1000, 0x1001) == MEMORY_UNKNOWN);
	see(m, 7, 40, 0x2000, 0x1000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x2000), 40);
	/* An older record of another CPU makes it no older. */
	see(m, 7, 35, 0x2000, 0x1000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x2000, 0x1000), 40);
	see_open(m, 7, 36, 0x2000, 0x1000);
	assert_true(memory_unchanged(m, 7, 0x2000, 0x1000) == MEMORY_UNKNOWN);
	/* Elsewhere, and of others, nothing is known. */
	assert_true(memory_unchanged(m, 7, 0xf00, 0x200) == MEMORY_UNKNOWN);
	assert_true(memory_unchanged(m, 7, 0x2f00, 0x200) == MEMORY_UNKNOWN);
	assert_true(memory_unchanged(m, 7, UINT64_MAX - 1, 0x200) == MEMORY_UNKNOWN);
	assert_true(memory_unchanged(m, 8, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	assert_true(memory_unchanged(NULL, 7, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	memory_free(m);
}

static void memory_unchanged_counts_from_lost_records_on(void **state)
{
	struct memory *m = new_memory(8);
	struct memory_region *list;
	size_t n;

	(void)state;
	see(m, 7, 10, 0x1000, 0x1000, "//anon");
	memory_lost(m, 50);
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x1000), 50);
	see(m, 7, 60, 0x1000, 0x1000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x1000, 0x1000), 60);
	assert_int_equal(memory_regions(m, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].unchanged_ns, 60);
	free(list);
	memory_lost(m, 0);
	assert_true(memory_unchanged(m, 7, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	memory_lost(NULL, 5);
	memory_free(m);
}

/* Memory that another mapping may share, or of which a record says nothing. */
static void memory_unchanged_of_shared_memory_is_unknown(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags;
	} shared[] = {{"/dev/zero (deleted)", MAP_SHARED},
		      {"/memfd:code (deleted)", MAP_SHARED},
		      {"/memfd:code (deleted)", MAP_PRIVATE},
		      {"//anon", MAP_SHARED},
		      {"//anon", 0}};
	struct memory *m = new_memory(8);

	(void)state;
	for (uint32_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		struct perfrecord r = {.type = PERF_RECORD_MMAP2, .time = 10};

		r.u.mmap2.pid = i + 1;
		r.u.mmap2.addr = 0x1000;
		r.u.mmap2.len = 0x1000;
		r.u.mmap2.prot = PROT_READ | PROT_EXEC;
		r.u.mmap2.flags = shared[i].flags;
		r.u.mmap2.filename = shared[i].name;
		memory_see(m, &r, 10);
		assert_true(memory_unchanged(m, i + 1, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	}
	memory_free(m);
}

/* --- What the kernel writes records of --- */

#define PAGE  4096u
#define PAGES 4u

struct kernel_records {
	struct perf_event event;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
	struct memory *memory;
	size_t n; /* records of memory */
};

/* Opens the sideband event of the recorder on one CPU, for which the test stays on that CPU. False:
 * the kernel does not permit it. */
static bool open_records(struct kernel_records *k)
{
	int cpu = sched_getcpu();
	struct perf_event_attr attr;
	uint64_t no_aux = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	perf_attr_sideband(0, false, &attr);
	perf_event_init(&k->event);
	if (perf_event_start(&k->event, &attr, (uint32_t)cpu, 64 * PAGE, &no_aux, k->scratch) < 0)
		return false;
	assert_int_equal(perf_event_enable(&k->event), 0);
	k->memory = new_memory(8);
	return true;
}

/* Takes in the records so far. Returns how many of them were of memory of this process. */
static size_t take_records(struct kernel_records *k)
{
	size_t size, n = 0;
	const void *bytes;

	while (ring_peek(&k->event.ring, &bytes, &size) == 0) {
		struct perfrecord r;

		if (perfrecord_parse(bytes, size, &r) == 0) {
			assert_int_not_equal(r.type, PERF_RECORD_LOST);
			if (r.type == PERF_RECORD_MMAP2 && r.u.mmap2.pid == (uint32_t)getpid()) {
				memory_see(k->memory, &r, r.time);
				n++;
			}
		}
		ring_consume(&k->event.ring, size);
	}
	return n;
}

static uint64_t since(const struct kernel_records *k, const uint8_t *at)
{
	return memory_unchanged(k->memory, (uint32_t)getpid(), (uint64_t)(uintptr_t)at, PAGE);
}

static void protect(uint8_t *at, size_t size, int prot)
{
	assert_int_equal(mprotect(at, size, prot), 0);
}

/* mm/mprotect.c, mprotect_fixup(), ends with perf_event_mmap(): each change to a protection with
 * execution is a record, and one without is none. */
static void memory_unchanged_holds_with_the_records_of_the_kernel(void **state)
{
	const int closed = PROT_READ | PROT_EXEC, open = PROT_READ | PROT_WRITE;
	static struct kernel_records k;
	uint64_t first, second;
	uint8_t *code;

	(void)state;
	if (!open_records(&k))
		skip();
	code = mmap(NULL, PAGES * PAGE, open, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	take_records(&k);
	protect(code + PAGE, PAGE, closed);
	assert_int_equal(take_records(&k), 1);
	first = since(&k, code + PAGE);
	assert_true(first > 0 && first < MEMORY_UNKNOWN);
	/* The same protection again changes nothing, and is no record. */
	protect(code + PAGE, PAGE, closed);
	assert_int_equal(take_records(&k), 0);
	/* Writable: no record; executable again: one. */
	protect(code + PAGE, PAGE, open);
	assert_int_equal(take_records(&k), 0);
	code[PAGE] = 0xc3;
	protect(code + PAGE, PAGE, closed);
	assert_int_equal(take_records(&k), 1);
	second = since(&k, code + PAGE);
	assert_true(second > first && second < MEMORY_UNKNOWN);
	/* Both at once: a record; and one when it is closed. */
	protect(code + PAGE, PAGE, open | PROT_EXEC);
	assert_int_equal(take_records(&k), 1);
	assert_true(since(&k, code + PAGE) == MEMORY_UNKNOWN);
	protect(code + PAGE, PAGE, closed);
	assert_int_equal(take_records(&k), 1);
	assert_true(since(&k, code + PAGE) > second && since(&k, code + PAGE) < MEMORY_UNKNOWN);
	munmap(code, PAGES * PAGE);
	perf_event_stop(&k.event);
	memory_free(k.memory);
}

/* A child has its parent's memory, and each goes on alone. */
static void memory_unchanged_of_a_child_is_its_parents(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x1000, 0x1000, "//anon");
	memory_fork(m, 8, 7, 20);
	see_open(m, 7, 30, 0x1000, 0x1000);
	assert_int_equal(memory_unchanged(m, 8, 0x1000, 0x1000), 10);
	assert_true(memory_unchanged(m, 7, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	memory_exec(m, 8, 40);
	assert_true(memory_unchanged(m, 8, 0x1000, 0x1000) == MEMORY_UNKNOWN);
	memory_free(m);
}

/* There is a limit for the regions of a process; then regions become one, and less is known. */
static void memory_see_more_regions_than_are_kept_tells_less(void **state)
{
	const uint64_t n = 4096;
	struct memory *m = new_memory(8);

	(void)state;
	for (uint64_t i = 0; i < n; i++)
		see(m, 7, 10 + i, 0x1000 * (i + 1), 0x1000, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x2000, 0x1000), 11);
	see(m, 7, 9000, 0x2800, 0x400, "//anon");
	assert_int_equal(memory_unchanged(m, 7, 0x2000, 0x100), 9000);
	assert_int_equal(memory_dropped(m), 0);
	see_open(m, 7, 9001, 0x1000 * (n + 1), 0x1000);
	assert_int_equal(memory_dropped(m), 0);
	memory_free(m);
}

static void memory_see_vdso_like_our_own_is_left_out_and_others_stay_apart(void **state)
{
	struct memory *m = new_memory(8);
	uint64_t size;

	(void)state;
	assert_non_null(vdso_own(&size));
	see(m, 7, 10, 0x7fff00000000, size, "[vdso]");
	check(m, "");
	see(m, 7, 10, 0x7fff00000000, size + 0x1000, "[vdso]");
	see(m, 8, 9, 0xf7f00000, size, "[vdso]");
	see(m, 8, 9, 0xf7f00000 - 0x1000, 0x1000, "//anon");
	see(m, 8, 9, 0xf7f00000 + size, 0x1000, "//anon");
	assert_int_equal(size, 0x2000);
	check(m, "7:7fff00000000+3000v 8:f7eff000+1000 8:f7f00000+2000v 8:f7f02000+1000 ");
	memory_free(m);
}

static void memory_fork_child_has_what_the_parent_had(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x1000, 0x1000, "//anon");
	memory_fork(m, 8, 7, 20);
	memory_fork(m, 9, 6, 20);
	see(m, 8, 21, 0x9000, 0x1000, "//anon");
	check(m, "8:1000+1000 8:9000+1000 7:1000+1000 ");
	/* Records of the child may come before the one of its fork. */
	see(m, 10, 31, 0x5000, 0x1000, "//anon");
	memory_fork(m, 10, 7, 30);
	check(m, "10:1000+1000 10:5000+1000 8:1000+1000 8:9000+1000 7:1000+1000 ");
	/* The pid is reused. */
	memory_fork(m, 10, 6, 40);
	check(m, "8:1000+1000 8:9000+1000 7:1000+1000 ");
	memory_free(m);
}

static void memory_exec_and_exit_forget(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x1000, 0x1000, "//anon");
	see(m, 8, 10, 0x1000, 0x1000, "//anon");
	/* A record of the new program that comes before the one of the exec. */
	see(m, 7, 21, 0x5000, 0x1000, "//anon");
	memory_exec(m, 7, 20);
	check(m, "7:5000+1000 8:1000+1000 ");
	memory_exit(m, 7);
	memory_exit(m, 99);
	check(m, "8:1000+1000 ");
	memory_exec(m, 8, 30);
	check(m, "");
	memory_free(m);
}

static void memory_regions_those_that_ran_last_come_first(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	for (uint32_t pid = 1; pid <= 3; pid++)
		see(m, pid, 10, 0x1000 * pid, 0x1000, "//anon");
	memory_ran(m, 2, 50);
	memory_ran(m, 3, 40);
	memory_ran(m, 9, 60);
	check(m, "2:2000+1000 3:3000+1000 1:1000+1000 ");
	memory_free(m);
}

static void memory_see_too_many_processes_and_regions_are_counted(void **state)
{
	struct memory *m = new_memory(2);

	(void)state;
	see(m, 1, 10, 0x1000, 0x1000, "//anon");
	see(m, 2, 20, 0x1000, 0x1000, "//anon");
	see(m, 3, 30, 0x1000, 0x1000, "//anon");
	check(m, "3:1000+1000 2:1000+1000 ");
	assert_int_equal(memory_dropped(m), 1);
	/* The parent itself may have to make room. */
	memory_fork(m, 4, 2, 40);
	memory_fork(m, 5, 2, 40);
	memory_exit(m, 4);
	for (uint64_t i = 0; i < 5000; i++)
		see(m, 3, 50, 0x10000 + i * 0x2000, 0x1000, "//anon");
	assert_true(memory_dropped(m) > 900);
	/* They are no fault of a snapshot after the end of their process. */
	memory_exit(m, 3);
	assert_in_range(memory_dropped(m), 1, 10);
	memory_free(m);
}

static void memory_nobody_wants_it_does_nothing(void **state)
{
	(void)state;
	see(NULL, 1, 10, 0x1000, 0x1000, "//anon");
	memory_fork(NULL, 1, 2, 3);
	memory_exec(NULL, 1, 3);
	memory_exit(NULL, 1);
	memory_ran(NULL, 1, 3);
	check(NULL, "");
	assert_int_equal(memory_dropped(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_see_what_is_no_file_is_remembered),
		cmocka_unit_test(memory_see_regions_that_touch_and_are_alike_are_one),
		cmocka_unit_test(memory_unchanged_is_told_by_the_newest_record),
		cmocka_unit_test(memory_unchanged_counts_from_lost_records_on),
		cmocka_unit_test(memory_unchanged_of_shared_memory_is_unknown),
		cmocka_unit_test(memory_unchanged_holds_with_the_records_of_the_kernel),
		cmocka_unit_test(memory_unchanged_of_a_child_is_its_parents),
		cmocka_unit_test(memory_see_more_regions_than_are_kept_tells_less),
		cmocka_unit_test(memory_see_vdso_like_our_own_is_left_out_and_others_stay_apart),
		cmocka_unit_test(memory_fork_child_has_what_the_parent_had),
		cmocka_unit_test(memory_exec_and_exit_forget),
		cmocka_unit_test(memory_regions_those_that_ran_last_come_first),
		cmocka_unit_test(memory_see_too_many_processes_and_regions_are_counted),
		cmocka_unit_test(memory_nobody_wants_it_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
