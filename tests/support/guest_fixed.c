/*
 * A program for the emulated machine, linked at a fixed address and built several times with
 * different code there (VARIANT).
 *
 * guest_fixed run N           works N times and yields in between
 * guest_fixed exec N PROGRAM  works and execs PROGRAM, which execs guest_fixed again, N times in
 * all
 *
 * Prints the computed result.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 3000u

/* All variants have the same size and alignment, so that the code behind has the same addresses. */
typedef uint64_t step_fn(uint64_t v);

__attribute__((noinline, aligned(64))) static uint64_t even(uint64_t v)
{
#if VARIANT == 0
	return v % 3 == 0 ? v / 3 + 1 : v * 5 + 7;
#else
	if (v & 8)
		v ^= v >> 7;
	return v % 5 == 1 ? v * 3 : v + 11;
#endif
}

__attribute__((noinline, aligned(64))) static uint64_t odd(uint64_t v)
{
#if VARIANT == 0
	while (v & 4)
		v = v / 2 + 1;
	return v + 3;
#else
	return v & 64 ? even(v) * 9 : v * 7 + 1;
#endif
}

/* Conditional branches, calls, returns and indirect jumps that a compiler cannot resolve. */
static uint64_t work(uint64_t v)
{
	step_fn *volatile steps[] = {even, odd};

	for (unsigned int i = 0; i < ROUNDS; i++)
		v = steps[(v >> (i % 5)) & 1](v) & 0xffffffff;
	return v;
}

static int run(unsigned long n, uint64_t v)
{
	while (n-- > 0) {
		v = work(v);
		sched_yield();
	}
	printf("%d %llu\n", VARIANT, (unsigned long long)v);
	return 0;
}

static int become(unsigned long n, char **argv)
{
	char self[4096], left[24];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

	work(n + 1);
	if (n == 0)
		return 0;
	if (size < 0)
		return 1;
	self[size] = '\0';
	snprintf(left, sizeof(left), "%lu", n - 1);
	execl(argv[3], argv[3], "exec", left, self, NULL);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (argc == 4 && strcmp(argv[1], "exec") == 0)
		return become(n, argv);
	return argc == 3 && strcmp(argv[1], "run") == 0 ? run(n, 27) : 2;
}
