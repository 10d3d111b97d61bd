#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/bytes.h"

static void bytes_get_numbers_are_little_endian(void **state)
{
	static const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	struct bytes_in in;

	(void)state;
	bytes_in_init(&in, data, sizeof(data));
	assert_int_equal(bytes_get_u8(&in), 1);
	assert_int_equal(bytes_get_u16(&in), 0x0302);
	assert_int_equal(bytes_get_u32(&in), 0x07060504);
	assert_true(bytes_get_u64(&in) == UINT64_C(0x0f0e0d0c0b0a0908));
	assert_int_equal(bytes_in_left(&in), 0);
	assert_false(in.bad);
}

static void bytes_get_beyond_the_end_is_zero_and_stays_bad(void **state)
{
	static const uint8_t data[] = {0xff, 0xff, 0xff};
	struct bytes_in in;

	(void)state;
	bytes_in_init(&in, data, sizeof(data));
	assert_int_equal(bytes_get_u32(&in), 0);
	assert_true(in.bad);
	assert_int_equal(bytes_get_u8(&in), 0);
	assert_int_equal(bytes_in_left(&in), 0);
	assert_null(bytes_get_block(&in, 0));
}

static void bytes_get_from_nothing_is_bad(void **state)
{
	struct bytes_in in;

	(void)state;
	bytes_in_init(&in, NULL, 0);
	assert_int_equal(bytes_in_left(&in), 0);
	assert_non_null(bytes_get_block(&in, 0));
	assert_false(in.bad);
	assert_null(bytes_get_block(&in, SIZE_MAX));
	assert_true(in.bad);
}

static void bytes_get_string_needs_its_nul_within_the_field(void **state)
{
	static const struct {
		const char *data;
		size_t available, field;
		const char *expected; /* NULL: bad */
		size_t left;
	} cases[] = {
		{"ab\0\0rest", 8, 4, "ab", 4}, {"abcd", 4, 4, NULL, 0}, {"abcd", 5, 4, NULL, 0},
		{"abcd", 5, 5, "abcd", 0},     {"", 1, 1, "", 0},	{"", 1, 0, NULL, 0},
		{"abc", 4, 5, NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes_in in;
		const char *s;

		bytes_in_init(&in, cases[i].data, cases[i].available);
		s = bytes_get_string(&in, cases[i].field);
		assert_int_equal(in.bad, !cases[i].expected);
		assert_int_equal(bytes_in_left(&in), cases[i].left);
		if (cases[i].expected)
			assert_string_equal(s, cases[i].expected);
		else
			assert_null(s);
	}
}

static void bytes_put_then_get_gives_the_same(void **state)
{
	struct bytes_out out;
	struct bytes_in in;

	(void)state;
	bytes_out_init(&out, 1000);
	bytes_put_u8(&out, 0x12);
	bytes_put_u16(&out, 0x3456);
	bytes_put_u32(&out, 0x789abcde);
	bytes_put_u64(&out, UINT64_C(0xfedcba9876543210));
	bytes_put_block(&out, "text", 5);
	assert_int_equal(out.error, 0);
	assert_int_equal(out.size, 20);
	assert_int_equal(out.data[1], 0x56);
	bytes_in_init(&in, out.data, out.size);
	assert_int_equal(bytes_get_u8(&in), 0x12);
	assert_int_equal(bytes_get_u16(&in), 0x3456);
	assert_int_equal(bytes_get_u32(&in), 0x789abcde);
	assert_true(bytes_get_u64(&in) == UINT64_C(0xfedcba9876543210));
	assert_string_equal(bytes_get_string(&in, 5), "text");
	bytes_out_done(&out);
}

static void bytes_put_up_to_the_limit_fits_exactly(void **state)
{
	struct bytes_out out;

	(void)state;
	bytes_out_init(&out, 1000);
	for (unsigned i = 0; i < 1000; i++)
		bytes_put_u8(&out, (uint8_t)i);
	assert_int_equal(out.error, 0);
	assert_int_equal(out.size, 1000);
	assert_true(out.capacity <= 1000);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(out.data[i], (uint8_t)i);
	bytes_put_u8(&out, 0);
	assert_int_equal(out.error, -E2BIG);
	bytes_out_done(&out);
}

static void bytes_put_beyond_the_limit_fails_until_reset(void **state)
{
	struct bytes_out out;

	(void)state;
	bytes_out_init(&out, 10);
	bytes_put_u64(&out, 1);
	bytes_put_u32(&out, 2);
	assert_int_equal(out.error, -E2BIG);
	assert_int_equal(out.size, 8);
	bytes_put_u8(&out, 3);
	assert_int_equal(out.size, 8);
	assert_null(bytes_put_space(&out, 1));
	bytes_out_reset(&out);
	assert_int_equal(out.error, 0);
	assert_non_null(bytes_put_space(&out, 10));
	assert_int_equal(out.size, 10);
	assert_null(bytes_put_space(&out, SIZE_MAX));
	assert_int_equal(out.error, -E2BIG);
	bytes_out_done(&out);
}

static void bytes_out_reset_keeps_the_memory(void **state)
{
	struct bytes_out out;
	uint8_t *before;

	(void)state;
	bytes_out_init(&out, SIZE_MAX);
	before = bytes_put_space(&out, 5000);
	bytes_out_reset(&out);
	assert_ptr_equal(bytes_put_space(&out, 5000), before);
	bytes_out_done(&out);
	assert_null(out.data);
	assert_int_equal(out.size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_get_numbers_are_little_endian),
		cmocka_unit_test(bytes_get_beyond_the_end_is_zero_and_stays_bad),
		cmocka_unit_test(bytes_get_from_nothing_is_bad),
		cmocka_unit_test(bytes_get_string_needs_its_nul_within_the_field),
		cmocka_unit_test(bytes_put_then_get_gives_the_same),
		cmocka_unit_test(bytes_put_up_to_the_limit_fits_exactly),
		cmocka_unit_test(bytes_put_beyond_the_limit_fails_until_reset),
		cmocka_unit_test(bytes_out_reset_keeps_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
