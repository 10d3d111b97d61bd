/*
 * What all benchmarks share: the time, and many measurements as a few numbers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t sample_now(void);
/* The one below which PERCENT of the N (at least 1) VALUES lie; sorts them. */
uint64_t sample_percentile(uint64_t *values, size_t n, unsigned percent);
/* Says to stdout that figures of this build mean nothing, where that is so. */
void sample_warn(void);
