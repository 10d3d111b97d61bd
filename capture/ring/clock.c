/*
 * Converts TSC ticks to nanoseconds of the perf clock, and measures both.
 *
 * The kernel publishes the multiplier and shift of its own perf clock. For the software PMU we
 * choose them, so that the perf clock agrees with CLOCK_MONOTONIC and the times in a report agree
 * with those of its records.
 */
#include "capture/ring/clock.h"

#include <errno.h>
#include <time.h>

#include <x86intrin.h>

#include "proto/base.h"

#define NSEC_PER_SEC 1000000000ull
/* include/uapi/linux/perf_event.h (cap_user_time) promises less than 32; older kernels gave 32. */
#define MAX_SHIFT 32
/* We take the fastest of so many reads: an interrupt or a VM exit can delay one of them. */
#define TRIES		   16
#define CALIBRATION_NSEC   10000000
#define CALIBRATION_ROUNDS 3

static bool usable(const struct clock_params *c)
{
	return c->valid && c->time_mult != 0 && c->time_shift <= MAX_SHIFT;
}

uint64_t clock_tsc_to_ns(const struct clock_params *c, uint64_t tsc)
{
	uint64_t quotient, remainder;

	if (!usable(c))
		return 0;
	quotient = tsc >> c->time_shift;
	remainder = tsc & ((1ull << c->time_shift) - 1);
	return c->time_zero + quotient * c->time_mult +
	       ((remainder * c->time_mult) >> c->time_shift);
}

uint64_t clock_ns_to_tsc(const struct clock_params *c, uint64_t ns)
{
	/* time_zero is negative (wrapped) if the TSC started before the clock, as in a VM. */
	uint64_t since = ns - c->time_zero;

	if (!usable(c) || since > INT64_MAX)
		return 0;
	return ((since / c->time_mult) << c->time_shift) +
	       ((since % c->time_mult) << c->time_shift) / c->time_mult;
}

/* Takes the largest shift whose multiplier fits into 32 bits, as clocks_calc_mult_shift()
 * (kernel/time/clocksource.c) does with maxsec 0. User space never gets a shift of 32
 * (arch/x86/kernel/tsc.c, set_cyc2ns_scale). The documented formula then cannot overflow before
 * the nanoseconds do. */
void clock_make(struct clock_params *ret, uint64_t hz, uint64_t tsc, uint64_t ns)
{
	*ret = (struct clock_params){0};
	if (hz == 0 || hz > UINT64_MAX / 2)
		return;
	for (uint16_t shift = MAX_SHIFT - 1; shift > 0; shift--) {
		uint64_t mult = ((NSEC_PER_SEC << shift) + hz / 2) / hz;

		if (mult > UINT32_MAX)
			continue;
		ret->valid = mult != 0;
		ret->time_shift = shift;
		ret->time_mult = (uint32_t)mult;
		ret->time_zero = ns - clock_tsc_to_ns(ret, tsc);
		return;
	}
}

static uint64_t read_tsc(void)
{
	/* RDTSC may execute before earlier instructions (SDM volume 2, RDTSC). */
	_mm_lfence();
	return __rdtsc();
}

/* One moment on two clocks. */
struct pair {
	uint64_t tsc, ns;
};

static struct pair read_pair(clockid_t clock)
{
	struct pair best = {0};
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = read_tsc(), ns = now_ns(clock), after = read_tsc();

		if (after - before >= best_width)
			continue;
		best_width = after - before;
		best = (struct pair){.tsc = before + best_width / 2, .ns = ns};
	}
	return best;
}

/* TSC ticks per second of the clock between two moments. 0: the TSC or the clock stands still, or
 * the moments are more than a second apart. */
static uint64_t ticks_per_second(struct pair from, struct pair to)
{
	uint64_t ticks = to.tsc - from.tsc, ns = to.ns - from.ns;

	if (ns == 0 || ns > NSEC_PER_SEC || ticks > UINT64_MAX / NSEC_PER_SEC)
		return 0;
	return ticks * NSEC_PER_SEC / ns;
}

/* The kernel derives both clocks from the TSC, and corrects MONOTONIC by NTP, so each has its own
 * rate. If the machine was suspended or stopped during a round, the round takes longer than a
 * second and is discarded. */
int clock_calibrate(struct clock_params *ret, uint64_t *ret_hz)
{
	const struct timespec window = {.tv_nsec = CALIBRATION_NSEC};

	for (int i = 0; i < CALIBRATION_ROUNDS; i++) {
		struct pair raw = read_pair(CLOCK_MONOTONIC_RAW);
		struct pair monotonic = read_pair(CLOCK_MONOTONIC);
		struct pair raw_end, monotonic_end;
		uint64_t hz, rate;

		clock_nanosleep(CLOCK_MONOTONIC, 0, &window, NULL);
		raw_end = read_pair(CLOCK_MONOTONIC_RAW);
		monotonic_end = read_pair(CLOCK_MONOTONIC);
		hz = ticks_per_second(raw, raw_end);
		rate = ticks_per_second(monotonic, monotonic_end);
		if (hz == 0 || rate == 0)
			continue;
		clock_make(ret, rate, monotonic_end.tsc, monotonic_end.ns);
		*ret_hz = hz;
		return ret->valid ? 0 : -ERANGE;
	}
	return -EIO;
}

void clock_read(struct clock_now *ret)
{
	uint64_t best_width = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = read_tsc();
		uint64_t realtime = now_ns(CLOCK_REALTIME);
		uint64_t monotonic = now_ns(CLOCK_MONOTONIC);
		uint64_t after = read_tsc();

		if (after - before >= best_width)
			continue;
		best_width = after - before;
		*ret = (struct clock_now){
			.realtime_ns = realtime,
			.monotonic_ns = monotonic,
			.tsc = before + best_width / 2,
		};
	}
}
