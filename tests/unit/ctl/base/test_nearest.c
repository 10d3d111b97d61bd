#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/base/nearest.h"

static const char *const VERBS[] = {"snapshot", "list", "fetch", "status", "decode", "delete"};

static const char *nearest(const char *word)
{
	struct nearest n;

	nearest_init(&n, word);
	for (size_t i = 0; i < sizeof(VERBS) / sizeof(VERBS[0]); i++)
		nearest_try(&n, VERBS[i]);
	return n.found ? n.found : "";
}

static void nearest_try_slip_of_the_finger_finds_the_word(void **state)
{
	(void)state;
	assert_string_equal(nearest("statsu"), "status");
	assert_string_equal(nearest("lst"), "list");
	assert_string_equal(nearest("liist"), "list");
	assert_string_equal(nearest("lost"), "list");
	assert_string_equal(nearest("snap"), "snapshot");
	assert_string_equal(nearest("decdoe"), "decode");
}

static void nearest_try_other_word_finds_nothing(void **state)
{
	char word[200];

	(void)state;
	assert_string_equal(nearest(""), "");
	assert_string_equal(nearest("x"), "");
	assert_string_equal(nearest("export"), "");
	assert_string_equal(nearest("lxxt"), "");
	memset(word, 'a', sizeof(word));
	word[199] = '\0';
	assert_string_equal(nearest(word), "");
}

static void nearest_try_equally_near_words_keeps_the_first(void **state)
{
	(void)state;
	assert_string_equal(nearest("de"), "decode");
}

static void nearest_text_gives_the_hint_or_nothing(void **state)
{
	struct nearest n;
	char text[100];

	(void)state;
	nearest_init(&n, "lst");
	assert_string_equal(nearest_text(&n, "--", text, sizeof(text)), "");
	nearest_try(&n, "list");
	assert_string_equal(nearest_text(&n, "--", text, sizeof(text)), " (did you mean --list?)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_try_slip_of_the_finger_finds_the_word),
		cmocka_unit_test(nearest_try_other_word_finds_nothing),
		cmocka_unit_test(nearest_try_equally_near_words_keeps_the_first),
		cmocka_unit_test(nearest_text_gives_the_hint_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
