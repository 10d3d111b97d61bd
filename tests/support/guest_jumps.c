/*
 * A program for the emulated machine: threads that all execute the same code, raise signals in
 * system calls and leave the handlers by siglongjmp, so that a thread seldom enters user code where
 * it left. Prints a sum that does not depend on their order. guest_jumps [ROUNDS [THREADS [WORK]]]
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 64u

static __thread sigjmp_buf again;
static __thread volatile uint64_t sum;
static unsigned int rounds = 300, work = 40;

static __attribute__((noinline)) uint64_t mix(uint64_t v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		v = v & 1 ? v * 3 + 1 : v / 2 + i;
	return v;
}

static void on_jump(int signo)
{
	sum += (unsigned int)signo;
	siglongjmp(again, 1);
}

static void on_return(int signo)
{
	sum += mix((unsigned int)signo, work);
}

static void to_myself(int signo)
{
	syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), signo);
}

static void *run(void *unused)
{
	(void)unused;
	for (volatile unsigned int i = 0; i < rounds; i++) {
		if (sigsetjmp(again, 1) == 0)
			to_myself(SIGUSR1);
		sum += mix(i, work);
		if (i % 3 == 0)
			to_myself(SIGUSR2);
		sched_yield();
		if (sigsetjmp(again, 1) == 0)
			__asm__ volatile("ud2");
	}
	return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
	struct sigaction jump = {.sa_handler = on_jump, .sa_flags = SA_NODEFER};
	struct sigaction back = {.sa_handler = on_return};
	unsigned int n_threads = 4;
	pthread_t threads[MAX_THREADS];
	uint64_t all = 0;

	if (argc > 1)
		rounds = (unsigned int)atoi(argv[1]);
	if (argc > 2)
		n_threads = (unsigned int)atoi(argv[2]);
	if (argc > 3)
		work = (unsigned int)atoi(argv[3]);
	if (n_threads > MAX_THREADS)
		return 1;
	sigaction(SIGUSR1, &jump, NULL);
	sigaction(SIGILL, &jump, NULL);
	sigaction(SIGUSR2, &back, NULL);
	for (unsigned int i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			return 1;
	for (unsigned int i = 0; i < n_threads; i++) {
		void *value;

		if (pthread_join(threads[i], &value) != 0)
			return 1;
		all += (uintptr_t)value;
	}
	printf("%llu\n", (unsigned long long)all);
	return 0;
}
