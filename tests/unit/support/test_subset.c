/*
 * The search of decoded pieces in what was executed. Addresses are letters.
 */
#include "tests/support/subset.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "proto/base.h"

/* '|': a gap. */
static bool holds(const char *truth, const char *decoded)
{
	struct subset s = {0};
	struct subset_lane *l = subset_lane(&s, 1, 2, 0);
	bool fine;

	for (; *truth; truth++)
		subset_executed(&s, l, (uint64_t)*truth);
	for (; *decoded; decoded++) {
		if (*decoded == '|')
			subset_gap(&s, 0);
		else
			subset_decoded(&s, l, (uint64_t)*decoded);
	}
	subset_end(&s);
	fine = l->wrong[0] == '\0';
	subset_done(&s);
	return fine;
}

static void subset_pieces_of_one_lane_are_found_or_not(void **state)
{
	static const struct {
		const char *truth, *decoded;
		bool fine;
	} cases[] = {
		{"abcabd", "abcabd", true},   {"", "", true},
		{"abcabd", "abcab", false},   /* the end is missing, and no gap says so */
		{"abcabd", "bcabd", false},   /* the begin */
		{"abcabd", "", false},	      /* all */
		{"abcabd", "abcabde", false}, /* more */
		{"abcabd", "|", true},	      {"abcabd", "|bd", true},
		{"abcabd", "ab|", true},      {"abcabd", "ab|d", true},
		{"abcabd", "|c|b|", true},    {"abcabd", "|abd|c|", false}, /* not in order */
		{"abcabd", "|ac|", false},   /* a hole within a piece */
		{"abcabd", "b|d", false},    /* does not begin with the truth */
		{"abcabd", "|ab|ab", false}, /* does not end with it */
		{"abcabd", "|ab|ab|", true},  {"aaab", "|aab|", true}, /* needs the borders */
		{"ababac", "|abac|", true},   {"ab", "a||b", true},
		{"ab", "|a|a|", false}, /* each instruction once */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (holds(cases[i].truth, cases[i].decoded) != cases[i].fine)
			fail_msg("truth %s, decoded %s", cases[i].truth, cases[i].decoded);
}

static void subset_gap_of_another_cpu_excuses_nothing(void **state)
{
	struct subset s = {0};
	struct subset_lane *a = subset_lane(&s, 1, 1, 0), *b = subset_lane(&s, 1, 1, 1);

	(void)state;
	subset_executed(&s, a, 1);
	subset_executed(&s, a, 2);
	subset_executed(&s, b, 3);
	subset_executed(&s, b, 4);
	subset_decoded(&s, a, 1);
	subset_decoded(&s, b, 3);
	subset_gap(&s, 1);
	subset_end(&s);
	assert_string_not_equal(a->wrong, "");
	assert_string_equal(b->wrong, "");
	subset_done(&s);
}

static void subset_executed_many_addresses_are_kept_apart(void **state)
{
	struct subset s = {0};
	struct subset_lane *l = subset_lane(&s, 1, 1, 0);

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		subset_executed(&s, l, 0x400000 + 7 * i);
	for (uint64_t i = 0; i < 20000; i++)
		subset_decoded(&s, l, 0x400000 + 7 * i);
	subset_end(&s);
	assert_string_equal(l->wrong, "");
	assert_int_equal(s.numbers.n, 20000);
	subset_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(subset_pieces_of_one_lane_are_found_or_not),
		cmocka_unit_test(subset_gap_of_another_cpu_excuses_nothing),
		cmocka_unit_test(subset_executed_many_addresses_are_kept_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
