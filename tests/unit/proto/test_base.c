/*
 * proto/base.h: growing arrays, binary search, clocks.
 */
#include "proto/base.h"

#include <stdarg.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

struct numbers {
	uint64_t *list;
	size_t n, capacity;
};

static void an_array_grows_by_doubling(void **state)
{
	struct numbers a = {0};
	size_t changes = 0;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		size_t before = a.capacity;

		assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, a.n + 1), 0);
		assert_true(a.capacity > a.n);
		assert_true(a.capacity == before || a.capacity >= 2 * before);
		changes += a.capacity != before;
		a.list[a.n++] = i;
	}
	assert_int_equal(a.capacity, 1024);
	assert_int_equal(changes, 9);
	for (size_t i = 0; i < a.n; i++)
		assert_int_equal(a.list[i], i);
	free(a.list);
}

static void an_array_has_room_for_many_at_once(void **state)
{
	struct numbers a = {0};

	(void)state;
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, 0), 0);
	assert_null(a.list);
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, 1000), 0);
	assert_int_equal(a.capacity, 1024);
	memset(a.list, 1, 1000 * sizeof(*a.list));
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, 1024), 0);
	assert_int_equal(a.capacity, 1024);
	free(a.list);
}

static void an_array_that_cannot_grow_stays(void **state)
{
	struct numbers a = {0};
	uint64_t *before;
	volatile size_t most = SIZE_MAX; /* the compiler refuses what it can see */

	(void)state;
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, 4), 0);
	a.list[3] = 42;
	before = a.list;
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, most), -ENOMEM);
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, most / 2), -ENOMEM);
	assert_int_equal(ARRAY_RESERVE(a.list, a.capacity, most / 8), -ENOMEM);
	assert_int_equal(ARRAY_FIT(a.list, most), -ENOMEM);
	assert_ptr_equal(a.list, before);
	assert_int_equal(a.capacity, 4);
	assert_int_equal(a.list[3], 42);
	free(a.list);
}

static void a_capacity_never_exceeds_its_type(void **state)
{
	char *list = NULL;
	uint8_t capacity = 0;

	(void)state;
	assert_int_equal(ARRAY_RESERVE(list, capacity, 128), 0);
	assert_int_equal(capacity, 128);
	assert_int_equal(ARRAY_RESERVE(list, capacity, 129), -ENOMEM);
	assert_int_equal(capacity, 128);
	list[127] = 1;
	free(list);
}

static void an_array_without_capacity_grows(void **state)
{
	uint32_t *list = NULL;

	(void)state;
	for (uint32_t n = 0; n < 100; n++) {
		assert_int_equal(ARRAY_EXTEND(list, n), 0);
		list[n] = n;
	}
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void memory_is_made_to_fit(void **state)
{
	uint32_t *list = NULL;

	(void)state;
	assert_int_equal(ARRAY_FIT(list, 3), 0);
	list[2] = 7;
	list[0] = 5;
	assert_int_equal(ARRAY_FIT(list, 1), 0);
	assert_int_equal(list[0], 5);
	assert_int_equal(ARRAY_FIT(list, 0), 0);
	assert_non_null(list);
	free(list);
}

static void the_first_one_is_found(void **state)
{
	static const unsigned list[] = {1, 3, 3, 3, 7, 9};

	(void)state;
	for (size_t n = 0; n <= ARRAY_SIZE(list); n++)
		for (unsigned value = 0; value <= 10; value++) {
			size_t at = 0;

			while (at < n && list[at] < value)
				at++;
			assert_int_equal(FIRST_WHERE(i, n, list[i] >= value), at);
		}
}

static void an_index_has_the_type_of_the_number(void **state)
{
	const uint32_t n = UINT32_MAX;

	(void)state;
	assert_int_equal(sizeof(FIRST_WHERE(i, n, i > 5)), sizeof(uint32_t));
	assert_int_equal(FIRST_WHERE(i, n, i > 4000000000u), 4000000001u);
	assert_int_equal(FIRST_WHERE(i, n, false), UINT32_MAX);
	assert_int_equal(FIRST_WHERE(i, SIZE_MAX, i >= SIZE_MAX - 1), SIZE_MAX - 1);
}

static void clocks_tell_the_time(void **state)
{
	struct timespec t;
	uint64_t ns = now_ns(CLOCK_MONOTONIC), usec = now_usec(CLOCK_MONOTONIC), then;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &t);
	then = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	assert_true(ns / 1000 <= usec);
	assert_true(ns <= then && usec <= then / 1000);
	assert_int_equal(now_ns(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_grows_by_doubling),
		cmocka_unit_test(an_array_has_room_for_many_at_once),
		cmocka_unit_test(an_array_that_cannot_grow_stays),
		cmocka_unit_test(a_capacity_never_exceeds_its_type),
		cmocka_unit_test(an_array_without_capacity_grows),
		cmocka_unit_test(memory_is_made_to_fit),
		cmocka_unit_test(the_first_one_is_found),
		cmocka_unit_test(an_index_has_the_type_of_the_number),
		cmocka_unit_test(clocks_tell_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
