/*
 * capture/probe: slow system calls, waits for a CPU, the OOM killer, and tracepoints by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/unit/capture/probe/probing.h"

#define MS   1000000ull
#define HOUR (3600000 * MS)

static void sleep_ms(uint64_t ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000 * MS)};

	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

static unsigned probe_child(struct probe_spec spec, void (*run)(void *), struct seen *seen,
			    struct child *ret)
{
	struct child c = child_new(run, NULL);
	struct probe *p;
	unsigned n;

	spec.pid = c.pid;
	p = arm(&spec, seen);
	assert_int_equal(child_run(&c), 0);
	n = collect(p, seen);
	probe_free(p);
	for (unsigned i = 0; i < MIN_OF(n, ARRAY_SIZE(seen->events)); i++)
		assert_int_equal(seen->events[i].pid, c.pid);
	if (ret)
		*ret = c;
	return n;
}

/* --- System calls --- */

static struct probe_spec syscall_spec(unsigned nr, uint64_t limit_ns)
{
	struct probe_spec s = {.kind = PROBE_SYSCALL, .limit_ns = limit_ns};

	s.syscalls[nr / 64] = 1ull << (nr % 64);
	return s;
}

static void sleep_and_fail(void *arg)
{
	(void)arg;
	sleep_ms(3);
	getppid();
	/* openat2 has a number above 255. */
	syscall(SYS_openat2, -1, NULL, NULL, 0);
}

static void syscall_above_the_limit_is_an_event(void **state)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	struct seen seen;

	(void)state;
	assert_int_equal(
		probe_child(syscall_spec(SYS_clock_nanosleep, 2 * MS), sleep_and_fail, &seen, NULL),
		1);
	assert_int_equal(seen.events[0].value, SYS_clock_nanosleep);
	assert_int_equal(seen.events[0].data, 0);
	assert_in_range(seen.events[0].duration_ns, 3 * MS, now_ns(CLOCK_MONOTONIC) - begin);
	assert_int_not_equal(seen.events[0].address, 0);
	assert_true(seen.events[0].n_stack >= 1);
}

static void syscall_event_has_the_result(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child(syscall_spec(SYS_openat2, 1), sleep_and_fail, &seen, NULL), 1);
	assert_int_equal(seen.events[0].value, SYS_openat2);
	assert_int_equal((int64_t)seen.events[0].data, -EINVAL);
}

static void syscall_below_the_limit_or_another_call_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(
		probe_child(syscall_spec(SYS_clock_nanosleep, HOUR), sleep_and_fail, &seen, NULL),
		0);
	assert_int_equal(probe_child(syscall_spec(SYS_nanosleep, 1), sleep_and_fail, &seen, NULL),
			 0);
}

static void syscall_of_any_number_finds_the_slow_one(void **state)
{
	struct seen seen;
	unsigned n;

	(void)state;
	n = probe_child((struct probe_spec){.kind = PROBE_SYSCALL, .limit_ns = 3 * MS},
			sleep_and_fail, &seen, NULL);
	/* A slow host may be slow in other calls, too. */
	assert_true(n >= 1);
	for (unsigned i = 0; i < MIN_OF(n, ARRAY_SIZE(seen.events)); i++)
		if (seen.events[i].value == SYS_clock_nanosleep)
			return;
	fail();
}

/* --- Waits for a CPU --- */

static void stay_on_one_cpu(void)
{
	cpu_set_t allowed, one;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed)) {
			CPU_SET(i, &one);
			break;
		}
	sched_setaffinity(0, sizeof(one), &one);
}

static char state_of(pid_t tid)
{
	char path[64], text[256], *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	end = strrchr(text, ')');
	return end ? end[2] : 0;
}

/* Wakes up the leader, and keeps the CPU that both share for 40 ms. */
static void *hog(void *go)
{
	struct sched_param high = {.sched_priority = 2};
	uint64_t end;

	sched_setscheduler(0, SCHED_FIFO, &high);
	while (state_of(getpid()) != 'S')
		sleep_ms(1);
	if (write(*(int *)go, "", 1) != 1)
		_exit(9);
	end = now_ns(CLOCK_MONOTONIC) + 40 * MS;
	while (now_ns(CLOCK_MONOTONIC) < end)
		;
	return NULL;
}

static void wait_behind_a_hog(void *arg)
{
	pthread_t thread;
	int ends[2];
	char byte;

	(void)arg;
	stay_on_one_cpu();
	if (pipe(ends) < 0)
		_exit(9);
	pthread_create(&thread, NULL, hog, &ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		_exit(9);
	pthread_join(thread, NULL);
}

static bool may_run_realtime(void)
{
	struct sched_param high = {.sched_priority = 2}, normal = {0};

	if (sched_setscheduler(0, SCHED_FIFO, &high) < 0)
		return false;
	sched_setscheduler(0, SCHED_OTHER, &normal);
	return true;
}

/* Whether thread TID has an event of FROM nanoseconds or more, whose value has the bits STATE. A
 * loaded host makes other threads wait, too. */
static bool has_wait(const struct seen *seen, pid_t tid, uint64_t from, int64_t state)
{
	for (unsigned i = 0; i < MIN_OF(seen->n, ARRAY_SIZE(seen->events)); i++) {
		const struct probe_event *e = &seen->events[i];

		if (e->tid == tid && e->duration_ns >= from && (e->value & state) == state &&
		    e->address)
			return true;
	}
	return false;
}

static void wakeup_behind_a_hog_is_an_event_of_the_waiting_thread(void **state)
{
	struct seen seen;
	struct child c;

	(void)state;
	if (!may_run_realtime())
		skip();
	probe_child((struct probe_spec){.kind = PROBE_WAKEUP, .limit_ns = 39 * MS},
		    wait_behind_a_hog, &seen, &c);
	assert_true(has_wait(&seen, c.pid, 40 * MS, 0));
}

static void just_sleep(void *arg)
{
	(void)arg;
	sleep_ms(30);
}

static void wakeup_counts_no_sleep(void **state)
{
	struct seen seen;
	struct child c;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_WAKEUP, .limit_ns = HOUR},
				     just_sleep, &seen, NULL),
			 0);
	/* Offcpu counts the sleep that wakeup does not; TASK_INTERRUPTIBLE is 1. */
	probe_child((struct probe_spec){.kind = PROBE_OFFCPU, .limit_ns = 29 * MS}, just_sleep,
		    &seen, &c);
	assert_true(has_wait(&seen, c.pid, 29 * MS, 1));
}

static void offcpu_below_the_limit_is_no_event(void **state)
{
	struct seen seen;

	(void)state;
	assert_int_equal(probe_child((struct probe_spec){.kind = PROBE_OFFCPU, .limit_ns = HOUR},
				     just_sleep, &seen, NULL),
			 0);
}

static void offcpu_turned_on_during_a_wait_counts_later_waits_only(void **state)
{
	struct child c = child_new(just_sleep, NULL);
	struct seen seen;
	struct probe *p =
		arm(&(struct probe_spec){.kind = PROBE_OFFCPU, .limit_ns = 20 * MS, .pid = c.pid},
		    &seen);
	uint64_t turned_on;

	(void)state;
	kill(c.pid, SIGSTOP);
	waitpid(c.pid, NULL, WUNTRACED);
	probe_set_on(p, false);
	sleep_ms(25);
	turned_on = now_ns(CLOCK_MONOTONIC);
	probe_set_on(p, true);
	kill(c.pid, SIGCONT);
	assert_int_equal(child_run(&c), 0);
	/* The child's sleep. */
	assert_true(collect(p, &seen) >= 1);
	for (unsigned i = 0; i < seen.n; i++)
		assert_true(seen.events[i].time_ns - seen.events[i].duration_ns >= turned_on);
	probe_free(p);
}

/* --- The OOM killer --- */

#define LIMIT (16u << 20)

static bool write_to(const char *dir, const char *file, const char *text)
{
	char path[160];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* A group with a limit of memory, of cgroup v1 or v2. */
static bool make_group(char path[96])
{
	static const struct {
		const char *root, *limit;
	} kinds[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		     {"/sys/fs/cgroup", "memory.max"}};
	char limit[16];

	snprintf(limit, sizeof(limit), "%u", LIMIT);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		snprintf(path, 96, "%s/test_probe_%d", kinds[i].root, getpid());
		if (mkdir(path, 0755) < 0)
			continue;
		if (write_to(path, kinds[i].limit, limit)) {
			write_to(path, "memory.swap.max", "0");
			return true;
		}
		rmdir(path);
	}
	return false;
}

static void use_too_much(void *group)
{
	char *memory;

	if (!write_to(group, "cgroup.procs", "0"))
		_exit(9);
	memory = mmap(NULL, 4 * LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < 4 * LIMIT; i += 4096)
		((volatile char *)memory)[i] = 1;
}

static void oom_kill_is_an_event_of_its_victim(void **state)
{
	char group[96];
	struct child c;
	struct seen seen;
	struct probe *p;
	int status;

	(void)state;
	if (!make_group(group))
		skip();
	c = child_new(use_too_much, group);
	p = arm(&(struct probe_spec){.kind = PROBE_OOM, .comm = "test_probe_kern", .pid = c.pid},
		&seen);
	status = child_run(&c);
	rmdir(group);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(collect(p, &seen), 1);
	assert_int_equal(seen.events[0].pid, c.pid);
	assert_int_equal(seen.events[0].tid, c.pid);
	assert_int_equal(seen.events[0].by, c.pid);
	assert_string_equal(seen.events[0].comm, "test_probe_kern");
	probe_free(p);
}

static void oom_of_another_name_or_a_plain_kill_is_no_event(void **state)
{
	char group[96];
	struct child c, plain = child_new(just_sleep, NULL);
	struct probe *p, *other;
	struct seen seen, none;

	(void)state;
	if (!make_group(group))
		skip();
	c = child_new(use_too_much, group);
	other = arm(&(struct probe_spec){.kind = PROBE_OOM, .comm = "test_probe_ker"}, &none);
	p = arm(&(struct probe_spec){.kind = PROBE_OOM, .pid = plain.pid}, &seen);
	child_run(&c);
	kill(plain.pid, SIGKILL);
	child_wait(&plain);
	rmdir(group);
	assert_int_equal(collect(other, &none), 0);
	assert_int_equal(collect(p, &seen), 0);
	probe_free(other);
	probe_free(p);
}

/* --- Tracepoints --- */

static void kill_parent_softly(void *arg)
{
	(void)arg;
	kill(getppid(), SIGCONT);
	kill(getppid(), SIGURG);
	kill(getppid(), SIGWINCH);
}

/* A filter over the fields of signal:signal_generate, of a child that sends SIGCONT (18), SIGURG
 * (23) and SIGWINCH (28). */
static unsigned filtered(const char *filter)
{
	struct seen seen;

	return probe_child((struct probe_spec){.kind = PROBE_TRACEPOINT,
					       .tracepoint = "signal:signal_generate",
					       .filter = filter},
			   kill_parent_softly, &seen, NULL);
}

static bool has_tracefs(void)
{
	return access("/sys/kernel/tracing/events", F_OK) == 0 ||
	       access("/sys/kernel/debug/tracing/events", F_OK) == 0;
}

static void tracepoint_filter_compares_numbers(void **state)
{
	(void)state;
	if (!has_tracefs())
		skip();
	/* The child's end sends SIGCHLD (17). */
	assert_int_equal(filtered(NULL), 4);
	assert_int_equal(filtered("sig==18"), 1);
	assert_int_equal(filtered("sig == 19"), 0);
	assert_int_equal(filtered("sig!=18"), 3);
	assert_int_equal(filtered("sig<23"), 2);
	assert_int_equal(filtered("sig<=23"), 3);
	assert_int_equal(filtered("sig>23"), 1);
	assert_int_equal(filtered("sig>=23"), 2);
	assert_int_equal(filtered("sig&8"), 1);
	assert_int_equal(filtered("sig > -1 && sig < 24 && sig != 17"), 2);
	assert_int_equal(filtered("sig > 17 && sig < 18"), 0);
}

static void tracepoint_filter_compares_text(void **state)
{
	char comm[16], filter[64];

	(void)state;
	if (!has_tracefs())
		skip();
	/* The field comm is the receiver's: this process. */
	snprintf(comm, sizeof(comm), "%s", "test_probe_kern");
	snprintf(filter, sizeof(filter), "comm==\"%s\"", comm);
	assert_int_equal(filtered(filter), 4);
	snprintf(filter, sizeof(filter), "comm!=\"%s\"", comm);
	assert_int_equal(filtered(filter), 0);
	assert_int_equal(filtered("comm==\"test_probe_ker\""), 0);
	assert_int_equal(filtered("comm != \"\" && sig==28"), 1);
}

static void run_true(void *arg)
{
	(void)arg;
	execl("/bin/true", "true", NULL);
}

static unsigned filtered_exec(const char *filter)
{
	struct seen seen;

	return probe_child((struct probe_spec){.kind = PROBE_TRACEPOINT,
					       .tracepoint = "sched:sched_process_exec",
					       .filter = filter},
			   run_true, &seen, NULL);
}

static void tracepoint_filter_compares_text_that_is_elsewhere(void **state)
{
	(void)state;
	if (!has_tracefs())
		skip();
	assert_int_equal(filtered_exec("filename==\"/bin/true\""), 1);
	assert_int_equal(filtered_exec("filename==\"/bin/tru\""), 0);
	assert_int_equal(filtered_exec("filename!=\"/bin/true\""), 0);
}

static void refuse(const char *tracepoint, const char *filter, int error, const char *text)
{
	expect_refusal(&(struct probe_spec){.kind = PROBE_TRACEPOINT,
					    .tracepoint = tracepoint,
					    .filter = filter},
		       error, text);
}

static void tracepoint_that_is_wrong_is_refused(void **state)
{
	(void)state;
	if (!has_tracefs())
		skip();
	refuse("signal", NULL, -EINVAL, "is not CATEGORY:NAME");
	refuse("../sched:x", NULL, -EINVAL, "is not CATEGORY:NAME");
	refuse("signal:no_such", NULL, -ENOENT, "no tracepoint signal:no_such");
	refuse("signal:signal_generate", "sgi==1", -EINVAL, "no field sgi");
	refuse("signal:signal_generate", "common_pid==1", -EINVAL, "cannot be compared");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscall_above_the_limit_is_an_event),
		cmocka_unit_test(syscall_event_has_the_result),
		cmocka_unit_test(syscall_below_the_limit_or_another_call_is_no_event),
		cmocka_unit_test(syscall_of_any_number_finds_the_slow_one),
		cmocka_unit_test(wakeup_behind_a_hog_is_an_event_of_the_waiting_thread),
		cmocka_unit_test(wakeup_counts_no_sleep),
		cmocka_unit_test(offcpu_below_the_limit_is_no_event),
		cmocka_unit_test(offcpu_turned_on_during_a_wait_counts_later_waits_only),
		cmocka_unit_test(oom_kill_is_an_event_of_its_victim),
		cmocka_unit_test(oom_of_another_name_or_a_plain_kill_is_no_event),
		cmocka_unit_test(tracepoint_filter_compares_numbers),
		cmocka_unit_test(tracepoint_filter_compares_text),
		cmocka_unit_test(tracepoint_filter_compares_text_that_is_elsewhere),
		cmocka_unit_test(tracepoint_that_is_wrong_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
