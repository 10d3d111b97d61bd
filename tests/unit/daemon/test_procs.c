/*
 * What is known of processes that come and go, from a made tree in place of /proc.
 */
#include "daemon/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

static char dir[SCRATCH_DIR_SIZE], process[SCRATCH_DIR_SIZE + 16];
static int n_described;

/* As an emulated source: the program's name instead of its emulator's. */
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

/* Process 100 runs EXE with CMDLINE; NULL: it is a zombie. */
static void runs(const char *exe, const char *cmdline)
{
	static const char stat[] = "100 (x) S 42 100 100 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n";
	char path[SCRATCH_DIR_SIZE + 32];

	mkdir(process, 0700);
	put("stat", stat, strlen(stat));
	put("cmdline", cmdline ? cmdline : "", cmdline ? strlen(cmdline) + 1 : 0);
	snprintf(path, sizeof(path), "%s/exe", process);
	unlink(path);
	if (exe)
		assert_int_equal(symlink(exe, path), 0);
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

static int find(void *userdata, const struct procinfo *info)
{
	*(const struct procinfo **)userdata = info;
	return info->pid == 100;
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
	procs_exec(p, 100);
	assert_string_equal(known(p)->exe, "/bin/guest");
	assert_string_equal(known(p)->cmdline, "ls");
	assert_int_equal(known(p)->ppid, 42);
	assert_int_equal(n_described, 2); /* once for each time it was read */
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
	procs_exec(p, 100);
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
	procs_exec(p, 100);
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
	};

	return cmocka_run_group_tests_name("daemon/procs", tests, NULL, NULL);
}
