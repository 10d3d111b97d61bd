/*
 * The TSC in the time of a stream: what the manifest says of perf's clock and CLOCK_MONOTONIC.
 */
#pragma once

#include <stdint.h>

struct truth_clock {
	unsigned int shift;
	uint32_t mult;
	uint64_t zero, offset; /* OFFSET: CLOCK_MONOTONIC less perf's clock */
};

/* include/uapi/linux/perf_event.h, at cap_user_time_zero. */
static inline uint64_t truth_clock_ns(const struct truth_clock *c, uint64_t tsc)
{
	return (uint64_t)((unsigned __int128)tsc * c->mult >> c->shift) + c->zero + c->offset;
}
