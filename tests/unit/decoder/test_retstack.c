#include "decoder/retstack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void retstack_pop_empty_fails(void **state)
{
	struct retstack s = {0};
	uint64_t a;

	(void)state;
	assert_false(retstack_pop(&s, &a));
	retstack_push(&s, 1);
	retstack_clear(&s);
	assert_false(retstack_pop(&s, &a));
}

static void retstack_pop_gives_newest_first(void **state)
{
	struct retstack s = {0};
	uint64_t a;

	(void)state;
	for (uint64_t i = 0; i < PT_RET_STACK; i++)
		retstack_push(&s, i);
	for (uint64_t i = PT_RET_STACK; i > 0; i--) {
		assert_true(retstack_pop(&s, &a));
		assert_int_equal(a, i - 1);
	}
	assert_false(retstack_pop(&s, &a));
}

static void retstack_push_65th_drops_the_oldest(void **state)
{
	struct retstack s = {0};
	uint64_t a = 0;

	(void)state;
	for (uint64_t i = 0; i <= PT_RET_STACK; i++)
		retstack_push(&s, i);
	for (unsigned int i = 0; i < PT_RET_STACK; i++)
		assert_true(retstack_pop(&s, &a));
	assert_int_equal(a, 1);
	assert_false(retstack_pop(&s, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retstack_pop_empty_fails),
		cmocka_unit_test(retstack_pop_gives_newest_first),
		cmocka_unit_test(retstack_push_65th_drops_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
