/*
 * A program for the emulated machine that executes almost only its own code: guest_spin ROUNDS.
 * Prints a sum.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) uint64_t mix(uint64_t v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		v = v & 1 ? v * 3 + 1 : v / 2 + i;
	return v;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	uint64_t sum = 1;

	for (unsigned long i = 0; i < rounds; i++)
		sum += mix(i, 100);
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
