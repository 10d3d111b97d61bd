/*
 * The processes that have code in memory, as told by records.
 */
#include "daemon/record/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

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
	r.u.mmap2.filename = name;
	memory_see(m, &r);
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

static void memory_see_regions_that_touch_are_one(void **state)
{
	struct memory *m = new_memory(8);

	(void)state;
	see(m, 7, 10, 0x5000, 0x1000, "//anon");
	see(m, 7, 11, 0x1000, 0x1000, "//anon");
	see(m, 7, 12, 0x3000, 0x1000, "//anon");
	check(m, "7:1000+1000 7:3000+1000 7:5000+1000 ");
	see(m, 7, 13, 0x2000, 0x1000, "//anon");
	check(m, "7:1000+3000 7:5000+1000 ");
	see(m, 7, 14, 0x1800, 0x3000, "//anon");
	see(m, 7, 14, 0x5000, 0x1000, "//anon");
	check(m, "7:1000+3800 7:5000+1000 ");
	see(m, 7, 15, 0, 0x10000, "//anon");
	check(m, "7:0+10000 ");
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
		cmocka_unit_test(memory_see_regions_that_touch_are_one),
		cmocka_unit_test(memory_see_vdso_like_our_own_is_left_out_and_others_stay_apart),
		cmocka_unit_test(memory_fork_child_has_what_the_parent_had),
		cmocka_unit_test(memory_exec_and_exit_forget),
		cmocka_unit_test(memory_regions_those_that_ran_last_come_first),
		cmocka_unit_test(memory_see_too_many_processes_and_regions_are_counted),
		cmocka_unit_test(memory_nobody_wants_it_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
