/*
 * The facts of processes that come and go, with a tree in place of /proc.
 */
#include "daemon/record/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/unit/daemon/scratch_dir.h"

#define LONG_NS 60000000000u

static char dir[SCRATCH_DIR_SIZE], process[SCRATCH_DIR_SIZE + 16];
static int n_described;

/* Corrects facts as an emulated source does: the program's name instead of its emulator's. */
static void describe(struct source *s, struct procinfo *info)
{
	(void)s;
	n_described++;
	if (!info->exe || strcmp(info->exe, "/bin/qemu") != 0)
		return;
	free(info->exe);
	info->exe = strdup("/bin/guest");
}

static const struct source_ops ops = {.name = "emulated", .describe = describe};
static struct source source = {.ops = &ops};

static void put(const char *name, const char *text, size_t size)
{
	char path[SCRATCH_DIR_SIZE + 32];

	snprintf(path, sizeof(path), "%s/%s", process, name);
	CLEANUP_CLOSE int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_int_equal(write(fd, text, size), size);
}

/* Process 100 runs EXE with CMDLINE since START; NULL: it is a zombie. */
static void runs_since(unsigned start, const char *exe, const char *cmdline)
{
	char stat[128], path[SCRATCH_DIR_SIZE + 32];

	snprintf(stat, sizeof(stat), "100 (x) %c 42 100 100 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0\n",
		 exe ? 'S' : 'Z', start);
	mkdir(process, 0700);
	put("stat", stat, strlen(stat));
	put("cmdline", cmdline ? cmdline : "", cmdline ? strlen(cmdline) + 1 : 0);
	snprintf(path, sizeof(path), "%s/exe", process);
	unlink(path);
	if (exe)
		assert_int_equal(symlink(exe, path), 0);
}

static void runs(const char *exe, const char *cmdline)
{
	runs_since(500, exe, cmdline);
}

static void is_gone(void)
{
	scratch_dir_remove(process);
}

static int setup(void **state)
{
	struct procs *p = NULL;

	scratch_dir_make(dir);
	snprintf(process, sizeof(process), "%s/100", dir);
	n_described = 0;
	assert_int_equal(procs_new(dir, 4, &source, &p), 0);
	procs_set_patience(p, LONG_NS, LONG_NS);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	procs_free(*state);
	if (access(process, F_OK) == 0)
		is_gone();
	scratch_dir_remove(dir);
	return 0;
}

static int find(void *userdata, const struct procs_told *told)
{
	const struct procinfo *info = told->info;
	*(const struct procinfo **)userdata = info;
	return info->pid == 100;
}

static int find_same_pid(void *userdata, const struct procs_told *told)
{
	const struct procinfo *info = told->info;
	const struct procinfo *wanted = *(const struct procinfo **)userdata;

	if (info->pid != wanted->pid)
		return 0;
	*(const struct procinfo **)userdata = info;
	return 1;
}

static const char *exe_of(struct procs *p, uint32_t pid)
{
	const struct procinfo wanted = {.pid = pid}, *info = &wanted;

	assert_int_equal(procs_foreach(p, find_same_pid, &info), 1);
	return info->exe;
}

static const struct procinfo *known(struct procs *p)
{
	const struct procinfo *info = NULL;

	procs_refresh(p, SIZE_MAX);
	assert_int_equal(procs_foreach(p, find, &info), 1);
	return info;
}

static void procs_exec_learns_the_new_program_and_corrects_it(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	assert_string_equal(known(p)->exe, "/bin/sh");
	runs("/bin/qemu", "ls");
	procs_exec(p, 100, 15);
	assert_string_equal(known(p)->exe, "/bin/guest");
	assert_string_equal(known(p)->cmdline, "ls");
	assert_int_equal(known(p)->ppid, 42);
	assert_int_equal(n_described, 2); /* once for each time the facts were read */
}

static void procs_exit_keeps_what_was_known(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh -c x");
	procs_see(p, 100);
	known(p);
	procs_exit(p, 100, 20);
	is_gone();
	assert_string_equal(known(p)->exe, "/bin/sh");
	assert_int_equal(procs_alive(p), 0);
}

static void procs_exec_of_a_zombie_claims_nothing_of_the_program_before(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_see(p, 100);
	known(p);
	procs_exec(p, 100, 15);
	runs(NULL, NULL);
	assert_null(known(p)->exe);
	assert_null(known(p)->cmdline);
	assert_int_equal(known(p)->ppid, 42);
}

static void procs_exec_and_gone_claims_nothing_of_the_program_before(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_see(p, 100);
	known(p);
	procs_exec(p, 100, 15);
	is_gone();
	assert_null(known(p)->exe);
	assert_null(known(p)->cmdline);
}

static void procs_fork_of_a_used_pid_forgets_who_had_it(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	known(p);
	procs_exit(p, 100, 20);
	is_gone();
	procs_fork(p, 100, 7, 30);
	assert_null(known(p)->exe);
	assert_int_equal(known(p)->ppid, 7);
	assert_int_equal(procs_alive(p), 1);
}

/* The parent's CPU and the child's have rings of their own. */
static void procs_exit_told_before_the_fork_is_an_end(void **state)
{
	struct procs *p = *state;

	procs_exit(p, 100, 20);
	procs_fork(p, 100, 42, 10);
	assert_int_equal(procs_alive(p), 0);
	assert_int_equal(known(p)->ppid, 42);
}

static void procs_exit_of_who_had_the_pid_before_ends_nobody(void **state)
{
	struct procs *p = *state;

	procs_fork(p, 100, 42, 30);
	procs_exit(p, 100, 20);
	assert_int_equal(procs_alive(p), 1);
}

static bool is_known(struct procs *p)
{
	const struct procinfo *info = NULL;

	return procs_foreach(p, find, &info) == 1 && info->exe;
}

static void procs_refresh_before_the_delay_is_over_reads_nothing(void **state)
{
	struct procs *p = *state;

	procs_set_delay(p, UINT64_MAX / 2);
	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	for (int i = 0; i < 3; i++)
		procs_refresh(p, 16);
	assert_int_equal(n_described, 0);
	/* A snapshot asks for all facts. */
	procs_refresh(p, SIZE_MAX);
	assert_true(is_known(p));
}

/* The line is worked off in order: when 100 has had its turn, so have those before it. */
static void procs_refresh_after_the_delay_leaves_out_who_has_ended(void **state)
{
	struct procs *p = *state;

	procs_set_delay(p, 1);
	runs("/bin/sh", "sh");
	procs_fork(p, 99, 42, 9);
	procs_fork(p, 100, 42, 10);
	procs_exit(p, 99, 11);
	while (!is_known(p))
		procs_refresh(p, 16);
	assert_int_equal(n_described, 1);
	procs_refresh(p, SIZE_MAX);
	assert_int_equal(n_described, 2);
}

static int list(void *userdata, const struct procs_told *told)
{
	const struct procinfo *info = told->info;
	uint32_t *pids = userdata;

	pids[++pids[0]] = info->pid;
	return 0;
}

/* There is room for four. */
static void procs_fork_into_a_full_table_takes_the_place_of_who_ended_first(void **state)
{
	struct procs *p = *state;
	uint32_t pids[8] = {0};

	for (uint32_t pid = 1; pid <= 4; pid++)
		procs_fork(p, pid, 42, pid);
	procs_fork(p, 5, 42, 5);
	assert_int_equal(procs_dropped(p), 1);
	procs_exit(p, 3, 10);
	procs_exit(p, 2, 11);
	procs_fork(p, 3, 42, 12); /* the pid is reused: its process lives */
	procs_exit(p, 4, 13);
	procs_fork(p, 6, 42, 14);
	procs_fork(p, 7, 42, 15);
	procs_fork(p, 8, 42, 16);
	assert_int_equal(procs_dropped(p), 2);
	procs_foreach(p, list, pids);
	assert_int_equal(pids[0], 4);
	assert_int_equal(pids[1], 1);
	assert_int_equal(pids[2], 6);
	assert_int_equal(pids[3], 3);
	assert_int_equal(pids[4], 7);
}

static void procs_map_names_the_program_of_who_is_gone(void **state)
{
	struct procs *p = *state;

	procs_fork(p, 100, 42, 10);
	procs_map(p, 100, "/bin/old"); /* no exec yet */
	procs_exec(p, 100, 15);
	procs_map(p, 100, "[vdso]");
	procs_map(p, 100, "/bin/true");
	procs_map(p, 100, "/lib/ld.so");
	assert_string_equal(known(p)->exe, "/bin/true");
	assert_null(known(p)->cmdline);
	assert_int_equal(known(p)->ppid, 42);
	assert_true(known(p)->uid == MANIFEST_ABSENT);
}

static void procs_map_does_not_undo_what_proc_said(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	procs_exec(p, 100, 15);
	known(p);
	procs_map(p, 100, "/other/name/of/sh");
	assert_string_equal(known(p)->exe, "/bin/sh");
}

/* A zombie's program cannot be read, but a record told it. */
static void procs_map_of_a_zombie_stays(void **state)
{
	struct procs *p = *state;

	procs_fork(p, 100, 42, 10);
	procs_exec(p, 100, 15);
	procs_map(p, 100, "/bin/true");
	procs_exit(p, 100, 20);
	runs(NULL, NULL);
	assert_string_equal(known(p)->exe, "/bin/true");
	assert_int_equal(known(p)->start_ns, 5000000000u);
}

static void procs_fork_and_gone_has_the_program_of_its_parent(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	known(p);
	procs_fork(p, 101, 100, 20);
	procs_exec(p, 100, 30);
	procs_fork(p, 102, 100, 40);
	runs("/bin/ls", "ls");
	procs_refresh(p, SIZE_MAX);
	/* The program of the first child is no longer known. */
	assert_null(exe_of(p, 101));
	assert_string_equal(exe_of(p, 102), "/bin/ls");
}

static void procs_refresh_takes_nothing_from_who_has_the_pid_now(void **state)
{
	struct procs *p = *state;

	/* The process ended before its facts were asked for. */
	procs_fork(p, 100, 42, 10);
	procs_exit(p, 100, 20);
	runs_since(600, "/bin/other", "other");
	assert_null(known(p)->exe);
	assert_true(known(p)->start_ns == MANIFEST_ABSENT);
	/* The next process was asked for, and has executed another program by now. */
	procs_fork(p, 100, 7, 30);
	assert_string_equal(known(p)->exe, "/bin/other");
	procs_exec(p, 100, 40);
	runs_since(700, "/bin/third", "third");
	assert_null(known(p)->exe);
	assert_int_equal(known(p)->start_ns, 6000000000u);
}

static void procs_fork_of_a_pid_whose_end_was_lost_is_another_process(void **state)
{
	struct procs *p = *state;

	runs("/bin/sh", "sh");
	procs_fork(p, 100, 42, 10);
	known(p);
	is_gone();
	procs_fork(p, 100, 7, 30);
	assert_null(known(p)->exe);
	assert_int_equal(known(p)->ppid, 7);
}

static void procs_parent_is_who_forked_it(void **state)
{
	struct procs *p = *state;

	procs_fork(p, 100, 42, 10);
	procs_see(p, 101);
	assert_int_equal(procs_parent(p, 100), 42);
	assert_int_equal(procs_parent(p, 101), 0);
	assert_int_equal(procs_parent(p, 102), 0);
}

/* Makes the command line a FIFO without a writer: opening it hangs until can_be_read(). */
static void cannot_be_read(char ret_path[static SCRATCH_DIR_SIZE + 32])
{
	runs("/bin/sh", NULL);
	snprintf(ret_path, SCRATCH_DIR_SIZE + 32, "%s/cmdline", process);
	unlink(ret_path);
	assert_int_equal(mkfifo(ret_path, 0600), 0);
}

static void can_be_read(const char *path)
{
	int fd;

	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO)
		sched_yield();
	close(fd);
}

static void procs_refresh_goes_on_behind_a_command_line_that_cannot_be_read(void **state)
{
	struct procs *p = *state;
	char path[SCRATCH_DIR_SIZE + 32], ours[SCRATCH_DIR_SIZE + 32];
	const struct procinfo self = {.pid = 101}, *info = &self;
	uint32_t pid = 0;

	cannot_be_read(path);
	snprintf(ours, sizeof(ours), "%s/101", dir);
	assert_int_equal(symlink("/proc/self", ours), 0);
	procs_set_patience(p, 0, LONG_NS);
	procs_fork(p, 100, 42, 10);
	while (procs_unread(p, &pid, 1) == 0)
		procs_refresh(p, 16);
	assert_int_equal(pid, 100);
	procs_set_patience(p, LONG_NS, LONG_NS);
	procs_fork(p, 101, 42, 11);
	procs_refresh(p, SIZE_MAX);
	/* Everything else of the process is known, */
	assert_string_equal(exe_of(p, 100), "/bin/sh");
	assert_int_equal(procs_unread(p, &pid, 1), 1);
	/* and everything of other processes. */
	assert_int_equal(procs_foreach(p, find_same_pid, &info), 1);
	assert_non_null(info->cmdline);
	can_be_read(path);
	unlink(ours);
}

static void procs_refresh_of_all_waits_for_nobody_who_stands(void **state)
{
	struct procs *p = *state;
	char path[SCRATCH_DIR_SIZE + 32];
	const struct procinfo *info = NULL;
	uint32_t pid = 0;

	cannot_be_read(path);
	procs_set_patience(p, LONG_NS, 20000000);
	procs_fork(p, 100, 42, 10);
	procs_refresh(p, SIZE_MAX);
	assert_int_equal(procs_unread(p, &pid, 1), 1);
	assert_int_equal(pid, 100);
	assert_int_equal(procs_foreach(p, find, &info), 1);
	assert_null(info->cmdline);
	can_be_read(path);
	unlink(path);
	/* Another program has another command line. */
	runs("/bin/true", "true");
	procs_exec(p, 100, 20);
	procs_set_patience(p, LONG_NS, LONG_NS);
	procs_refresh(p, SIZE_MAX);
	assert_int_equal(procs_unread(p, &pid, 1), 0);
	assert_string_equal(info->cmdline, "true");
}

/* An answer to a request from before an exec tells nothing of the new program. */
static void procs_exec_while_the_facts_are_read_keeps_the_new_program(void **state)
{
	struct procs *p = *state;
	char path[SCRATCH_DIR_SIZE + 32];

	cannot_be_read(path);
	procs_fork(p, 100, 42, 10);
	procs_refresh(p, 16);
	procs_exec(p, 100, 20);
	procs_map(p, 100, "/bin/true");
	can_be_read(path);
	is_gone();
	procs_refresh(p, SIZE_MAX);
	assert_string_equal(exe_of(p, 100), "/bin/true");
}

static void procs_fork_while_the_facts_are_read_takes_nothing_of_who_had_the_pid(void **state)
{
	struct procs *p = *state;
	char path[SCRATCH_DIR_SIZE + 32];
	const struct procinfo *info;

	cannot_be_read(path);
	procs_fork(p, 100, 42, 10);
	procs_refresh(p, 16);
	procs_exit(p, 100, 20);
	procs_fork(p, 100, 43, 30);
	can_be_read(path);
	is_gone();
	info = known(p);
	assert_null(info->exe);
	assert_int_equal(info->start_ns, MANIFEST_ABSENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(procs_exec_learns_the_new_program_and_corrects_it),
		CASE(procs_exit_keeps_what_was_known),
		CASE(procs_exec_of_a_zombie_claims_nothing_of_the_program_before),
		CASE(procs_exec_and_gone_claims_nothing_of_the_program_before),
		CASE(procs_fork_of_a_used_pid_forgets_who_had_it),
		CASE(procs_exit_told_before_the_fork_is_an_end),
		CASE(procs_exit_of_who_had_the_pid_before_ends_nobody),
		CASE(procs_map_names_the_program_of_who_is_gone),
		CASE(procs_map_does_not_undo_what_proc_said),
		CASE(procs_map_of_a_zombie_stays),
		CASE(procs_fork_and_gone_has_the_program_of_its_parent),
		CASE(procs_refresh_takes_nothing_from_who_has_the_pid_now),
		CASE(procs_fork_of_a_pid_whose_end_was_lost_is_another_process),
		CASE(procs_parent_is_who_forked_it),
		CASE(procs_refresh_before_the_delay_is_over_reads_nothing),
		CASE(procs_refresh_after_the_delay_leaves_out_who_has_ended),
		CASE(procs_refresh_goes_on_behind_a_command_line_that_cannot_be_read),
		CASE(procs_refresh_of_all_waits_for_nobody_who_stands),
		CASE(procs_exec_while_the_facts_are_read_keeps_the_new_program),
		CASE(procs_fork_while_the_facts_are_read_takes_nothing_of_who_had_the_pid),
		CASE(procs_fork_into_a_full_table_takes_the_place_of_who_ended_first),
	};

	return cmocka_run_group_tests_name("daemon/procs", tests, NULL, NULL);
}
