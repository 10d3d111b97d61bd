/* tests/support/child.h: a child that goes wrong ends, and does not run the rest of the tests. */
#include "tests/support/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cmocka.h>

static pid_t runner;

/* The signal that ends a child that does ACT. */
static int signal_that_ends(void (*act)(void))
{
	pid_t pid = test_fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		/* A child's message about its end is no line of this program's output. */
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return WTERMSIG(status);
}

static void fault(void)
{
	raise(SIGSEGV);
}

static void fail_an_assertion(void)
{
	fail();
}

static void abandon_parent(void)
{
	pid_t pid = test_fork();

	if (pid == 0)
		for (;;)
			pause();
	raise(SIGKILL);
}

static void fork_signal_that_cmocka_catches_ends_the_child(void **state)
{
	(void)state;
	assert_int_equal(signal_that_ends(fault), SIGSEGV);
}

static void fork_failed_assertion_ends_the_child(void **state)
{
	(void)state;
	assert_int_equal(signal_that_ends(fail_an_assertion), SIGABRT);
}

/* A pipe that all of them hold ends with the last one. */
static void fork_child_does_not_survive_its_parent(void **state)
{
	int ends[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(signal_that_ends(abandon_parent), SIGKILL);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}

static void fork_signal_that_is_ignored_stays_so(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	signal(SIGUSR1, SIG_IGN);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		raise(SIGUSR1);
		_exit(3);
	}
	signal(SIGUSR1, SIG_DFL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
}

/* Last: a child that has come back into cmocka gets here, too. */
static void fork_nobody_else_came_here(void **state)
{
	(void)state;
	assert_int_equal(getpid(), runner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_signal_that_cmocka_catches_ends_the_child),
		cmocka_unit_test(fork_failed_assertion_ends_the_child),
		cmocka_unit_test(fork_child_does_not_survive_its_parent),
		cmocka_unit_test(fork_signal_that_is_ignored_stays_so),
		cmocka_unit_test(fork_nobody_else_came_here),
	};

	runner = getpid();
	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
