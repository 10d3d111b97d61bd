/*
 * Measures how close together the events of all CPUs can be stopped: by one ioctl after another, by
 * one prctl in the thread that opened the events, and by threads pinned to the CPUs. The events are
 * software events, which stop like PT events (an interprocessor call to each CPU), except for one
 * register write.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/bench/sample.h"

#define ROUNDS	 400u
#define MAX_CPUS 256u
/* Pause between two rounds: threads that a round woke are asleep again. */
#define PAUSE_USEC 500

enum way { BY_IOCTL, BY_PRCTL, BY_THREADS, N_WAYS };

struct bench {
	unsigned n;
	int fds[MAX_CPUS];
	pthread_t threads[MAX_CPUS];
	uint64_t stopped[MAX_CPUS]; /* when each CPU was stopped */
	_Atomic uint32_t go, done;
	_Atomic int quit;
	uint64_t all[N_WAYS][ROUNDS], skew[N_WAYS][ROUNDS];
};

static struct bench bench;

static int open_event(unsigned cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000000,
				       .pinned = 1};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void stop(unsigned cpu)
{
	ioctl(bench.fds[cpu], PERF_EVENT_IOC_DISABLE, 0);
	bench.stopped[cpu] = sample_now();
}

static void *stopper(void *userdata)
{
	unsigned cpu = (unsigned)(uintptr_t)userdata;
	uint32_t seen = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;;) {
		while (atomic_load(&bench.go) == seen)
			futex(&bench.go, FUTEX_WAIT_PRIVATE, seen);
		seen = atomic_load(&bench.go);
		if (atomic_load(&bench.quit))
			return NULL;
		stop(cpu);
		atomic_fetch_add(&bench.done, 1);
	}
}

static void wake_stoppers(void)
{
	atomic_store(&bench.done, 0);
	atomic_fetch_add(&bench.go, 1);
	futex(&bench.go, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void stop_all(enum way way)
{
	switch (way) {
	case BY_IOCTL:
		for (unsigned i = 0; i < bench.n; i++)
			stop(i);
		break;
	case BY_PRCTL: prctl(PR_TASK_PERF_EVENTS_DISABLE); break;
	default:
		wake_stoppers();
		while (atomic_load(&bench.done) < bench.n)
			sched_yield();
	}
}

static uint64_t skew(void)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (unsigned i = 0; i < bench.n; i++) {
		first = MIN_OF(first, bench.stopped[i]);
		last = MAX_OF(last, bench.stopped[i]);
	}
	return last - first;
}

static void measure(enum way way, unsigned round)
{
	uint64_t begin = sample_now();

	stop_all(way);
	bench.all[way][round] = sample_now() - begin;
	bench.skew[way][round] = skew();
	for (unsigned i = 0; i < bench.n; i++)
		ioctl(bench.fds[i], PERF_EVENT_IOC_ENABLE, 0);
	usleep(PAUSE_USEC);
}

static double usec(uint64_t *values, unsigned percent)
{
	return (double)sample_percentile(values, ROUNDS, percent) / 1000;
}

static void show(enum way way)
{
	static const char *const names[N_WAYS] = {"ioctls", "prctl", "threads"};

	printf("stop by %-8s all %u CPUs within %6.1f us median %6.1f us p95", names[way], bench.n,
	       usec(bench.all[way], 50), usec(bench.all[way], 95));
	/* The time at which each event stopped is known only from the event's own record. */
	if (way != BY_PRCTL)
		printf("; first to last %6.1f us median %6.1f us p95", usec(bench.skew[way], 50),
		       usec(bench.skew[way], 95));
	putchar('\n');
}

static int open_all(void)
{
	bench.n = (unsigned)MIN_OF(sysconf(_SC_NPROCESSORS_ONLN), (long)MAX_CPUS);
	for (unsigned i = 0; i < bench.n; i++) {
		bench.fds[i] = open_event(i);
		if (bench.fds[i] < 0) {
			printf("stop: not measured: no event on CPU %u: %s\n", i, strerror(errno));
			return -errno;
		}
	}
	return 0;
}

int main(void)
{
	if (open_all() < 0)
		return EXIT_SUCCESS;
	for (uintptr_t i = 0; i < bench.n; i++)
		if (pthread_create(&bench.threads[i], NULL, stopper, (void *)i) != 0)
			return EXIT_FAILURE;
	sample_warn();
	for (unsigned round = 0; round < ROUNDS; round++)
		for (enum way way = 0; way < N_WAYS; way++)
			measure(way, round);
	for (enum way way = 0; way < N_WAYS; way++)
		show(way);
	atomic_store(&bench.quit, 1);
	wake_stoppers();
	for (unsigned i = 0; i < bench.n; i++)
		pthread_join(bench.threads[i], NULL);
	return EXIT_SUCCESS;
}
