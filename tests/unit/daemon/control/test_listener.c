/*
 * daemon/control/server: the socket of a recorder that lives is left alone; the socket of a
 * recorder that died is taken, also while a child of that recorder still has it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "daemon/control/server.h"
#include "proto/base.h"
#include "tests/support/child.h"

static char dir[] = "/tmp/ptsnap-listener-XXXXXX", path[64], why[256];

/* Acts as a recorder: listens, says so, and lives until the pipe END is closed. */
static void listen_until(int said, int end)
{
	struct listener l;
	char c = 'x';

	if (listener_open(path, &l, why, sizeof(why)) == 0)
		(void)!write(said, &c, 1);
	(void)!read(end, &c, 1);
}

/* A recorder that has forked a child, which has not come to execve(2), and is then dead. */
static void listen_fork_and_die(int said, int end)
{
	struct listener l;
	char c = 'x';
	int ready[2];

	if (listener_open(path, &l, why, sizeof(why)) != 0)
		_exit(1);
	if (pipe(ready) < 0)
		_exit(1);
	if (test_fork() == 0) {
		prctl(PR_SET_PDEATHSIG, 0);
		(void)!write(ready[1], &c, 1);
		(void)!write(said, &c, 1);
		(void)!read(end, &c, 1);
		_exit(0);
	}
	/* The child must not end with this process. */
	(void)!read(ready[0], &c, 1);
}

/* Starts FN as another process, and waits until it, or its child, has said so. */
static pid_t start(void (*fn)(int said, int end), int *ret_end)
{
	int said[2], end[2];
	pid_t pid;
	char c;

	assert_return_code(pipe(said), errno);
	assert_return_code(pipe(end), errno);
	pid = test_fork();
	if (pid == 0) {
		close(said[0]);
		close(end[1]);
		fn(said[1], end[0]);
		_exit(0);
	}
	assert_true(pid > 0);
	close(said[1]);
	close(end[0]);
	assert_int_equal(read(said[0], &c, 1), 1);
	close(said[0]);
	*ret_end = end[1];
	return pid;
}

static void listener_of_a_live_recorder_is_left_alone(void **state)
{
	struct listener l;
	int end, status;
	pid_t pid = start(listen_until, &end);

	(void)state;
	assert_int_equal(listener_open(path, &l, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "in use by another recorder"));
	close(end);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(listener_open(path, &l, why, sizeof(why)), 0);
	listener_done(&l);
}

static void listener_of_a_dead_recorder_is_taken_although_a_child_has_it(void **state)
{
	struct listener l;
	int end, status;
	pid_t pid = start(listen_fork_and_die, &end);

	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(listener_open(path, &l, why, sizeof(why)), 0);
	listener_done(&l);
	close(end);
}

/* A recorder that was killed and that nobody has waited for is as dead. */
static void listener_of_a_zombie_is_taken_although_a_child_has_it(void **state)
{
	struct listener l;
	siginfo_t info;
	int end, status;
	pid_t pid = start(listen_fork_and_die, &end);

	(void)state;
	assert_return_code(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), errno);
	assert_int_equal(listener_open(path, &l, why, sizeof(why)), 0);
	listener_done(&l);
	close(end);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_of_a_live_recorder_is_left_alone),
		cmocka_unit_test(listener_of_a_dead_recorder_is_taken_although_a_child_has_it),
		cmocka_unit_test(listener_of_a_zombie_is_taken_although_a_child_has_it),
	};

	return cmocka_run_group_tests_name("daemon/control/listener", tests, setup, teardown);
}
