/*
 * capture/probe: processes that end with a status, and files that are executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/unit/capture/probe/probing.h"

static void exit_with(void *arg)
{
	_exit((int)(intptr_t)arg);
}

/* Runs a child that exits by RUN under a probe of a range of statuses. */
static unsigned exit_under(uint8_t min, uint8_t max, void (*run)(void *), int arg,
			   struct seen *seen)
{
	struct child c = child_new(run, (void *)(intptr_t)arg);
	struct probe *p = arm(
		&(struct probe_spec){
			.kind = PROBE_EXIT, .pid = c.pid, .status_min = min, .status_max = max},
		seen);
	int status = child_run(&c);
	unsigned n = collect(p, seen);

	if (n) {
		assert_int_equal(seen->events[0].pid, c.pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(seen->events[0].value, WEXITSTATUS(status));
	}
	probe_free(p);
	return n;
}

static void exit_in_the_range_is_an_event_with_its_status(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exit_under(1, 255, exit_with, 3, &seen), 1);
	assert_int_equal(seen.events[0].value, 3);
	assert_int_equal(exit_under(1, 255, exit_with, 255, &seen), 1);
	assert_int_equal(seen.events[0].value, 255);
	assert_int_equal(exit_under(0, 0, exit_with, 0, &seen), 1);
	assert_int_equal(seen.events[0].value, 0);
}

static void exit_beside_the_range_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exit_under(1, 255, exit_with, 0, &seen), 0);
	assert_int_equal(exit_under(3, 3, exit_with, 2, &seen), 0);
	assert_int_equal(exit_under(3, 3, exit_with, 4, &seen), 0);
}

static void *do_nothing(void *arg)
{
	return arg;
}

static void *pause_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Threads that end do not end the process. */
static void exit_among_threads(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, do_nothing, NULL);
	pthread_join(t, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&t, NULL, pause_on, NULL);
	exit_with(arg);
}

static void *exit_thread(void *arg)
{
	syscall(SYS_exit, 0x55);
	return arg;
}

/* Each thread ends by itself. The kernel decides whose status is that of the process. */
static void exit_one_by_one(void *arg)
{
	pthread_t t;

	pthread_create(&t, NULL, exit_thread, NULL);
	syscall(SYS_exit, (int)(intptr_t)arg);
}

static void exit_of_many_threads_is_one_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exit_under(0, 255, exit_among_threads, 4, &seen), 1);
	assert_int_equal(seen.events[0].value, 4);
	assert_int_equal(exit_under(0, 255, exit_one_by_one, 6, &seen), 1);
}

static void kill_self(void *arg)
{
	(void)arg;
	raise(SIGTERM);
}

static void end_by_a_signal_is_no_exit(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exit_under(0, 255, kill_self, 0, &seen), 0);
}

/* --- Execution --- */

static void exec_file(void *path)
{
	execl(path, "name", NULL);
	_exit(9);
}

static unsigned exec_under(struct probe_spec spec, const char *path, struct seen *seen)
{
	struct child c = child_new(exec_file, (void *)path);
	struct probe *p;
	unsigned n;

	spec.kind = PROBE_EXEC;
	spec.pid = c.pid;
	p = arm(&spec, seen);
	child_run(&c);
	n = collect(p, seen);
	if (n)
		assert_int_equal(seen->events[0].pid, c.pid);
	probe_free(p);
	return n;
}

static void exec_of_the_file_is_an_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exec_under((struct probe_spec){.file = "/bin/true"}, "/bin/true", &seen),
			 1);
	assert_string_equal(seen.events[0].comm, "true");
	assert_int_equal(exec_under((struct probe_spec){.file = NULL}, "/bin/true", &seen), 1);
}

static void exec_of_a_link_to_the_file_is_an_event(void **state)
{
	char name[] = "/tmp/test_probe_linkXXXXXX";
	struct seen seen;

	(void)state;
	close(mkstemp(name));
	unlink(name);
	assert_int_equal(symlink("/bin/true", name), 0);
	assert_int_equal(exec_under((struct probe_spec){.file = "/bin/true"}, name, &seen), 1);
	unlink(name);
}

static void exec_of_another_file_or_a_failed_one_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exec_under((struct probe_spec){.file = "/bin/true"}, "/bin/false", &seen),
			 0);
	assert_int_equal(exec_under((struct probe_spec){.file = NULL}, "/etc/passwd", &seen), 0);
}

static void exec_filter_comm_is_the_name_after_exec(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(exec_under((struct probe_spec){.comm = "true"}, "/bin/true", &seen), 1);
	assert_int_equal(exec_under((struct probe_spec){.comm = "false"}, "/bin/true", &seen), 0);
}

static void exec_replaced_file_is_noticed(void **state)
{
	char name[] = "/tmp/test_probe_fileXXXXXX";
	struct seen seen;
	struct probe *p;
	int fd = mkstemp(name);

	(void)state;
	p = arm(&(struct probe_spec){.kind = PROBE_EXEC, .file = name}, &seen);
	assert_false(probe_file_replaced(p));
	unlink(name);
	assert_true(probe_file_replaced(p));
	close(open(name, O_CREAT | O_RDWR, 0700));
	assert_true(probe_file_replaced(p));
	unlink(name);
	close(fd);
	probe_free(p);
}

static void exec_of_no_regular_file_is_refused(void **state)
{
	(void)state;
	expect_refusal(&(struct probe_spec){.kind = PROBE_EXEC, .file = "/tmp"}, -EINVAL,
		       "/tmp is not a regular file");
	expect_refusal(&(struct probe_spec){.kind = PROBE_EXEC, .file = "/nowhere/at/all"}, -ENOENT,
		       "/nowhere/at/all cannot be opened");
}

/* --- Groups --- */

/* Where cgroup v2 is mounted; NULL: nowhere. */
static const char *group_root(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(path, sizeof(path), "%s/cgroup.controllers", roots[i]);
		if (access(path, F_OK) == 0)
			return roots[i];
	}
	return NULL;
}

struct group {
	char path[96];
	uint64_t id; /* 0: it cannot be made */
};

static struct group make_group(const char *parent, const char *name)
{
	struct group g = {.id = 0};
	struct stat st;

	snprintf(g.path, sizeof(g.path), "%s/%s", parent, name);
	if (mkdir(g.path, 0755) == 0 && stat(g.path, &st) == 0)
		g.id = st.st_ino;
	return g;
}

static void enter_group(void *path)
{
	char file[160], text[16];
	int fd;

	snprintf(file, sizeof(file), "%s/cgroup.procs", (const char *)path);
	fd = open(file, O_WRONLY);
	snprintf(text, sizeof(text), "%d", getpid());
	if (write(fd, text, strlen(text)) < 0)
		_exit(9);
	_exit(5);
}

static unsigned exit_in_group(const char *path, uint64_t filter)
{
	struct child c = child_new(enter_group, (void *)path);
	struct seen seen;
	struct probe *p = arm(
		&(struct probe_spec){
			.kind = PROBE_EXIT, .pid = c.pid, .status_max = 255, .cgroup = filter},
		&seen);
	int status = child_run(&c);
	unsigned n = collect(p, &seen);

	probe_free(p);
	assert_int_equal(WEXITSTATUS(status), 5);
	return n;
}

static void filter_cgroup_passes_the_group_and_those_below(void **state)
{
	struct group group, below, other;
	char name[32];

	(void)state;
	if (!group_root())
		skip();
	snprintf(name, sizeof(name), "test_probe_%d", getpid());
	group = make_group(group_root(), name);
	if (!group.id)
		skip();
	below = make_group(group.path, "below");
	other = make_group(group.path, "other");
	assert_int_equal(exit_in_group(group.path, group.id), 1);
	assert_int_equal(exit_in_group(below.path, group.id), 1);
	assert_int_equal(exit_in_group(below.path, below.id), 1);
	assert_int_equal(exit_in_group(below.path, other.id), 0);
	assert_int_equal(exit_in_group(group.path, below.id), 0);
	assert_int_equal(rmdir(other.path), 0);
	assert_int_equal(rmdir(below.path), 0);
	assert_int_equal(rmdir(group.path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_in_the_range_is_an_event_with_its_status),
		cmocka_unit_test(exit_beside_the_range_is_no_event),
		cmocka_unit_test(exit_of_many_threads_is_one_event),
		cmocka_unit_test(end_by_a_signal_is_no_exit),
		cmocka_unit_test(exec_of_the_file_is_an_event),
		cmocka_unit_test(exec_of_a_link_to_the_file_is_an_event),
		cmocka_unit_test(exec_of_another_file_or_a_failed_one_is_no_event),
		cmocka_unit_test(exec_filter_comm_is_the_name_after_exec),
		cmocka_unit_test(exec_replaced_file_is_noticed),
		cmocka_unit_test(exec_of_no_regular_file_is_refused),
		cmocka_unit_test(filter_cgroup_passes_the_group_and_those_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
