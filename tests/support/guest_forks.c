/*
 * A program for the emulated machine: a server that forks CHILDREN workers, WIDE at a time. Each
 * computes a different result and answers over a pipe; for some, a thread or a grandchild does the
 * work. Prints the sum of the answers. guest_forks [CHILDREN [WIDE [WORK]]]
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned int work = 20000;

static __attribute__((noinline)) uint64_t collatz(uint64_t v)
{
	uint64_t steps = 0;

	for (unsigned int i = 0; i < work; i++, steps += v)
		v = v <= 1 ? i + 27 : v & 1 ? v * 3 + 1 : v / 2;
	return steps;
}

static __attribute__((noinline)) uint64_t sieve(uint64_t v)
{
	static uint8_t marks[4096];
	uint64_t n = 0;

	for (unsigned int i = 2; i < sizeof(marks); i++) {
		if (marks[i])
			continue;
		n += i * v;
		for (unsigned int j = i * 2; j < sizeof(marks); j += i)
			marks[j] = 1;
	}
	return n;
}

static __attribute__((noinline)) uint64_t fibonacci(uint64_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static __attribute__((noinline)) uint64_t sort(uint64_t v)
{
	static uint32_t numbers[500];
	uint32_t x = (uint32_t)v * 2654435761u + 1;

	for (size_t i = 0; i < 500; i++)
		numbers[i] = x = x * 1664525u + 1013904223u;
	qsort(numbers, 500, sizeof(*numbers), compare);
	return numbers[v % 500];
}

static void *in_thread(void *argument)
{
	uint64_t *v = argument;

	*v = sort(*v) + 1;
	return NULL;
}

static uint64_t by_thread(uint64_t v)
{
	pthread_t t;

	if (pthread_create(&t, NULL, in_thread, &v) == 0)
		pthread_join(t, NULL);
	return v;
}

static uint64_t by_grandchild(uint64_t v)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)(sieve(v) % 100));
	if (pid > 0)
		waitpid(pid, &status, 0);
	return (uint64_t)WEXITSTATUS(status) + v;
}

static void answer(unsigned int i, int fd)
{
	uint64_t v = i;

	switch (i % 6) {
	case 0: v = collatz(i); break;
	case 1: v = sieve(i); break;
	case 2: v = fibonacci(14); break;
	case 3: v = sort(i); break;
	case 4: v = by_thread(i); break;
	default: v = by_grandchild(i);
	}
	if (write(fd, &v, sizeof(v)) != sizeof(v))
		_exit(1);
	_exit((int)(i % 7));
}

static unsigned int reap(void)
{
	int status;

	return wait(&status) > 0 && WIFEXITED(status) ? (unsigned int)WEXITSTATUS(status) : 100;
}

int main(int argc, char **argv)
{
	unsigned int children = argc > 1 ? (unsigned int)atoi(argv[1]) : 50;
	unsigned int wide = argc > 2 ? (unsigned int)atoi(argv[2]) : 10;
	unsigned int statuses = 0, alive = 0;
	uint64_t v, sum = 0;
	int fds[2];

	if (argc > 3)
		work = (unsigned int)atoi(argv[3]);
	if (pipe(fds) < 0)
		return 1;
	for (unsigned int i = 0; i < children; i++) {
		pid_t pid;

		if (alive == wide) {
			statuses += reap();
			alive--;
		}
		pid = fork();
		if (pid == 0)
			answer(i, fds[1]);
		if (pid < 0)
			return 1;
		alive++;
	}
	for (; alive > 0; alive--)
		statuses += reap();
	close(fds[1]);
	while (read(fds[0], &v, sizeof(v)) == sizeof(v))
		sum += v;
	printf("%llu %u\n", (unsigned long long)sum, statuses);
	return 0;
}
