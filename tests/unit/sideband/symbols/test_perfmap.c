/*
 * Perf maps: which lines are functions, and which of several functions has an address.
 */
#include "sideband/symbols/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct perfmap *make(const char *text)
{
	struct perfmap *m;

	assert_int_equal(perfmap_new(text, strlen(text), &m), 0);
	return m;
}

/* NAME NULL: a gap. */
static void check(struct perfmap *m, uint64_t address, uint64_t start, uint64_t size,
		  const char *name)
{
	struct perfmap_function f;

	perfmap_find(m, address, &f);
	assert_int_equal(f.start, start);
	assert_int_equal(f.size, size);
	if (name == NULL)
		assert_null(f.name);
	else
		assert_string_equal(f.name, name);
}

static void perfmap_find_in_and_between_functions_gives_them_and_the_gap(void **state)
{
	struct perfmap *m = make("1000 10 one\n0x2000 0X20 two words\t(x)\r\n1010 8 next");

	(void)state;
	assert_int_equal(perfmap_count(m), 3);
	check(m, 0x1000, 0x1000, 0x10, "one");
	check(m, 0x100f, 0x1000, 0x10, "one");
	check(m, 0x1010, 0x1010, 8, "next");
	check(m, 0x1018, 0x1018, 0x2000 - 0x1018, NULL);
	check(m, 0x201f, 0x2000, 0x20, "two words\t(x)");
	check(m, 0xfff, 0, 0x1000, NULL);
	check(m, 0x2020, 0x2020, UINT64_MAX - 0x2020, NULL);
	perfmap_free(m);
}

static void perfmap_find_where_functions_overlap_gives_the_later_line(void **state)
{
	struct perfmap *m = make("1000 100 old\n1040 20 new\n1050 8 newer\n1000 10 head\n");

	(void)state;
	check(m, 0x1000, 0x1000, 0x10, "head");
	check(m, 0x1010, 0x1010, 0x30, "old");
	check(m, 0x1040, 0x1040, 0x10, "new");
	check(m, 0x1050, 0x1050, 8, "newer");
	check(m, 0x1058, 0x1058, 8, "new");
	check(m, 0x1060, 0x1060, 0xa0, "old");
	perfmap_free(m);
	/* A newer function that begins below an older one keeps all its bytes. */
	m = make("1020 100 old\n1000 100 new\n1080 10 old too\n1000 80 newest\n");
	check(m, 0x1000, 0x1000, 0x80, "newest");
	check(m, 0x1080, 0x1080, 0x10, "old too");
	check(m, 0x1090, 0x1090, 0x70, "new");
	check(m, 0x1100, 0x1100, 0x20, "old");
	perfmap_free(m);
}

static void perfmap_find_same_function_told_again_is_one(void **state)
{
	struct perfmap *m = make("1000 10 f\n1000 10 f\n1008 8 g\n1000 10 h\n");

	(void)state;
	check(m, 0x1008, 0x1000, 0x10, "h");
	perfmap_free(m);
}

static void perfmap_new_lines_that_are_none_are_skipped(void **state)
{
	struct perfmap *m = make("\n \nx 10 a\n1000 0 empty\n1000 g b\n1000 10\n1000 10 \n1000\n"
				 "11111111111111111 1 c\nfffffffffffffff0 10 end\n"
				 "fffffffffffffff0 f last\n-1 1 d\n0x 1 e\n2000 1 ok");

	(void)state;
	assert_int_equal(perfmap_count(m), 2);
	check(m, 0x2000, 0x2000, 1, "ok");
	check(m, 0xfffffffffffffff1, 0xfffffffffffffff0, 0xf, "last");
	perfmap_free(m);
	m = make("");
	check(m, 5, 0, UINT64_MAX, NULL);
	perfmap_free(m);
}

static void perfmap_new_name_with_nul_and_very_long_name_are_cut(void **state)
{
	static char text[5000];
	struct perfmap_function f;
	struct perfmap *m;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "1000 10 a\0b\n2000 10 ", 20);
	assert_int_equal(perfmap_new(text, sizeof(text), &m), 0);
	check(m, 0x1000, 0x1000, 0x10, "a");
	perfmap_find(m, 0x2000, &f);
	assert_int_equal(strlen(f.name), PERFMAP_NAME_MAX);
	perfmap_free(m);
}

/* Compared with a search through all lines, the newest first. */
static void perfmap_find_random_functions_are_as_a_search_backwards_finds_them(void **state)
{
	static char text[1 << 16];
	uint64_t begin[500], end[500];
	size_t n = 0;
	struct perfmap *m;

	(void)state;
	srand(7);
	for (int i = 0; i < 500; i++) {
		begin[i] = (uint64_t)(rand() % 4000);
		end[i] = begin[i] + 1 + (uint64_t)(rand() % (i % 3 != 0 ? 20 : 900));
		n += (size_t)sprintf(text + n, "%lx %lx f%d\n", (unsigned long)begin[i],
				     (unsigned long)(end[i] - begin[i]), i);
	}
	m = make(text);
	for (uint64_t at = 0; at < 5000; at++) {
		struct perfmap_function f;
		char name[16] = "";

		for (int i = 499; i >= 0 && *name == '\0'; i--)
			if (at >= begin[i] && at < end[i])
				sprintf(name, "f%d", i);
		perfmap_find(m, at, &f);
		assert_string_equal(f.name != NULL ? f.name : "", name);
		assert_true(at >= f.start && at - f.start < f.size);
	}
	perfmap_free(m);
}

static void perfmap_new_too_many_lines_leaves_out_the_first(void **state)
{
	size_t size = 0, room = (PERFMAP_MAX + 2) * 24;
	char *text = malloc(room);
	struct perfmap *m;

	(void)state;
	for (uint32_t i = 0; i < PERFMAP_MAX + 2; i++)
		size += (size_t)snprintf(text + size, room - size, "%x 1 f%x\n", i, i);
	assert_int_equal(perfmap_new(text, size, &m), 0);
	assert_int_equal(perfmap_count(m), PERFMAP_MAX);
	check(m, 0, 0, 2, NULL);
	check(m, 2, 2, 1, "f2");
	check(m, PERFMAP_MAX + 1, PERFMAP_MAX + 1, 1, "f80001");
	perfmap_free(m);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfmap_find_in_and_between_functions_gives_them_and_the_gap),
		cmocka_unit_test(perfmap_find_where_functions_overlap_gives_the_later_line),
		cmocka_unit_test(perfmap_find_same_function_told_again_is_one),
		cmocka_unit_test(perfmap_new_lines_that_are_none_are_skipped),
		cmocka_unit_test(perfmap_new_name_with_nul_and_very_long_name_are_cut),
		cmocka_unit_test(
			perfmap_find_random_functions_are_as_a_search_backwards_finds_them),
		cmocka_unit_test(perfmap_new_too_many_lines_leaves_out_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
