/*
 * Forks children of test programs. cmocka catches SIGSEGV and similar signals, and leaves a failed
 * assertion by longjmp(). A child that inherits both would run the remaining tests beside its
 * parent.
 */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * Detaches a child from cmocka: caught signals get their default action, and a failed assertion
 * aborts (cmocka reads the variable at each failure). Ignored signals stay ignored, as after exec.
 * Tests may give this function to pthread_atfork() where the code under test forks.
 */
static inline void test_leave_cmocka(void)
{
	struct sigaction a;

	for (int n = 1; n < NSIG; n++)
		if (sigaction(n, NULL, &a) == 0 && a.sa_handler != SIG_IGN &&
		    a.sa_handler != SIG_DFL)
			signal(n, SIG_DFL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/*
 * Like fork(), but the child is detached from cmocka and killed when the calling thread ends. The
 * child must leave by _exit() or exec, never by returning from the test.
 */
static inline pid_t test_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have died before prctl(). Parent 0: the parent is in another PID
		 * namespace. */
		if (getppid() != parent && getppid() != 0)
			raise(SIGKILL);
		test_leave_cmocka();
	}
	return pid;
}
