/*
 * Clock and percentiles for the benchmarks.
 */
#include "tests/bench/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t sample_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t sample_percentile(uint64_t *values, size_t n, unsigned percent)
{
	qsort(values, n, sizeof(*values), compare);
	return values[(n - 1) * percent / 100];
}

void sample_warn(void)
{
#ifdef __SANITIZE_ADDRESS__
	puts("# built with sanitizers: these figures mean nothing");
#endif
}
