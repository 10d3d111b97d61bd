/*
 * Functions that all benchmarks share: the time, and percentiles of measurements.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC. */
uint64_t sample_now(void);
/* The smallest of the N VALUES (at least 1) that PERCENT of them do not exceed; sorts VALUES. */
uint64_t sample_percentile(uint64_t *values, size_t n, unsigned percent);
/* Prints a warning if this build has sanitizers, because its figures mean nothing. */
void sample_warn(void);
