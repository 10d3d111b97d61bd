/*
 * guest_turns SECONDS: switches between threads as often as a kernel can: threads that yield,
 * threads that wake each other by a futex, processes that pass a byte through pipes, with and
 * without a CPU of their own, and processes and threads that end at once. For a machine that traces
 * itself.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define YIELDING 3

static _Atomic uint32_t turn;
static time_t end;

static int over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec >= end;
}

/* Keeps the calling thread on CPU, if the machine has such a CPU. */
static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* User code of N steps. */
static void work(unsigned int n)
{
	for (volatile unsigned int i = 0; i < n; i++)
		;
}

static void *yield(void *arg)
{
	const unsigned int n = (unsigned int)(uintptr_t)arg;

	while (!over())
		for (unsigned int i = 0; i < 1000; i++) {
			work(n);
			sched_yield();
		}
	return NULL;
}

static void *take_turns(void *arg)
{
	const uint32_t mine = (uint32_t)(uintptr_t)arg;

	while (!over())
		for (unsigned int i = 0; i < 100; i++) {
			while (atomic_load(&turn) != mine)
				syscall(SYS_futex, &turn, FUTEX_WAIT, 1 - mine, NULL, NULL, 0);
			work(mine * 5);
			atomic_store(&turn, 1 - mine);
			syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
		}
	/* The other one must not wait for a turn that never ends. */
	for (;;) {
		atomic_store(&turn, 1 - mine);
		syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
		usleep(1000);
	}
	return NULL;
}

/* Reads a byte from FROM and writes it to TO until the time is over. */
static void pass(int from, int to)
{
	char byte = 0;

	while (!over())
		for (unsigned int i = 0; i < 100; i++)
			if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
				return;
}

static void *end_at_once(void *arg)
{
	work(3);
	return arg;
}

/* Processes and threads that end at once, one after another. */
static void come_and_go(void)
{
	while (!over()) {
		pthread_t thread;
		const pid_t child = fork();

		if (child == 0)
			_exit(0);
		if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
			pthread_join(thread, NULL);
		if (child > 0)
			waitpid(child, NULL, 0);
		usleep(20000);
	}
}

static void start(void *(*run)(void *), unsigned int arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)arg) != 0)
		abort();
}

/* A process that yields on CPU. */
static void yielders(int cpu)
{
	if (fork() != 0)
		return;
	stay_on(cpu);
	for (unsigned int i = 1; i < YIELDING; i++)
		start(yield, i * 3);
	yield(NULL);
	_exit(0);
}

static void futex_pair(int cpu)
{
	if (fork() != 0)
		return;
	stay_on(cpu);
	start(take_turns, 1);
	start(take_turns, 0);
	while (!over())
		usleep(100000);
	_exit(0);
}

/* Two processes; CPU below 0: where the kernel likes. */
static void pipe_pair(int cpu)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		abort();
	for (int i = 0; i < 2; i++) {
		if (fork() != 0)
			continue;
		if (cpu >= 0)
			stay_on(cpu);
		/* The other process reads to the end when this one has ended. */
		close(i == 0 ? to[1] : to[0]);
		close(i == 0 ? from[0] : from[1]);
		pass(i == 0 ? to[0] : from[0], i == 0 ? from[1] : to[1]);
		_exit(0);
	}
	close(to[0]);
	close(to[1]);
	close(from[0]);
	close(from[1]);
}

int main(int argc, char **argv)
{
	const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct timespec now;

	if (argc != 2 || atoi(argv[1]) < 1)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + atoi(argv[1]);
	for (int cpu = 0; cpu < cpus; cpu++) {
		yielders(cpu);
		futex_pair(cpu);
		pipe_pair(cpu);
	}
	pipe_pair(-1);
	if (fork() == 0) {
		come_and_go();
		_exit(0);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	printf("%s seconds of turns\n", argv[1]);
	return 0;
}
