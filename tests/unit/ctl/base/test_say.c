/*
 * ctl/base/say: untrusted text made safe for a terminal, as text and within JSON.
 */
#include "ctl/base/say.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "proto/base.h"

/* Characters that move the cursor, start a sequence, or reorder or hide their neighbours. */
static const char *const nasty[] = {
	"\033[2J", /* a sequence */
	"\xc2\x9b"
	"2J", /* the same with CSI of C1 */
	"\x7f",
	"\r",
	"\a",
	"\xc2\x85",	/* NEL */
	"\xe2\x80\xae", /* right-to-left override */
	"\xe2\x80\xaa",
	"\xe2\x81\xa6", /* isolate */
	"\xe2\x81\xa9",
	"\xe2\x80\x8b", /* zero width */
	"\xef\xbb\xbf",
	"\xf3\xa0\x81\x81", /* a tag */
	"\x9b",		    /* invalid UTF-8 */
	"\xc0\x9b",
	"\xed\xa0\x80", /* a surrogate */
	"\xf4\x90\x80\x80",
	"\xe2\x80",
};

/* Expects TEXT to have nothing that a terminal would obey. */
static void assert_safe(const char *text)
{
	for (const uint8_t *s = (const uint8_t *)text; *s; s++) {
		assert_true(*s >= 0x20 || *s == '\n');
		assert_int_not_equal(*s, 0x7f);
		/* Behind C2, only A0 and above are harmless. Other unsafe characters begin with
		 * E2 80, E2 81, EF BB or F3. */
		assert_false(s[0] == 0xc2 && s[1] < 0xa0);
		assert_false(s[0] == 0xe2 && (s[1] == 0x80 || s[1] == 0x81));
		assert_false(s[0] == 0xef && s[1] == 0xbb);
		assert_int_not_equal(*s, 0xf3);
	}
	assert_true(text_is_utf8(text));
}

static void text_puts_of_what_terminals_obey_shows_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
		CLEANUP_FREE char *shown = NULL;
		size_t size;
		FILE *out = open_memstream(&shown, &size);

		text_puts(out, nasty[i], 0);
		fclose(out);
		assert_safe(shown);
		assert_int_equal(shown[0], '\\');
	}
}

static void text_json_of_what_terminals_obey_is_the_same_document(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(nasty); i++) {
		CLEANUP_FREE char *document = NULL, *safe = NULL;
		struct json_object *before, *after;
		size_t size;

		/* The writer of JSON escapes the controls of ASCII. */
		if ((unsigned char)nasty[i][0] < 0x20)
			continue;
		assert_true(asprintf(&document, "{\"a\": [\"x%sy\", \"\\u001b\"]}", nasty[i]) > 0);
		assert_int_equal(text_json(document, strlen(document), &safe, &size), 0);
		assert_int_equal(size, strlen(safe));
		assert_safe(safe);
		after = json_tokener_parse(safe);
		assert_non_null(after);
		if (text_is_utf8(nasty[i])) {
			before = json_tokener_parse(document);
			assert_true(json_object_equal(before, after));
			json_object_put(before);
		}
		json_object_put(after);
	}
}

static void text_json_of_what_is_harmless_changes_nothing(void **state)
{
	static const char document[] =
		"{\n\t\"gr\xc3\xbc\xc3\x9f\": \"\xe4\xb8\xad \xf0\x9f\x99\x82\"}\n";
	CLEANUP_FREE char *safe = NULL;

	(void)state;
	assert_int_equal(text_json(document, strlen(document), &safe, NULL), 0);
	assert_string_equal(safe, document);
}

#define WIDE  "\xe4\xb8\xad\xe6\x96\x87" /* two characters of two columns each */
#define ACUTE "\xcc\x81"		 /* joins the character before */

static void text_columns_are_those_of_a_terminal(void **state)
{
	static const char wide[] = "a" WIDE "e" ACUTE;

	(void)state;
	assert_int_equal(text_columns("plain", 5), 5);
	assert_int_equal(text_columns("", 0), 0);
	assert_int_equal(text_columns(wide, sizeof(wide) - 1), 6);
	assert_int_equal(text_columns("\n\xff", 2), 8);
	assert_int_equal(text_fit(wide, sizeof(wide) - 1, 6), sizeof(wide) - 1);
	assert_int_equal(text_fit(wide, sizeof(wide) - 1, 4), 4);
	assert_int_equal(text_fit(wide, sizeof(wide) - 1, 0), 0);
	assert_int_equal(text_fit("\n", 1, 3), 0);
}

static void text_print_cases(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
		const char *expected;
	} cases[] = {
		{"plain", 0, "plain"},
		{"plain", 5, "plain"},
		{"plain", 4, "pla~"},
		{"", 5, ""},
		{"gr\xc3\xbc\xc3\x9f", 4, "gr\xc3\xbc\xc3\x9f"},
		{"gr\xc3\xbc\xc3\x9f", 3, "gr~"},
		{"\xe2\x82\xac\xf0\x9f\x98\x80", 0, "\xe2\x82\xac\xf0\x9f\x98\x80"},
		{WIDE "x", 5, WIDE "x"},
		{WIDE "x", 4, "\xe4\xb8\xad~"},
		{WIDE "x", 3, "\xe4\xb8\xad~"},
		{WIDE, 2, "~"},
		{"e" ACUTE "e" ACUTE "f", 3, "e" ACUTE "e" ACUTE "f"},
		{"e" ACUTE "e" ACUTE "f", 2, "e" ACUTE "~"},
		{"a\nb", 0, "a\\x0ab"},
		{"a\nb", 4, "a~"},
		{"\xc2\x9b", 0, "\\u{9b}"},
		{"\xe2\x80\xae", 0, "\\u{202e}"},
		{"\xe2\x82", 0, "\\xe2\\x82"},
		{"\xc1\x81", 0, "\\xc1\\x81"},
		{"\xf4\x90\x80\x80", 0, "\\xf4\\x90\\x80\\x80"},
		{NULL, 0, "-"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *out = NULL;
		size_t size = 0;
		FILE *f = open_memstream(&out, &size);

		text_puts(f, cases[i].text, cases[i].columns);
		fclose(f);
		assert_string_equal(out, cases[i].expected);
		if (cases[i].text && cases[i].columns > 0)
			assert_true(text_columns(out, size) <= cases[i].columns);
	}
}

static void text_is_utf8_cases(void **state)
{
	(void)state;
	assert_true(text_is_utf8(""));
	assert_true(text_is_utf8("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80 \n"));
	assert_false(text_is_utf8("\xff"));
	assert_false(text_is_utf8("a\xc3"));
	assert_false(text_is_utf8("\xed\xa0\x80"));
	assert_false(text_is_utf8("\xc0\xaf"));
}

static char *put(const char *text, size_t columns)
{
	char *shown = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&shown, &size);

	assert_non_null(out);
	text_puts(out, text, columns);
	assert_int_equal(fclose(out), 0);
	return shown;
}

static void text_escape_all_leaves_ascii_only(void **state)
{
	/* U+00DB ends in 0x9b, which is CSI where a byte is a character. */
	static const char name[] = "a\u00db1mb\U0001f600";
	char *shown;

	(void)state;
	assert_false(text_escape_all(true));
	shown = put(name, 0);
	assert_string_equal(shown, "a\\u{db}1mb\\u{1f600}");
	free(shown);
	shown = put(name, 8);
	assert_string_equal(shown, "a\\u{db}~");
	free(shown);
	assert_int_equal(text_columns(name, strlen(name)), 19);
	assert_true(text_escape_all(false));
	shown = put(name, 0);
	assert_string_equal(shown, name);
	free(shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_columns_are_those_of_a_terminal),
		cmocka_unit_test(text_print_cases),
		cmocka_unit_test(text_escape_all_leaves_ascii_only),
		cmocka_unit_test(text_is_utf8_cases),
		cmocka_unit_test(text_puts_of_what_terminals_obey_shows_it),
		cmocka_unit_test(text_json_of_what_terminals_obey_is_the_same_document),
		cmocka_unit_test(text_json_of_what_is_harmless_changes_nothing),
	};

	/* Widths are those of the locale. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
