#include "decoder/packet/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void fault_name_every_fault_is_found_by_its_name(void **state)
{
	(void)state;
	for (int i = 1; i < FAULT_N_; i++) {
		assert_non_null(fault_name((enum fault)i));
		assert_int_equal(fault_by_name(fault_name((enum fault)i)), i);
		assert_true(strlen(fault_why((enum fault)i)) > 10);
	}
}

static void fault_by_name_unknown_is_none(void **state)
{
	(void)state;
	assert_int_equal(fault_by_name("no such fault"), FAULT_NONE);
	assert_int_equal(fault_by_name(""), FAULT_NONE);
}

static void fault_name_out_of_range_is_unknown(void **state)
{
	(void)state;
	assert_string_equal(fault_name(FAULT_N_), "unknown");
	assert_string_equal(fault_name((enum fault)1000), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault_name_every_fault_is_found_by_its_name),
		cmocka_unit_test(fault_by_name_unknown_is_none),
		cmocka_unit_test(fault_name_out_of_range_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
