/*
 * perf clock <-> TSC <-> realtime.
 * ns = time_zero + (tsc >> shift) * mult + (((tsc & mask) * mult) >> shift):
 * include/uapi/linux/perf_event.h, "cap_usr_time_zero".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clock_params {
	bool valid;
	uint16_t time_shift;
	uint32_t time_mult;
	uint64_t time_zero;
};

uint64_t clock_tsc_to_ns(const struct clock_params *c, uint64_t tsc);
/* Inverse, rounded down; 0 for times before TSC 0. */
uint64_t clock_ns_to_tsc(const struct clock_params *c, uint64_t ns);

/* The host's TSC frequency in Hz, measured against CLOCK_MONOTONIC_RAW (about 10 ms), and
 * parameters that make the perf clock run with CLOCK_MONOTONIC. 0 or -errno. */
int clock_calibrate(struct clock_params *ret, uint64_t *ret_hz);
/* Parameters for a clock of HZ ticks a second whose tick TSC happened at NS. */
void clock_make(struct clock_params *ret, uint64_t hz, uint64_t tsc, uint64_t ns);

struct clock_now {
	uint64_t realtime_ns, monotonic_ns, tsc;
};
/* The three read as close together as can be. */
void clock_read(struct clock_now *ret);
