/*
 * The perf clock: TSC ticks turned into nanoseconds by multiplication and shift, as the kernel does
 * for its own. For the software PMU we choose the parameters ourselves, so that the perf clock runs
 * with CLOCK_MONOTONIC and the times in a report agree with those of its records. Called by the
 * sources when they open, and by the recorder at every trigger.
 */
#include "capture/ring/clock.h"

#include <errno.h>
#include <time.h>

#include <x86intrin.h>

#include "proto/base.h"

#define NSEC_PER_SEC 1000000000ull
/* cap_user_time in include/uapi/linux/perf_event.h promises less; older kernels gave 32. */
#define MAX_SHIFT 32
/* Reads of which the fastest is taken: an interrupt or a VM exit in between spoils one. */
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
	/* time_zero is below zero (wrapped) where the TSC is older than the clock: a VM's is. */
	uint64_t since = ns - c->time_zero;

	if (!usable(c) || since > INT64_MAX)
		return 0;
	return ((since / c->time_mult) << c->time_shift) +
	       ((since % c->time_mult) << c->time_shift) / c->time_mult;
}

/* kernel/time/clocksource.c, clocks_calc_mult_shift with maxsec 0: the largest shift whose mult
 * fits 32 bits; and arch/x86/kernel/tsc.c, set_cyc2ns_scale: a shift of 32 is not for user space.
 * The documented formula then cannot overflow before the nanoseconds do. */
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
	/* RDTSC is not ordered with earlier instructions (SDM volume 2, RDTSC). */
	_mm_lfence();
	return __rdtsc();
}

/* One moment on CLOCK and the TSC. */
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

/* Ticks a second of CLOCK between two moments; 0: the TSC or the clock does not run. */
static uint64_t ticks_per_second(struct pair from, struct pair to)
{
	uint64_t ticks = to.tsc - from.tsc, ns = to.ns - from.ns;

	if (ns == 0 || ns > NSEC_PER_SEC || ticks > UINT64_MAX / NSEC_PER_SEC)
		return 0;
	return ticks * NSEC_PER_SEC / ns;
}

/* Both clocks are the TSC scaled by the kernel, MONOTONIC with NTP's correction on top, so each has
 * its own rate. A window in which the machine was suspended or stopped is longer than a second and
 * is thrown away. */
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
