/*
 * capture/ring/clock: the kernel's formula, its inverse, the choice of parameters, this host's TSC.
 */
#include "capture/ring/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "proto/base.h"

#define GHZ 1000000000ull

static const uint64_t frequencies[] = {
	1000,	    32768,	19200000,   24000000,	999999999, GHZ,	     1000000001, 1896000000,
	2793438000, 3600000000, 4294967295, 4294967297, 5 * GHZ,   10 * GHZ, 999 * GHZ,
};
static const uint64_t ticks[] = {
	0, 1, 2, 1000, 1234567, 1ull << 31, 1ull << 32, 123456789012345, 1ull << 50};

static void clock_tsc_to_ns_follows_the_documented_formula(void **state)
{
	static const struct {
		uint16_t shift;
		uint32_t mult;
		uint64_t zero, tsc, ns;
	} cases[] = {
		{0, 1, 0, 77, 77},
		{1, 3, 100, 5, 107},
		{31, 1u << 31, 5, 1ull << 60, (1ull << 60) + 5},
		{10, 512, UINT64_MAX - 9, 40, 10},
		/* The parameters of the kernel on a 2.8 GHz machine. */
		{31, 766958445, 0, 2800000000, 999999999},
		{31, 766958445, 0, 1ull << 62, 766958445ull << 31},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct clock_params c = {.valid = true,
					 .time_shift = cases[i].shift,
					 .time_mult = cases[i].mult,
					 .time_zero = cases[i].zero};

		assert_int_equal(clock_tsc_to_ns(&c, cases[i].tsc), cases[i].ns);
	}
}

static void clock_ns_to_tsc_is_the_inverse_to_one_tick(void **state)
{
	static const uint64_t zeros[] = {0, 1700000000000000000ull, -5000000000ull};

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(frequencies); f++) {
		for (size_t z = 0; z < ARRAY_SIZE(zeros) * ARRAY_SIZE(ticks); z++) {
			uint64_t tick = ticks[z / ARRAY_SIZE(zeros)], ns, back;
			/* One tick, or the ticks in the nanosecond that was rounded off. */
			uint64_t slack = frequencies[f] / GHZ + 1;
			struct clock_params c;

			clock_make(&c, frequencies[f], 0, zeros[z % ARRAY_SIZE(zeros)]);
			if (tick > (1ull << 40) && frequencies[f] < GHZ / 1000)
				continue; /* beyond 292 years */
			ns = clock_tsc_to_ns(&c, tick);
			back = clock_ns_to_tsc(&c, ns);
			assert_in_range(back, tick > slack ? tick - slack : 0, tick);
			/* The result is rounded down: it is not later than NS, and the next tick is
			 * later. */
			assert_true(clock_tsc_to_ns(&c, back) - c.time_zero <= ns - c.time_zero);
			assert_true(clock_tsc_to_ns(&c, back + 1) - c.time_zero >=
				    ns - c.time_zero);
		}
	}
}

static void clock_ns_to_tsc_before_tsc_0_is_0(void **state)
{
	struct clock_params c;

	(void)state;
	clock_make(&c, 2 * GHZ, 0, 1000);
	assert_int_equal(clock_ns_to_tsc(&c, 1000), 0);
	assert_int_equal(clock_ns_to_tsc(&c, 999), 0);
	assert_int_equal(clock_ns_to_tsc(&c, 0), 0);
	assert_int_equal(clock_ns_to_tsc(&c, 1001), 2);
}

/* A virtual machine's TSC may be older than its clocks. Then time_zero is negative. */
static void clock_make_tsc_older_than_the_clock_converts_both_ways(void **state)
{
	struct clock_params c;

	(void)state;
	clock_make(&c, 2 * GHZ, 1000000 * GHZ, 5);
	assert_int_equal(clock_tsc_to_ns(&c, 1000000 * GHZ), 5);
	assert_int_equal(clock_tsc_to_ns(&c, 1000000 * GHZ + 20), 15);
	assert_int_equal(clock_ns_to_tsc(&c, 15), 1000000 * GHZ + 20);
	assert_int_equal(clock_ns_to_tsc(&c, 0), 1000000 * GHZ - 10);
}

static void clock_make_anchor_and_rate_are_right(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(frequencies); f++) {
		uint64_t hz = frequencies[f], tsc = 77 * hz, second;
		struct clock_params c;

		clock_make(&c, hz, tsc, 123456789);
		assert_true(c.valid);
		assert_in_range(c.time_shift, 1, 31);
		assert_int_equal(clock_tsc_to_ns(&c, tsc), 123456789);
		/* For these frequencies mult has at least 22 bits, so the error is below a
		 * millionth. */
		second = clock_tsc_to_ns(&c, tsc + 1000 * hz) - 123456789;
		assert_in_range(second, 1000 * GHZ - 1000000, 1000 * GHZ + 1000000);
	}
}

/* If a larger shift had a mult that fits, precision would be lost. */
static void clock_make_shift_is_the_largest_whose_mult_fits(void **state)
{
	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(frequencies); f++) {
		struct clock_params c;
		unsigned __int128 next;

		clock_make(&c, frequencies[f], 0, 0);
		next = (((unsigned __int128)GHZ << (c.time_shift + 1)) + frequencies[f] / 2) /
		       frequencies[f];
		assert_true(c.time_shift == 31 || next > UINT32_MAX);
		/* The mult is the nearest one. */
		next = (unsigned __int128)GHZ << c.time_shift;
		assert_true(2 * (unsigned __int128)c.time_mult * frequencies[f] + frequencies[f] >=
			    2 * next);
		assert_true(2 * (unsigned __int128)c.time_mult * frequencies[f] <=
			    2 * next + frequencies[f]);
	}
}

static void clock_make_impossible_frequency_is_not_valid(void **state)
{
	struct clock_params c;

	(void)state;
	clock_make(&c, 0, 0, 0);
	assert_false(c.valid);
	clock_make(&c, UINT64_MAX, 0, 0);
	assert_false(c.valid);
}

static void clock_tsc_to_ns_unusable_parameters_give_0(void **state)
{
	static const struct clock_params bad[] = {
		{.valid = false, .time_shift = 1, .time_mult = 1, .time_zero = 9},
		{.valid = true, .time_shift = 1, .time_mult = 0, .time_zero = 9},
		{.valid = true, .time_shift = 33, .time_mult = 1, .time_zero = 9},
		{.valid = true, .time_shift = 65535, .time_mult = 1, .time_zero = 9},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(clock_tsc_to_ns(&bad[i], 1000), 0);
		assert_int_equal(clock_ns_to_tsc(&bad[i], 1000), 0);
	}
}

static void clock_calibrate_runs_with_monotonic(void **state)
{
	struct clock_params c;
	struct clock_now now;
	uint64_t hz, ns;

	(void)state;
	assert_int_equal(clock_calibrate(&c, &hz), 0);
	assert_true(c.valid);
	assert_in_range(hz, 100000000, 10 * GHZ);
	clock_read(&now);
	ns = clock_tsc_to_ns(&c, now.tsc);
	/* 0.1 ms: a busy machine may take so long between the calibration's reads and ours. */
	assert_in_range(ns, now.monotonic_ns - 100000, now.monotonic_ns + 100000);
}

static void clock_read_times_go_on(void **state)
{
	struct clock_now first, second;

	(void)state;
	clock_read(&first);
	clock_read(&second);
	assert_true(second.tsc > first.tsc);
	assert_true(second.monotonic_ns >= first.monotonic_ns);
	assert_true(first.realtime_ns > 1500000000ull * GHZ);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock_tsc_to_ns_follows_the_documented_formula),
		cmocka_unit_test(clock_ns_to_tsc_is_the_inverse_to_one_tick),
		cmocka_unit_test(clock_ns_to_tsc_before_tsc_0_is_0),
		cmocka_unit_test(clock_make_tsc_older_than_the_clock_converts_both_ways),
		cmocka_unit_test(clock_make_anchor_and_rate_are_right),
		cmocka_unit_test(clock_make_shift_is_the_largest_whose_mult_fits),
		cmocka_unit_test(clock_make_impossible_frequency_is_not_valid),
		cmocka_unit_test(clock_tsc_to_ns_unusable_parameters_give_0),
		cmocka_unit_test(clock_calibrate_runs_with_monotonic),
		cmocka_unit_test(clock_read_times_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
