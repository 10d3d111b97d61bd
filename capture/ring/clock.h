/*
 * The perf clock, the TSC and the realtime clock, converted and read together.
 *
 * ns = time_zero + (tsc >> shift) * mult + (((tsc & mask) * mult) >> shift)
 * as documented in include/uapi/linux/perf_event.h, "cap_usr_time_zero".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clock_params {
	bool valid; /* false: the conversions below return 0 */
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
};

uint64_t clock_tsc_to_ns(const struct clock_params *c, uint64_t tsc);
/* The inverse, rounded down; 0 for times before TSC 0. */
uint64_t clock_ns_to_tsc(const struct clock_params *c, uint64_t ns);

/* Measures the host's TSC frequency in Hz against CLOCK_MONOTONIC_RAW, which takes about 10 ms, and
 * makes parameters with which the perf clock agrees with CLOCK_MONOTONIC. 0 or -errno. */
int clock_calibrate(struct clock_params *ret, uint64_t *ret_hz);
/* Makes parameters for a clock of HZ ticks per second that shows TSC at the time NS. */
void clock_make(struct clock_params *ret, uint64_t hz, uint64_t tsc, uint64_t ns);

struct clock_now {
	uint64_t realtime_ns, monotonic_ns, tsc;
};
/* Reads the three clocks as close together as possible. */
void clock_read(struct clock_now *ret);
