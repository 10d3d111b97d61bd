/*
 * capture/probe: signals that end a process, and those that do not.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/unit/capture/probe/probing.h"

#define SIG(n) (1ull << ((n)-1))

static void on_signal(int sig)
{
	(void)sig;
}

/* Writes to ADDRESS, where nothing is mapped. */
__attribute__((noinline)) static void crash(void *address)
{
	*(volatile char *)address = 1;
}

static void no_core(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

/* Runs a child under a probe of SIGNALS for that child. Returns the number of events. */
static unsigned probe_child(uint64_t signals, void (*run)(void *), void *arg, struct seen *seen,
			    struct child *c, int *ret_status)
{
	struct probe *p;
	unsigned n;

	*c = child_new(run, arg);
	p = arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .pid = c->pid, .signals = signals},
		seen);
	*ret_status = child_run(c);
	n = collect(p, seen);
	probe_free(p);
	return n;
}

static void fault(void *arg)
{
	no_core();
	crash(arg);
}

static void signal_fault_is_seen_in_its_thread(void **state)
{
	uint64_t before = now_ns(CLOCK_MONOTONIC);
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(SIG(SIGSEGV), fault, (void *)0x1234, &seen, &c, &status), 1);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(seen.events[0].kind, PROBE_SIGNAL);
	assert_int_equal(seen.events[0].value, SIGSEGV);
	assert_int_equal(seen.events[0].data, 0x1234);
	assert_int_equal(seen.events[0].pid, c.pid);
	assert_int_equal(seen.events[0].tid, c.pid);
	assert_int_equal(seen.events[0].by, c.pid);
	assert_int_equal(seen.events[0].uid, getuid());
	assert_string_equal(seen.events[0].comm, "test_probe_sign");
	assert_in_range(seen.events[0].address, (uintptr_t)crash, (uintptr_t)crash + 256);
	assert_true(seen.events[0].n_stack >= 1);
	assert_int_equal(seen.events[0].stack[0], seen.events[0].address);
	assert_in_range(seen.events[0].time_ns, before, now_ns(CLOCK_MONOTONIC));
	assert_true(seen.events[0].cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

static void harmless(void *arg)
{
	struct timespec none = {0};
	sigset_t set;

	(void)arg;
	signal(SIGUSR1, on_signal);
	signal(SIGSEGV, on_signal);
	signal(SIGTERM, SIG_IGN);
	raise(SIGUSR1);
	raise(SIGSEGV);
	raise(SIGTERM);
	raise(SIGCHLD);
	raise(SIGCONT);
	raise(SIGURG);
	raise(SIGWINCH);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	if (sigtimedwait(&set, NULL, &none) != SIGUSR2)
		_exit(9);
}

static void signal_caught_ignored_or_waited_for_is_no_event(void **state)
{
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, harmless, NULL, &seen, &c, &status), 0);
	assert_int_equal(status, 0);
}

static void then_quit(void *arg)
{
	no_core();
	harmless(arg);
	raise(SIGQUIT);
}

static void signal_after_harmless_ones_is_the_only_event(void **state)
{
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, then_quit, NULL, &seen, &c, &status), 1);
	assert_int_equal(seen.events[0].value, SIGQUIT);
	assert_int_equal(WTERMSIG(status), SIGQUIT);
}

static void wait_for_end(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void signal_of_another_process_names_the_sender(void **state)
{
	struct child c = child_new(wait_for_end, NULL);
	struct seen seen;
	struct probe *p = arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .pid = c.pid}, &seen);

	(void)state;
	kill(c.pid, SIGCONT);
	assert_int_equal(collect(p, &seen), 0);
	kill(c.pid, SIGTERM);
	child_wait(&c);
	assert_int_equal(collect(p, &seen), 1);
	assert_int_equal(seen.events[0].value, SIGTERM);
	assert_int_equal(seen.events[0].pid, c.pid);
	assert_int_equal(seen.events[0].by, getpid());
	assert_int_equal(seen.events[0].n_stack, 0);
	probe_free(p);
}

static void signal_is_seen_before_the_process_ends(void **state)
{
	struct child c = child_new(wait_for_end, NULL);
	struct seen seen;
	struct probe *p = arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .pid = c.pid}, &seen);

	(void)state;
	/* A process that is being stopped by a job control signal still dies of SIGKILL; the event
	 * is there when kill() returns. */
	kill(c.pid, SIGSTOP);
	assert_int_equal(collect(p, &seen), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(collect(p, &seen), 1);
	assert_int_equal(seen.events[0].value, SIGKILL);
	child_wait(&c);
	assert_int_equal(collect(p, &seen), 1);
	probe_free(p);
}

static void blocked(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	if (!arg)
		_exit(3);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void signal_blocked_is_an_event_only_when_unblocked(void **state)
{
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, blocked, NULL, &seen, &c, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_int_equal(probe_child(0, blocked, &status, &seen, &c, &status), 1);
	assert_int_equal(seen.events[0].value, SIGUSR2);
}

/* --- Threads --- */

static void *sleep_on(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

static void *crash_here(void *arg)
{
	*(volatile pid_t *)arg = gettid();
	crash((void *)0x1234);
	return NULL;
}

static void crash_in_thread(void *shared)
{
	pthread_t t;

	no_core();
	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, sleep_on, NULL);
	pthread_create(&t, NULL, crash_here, shared);
	pthread_join(t, NULL);
}

static void signal_of_a_thread_is_one_event_with_that_thread(void **state)
{
	volatile pid_t *tid =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, crash_in_thread, (void *)tid, &seen, &c, &status), 1);
	assert_int_equal(seen.events[0].value, SIGSEGV);
	assert_int_equal(seen.events[0].tid, *tid);
	assert_int_equal(seen.events[0].pid, c.pid);
	munmap((void *)tid, 4096);
}

static void end_threads(void *arg)
{
	pthread_t t;

	for (int i = 0; i < 3; i++)
		pthread_create(&t, NULL, sleep_on, NULL);
	if (arg)
		execl("/bin/true", "true", NULL);
	_exit(7);
}

static void exit_or_exec_of_many_threads_is_no_signal(void **state)
{
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, end_threads, NULL, &seen, &c, &status), 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(probe_child(0, end_threads, &status, &seen, &c, &status), 0);
	assert_int_equal(status, 0);
}

static void block_in_main(void *arg)
{
	sigset_t set;
	pthread_t t;

	(void)arg;
	pthread_create(&t, NULL, sleep_on, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	kill(getpid(), SIGTERM);
	pthread_join(t, NULL);
}

static void signal_that_only_another_thread_takes_is_one_event(void **state)
{
	struct seen seen;
	struct child c;
	int status;

	(void)state;
	assert_int_equal(probe_child(0, block_in_main, NULL, &seen, &c, &status), 1);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	assert_int_equal(seen.events[0].value, SIGTERM);
}

/* --- A tracer decides --- */

static void trace_me(void *arg)
{
	(void)arg;
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGUSR1);
	raise(SIGUSR2);
}

static void signal_of_a_traced_process_is_an_event_when_passed_on(void **state)
{
	struct child c = child_new(trace_me, NULL);
	struct seen seen;
	struct probe *p = arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .pid = c.pid}, &seen);
	int status;

	(void)state;
	assert_int_equal(write(c.go, "", 1), 1);
	close(c.go);
	waitpid(c.pid, &status, 0);
	assert_int_equal(WSTOPSIG(status), SIGUSR1);
	ptrace(PTRACE_CONT, c.pid, 0, 0);
	waitpid(c.pid, &status, 0);
	assert_int_equal(WSTOPSIG(status), SIGUSR2);
	assert_int_equal(collect(p, &seen), 0);
	ptrace(PTRACE_CONT, c.pid, 0, SIGUSR2);
	waitpid(c.pid, &status, 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(collect(p, &seen), 1);
	assert_int_equal(seen.events[0].value, SIGUSR2);
	probe_free(p);
}

/* --- Filters --- */

/* Kills a child under each probe of SPEC, and expects N events. */
static void expect_killed(struct probe_spec spec, unsigned n)
{
	struct child c = child_new(wait_for_end, NULL);
	struct seen seen;
	struct probe *p;

	spec.kind = PROBE_SIGNAL;
	spec.pid = c.pid;
	p = arm(&spec, &seen);
	kill(c.pid, SIGTERM);
	child_wait(&c);
	assert_int_equal(collect(p, &seen), n);
	probe_free(p);
}

static void filter_signal_passes_its_signals_only(void **state)
{
	(void)state;
	expect_killed((struct probe_spec){.signals = SIG(SIGTERM) | SIG(SIGSEGV)}, 1);
	expect_killed((struct probe_spec){.signals = ~SIG(SIGTERM)}, 0);
}

static void filter_comm_passes_the_exact_name_only(void **state)
{
	(void)state;
	expect_killed((struct probe_spec){.comm = "test_probe_sign"}, 1);
	expect_killed((struct probe_spec){.comm = "test_probe_sig"}, 0);
	expect_killed((struct probe_spec){.comm = "est_probe_sign"}, 0);
}

static void filter_uid_passes_its_user_only(void **state)
{
	(void)state;
	expect_killed((struct probe_spec){.has_uid = true, .uid = getuid()}, 1);
	expect_killed((struct probe_spec){.has_uid = true, .uid = getuid() + 1}, 0);
}

static void filter_exe_passes_its_file_only(void **state)
{
	(void)state;
	expect_killed((struct probe_spec){.exe = "/proc/self/exe"}, 1);
	expect_killed((struct probe_spec){.exe = "/bin/true"}, 0);
}

static void filter_pid_passes_no_other_process(void **state)
{
	struct child c = child_new(wait_for_end, NULL), other = child_new(wait_for_end, NULL);
	struct seen seen;
	struct probe *p = arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .pid = other.pid}, &seen);

	(void)state;
	kill(c.pid, SIGTERM);
	child_wait(&c);
	assert_int_equal(collect(p, &seen), 0);
	kill(other.pid, SIGTERM);
	child_wait(&other);
	assert_int_equal(collect(p, &seen), 1);
	probe_free(p);
}

static void probe_off_sees_nothing_until_on(void **state)
{
	struct child c = child_new(wait_for_end, NULL), later = child_new(wait_for_end, NULL);
	struct seen seen;
	struct probe *p =
		arm(&(struct probe_spec){.kind = PROBE_SIGNAL, .comm = "test_probe_sign"}, &seen);

	(void)state;
	probe_set_on(p, false);
	kill(c.pid, SIGTERM);
	child_wait(&c);
	assert_int_equal(collect(p, &seen), 0);
	probe_set_on(p, true);
	kill(later.pid, SIGTERM);
	child_wait(&later);
	assert_int_equal(collect(p, &seen), 1);
	probe_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_fault_is_seen_in_its_thread),
		cmocka_unit_test(signal_caught_ignored_or_waited_for_is_no_event),
		cmocka_unit_test(signal_after_harmless_ones_is_the_only_event),
		cmocka_unit_test(signal_of_another_process_names_the_sender),
		cmocka_unit_test(signal_is_seen_before_the_process_ends),
		cmocka_unit_test(signal_blocked_is_an_event_only_when_unblocked),
		cmocka_unit_test(signal_of_a_thread_is_one_event_with_that_thread),
		cmocka_unit_test(exit_or_exec_of_many_threads_is_no_signal),
		cmocka_unit_test(signal_that_only_another_thread_takes_is_one_event),
		cmocka_unit_test(signal_of_a_traced_process_is_an_event_when_passed_on),
		cmocka_unit_test(filter_signal_passes_its_signals_only),
		cmocka_unit_test(filter_comm_passes_the_exact_name_only),
		cmocka_unit_test(filter_uid_passes_its_user_only),
		cmocka_unit_test(filter_exe_passes_its_file_only),
		cmocka_unit_test(filter_pid_passes_no_other_process),
		cmocka_unit_test(probe_off_sees_nothing_until_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
