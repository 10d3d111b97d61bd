#include "decoder/packet/packet.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PSB    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define TSC(n) "\x19" n "\x00\x00\x00\x00\x00\x00"
#define PSBEND "\x02\x23"

static void check_find(const char *bytes, size_t size, long at)
{
	const uint8_t *pos = (const uint8_t *)bytes, *found = sync_find(pos, pos + size);

	if (at < 0)
		assert_null(found);
	else
		assert_ptr_equal(found, pos + at);
}

static void sync_find_psb_is_found_wherever_it_begins(void **state)
{
	(void)state;
	check_find(PSB, 16, 0);
	check_find("\x00\x06" PSB "\x00", 19, 2);
	check_find(PSB, 15, -1);
	check_find("", 0, -1);
	check_find("\x82" PSB, 17, 1);
}

static void sync_find_payload_before_it_that_looks_alike_is_skipped(void **state)
{
	(void)state;
	/* A TIP whose last two bytes are 02 82. */
	check_find("\x4d\x01\x01\x02\x82" PSB PSBEND, 23, 5);
}

static void sync_tsc_only_of_its_own_psb(void **state)
{
	static const char with[] = PSB TSC("\x07") PSBEND, without[] = PSB PSBEND TSC("\x07");
	const uint8_t *pos = (const uint8_t *)with;
	uint64_t tsc = 0;

	(void)state;
	assert_true(sync_tsc(pos, pos + sizeof(with) - 1, &tsc));
	assert_int_equal(tsc, 7);
	assert_false(sync_tsc(pos, pos + 20, &tsc));
	pos = (const uint8_t *)without;
	assert_false(sync_tsc(pos, pos + sizeof(without) - 1, &tsc));
}

static void sync_find_tsc_first_that_is_late_enough(void **state)
{
	static const char bytes[] = PSB TSC("\x05") PSBEND PSB TSC("\x09") PSBEND;
	const uint8_t *pos = (const uint8_t *)bytes, *end = pos + sizeof(bytes) - 1;

	(void)state;
	assert_ptr_equal(sync_find_tsc(pos, end, 5), pos);
	assert_ptr_equal(sync_find_tsc(pos, end, 6), pos + 26);
	assert_null(sync_find_tsc(pos, end, 10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sync_find_psb_is_found_wherever_it_begins),
		cmocka_unit_test(sync_find_payload_before_it_that_looks_alike_is_skipped),
		cmocka_unit_test(sync_tsc_only_of_its_own_psb),
		cmocka_unit_test(sync_find_tsc_first_that_is_late_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
