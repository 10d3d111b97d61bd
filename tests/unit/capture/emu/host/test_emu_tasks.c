/*
 * capture/emu/host/emu_tasks: a thread that was nudged belongs to its parent again, however the
 * nudge ended. The linker gives every ptrace() of the code under test to this file.
 */
#include "capture/emu/host/emu_keeper.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/child.h"

#define PATIENCE 20 /* seconds until a test counts as hung */

long __real_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data);
long __wrap_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data);

static struct {
	enum __ptrace_request before; /* kills the thread before this request; 0: never */
	bool without_interrupt;	      /* as if the thread did not stop in time */
} plan;

long __wrap_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data)
{
	if (plan.before == request)
		kill(tid, SIGKILL);
	if (plan.without_interrupt && request == PTRACE_INTERRUPT)
		return 0;
	return __real_ptrace(request, tid, address, data);
}

static int tear_down(void **state)
{
	(void)state;
	plan.before = 0;
	plan.without_interrupt = false;
	alarm(0);
	return 0;
}

/* A parent other than this test, with a stopped child. The parent reports how its child ends. */
struct family {
	pid_t parent, child;
	int tells; /* reads: the child's pid, and the status of its end */
};

static void be_parent(int out)
{
	pid_t child = test_fork();
	int status;

	if (child == 0) {
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status) ||
	    write(out, &child, sizeof(child)) != sizeof(child) ||
	    waitpid(child, &status, 0) != child || write(out, &status, sizeof(status)) < 0)
		_exit(1);
	_exit(0);
}

static struct family make_family(void)
{
	struct family f;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	f.parent = test_fork();
	if (f.parent == 0)
		be_parent(fds[1]);
	close(fds[1]);
	f.tells = fds[0];
	assert_int_equal(read(f.tells, &f.child, sizeof(f.child)), sizeof(f.child));
	alarm(PATIENCE);
	return f;
}

/* The parent gets to know that SIGKILL ended its child. */
static void assert_parent_told(struct family *f)
{
	int status;

	assert_int_equal(read(f->tells, &status, sizeof(status)), sizeof(status));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(waitpid(f->parent, &status, 0), f->parent);
	close(f->tells);
}

static bool never(void *userdata)
{
	(void)userdata;
	return false;
}

static bool at_once(void *userdata)
{
	(void)userdata;
	return true;
}

static void nudge_done_leaves_the_thread_stopped(void **state)
{
	struct family f = make_family();

	(void)state;
	assert_true(emu_task_nudge((uint32_t)f.child, at_once, NULL));
	/* The thread returns to its stop by itself. */
	while (emu_task_life((uint32_t)f.child) != EMU_STOPPED)
		;
	kill(f.child, SIGKILL);
	assert_parent_told(&f);
}

static void nudge_killed_before_request(enum __ptrace_request request)
{
	struct family f = make_family();

	plan.before = request;
	emu_task_nudge((uint32_t)f.child, never, NULL);
	assert_parent_told(&f);
}

static void nudge_killed_before_it_continues_tells_the_parent(void **state)
{
	(void)state;
	nudge_killed_before_request(PTRACE_CONT);
}

static void nudge_killed_before_its_last_stop_tells_the_parent(void **state)
{
	(void)state;
	nudge_killed_before_request(PTRACE_INTERRUPT);
}

static void nudge_killed_before_it_is_detached_tells_the_parent(void **state)
{
	(void)state;
	nudge_killed_before_request(PTRACE_DETACH);
}

/* The thread does not stop in time, and cannot be detached. */
static void nudge_not_stopped_in_time_tells_the_parent_of_its_end(void **state)
{
	struct family f = make_family();

	(void)state;
	plan.without_interrupt = true;
	assert_false(emu_task_nudge((uint32_t)f.child, never, NULL));
	kill(f.child, SIGKILL);
	assert_parent_told(&f);
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(nudge_done_leaves_the_thread_stopped),
		CASE(nudge_killed_before_it_continues_tells_the_parent),
		CASE(nudge_killed_before_its_last_stop_tells_the_parent),
		CASE(nudge_killed_before_it_is_detached_tells_the_parent),
		CASE(nudge_not_stopped_in_time_tells_the_parent_of_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
