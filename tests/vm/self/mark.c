/*
 * Runs in a guest that traces itself: an event, and its time.
 *
 * mark FILE        writes the TSC of now to FILE
 * mark FILE PID    the same, and sends SIGUSR2 to process PID
 * mark FILE fail   the same, and exits with status 1
 *
 * The event comes directly behind the TSC's reading.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

int main(int argc, char **argv)
{
	const bool fail = argc == 3 && strcmp(argv[2], "fail") == 0;
	FILE *f = argc == 2 || argc == 3 ? fopen(argv[1], "we") : NULL;
	uint64_t tsc;

	if (!f) {
		fprintf(stderr, "usage: mark FILE [PID|fail]\n");
		return 2;
	}
	tsc = __rdtsc();
	if (argc == 3 && !fail && kill(atoi(argv[2]), SIGUSR2) != 0) {
		perror("mark");
		return 2;
	}
	fprintf(f, "%" PRIu64 "\n", tsc);
	return fclose(f) != 0 ? 2 : fail;
}
