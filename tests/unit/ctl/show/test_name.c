/*
 * ctl/show/name: names of C++ and source lines in few columns; brackets of all kinds, in pairs or
 * not.
 */
#include "ctl/show/show_private.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/base/say.h"
#include "proto/base.h"

typedef size_t (*puts_fn)(FILE *out, const char *text, size_t columns);

static void check(puts_fn fn, const char *name, size_t columns, const char *wanted)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0, used;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	used = fn(f, name, columns);
	fclose(f);
	if (strcmp(text, wanted) != 0)
		fail_msg("\"%s\" in %zu columns is \"%s\", not \"%s\"", name ? name : "(null)",
			 columns, text, wanted);
	assert_true(used <= columns);
	assert_true(text_columns(text, size) <= columns);
}

static void name_puts_short_name_stays(void **state)
{
	(void)state;
	check(name_puts, "std::vector<int>::size() const", 30, "std::vector<int>::size() const");
	check(name_puts, NULL, 30, "-");
	check(name_puts, "", 30, "");
}

static void name_puts_long_name_loses_templates_then_parameters_then_its_middle(void **state)
{
	static const char name[] =
		"std::map<std::string, std::vector<int> >::find(std::string const&)+0x4f";

	(void)state;
	check(name_puts, name, sizeof(name) - 2, "std::map<...>::find(std::string const&)+0x4f");
	check(name_puts, name, 30, "std::map<...>::find(...)+0x4f");
	check(name_puts, name, 20, "std::map<...)+0x4f");
	check(name_puts, "abcdefghijklmnopqrstuvwxyz", 13, "abcdef...wxyz");
}

static void name_puts_characters_may_be_wide_or_no_column(void **state)
{
	static const char wide[] = "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad";
	static const char marks[] = "abcde\xcc\x81"
				    "f\xcc\x81"
				    "ghij\xcc\x81";

	(void)state;
	check(name_puts, wide, 10, wide);
	check(name_puts, wide, 9, "\xe4\xb8\xad\xe4\xb8\xad...\xe4\xb8\xad");
	check(name_puts, marks, 10, marks);
	check(name_puts, marks, 9, "abcd...ij\xcc\x81");
	/* A byte that is shown as four characters makes room for three dots. */
	check(name_puts, "abcdef\nghijkl", 14, "abcdef...hijkl");
}

static void name_puts_operators_are_no_brackets(void **state)
{
	(void)state;
	check(name_puts, "bool operator< <int, long>(A<int>, B)", 36,
	      "bool operator< <...>(A<int>, B)");
	check(name_puts, "a::operator<<(std::ostream&, a::some_type const&)", 25,
	      "a::operator<<(...)");
	check(name_puts, "a::b<int, long, char>::operator()(int, int) const", 48,
	      "a::b<...>::operator()(int, int) const");
	check(name_puts, "p<(x > 3), long, long>::operator->() const", 32,
	      "p<...>::operator->() const");
	check(name_puts, "f<decltype (a->b), long, long>()", 30, "f<...>()");
	check(name_puts, "a::operator<(b const&)::c::operator>(d const&) const", 48,
	      "a::operator<(b const&)::c::operator>(...) const");
}

static void name_puts_scopes_in_brackets_stay(void **state)
{
	(void)state;
	check(name_puts, "(anonymous namespace)::counter<unsigned long long>::add", 50,
	      "(anonymous namespace)::counter<...>::add");
	check(name_puts, "(anonymous namespace)::counter<unsigned long long>::add", 36,
	      "(anonymous namespa...unter<...>::add");
	check(name_puts, "main::{lambda(int, int)#1}::operator()(int, int) const", 48,
	      "main::{lambda(...)#1}::operator()(...) const");
}

static void name_puts_brackets_without_a_pair_are_text(void **state)
{
	(void)state;
	check(name_puts, "<<<<<<<<<<<<<<<<<<<<", 10, "<<<<<...<<");
	check(name_puts, ">>>>)))))(((((<<<<>>", 10, ">>>>)...>>");
	check(name_puts, "a<b(c>d)e<f)g<hhhhhhhhhhh", 12, "a<b(c>...hhh");
}

static void name_puts_strangers_text_is_escaped(void **state)
{
	(void)state;
	check(name_puts, "a\x1b[1mbb", 16, "a\\x1b[1mbb");
	check(name_puts, "\x1b\x1b\x1b\x1b\x1b\x1b\x1b\x1b", 8, "\\x1b...");
	/* Characters are not cut in two. */
	check(name_puts, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 7,
	      "\xc3\xa4\xc3\xa4\xc3\xa4...\xc3\xa4");
	check(name_puts, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4",
	      8, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4...\xc3\xa4");
}

static void name_puts_endless_name_ends(void **state)
{
	CLEANUP_FREE char *name = malloc(4u << 20), *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(name);
	memset(name, '<', (4u << 20) - 1);
	name[(4u << 20) - 1] = '\0';
	assert_int_equal(name_puts(f, name, 40), 40);
	fclose(f);
}

static void name_puts_source_keeps_the_file(void **state)
{
	(void)state;
	check(name_puts_source, "shop/cart.cc:12", 20, "shop/cart.cc:12");
	check(name_puts_source, "/usr/src/debug/shop/lib/cart.cc:12", 24,
	      ".../shop/lib/cart.cc:12");
	check(name_puts_source, "/usr/src/averyveryveryverylongname.cc:12", 20,
	      "...erylongname.cc:12");
	check(name_puts_source, "a\nb.c:1", 20, "a\\x0ab.c:1");
	check(name_puts_source, NULL, 20, "-");
	check(name_puts_line, "/usr/src/debug/shop/lib/cart.cc:12", 24, "cart.cc:12");
	check(name_puts_line, "cart.cc:12", 24, "cart.cc:12");
	check(name_puts_line, NULL, 24, "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(name_puts_short_name_stays),
		cmocka_unit_test(
			name_puts_long_name_loses_templates_then_parameters_then_its_middle),
		cmocka_unit_test(name_puts_characters_may_be_wide_or_no_column),
		cmocka_unit_test(name_puts_operators_are_no_brackets),
		cmocka_unit_test(name_puts_scopes_in_brackets_stay),
		cmocka_unit_test(name_puts_brackets_without_a_pair_are_text),
		cmocka_unit_test(name_puts_strangers_text_is_escaped),
		cmocka_unit_test(name_puts_endless_name_ends),
		cmocka_unit_test(name_puts_source_keeps_the_file),
	};

	/* Widths are those of the locale. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
