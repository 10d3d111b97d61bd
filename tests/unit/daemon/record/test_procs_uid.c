/*
 * The user of a process, the time since which that is certain, and the processes that are excluded;
 * with a tree in place of /proc, and records.
 */
#include "daemon/record/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/unit/daemon/scratch_dir.h"

#define LONG_NS	  60000000000u
#define PATH_MAX_ (SCRATCH_DIR_SIZE + 64)

static char dir[SCRATCH_DIR_SIZE];
static const char *gids = "100\t100\t100\t100";
static struct procs *procs;
static uint64_t now; /* on the clock of the records */

static uint64_t read_tsc(struct source *s, uint32_t cpu)
{
	(void)s;
	(void)cpu;
	return now;
}

static const struct source_ops ops = {.name = "emulated", .read_tsc = read_tsc};
static struct source source = {.ops = &ops, .n_cpus = 1, .clock = {.valid = true, .time_mult = 1}};

static void put(uint32_t pid, const char *name, const char *text)
{
	char path[PATH_MAX_];

	snprintf(path, sizeof(path), "%s/%u/%s", dir, pid, name);
	CLEANUP_CLOSE int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Gives PID these rights, and a program of MODE; 0: the program is gone. */
static void has(uint32_t pid, const char *uids, const char *caps, mode_t mode)
{
	char text[PATH_MAX_ + 64], exe[PATH_MAX_];

	snprintf(text, sizeof(text), "%s/%u", dir, pid);
	mkdir(text, 0700);
	snprintf(text, sizeof(text), "%u (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n", pid);
	put(pid, "stat", text);
	put(pid, "cmdline", "secret");
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%s\nGid:\t%s\nNSpid:\t%u\nCapPrm:\t%s\n",
		 uids, gids, pid, caps);
	put(pid, "status", text);
	snprintf(exe, sizeof(exe), "%s/%u/exe", dir, pid);
	unlink(exe);
	if (mode == 0)
		return;
	snprintf(text, sizeof(text), "%s/program-%o", dir, (unsigned)mode);
	close(open(text, O_CREAT | O_WRONLY, 0700));
	assert_int_equal(chmod(text, mode), 0);
	assert_int_equal(symlink(text, exe), 0);
}

#define USER	 "1000\t1000\t1000\t1000"
#define OTHER	 "1001\t1001\t1001\t1001"
#define NO_CAPS	 "0000000000000000"
#define ALL_CAPS "000001ffffffffff"

static void is_user(uint32_t pid)
{
	has(pid, USER, NO_CAPS, 0755);
}

static void has_cgroup(uint32_t pid, const char *path)
{
	char text[256];

	snprintf(text, sizeof(text), "0::%s\n", path);
	put(pid, "cgroup", text);
}

static void is_gone(uint32_t pid)
{
	char path[PATH_MAX_];

	snprintf(path, sizeof(path), "%s/%u", dir, pid);
	scratch_dir_remove(path);
}

/* Reads all pending facts at TIME. */
static void refresh_at(uint64_t time)
{
	now = time;
	procs_refresh(procs, SIZE_MAX);
}

struct wanted {
	uint32_t pid;
	struct procs_told told;
};

static int find(void *userdata, const struct procs_told *told)
{
	struct wanted *w = userdata;

	if (told->info->pid == w->pid)
		w->told = *told;
	return told->info->pid == w->pid;
}

static struct procs_told told(uint32_t pid)
{
	struct wanted w = {.pid = pid};

	assert_int_equal(procs_foreach(procs, find, &w), 1);
	return w.told;
}

static uint64_t since(uint32_t pid)
{
	return told(pid).uid_since;
}

static int setup(void **state)
{
	(void)state;
	scratch_dir_make(dir);
	assert_int_equal(procs_new(dir, 8, &source, &procs), 0);
	procs_set_patience(procs, LONG_NS, LONG_NS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	procs_free(procs);
	scratch_dir_remove(dir);
	return 0;
}

static void procs_foreach_of_a_process_found_running_tells_its_user_since_it_was_read(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	assert_int_equal(told(100).uid, 1000);
	assert_int_equal(since(100), 1000);
	refresh_at(5000);
	assert_int_equal(since(100), 1000);
}

static void procs_foreach_of_a_child_of_such_a_process_tells_its_user_since_its_birth(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	is_user(101);
	procs_fork(procs, 101, 100, 2000);
	procs_exec(procs, 101, 2100);
	refresh_at(3000);
	assert_int_equal(since(101), 2000);
}

static void
procs_foreach_of_a_child_that_was_born_before_that_tells_only_what_was_read(void **state)
{
	(void)state;
	is_user(100);
	is_user(101);
	procs_fork(procs, 101, 100, 500);
	procs_see(procs, 100);
	refresh_at(1000);
	assert_int_equal(since(101), 1000);
}

static void procs_foreach_of_a_child_that_was_gone_too_soon_tells_its_parents_user(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_fork(procs, 101, 100, 2000);
	procs_exit(procs, 101, 2500);
	refresh_at(3000);
	assert_int_equal(told(101).uid, 1000);
	assert_int_equal(since(101), 2000);
}

static void procs_foreach_of_one_that_was_gone_with_another_program_tells_of_nobody(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_fork(procs, 101, 100, 2000);
	procs_exec(procs, 101, 2100);
	procs_exit(procs, 101, 2500);
	refresh_at(3000);
	assert_int_equal(since(101), MANIFEST_ABSENT);
}

static void procs_foreach_of_a_set_user_id_program_tells_of_nobody(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	has(100, USER, NO_CAPS, 04755);
	procs_exec(procs, 100, 2000);
	refresh_at(3000);
	assert_int_equal(since(100), MANIFEST_ABSENT);
	/* A process that it starts is certain only from when it was looked at. */
	is_user(101);
	procs_fork(procs, 101, 100, 4000);
	procs_exec(procs, 101, 4100);
	refresh_at(5000);
	assert_int_equal(since(101), 5000);
}

static void procs_foreach_of_two_programs_in_a_row_tells_only_of_the_second(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_exec(procs, 100, 2000);
	procs_exec(procs, 100, 2100);
	refresh_at(3000);
	assert_int_equal(since(100), 3000);
}

static void procs_foreach_of_mixed_uids_or_with_capabilities_tells_of_nobody(void **state)
{
	(void)state;
	has(100, "1000\t0\t0\t0", NO_CAPS, 0755);
	has(101, "1000\t1000\t0\t1000", NO_CAPS, 0755);
	has(102, USER, ALL_CAPS, 0755);
	has(103, USER, NO_CAPS, 0);
	for (uint32_t pid = 100; pid < 104; pid++)
		procs_see(procs, pid);
	refresh_at(1000);
	for (uint32_t pid = 100; pid < 104; pid++)
		assert_int_equal(since(pid), MANIFEST_ABSENT);
}

static void procs_foreach_of_a_group_that_came_with_a_program_tells_of_nobody(void **state)
{
	const char *own = gids;

	(void)state;
	gids = "100\t42\t42\t42";
	is_user(100);
	gids = "100\t100\t42\t100";
	is_user(101);
	gids = own;
	for (uint32_t pid = 100; pid < 102; pid++)
		procs_see(procs, pid);
	refresh_at(1000);
	for (uint32_t pid = 100; pid < 102; pid++)
		assert_int_equal(since(pid), MANIFEST_ABSENT);
}

static void procs_foreach_of_a_program_that_its_user_may_not_read_tells_of_nobody(void **state)
{
	(void)state;
	if (geteuid() == 1000)
		skip(); /* the file would be the user's own */
	has(100, USER, NO_CAPS, 0711);
	has(101, USER, NO_CAPS, 0750);
	has(102, USER, NO_CAPS, 0755);
	for (uint32_t pid = 100; pid < 103; pid++)
		procs_see(procs, pid);
	refresh_at(1000);
	assert_int_equal(since(100), MANIFEST_ABSENT);
	assert_int_equal(since(101), MANIFEST_ABSENT);
	assert_int_equal(since(102), 1000);
}

static void procs_foreach_of_another_user_than_before_tells_of_him_since_then(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	has(100, OTHER, NO_CAPS, 0755);
	procs_exec(procs, 100, 2000);
	refresh_at(3000);
	assert_int_equal(told(100).uid, 1001);
	assert_int_equal(since(100), 3000);
}

static void procs_foreach_of_an_exec_that_was_not_looked_at_tells_of_nobody(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	is_gone(100);
	procs_exec(procs, 100, 2000);
	refresh_at(3000);
	assert_int_equal(since(100), MANIFEST_ABSENT);
}

static void procs_foreach_of_a_number_used_again_tells_nothing_of_before(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_exit(procs, 100, 2000);
	is_gone(100);
	procs_fork(procs, 100, 7, 3000);
	refresh_at(4000);
	assert_int_equal(since(100), MANIFEST_ABSENT);
}

static void procs_foreach_of_a_program_told_after_it_was_looked_at_tells_only_of_that(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_exec(procs, 100, 2000); /* nobody has looked at that program, */
	refresh_at(3000);	      /* as this looks at the next one */
	procs_exec(procs, 100, 2900);
	assert_int_equal(since(100), MANIFEST_ABSENT);
	refresh_at(4000);
	assert_int_equal(since(100), 4000);
}

static void procs_foreach_of_a_program_told_before_its_birth_tells_of_nobody(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_fork(procs, 101, 7, 1100);
	procs_exit(procs, 101, 1200);
	refresh_at(1300);
	procs_exec(procs, 101, 2100);
	procs_fork(procs, 101, 100, 2000);
	procs_exit(procs, 101, 2500);
	refresh_at(3000);
	assert_int_equal(since(101), MANIFEST_ABSENT);
}

static void procs_foreach_after_a_loss_tells_what_was_read_since(void **state)
{
	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_fork(procs, 101, 100, 2000); /* the fork was told, but not the exec */
	procs_lost(procs, 2100);
	procs_fork(procs, 102, 100, 2050); /* a record of another CPU */
	procs_exit(procs, 101, 2200);
	procs_exit(procs, 102, 2200);
	assert_int_equal(since(100), MANIFEST_ABSENT);
	refresh_at(3000);
	assert_int_equal(since(100), 3000);
	assert_int_equal(since(101), MANIFEST_ABSENT);
	assert_int_equal(since(102), MANIFEST_ABSENT);
	procs_fork(procs, 103, 100, 3500);
	assert_int_equal(since(103), 3500);
}

static void procs_lost_with_a_number_used_again_learns_who_has_it(void **state)
{
	struct exclude *x = NULL;

	(void)state;
	assert_int_equal(exclude_new(NULL, "1001", &x), 0);
	procs_set_exclude(procs, x);
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	has(100, OTHER, NO_CAPS, 0755);
	put(100, "stat", "100 (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 700 0\n");
	procs_lost(procs, 2000);
	refresh_at(3000);
	assert_true(procs_is_excluded(procs, 100));
	assert_int_equal(told(100).uid, 1001);
	assert_int_equal(since(100), 3000);
	exclude_free(x);
}

static void procs_is_excluded_by_user_unit_and_parent(void **state)
{
	struct exclude *x = NULL;

	(void)state;
	assert_int_equal(exclude_new("secret-*.service, other.slice", "1001", &x), 0);
	procs_set_exclude(procs, x);
	is_user(100);
	has_cgroup(100, "/system.slice/secret-1.service/payload");
	has(101, OTHER, NO_CAPS, 0755);
	is_user(102);
	has_cgroup(102, "/system.slice/open.service");
	for (uint32_t pid = 100; pid < 103; pid++)
		procs_see(procs, pid);
	refresh_at(1000);
	procs_fork(procs, 103, 100, 2000);
	procs_fork(procs, 104, 102, 2000);
	assert_true(procs_is_excluded(procs, 100));
	assert_true(procs_is_excluded(procs, 101));
	assert_false(procs_is_excluded(procs, 102));
	/* A child of an excluded process that nobody has looked at. */
	assert_true(procs_is_excluded(procs, 103));
	assert_false(procs_is_excluded(procs, 104));
	assert_false(procs_is_excluded(procs, 999));
	assert_true(told(100).excluded);
	assert_null(told(100).info->cmdline);
	assert_null(told(100).info->exe);
	assert_non_null(told(102).info->cmdline);
	exclude_free(x);
}

static void procs_foreach_where_some_are_excluded_leaves_out_whom_nobody_has_seen(void **state)
{
	struct exclude *x = NULL;

	(void)state;
	is_user(100);
	procs_see(procs, 100);
	refresh_at(1000);
	procs_fork(procs, 101, 100, 2000); /* has its forker's uid */
	procs_fork(procs, 102, 100, 2000);
	procs_exec(procs, 102, 2100); /* unknown program */
	procs_fork(procs, 103, 7, 2000);
	refresh_at(3000);
	for (uint32_t pid = 100; pid < 104; pid++)
		assert_false(told(pid).excluded);
	assert_false(procs_excludes(procs));
	assert_int_equal(exclude_new("secret.service", NULL, &x), 0);
	procs_set_exclude(procs, x);
	assert_true(procs_excludes(procs));
	assert_false(told(100).excluded);
	assert_false(told(101).excluded);
	assert_true(told(102).excluded);
	assert_true(told(103).excluded);
	exclude_free(x);
}

static void procs_exclude_again_finds_who_was_seen_before(void **state)
{
	struct exclude *x = NULL;

	(void)state;
	is_user(100);
	has_cgroup(100, "/system.slice/secret.service");
	has(101, OTHER, NO_CAPS, 0755);
	is_user(102);
	for (uint32_t pid = 100; pid < 103; pid++)
		procs_see(procs, pid);
	refresh_at(1000);
	procs_exit(procs, 101, 1500); /* an ended process is excluded, too */
	assert_int_equal(exclude_new("secret.service", NULL, &x), 0);
	procs_set_exclude(procs, x);
	assert_int_equal(exclude_add(x, "secret.service", "1001"), 0);
	assert_int_equal(exclude_look_up(x, NULL), 0);
	assert_false(procs_is_excluded(procs, 100));
	procs_exclude_again(procs);
	assert_true(procs_is_excluded(procs, 100));
	assert_true(procs_is_excluded(procs, 101));
	assert_false(procs_is_excluded(procs, 102));
	assert_null(told(101).info->cmdline);
	/* A process that moved into the group meanwhile is looked at again. */
	has_cgroup(102, "/system.slice/secret.service");
	procs_exclude_again(procs);
	refresh_at(2000);
	assert_true(procs_is_excluded(procs, 102));
	exclude_free(x);
}

static void exclude_new_of_nothing_excludes_nobody(void **state)
{
	struct exclude *x = (struct exclude *)&now;

	(void)state;
	assert_int_equal(exclude_new(" , ", "", &x), 0);
	assert_null(x);
	assert_false(exclude_has_cgroup(x, "/a.service"));
	assert_false(exclude_has_uid(x, 0));
	assert_int_equal(exclude_new(NULL, NULL, &x), 0);
	assert_null(x);
}

static void exclude_has_takes_names_numbers_and_parts_of_paths(void **state)
{
	struct exclude *x = NULL;

	(void)state;
	assert_int_equal(exclude_new("user@*.service", "0 no-such-user,4294967295", &x), 0);
	assert_true(exclude_has_uid(x, 0));
	assert_false(exclude_has_uid(x, 1));
	assert_false(exclude_has_uid(x, 4294967295u));
	assert_false(exclude_has_uid(x, MANIFEST_ABSENT));
	assert_true(exclude_has_cgroup(x, "/user.slice/user-7.slice/user@7.service/app.slice"));
	assert_false(exclude_has_cgroup(x, "/user.slice/session-2.scope"));
	assert_false(exclude_has_cgroup(x, "/user@7.service.d"));
	assert_false(exclude_has_cgroup(x, NULL));
	exclude_free(x);
}

#define PROCS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PROCS_TEST(
			procs_foreach_of_a_process_found_running_tells_its_user_since_it_was_read),
		PROCS_TEST(
			procs_foreach_of_a_child_of_such_a_process_tells_its_user_since_its_birth),
		PROCS_TEST(
			procs_foreach_of_a_child_that_was_born_before_that_tells_only_what_was_read),
		PROCS_TEST(procs_foreach_of_a_child_that_was_gone_too_soon_tells_its_parents_user),
		PROCS_TEST(procs_foreach_of_one_that_was_gone_with_another_program_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_a_set_user_id_program_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_two_programs_in_a_row_tells_only_of_the_second),
		PROCS_TEST(procs_foreach_of_mixed_uids_or_with_capabilities_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_a_group_that_came_with_a_program_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_a_program_that_its_user_may_not_read_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_another_user_than_before_tells_of_him_since_then),
		PROCS_TEST(procs_foreach_of_an_exec_that_was_not_looked_at_tells_of_nobody),
		PROCS_TEST(procs_foreach_of_a_number_used_again_tells_nothing_of_before),
		PROCS_TEST(
			procs_foreach_of_a_program_told_after_it_was_looked_at_tells_only_of_that),
		PROCS_TEST(procs_foreach_of_a_program_told_before_its_birth_tells_of_nobody),
		PROCS_TEST(procs_foreach_after_a_loss_tells_what_was_read_since),
		PROCS_TEST(procs_lost_with_a_number_used_again_learns_who_has_it),
		PROCS_TEST(procs_is_excluded_by_user_unit_and_parent),
		PROCS_TEST(procs_foreach_where_some_are_excluded_leaves_out_whom_nobody_has_seen),
		PROCS_TEST(procs_exclude_again_finds_who_was_seen_before),
		cmocka_unit_test(exclude_new_of_nothing_excludes_nobody),
		cmocka_unit_test(exclude_has_takes_names_numbers_and_parts_of_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
