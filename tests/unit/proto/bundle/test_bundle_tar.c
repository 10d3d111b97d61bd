#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"

/* The checksum as POSIX defines it, computed from the block alone. */
static unsigned sum_of(const uint8_t *block)
{
	unsigned sum = 0;

	for (size_t i = 0; i < 512; i++)
		sum += i < 148 || i > 155 ? block[i] : (unsigned)' ';
	return sum;
}

static void reseal(uint8_t *block)
{
	unsigned sum = sum_of(block);

	for (size_t i = 0; i < 6; i++)
		block[148 + i] = (uint8_t)('0' + (sum >> (15 - 3 * i) & 7));
}

static void bundle_tar_compose_then_parse_gives_the_same(void **state)
{
	static const uint64_t sizes[] = {
		0,
		1,
		511,
		512,
		(UINT64_C(1) << 33) - 1,
		UINT64_C(1) << 33,
		UINT64_C(64) << 30,
		UINT64_MAX,
	};
	uint8_t block[BUNDLE_BLOCK];
	char name[BUNDLE_NAME_MAX + 1];
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(bundle_tar_compose("images/3", sizes[i], block), 0);
		assert_int_equal(bundle_tar_parse(block, name, &size), 0);
		assert_string_equal(name, "images/3");
		assert_true(size == sizes[i]);
	}
}

static void bundle_tar_compose_is_ustar(void **state)
{
	uint8_t block[BUNDLE_BLOCK], sealed[BUNDLE_BLOCK];

	(void)state;
	assert_int_equal(bundle_tar_compose("cpu0.pt", 01234567, block), 0);
	assert_memory_equal(block, "cpu0.pt\0", 8);
	assert_memory_equal(block + 100, "0000644\0", 8);
	assert_memory_equal(block + 124, "00001234567\0", 12);
	assert_memory_equal(block + 257, "ustar\00000", 8);
	assert_int_equal(block[156], '0');
	memcpy(sealed, block, sizeof(block));
	reseal(sealed);
	assert_memory_equal(sealed, block, sizeof(block));
	assert_memory_equal(block + 154, "\0 ", 2);
}

static void bundle_tar_compose_wrong_name_is_refused(void **state)
{
	uint8_t block[BUNDLE_BLOCK];
	char name[102];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[BUNDLE_NAME_MAX + 1] = 0;
	assert_int_equal(bundle_tar_compose(name, 1, block), -EINVAL);
	assert_int_equal(bundle_tar_compose("", 1, block), -EINVAL);
	assert_int_equal(bundle_tar_compose(name + 1, 1, block), 0);
}

static void bundle_tar_parse_flipped_byte_is_refused_or_the_same(void **state)
{
	uint8_t block[BUNDLE_BLOCK];
	char name[BUNDLE_NAME_MAX + 1];
	uint64_t size;

	(void)state;
	bundle_tar_compose("sideband", 1000, block);
	for (size_t i = 0; i < sizeof(block); i++) {
		for (unsigned bit = 0; bit < 9; bit++) {
			uint8_t mask = (uint8_t)(bit < 8 ? 1u << bit : 0xffu);
			int r;

			block[i] ^= mask;
			r = bundle_tar_parse(block, name, &size);
			/* Only blanks of the sum's own field may differ. */
			assert_true(r == -EBADMSG || (r == 0 && i >= 148 && i < 156));
			if (r == 0)
				assert_true(strcmp(name, "sideband") == 0 && size == 1000);
			block[i] ^= mask;
		}
	}
}

static void bundle_tar_parse_wrong_content_under_a_right_sum_is_refused(void **state)
{
	static const struct {
		size_t at;
		const char *bytes;
		size_t n;
		int expected;
	} cases[] = {
		{156, "5", 1, -EBADMSG},	    /* a directory */
		{156, "2", 1, -EBADMSG},	    /* a symbolic link */
		{257, "ustar  \0", 8, -EBADMSG},    /* GNU's own format */
		{345, "dir", 3, -EBADMSG},	    /* a prefix */
		{0, "\0", 1, -EBADMSG},		    /* no name */
		{124, "0000000100\0\0", 12, 0},	    /* NULs at the end */
		{124, "   0000100 ", 12, 0},	    /* old tars */
		{124, "00000000800", 11, -EBADMSG}, /* not octal */
		{124, "-0000000100", 11, -EBADMSG},
		{124, "            ", 12, -EBADMSG},
		{124, "0x000000100", 11, -EBADMSG},
		{124, "\x80\0\0\1\0\0\0\0\0\0\0\0", 12, -EBADMSG}, /* above 64 bits */
		{124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, -EBADMSG},
		{124, "\x80\0\0\0\0\0\0\0\0\0\0\7", 12, 0},
	};
	uint8_t block[BUNDLE_BLOCK];
	char name[BUNDLE_NAME_MAX + 1];
	uint64_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bundle_tar_compose("sideband", 01000, block);
		memcpy(block + cases[i].at, cases[i].bytes, cases[i].n);
		reseal(block);
		assert_int_equal(bundle_tar_parse(block, name, &size), cases[i].expected);
	}
}

static void bundle_tar_parse_unterminated_name_is_refused(void **state)
{
	uint8_t block[BUNDLE_BLOCK];
	char name[BUNDLE_NAME_MAX + 1];
	uint64_t size;

	(void)state;
	bundle_tar_compose("x", 0, block);
	memset(block, 'x', 100);
	reseal(block);
	assert_int_equal(bundle_tar_parse(block, name, &size), -EBADMSG);
}

static void bundle_tar_parse_zeros_are_the_end(void **state)
{
	const uint8_t block[BUNDLE_BLOCK] = {0};
	char name[BUNDLE_NAME_MAX + 1];
	uint64_t size;

	(void)state;
	assert_int_equal(bundle_tar_parse(block, name, &size), BUNDLE_TAR_ZERO);
}

static void bundle_tar_padding_fills_the_block(void **state)
{
	(void)state;
	assert_int_equal(bundle_tar_padding(0), 0);
	assert_int_equal(bundle_tar_padding(1), 511);
	assert_int_equal(bundle_tar_padding(512), 0);
	assert_int_equal(bundle_tar_padding((UINT64_C(1) << 40) + 513), 511);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bundle_tar_compose_then_parse_gives_the_same),
		cmocka_unit_test(bundle_tar_compose_is_ustar),
		cmocka_unit_test(bundle_tar_compose_wrong_name_is_refused),
		cmocka_unit_test(bundle_tar_parse_flipped_byte_is_refused_or_the_same),
		cmocka_unit_test(bundle_tar_parse_wrong_content_under_a_right_sum_is_refused),
		cmocka_unit_test(bundle_tar_parse_unterminated_name_is_refused),
		cmocka_unit_test(bundle_tar_parse_zeros_are_the_end),
		cmocka_unit_test(bundle_tar_padding_fills_the_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
