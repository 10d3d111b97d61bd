#include "decoder/code/retstack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void retstack_pop_empty_fails(void **state)
{
	struct retstack s = {0};
	struct retstack_entry a;

	(void)state;
	assert_false(retstack_pop(&s, &a));
	retstack_push(&s, 1);
	retstack_clear(&s);
	assert_false(retstack_pop(&s, &a));
}

static void retstack_pop_gives_newest_first(void **state)
{
	struct retstack s = {0};
	struct retstack_entry a;

	(void)state;
	for (uint64_t i = 0; i < PT_RET_STACK; i++)
		retstack_push(&s, i);
	for (uint64_t i = PT_RET_STACK; i > 0; i--) {
		assert_true(retstack_pop(&s, &a));
		assert_int_equal(a.where, i - 1);
	}
	assert_false(retstack_pop(&s, &a));
}

static void retstack_push_65th_drops_the_oldest(void **state)
{
	struct retstack s = {0};
	struct retstack_entry a = {0};

	(void)state;
	for (uint64_t i = 0; i <= PT_RET_STACK; i++)
		retstack_push(&s, i);
	for (unsigned int i = 0; i < PT_RET_STACK; i++)
		assert_true(retstack_pop(&s, &a));
	assert_int_equal(a.where, 1);
	assert_false(retstack_pop(&s, &a));
}

static void retstack_set_restores_what_was_listed(void **state)
{
	struct retstack_entry list[PT_RET_STACK] = {0}, a;
	struct retstack s = {0}, other = {0};
	uint32_t n;

	(void)state;
	for (uint64_t i = 0; i < PT_RET_STACK + 10; i++)
		retstack_push(&s, i);
	assert_true(retstack_pop(&s, &a));
	n = retstack_list(&s, list);
	assert_int_equal(n, PT_RET_STACK - 1);
	assert_int_equal(list[0].where, 10);
	retstack_push(&other, 5);
	retstack_set(&other, list, n);
	for (uint32_t i = n; i > 0; i--) {
		assert_true(retstack_pop(&other, &a));
		assert_int_equal(a.where, 9 + i);
	}
	assert_false(retstack_pop(&other, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retstack_pop_empty_fails),
		cmocka_unit_test(retstack_pop_gives_newest_first),
		cmocka_unit_test(retstack_push_65th_drops_the_oldest),
		cmocka_unit_test(retstack_set_restores_what_was_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
