/*
 * Where the threads of a real child sleep: which system call, and who holds the lock.
 */
#include "daemon/gather/asleep.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/child.h"

/* What the child tells of itself. */
static struct shared {
	pthread_mutex_t lock;
	_Atomic uint32_t holder, waiter;
} * shared;

static void *wait_for_lock(void *argument)
{
	shared->waiter = (uint32_t)gettid();
	pthread_mutex_lock(&shared->lock);
	return argument;
}

/* A child, one thread of which pauses with the lock that the other one waits for. */
static pid_t start(void)
{
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t thread;

		pthread_mutex_init(&shared->lock, NULL);
		pthread_mutex_lock(&shared->lock);
		shared->holder = (uint32_t)gettid();
		pthread_create(&thread, NULL, wait_for_lock, NULL);
		for (;;)
			pause();
	}
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	munmap(shared, sizeof(*shared));
}

/* The text, which the evidence owns; of the processes in its manifest. */
static const char *text_of(struct evidence *e, pid_t pid)
{
	const uint32_t pids[] = {UINT32_MAX, (uint32_t)pid};
	CLEANUP(asleep_freep) struct asleep *a = NULL;

	assert_int_equal(asleep_read("/proc", pids, ARRAY_SIZE(pids), &a), 0);
	assert_int_equal(asleep_tell(a, e), 0);
	assert_int_equal(e->manifest.n_texts, 1);
	assert_string_equal(e->manifest.texts[0].kind, MANIFEST_TEXT_THREADS);
	bytes_put_u8(&e->texts[0], 0);
	return (const char *)e->texts[0].data;
}

static struct evidence *evidence_of(pid_t pid, bool excluded)
{
	struct evidence *e = calloc(1, sizeof(*e));
	struct manifest_process *p;

	assert_non_null(e);
	manifest_init(&e->manifest);
	p = manifest_add_process(&e->manifest);
	assert_non_null(p);
	p->pid = (uint32_t)pid;
	p->excluded = excluded;
	return e;
}

/* Whether the text says of thread TID of PID what FORMAT says. */
static bool tells(const char *text, pid_t pid, uint32_t tid, const char *rest)
{
	char line[160];

	snprintf(line, sizeof(line), "\n%d %" PRIu32 " %" PRIu32 " S %s\n", (int)pid, tid, tid,
		 rest);
	return strstr(text, line) != NULL;
}

static void asleep_read_tells_calls_and_who_holds_a_lock(void **state)
{
	char waits[80], pauses[80];
	bool told = false;
	pid_t pid = start();

	(void)state;
	snprintf(pauses, sizeof(pauses), "%d 0x0 0", SYS_pause);
	/* Until both threads sleep. */
	for (int i = 0; i < 10000 && !told; i++) {
		struct evidence *e = evidence_of(pid, false);
		const char *text = text_of(e, pid);

		snprintf(waits, sizeof(waits), "%d 0x%" PRIxPTR " %" PRIu32, SYS_futex,
			 (uintptr_t)&shared->lock, shared->holder);
		assert_true(strncmp(text, "left 0\n", 7) == 0);
		told = shared->waiter != 0 && tells(text, pid, shared->waiter, waits) &&
		       tells(text, pid, shared->holder, pauses);
		evidence_free(e);
	}
	stop(pid);
	assert_true(told);
}

static void asleep_tell_excluded_and_unknown_processes_are_left_out(void **state)
{
	pid_t pid = start();
	struct evidence *excluded = evidence_of(pid, true), *other = evidence_of(getpid(), false);
	char begin[32];

	(void)state;
	snprintf(begin, sizeof(begin), "\n%d ", (int)pid);
	assert_null(strstr(text_of(excluded, pid), begin));
	assert_null(strstr(text_of(other, pid), begin));
	evidence_free(excluded);
	evidence_free(other);
	stop(pid);
}

static void asleep_read_processes_beyond_the_limit_are_counted(void **state)
{
	CLEANUP(asleep_freep) struct asleep *a = NULL;
	struct evidence *e;
	uint32_t *pids = calloc(2 * ASLEEP_MAX_THREADS, sizeof(*pids));
	pid_t pid = start();

	(void)state;
	assert_non_null(pids);
	for (size_t i = 0; i < 2 * ASLEEP_MAX_THREADS; i++)
		pids[i] = (uint32_t)pid;
	e = evidence_of(pid, false);
	assert_int_equal(asleep_read("/proc", pids, 2 * ASLEEP_MAX_THREADS, &a), 0);
	assert_int_equal(asleep_tell(a, e), 0);
	bytes_put_u8(&e->texts[0], 0);
	assert_int_not_equal(strncmp((const char *)e->texts[0].data, "left 0\n", 7), 0);
	evidence_free(e);
	free(pids);
	stop(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asleep_read_tells_calls_and_who_holds_a_lock),
		cmocka_unit_test(asleep_tell_excluded_and_unknown_processes_are_left_out),
		cmocka_unit_test(asleep_read_processes_beyond_the_limit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
