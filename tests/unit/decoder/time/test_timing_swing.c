/*
 * How far a clock swings (decoder/time/timing_cycles.c), from points on a line and off the line.
 * The ratio is 10: 1000 ticks are a microsecond, and no clock swings by more than 25 ticks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decoder/time/timing_private.h"

#define RATIO  10u
#define WIDEST 25u
#define MICRO  UINT64_C(1000)

struct clock {
	struct timing t;
	uint64_t tsc, offset;
};

static struct clock started(void)
{
	struct clock c = {.t.config.max_nonturbo_ratio = RATIO, .tsc = MICRO};

	timing_swing_restart(&c.t, c.tsc);
	return c;
}

/* Adds a point TICKS later, with two cycles for each tick, but OFF ticks late. */
static void point(struct clock *c, uint64_t ticks, uint64_t off)
{
	c->tsc += ticks;
	c->offset += 100;
	timing_swing_point(&c->t, c->tsc + off, 2 * (c->tsc - MICRO), c->offset);
}

/* Adds N points, at distances that differ from one to the next. */
static void irregular(struct clock *c, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		point(c, i % 2 == 0 ? 50 * MICRO : 60 * MICRO, 0);
}

static void timing_swing_without_points_is_the_widest(void **state)
{
	struct clock c = started();

	(void)state;
	assert_int_equal(timing_swing(&c.t), WIDEST);
	assert_false(timing_swing_known(&c.t));
}

static void timing_swing_of_many_on_a_line_is_small(void **state)
{
	struct clock c = started();

	(void)state;
	irregular(&c, 24);
	assert_int_equal(timing_swing(&c.t), WIDEST);
	irregular(&c, 1);
	assert_true(timing_swing_known(&c.t));
	assert_int_equal(timing_swing(&c.t), 8);
}

static void timing_swing_of_regular_distances_is_the_widest(void **state)
{
	struct clock c = started();

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		point(&c, 64 * MICRO + i % 3 * MICRO, 0);
	assert_int_equal(timing_swing(&c.t), WIDEST);
}

/* The good distances (13 us, 20 us) are no multiples of half a period, which is 15.2 to 16.7 us. */
static void timing_swing_of_regular_distances_that_go_round_is_small(void **state)
{
	static const uint64_t good[] = {8, 13, 14, 18, 20, 23}, bad[] = {15, 16, 17, 24, 26, 31};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct clock c = started(), d = started();

		for (unsigned int n = 0; n < 25; n++) {
			point(&c, good[i] * MICRO, 0);
			point(&d, bad[i] * MICRO, 0);
		}
		assert_int_equal(timing_swing(&c.t), 8);
		assert_int_equal(timing_swing(&d.t), WIDEST);
	}
}

static void timing_swing_of_a_short_beside_a_long_distance_is_the_widest(void **state)
{
	struct clock c = started();

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		point(&c, i % 2 == 0 ? 64 * MICRO : 200 * MICRO, 0);
	assert_int_equal(timing_swing(&c.t), WIDEST);
}

static void timing_swing_point_too_near_is_passed_by(void **state)
{
	struct clock c = started();

	(void)state;
	for (unsigned int i = 0; i < 75; i++)
		point(&c, 3 * MICRO, i % 3 == 2 ? 0 : 700);
	assert_int_equal(c.t.swing.worst, 0);
	assert_int_equal(timing_swing(&c.t), 8);
}

static void timing_swing_of_points_off_the_line_is_wider(void **state)
{
	struct clock c = started();

	(void)state;
	irregular(&c, 10);
	point(&c, 50 * MICRO, 1);
	irregular(&c, 16);
	assert_int_equal(c.t.swing.worst, 1);
	assert_int_equal(timing_swing(&c.t), 16);
	point(&c, 50 * MICRO, 300);
	irregular(&c, 2);
	assert_int_equal(timing_swing(&c.t), WIDEST);
}

static void timing_swing_restart_begins_another_line(void **state)
{
	struct clock c = started();

	(void)state;
	irregular(&c, 14);
	timing_swing_restart(&c.t, 9999 * MICRO);
	for (uint64_t i = 3; i < 15; i++)
		timing_swing_point(&c.t, 9999 * MICRO + i * i * 3 * MICRO, i * i * 7 * MICRO,
				   10000 + i);
	assert_int_equal(c.t.swing.seen, 13 + 11);
	assert_int_equal(c.t.swing.worst, 0);
}

static void timing_swing_counted_ahead_is_not_counted_again(void **state)
{
	struct clock c = started();

	(void)state;
	c.t.swing.until = 2000;
	irregular(&c, 40);
	assert_int_equal(c.t.swing.seen, 20);
	assert_int_equal(timing_swing(&c.t), WIDEST);
}

static void timing_swing_without_ratio_takes_nothing(void **state)
{
	struct clock c = started();

	(void)state;
	c.t.config.max_nonturbo_ratio = 0;
	irregular(&c, 40);
	assert_int_equal(c.t.swing.seen, 0);
	assert_true(timing_swing_known(&c.t));
}

static void timing_swing_of_numbers_that_go_back_or_overflow_takes_nothing(void **state)
{
	struct clock c = started();

	(void)state;
	irregular(&c, 2);
	timing_swing_point(&c.t, 0, 400 * MICRO, 1);
	timing_swing_point(&c.t, UINT64_MAX, 1, 1);
	timing_swing_point(&c.t, 170 * MICRO, 100 * MICRO, 1);
	assert_int_equal(c.t.swing.worst, 0);
	timing_swing_point(&c.t, UINT64_MAX, UINT64_MAX, 1);
	timing_swing_point(&c.t, UINT64_MAX, UINT64_MAX, 1);
	assert_int_equal(timing_swing(&c.t), WIDEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timing_swing_without_points_is_the_widest),
		cmocka_unit_test(timing_swing_of_many_on_a_line_is_small),
		cmocka_unit_test(timing_swing_of_regular_distances_is_the_widest),
		cmocka_unit_test(timing_swing_of_regular_distances_that_go_round_is_small),
		cmocka_unit_test(timing_swing_of_a_short_beside_a_long_distance_is_the_widest),
		cmocka_unit_test(timing_swing_point_too_near_is_passed_by),
		cmocka_unit_test(timing_swing_of_points_off_the_line_is_wider),
		cmocka_unit_test(timing_swing_restart_begins_another_line),
		cmocka_unit_test(timing_swing_counted_ahead_is_not_counted_again),
		cmocka_unit_test(timing_swing_without_ratio_takes_nothing),
		cmocka_unit_test(timing_swing_of_numbers_that_go_back_or_overflow_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
