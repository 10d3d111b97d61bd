/*
 * Token buckets, with a clock of the test's own.
 */
#include "daemon/base/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEC 1000000ull

static void take(struct bucket *b, unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(bucket_wait(b, now), 0);
		bucket_take(b, now);
	}
}

static void bucket_wait_of_a_drained_one_is_the_time_to_the_next_token(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 3, 30 * SEC, 100 * SEC);
	take(&b, 3, 100 * SEC);
	assert_int_equal(bucket_wait(&b, 100 * SEC), 10 * SEC);
	assert_int_equal(bucket_wait(&b, 109 * SEC), SEC);
	take(&b, 1, 110 * SEC);
	assert_int_equal(bucket_wait(&b, 110 * SEC), 10 * SEC);
}

static void bucket_wait_never_saves_more_than_a_burst(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 2, 10 * SEC, 0);
	take(&b, 2, 1000000 * SEC);
	assert_int_equal(bucket_wait(&b, 1000000 * SEC), 5 * SEC);
}

static void bucket_wait_over_a_long_time_grants_the_rate(void **state)
{
	struct bucket b;
	unsigned n = 0;

	(void)state;
	bucket_init(&b, 7, 10 * SEC, 0);
	/* Asking often loses nothing to rounding. */
	for (uint64_t now = 0; now <= 1000 * SEC; now += 777)
		if (bucket_wait(&b, now) == 0) {
			bucket_take(&b, now);
			n++;
		}
	assert_in_range(n, 7 + 699, 7 + 700);
}

static void bucket_take_without_a_token_changes_nothing(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 1, 10 * SEC, 0);
	take(&b, 1, 0);
	for (int i = 0; i < 100; i++)
		bucket_take(&b, 9 * SEC);
	assert_int_equal(bucket_wait(&b, 10 * SEC), 0);
}

static void bucket_wait_without_a_limit_is_nothing(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 0, SEC, 0);
	take(&b, 1000, 0);
	bucket_init(&b, 5, 0, 0);
	take(&b, 1000, 0);
	assert_int_equal(bucket_tokens(&b, 0), UINT32_MAX);
}

static void bucket_wait_with_a_clock_that_goes_back_gives_nothing_away(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 1, 10 * SEC, 100 * SEC);
	take(&b, 1, 100 * SEC);
	assert_int_equal(bucket_wait(&b, 5 * SEC), 10 * SEC);
	assert_int_equal(bucket_wait(&b, 105 * SEC), 5 * SEC);
}

static void bucket_init_with_extremes_does_not_overflow(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, UINT32_MAX, 1, 0);
	take(&b, 5, 0);
	bucket_init(&b, 1, UINT64_MAX, 0);
	take(&b, 1, UINT64_MAX);
	assert_int_equal(bucket_wait(&b, UINT64_MAX), UINT64_MAX);
	bucket_change(&b, UINT32_MAX, UINT64_MAX, UINT64_MAX);
	bucket_change(&b, 1, 1, UINT64_MAX);
	bucket_take(&b, UINT64_MAX);
}

static void bucket_change_keeps_the_tokens(void **state)
{
	struct bucket b;

	(void)state;
	bucket_init(&b, 4, 4 * SEC, 0);
	take(&b, 2, 0);
	bucket_change(&b, 10, 100 * SEC, 0);
	assert_int_equal(bucket_tokens(&b, 0), 2);
	bucket_change(&b, 1, 1 * SEC, 0);
	assert_int_equal(bucket_tokens(&b, 0), 1);
	bucket_change(&b, 0, 0, 0);
	take(&b, 50, 0);
	bucket_change(&b, 3, SEC, 0); /* nothing was counted before, so it is full */
	assert_int_equal(bucket_tokens(&b, 0), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bucket_wait_of_a_drained_one_is_the_time_to_the_next_token),
		cmocka_unit_test(bucket_wait_never_saves_more_than_a_burst),
		cmocka_unit_test(bucket_wait_over_a_long_time_grants_the_rate),
		cmocka_unit_test(bucket_take_without_a_token_changes_nothing),
		cmocka_unit_test(bucket_wait_without_a_limit_is_nothing),
		cmocka_unit_test(bucket_wait_with_a_clock_that_goes_back_gives_nothing_away),
		cmocka_unit_test(bucket_init_with_extremes_does_not_overflow),
		cmocka_unit_test(bucket_change_keeps_the_tokens),
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
