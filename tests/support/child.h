/*
 * Children of test programs. cmocka catches SIGSEGV and its like and leaves a failed assertion by
 * longjmp(); a child that inherits both would go on with the remaining tests beside its parent.
 */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * In a child: signals that are caught get their default action, and a failed assertion aborts
 * (cmocka reads the variable at each failure). Signals that are ignored stay so, as after exec.
 * May be given to pthread_atfork() where the code under test forks.
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
 * As fork(). The child is outside cmocka and is killed when the calling thread ends; it must leave
 * by _exit() or exec, never by return from the test.
 */
static inline pid_t test_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have died before prctl(). 0: it is in another PID namespace. */
		if (getppid() != parent && getppid() != 0)
			raise(SIGKILL);
		test_leave_cmocka();
	}
	return pid;
}
