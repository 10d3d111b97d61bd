/*
 * Labels: valid keys and values, and the limit of their number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/label.h"

static void labels_parse_good_ones_sorts_them(void **state)
{
	struct labels l = {0};

	(void)state;
	assert_int_equal(labels_parse(&l, "team=db"), 0);
	assert_int_equal(labels_parse(&l, "Case_7=a=b c"), 0);
	assert_int_equal(labels_parse(&l, "empty="), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.list[0].key, "Case_7");
	assert_string_equal(labels_get(&l, "Case_7"), "a=b c");
	assert_string_equal(labels_get(&l, "empty"), "");
	assert_string_equal(labels_get(&l, "team"), "db");
	assert_null(labels_get(&l, "tea"));
}

static void labels_parse_same_key_replaces(void **state)
{
	struct labels l = {0};

	(void)state;
	assert_int_equal(labels_parse(&l, "a=1"), 0);
	assert_int_equal(labels_parse(&l, "a=2"), 0);
	assert_int_equal(l.n, 1);
	assert_string_equal(labels_get(&l, "a"), "2");
}

static void labels_parse_bad_ones_refuses(void **state)
{
	static const char *const bad[] = {
		"",	"=",	    "=v",     "a",
		"7a=v", "a b=v",    "a-b=v",  "\xc3\xa4=v",
		"a=\n", "a=\x1b[m", "a=\x7f", "k234567890123456789012345678901x=v",
	};
	struct labels l = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(labels_parse(&l, bad[i]), -EINVAL);
	assert_int_equal(l.n, 0);
}

static void labels_add_longest_fits_and_no_longer(void **state)
{
	char key[LABEL_KEY_SIZE + 1], value[LABEL_VALUE_SIZE + 1];
	struct labels l = {0};

	(void)state;
	memset(key, 'k', sizeof(key));
	memset(value, 'v', sizeof(value));
	key[LABEL_KEY_SIZE] = value[LABEL_VALUE_SIZE] = '\0';
	assert_int_equal(labels_add(&l, key, "v"), -EINVAL);
	assert_int_equal(labels_add(&l, "k", value), -EINVAL);
	key[LABEL_KEY_SIZE - 1] = value[LABEL_VALUE_SIZE - 1] = '\0';
	assert_int_equal(labels_add(&l, key, value), 0);
	assert_string_equal(labels_get(&l, key), value);
}

static void labels_add_too_many_refuses(void **state)
{
	struct labels l = {0};
	char key[8];

	(void)state;
	for (size_t i = 0; i < LABEL_MAX; i++) {
		snprintf(key, sizeof(key), "k%zu", LABEL_MAX - i);
		assert_int_equal(labels_add(&l, key, "v"), 0);
	}
	assert_int_equal(labels_add(&l, "more", "v"), -E2BIG);
	assert_int_equal(labels_add(&l, "k1", "w"), 0);
	assert_int_equal(l.n, LABEL_MAX);
	assert_string_equal(labels_get(&l, "k1"), "w");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_parse_good_ones_sorts_them),
		cmocka_unit_test(labels_parse_same_key_replaces),
		cmocka_unit_test(labels_parse_bad_ones_refuses),
		cmocka_unit_test(labels_add_longest_fits_and_no_longer),
		cmocka_unit_test(labels_add_too_many_refuses),
	};

	return cmocka_run_group_tests_name("label", tests, NULL, NULL);
}
