/*
 * demangle(): names of several languages, compared with c++filt, and names that stand for too long
 * texts.
 */
#include "sideband/symbols/symbols.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "tests/unit/sideband/self.h"

static void check(const char *name, const char *wanted)
{
	char *text = demangle(name);

	if (wanted) {
		assert_non_null(text);
		assert_string_equal(text, wanted);
	} else {
		assert_null(text);
	}
	free(text);
}

static void demangle_of_cplus_is_the_declaration(void **state)
{
	(void)state;
	check("_Z3foov", "foo()");
	check("_ZN1a1bIiE1cERKS1_", "a::b<int>::c(a::b<int> const&)");
	check("_ZNSolsEi", "std::ostream::operator<<(int)");
	check("_Z1fIJiPcEEvDpT_", "void f<int, char*>(int, char*)");
	/* libiberty finds this name only at its second try. */
	check("_ZN1a1fIiEENSt9enable_ifIXsr3std9is_signedIT_EE5valueES2_E4typeEv",
	      "std::enable_if<std::is_signed<int>::value, int>::type a::f<int>()");
}

static void demangle_of_rust_is_the_path(void **state)
{
	(void)state;
	check("_ZN4core3fmt5write17h05af221e174051e9E", "core::fmt::write");
	check("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h"
	      "930b740aa94f1d3aE",
	      "<Test + 'static as foo::Bar<Test>>::bar");
	check("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	      "<std::path::PathBuf>::new");
	check("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
	      "utf8_idents::"
	      "\xe1\x83\xa1\xe1\x83\x90\xe1\x83\xad\xe1\x83\x9b\xe1\x83\x94\xe1\x83\x9a\xe1\x83\x90"
	      "\xe1\x83\x93_\xe1\x83\x92\xe1\x83\x94\xe1\x83\x9b\xe1\x83\xa0\xe1\x83\x98\xe1\x83\x94"
	      "\xe1\x83\x9a\xe1\x83\x98_\xe1\x83\xa1\xe1\x83\x90\xe1\x83\x93\xe1\x83\x98\xe1\x83\x9a"
	      "\xe1\x83\x98");
}

/* One name for each rule of the grammar. */
static void demangle_of_rust_knows_all_types(void **state)
{
	(void)state;
	check("_RNCNCNgCs6DXkGYi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}");
	check("_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator"
	      "9rpositionNCNgNpB9_6memchr7memrchrs_0E0Bb_",
	      "<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::"
	      "<core::slice::memchr::memrchr::{closure#1}>::{closure#0}");
	check("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iop"
	      "QbuBiw2_3std",
	      "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>");
	check("_RNvNvMCs4fqI2P2rA04_13const_genericINtB4_3FooKpE3foo3FOO",
	      "<const_generic::Foo<_>>::foo::FOO");
	check("_RMs0_Cs4fqI2P2rA04_13const_genericINtB3_6SignedKanb_E",
	      "<const_generic::Signed<-11>>");
	check("_RNvYNtC1a1bNtB4_1c3foo", "<a::b as a::c>::foo");
	check("_RINvC1a1bFUKCRhEuE", "a::b::<unsafe extern \"C\" fn(&u8)>");
	check("_RINvC1a1bFK5vcallhEuE", "a::b::<extern \"vcall\" fn(u8)>");
	check("_RINvC1a1bFG_RL0_hEuE", "a::b::<for<'a> fn(&'a u8)>");
	check("_RINvC1a1bDG_INtC1a1cRL0_hEEL_E", "a::b::<dyn for<'a> a::c<&'a u8>>");
	check("_RINvC1a1bRL_hQL_hPhOhShAhj3_TEThiEzE",
	      "a::b::<&u8, &mut u8, *const u8, *mut u8, [u8], [u8; 3], (), (u8, isize), !>");
	check("_RNvC9backtrace3foo.llvm.A5310EB9", "backtrace::foo");
	check("_RC3foo.llvm.9D1C9369@@16", "foo@@16");
}

static void demangle_of_d_is_the_path(void **state)
{
	(void)state;
	check("_D8demangle4testFaZv", "demangle.test(char)");
	check("_Dmain", "D main");
}

static void demangle_keeps_what_was_added(void **state)
{
	(void)state;
	check("_Z3foov.part.0", "foo() [clone .part.0]");
	check("_Z3foov.isra.0.cold", "foo() [clone .isra.0] [clone .cold]");
	check("_Z3foov@plt", "foo()@plt");
	check("_Z3foov@@V_1.0", "foo()@@V_1.0");
	check("_ZN4core3fmt5write17h05af221e174051e9E@plt", "core::fmt::write@plt");
}

static void demangle_of_names_of_c_says_that_they_are_names(void **state)
{
	static const char *const names[] = {
		"",
		"main",
		"_",
		"__libc_start_main",
		"@plt",
		"_@plt",
		"malloc@plt",
		"_Do_it",
		"_D",
		"_DYNAMIC",
		"_R",
		"_Reset",
		"_RIP",
		"_Zap",
		"_Z",
		"_Z@plt",
		"Z3foov",
		"__Z3foov",
		"_D3",
		"_D3foo2",
		"_D9999999999999a",
		"_Z999999999999999a",
		"foo.part.0",
		"i",
		"_GLOBAL__sub_I_main",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check(names[i], NULL);
}

/* libiberty prints an empty part as a NULL chunk. */
static void demangle_of_an_empty_part_survives(void **state)
{
	(void)state;
	check("_RINtC0arrayvec8ArrayVechKj7b_E", NULL);
	check("_RNvC01a", "::a");
}

/* --- Limits --- */

/* NAME, A n times, MIDDLE, B n times, END. */
static char *repeat(const char *name, const char *a, const char *middle, const char *b, size_t n,
		    const char *end)
{
	size_t size = strlen(name) + n * (strlen(a) + strlen(b)) + strlen(middle) + strlen(end) + 1;
	char *made = calloc(1, size), *at;

	assert_non_null(made);
	at = stpcpy(made, name);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, a);
	at = stpcpy(at, middle);
	for (size_t i = 0; i < n; i++)
		at = stpcpy(at, b);
	stpcpy(at, end);
	return made;
}

static void demangle_of_long_names_leaves_them(void **state)
{
	(void)state;
	for (size_t stars = 1000; stars < 1030; stars++) {
		char *name = repeat("_Z1f", "P", "i", "", stars, "@plt"), *text = demangle(name);

		assert_int_equal(strlen(name), stars + 9);
		assert_int_equal(text != NULL, stars + 5 <= DEMANGLE_MAX_NAME);
		if (text)
			assert_int_equal(strlen(text), stars + 10);
		free(text);
		free(name);
	}
}

static void demangle_of_names_with_a_long_text_leaves_them(void **state)
{
	(void)state;
	/* Each level has three bytes in the name and a part such as "(int::*)" in the text. */
	for (size_t n = 1; n < 330; n++) {
		char *name = repeat("_Z1f", "M1a", "i", "", n, ""), *text = demangle(name);

		assert_int_equal(text != NULL, n * strlen(" a::*") + strlen("f(int)") <= 4096);
		free(text);
		free(name);
	}
	for (size_t rest = 4080; rest < 4100; rest++) {
		char *name = repeat("_Z1fv@", "x", "", "", rest, ""), *text = demangle(name);

		assert_int_equal(text != NULL, strlen("f()@") + rest <= DEMANGLE_MAX_TEXT);
		free(text);
		free(name);
	}
}

/* Writes a reference to the N-th part that can be referred to. */
static void put_reference(FILE *to, unsigned n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	fputc('S', to);
	if (n > 36)
		fputc(digits[(n - 1) / 36], to);
	if (n > 0)
		fputc(digits[(n - 1) % 36], to);
	fputc('_', to);
}

/* Writes a type of N levels, each of which is twice the level below. FIRST parts before the type
 * can be referred to. */
static void put_doubled(FILE *to, unsigned n, unsigned first)
{
	for (unsigned i = 0; i < n; i++)
		fputs("1pI", to);
	fputs("1a", to);
	for (unsigned i = 0; i < n; i++) {
		put_reference(to, first + n + i);
		fputc('E', to);
	}
}

static void demangle_of_texts_without_an_end_leaves_them(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 60; n++) {
		char *name = NULL, *text;
		size_t size;
		FILE *to = open_memstream(&name, &size);

		assert_non_null(to);
		fputs("_Z1f", to);
		put_doubled(to, n, 0);
		fclose(to);
		text = demangle(name);
		assert_int_equal(text != NULL, n < 10);
		free(text);
		free(name);
	}
}

/* libiberty looks twice through each T_I, so 2^40 times in all. */
static void demangle_of_conversions_within_conversions_leaves_them(void **state)
{
	char name[512] = "_ZN1a", one[512] = "_ZN1acvT_";

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		strcat(name, "cvT_I1a");
		strcat(one, "I1aT_");
	}
	check(strcat(name, "E"), NULL);
	check(strcat(one, "E"), NULL);
	check("_ZN1acvT_IiEEv", "a::operator int<int>()");
}

/* The pack is empty, but libiberty looks through all that it is made of. */
static void demangle_of_packs_without_an_end_leaves_them(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 60; n++) {
		char *name = NULL, *text;
		size_t size;
		FILE *to = open_memstream(&name, &size);

		assert_non_null(to);
		fputs("_Z1fIJEEvDp1qI", to);
		put_doubled(to, n, 2);
		fputs("T_E", to);
		fclose(to);
		text = demangle(name);
		if (n <= 10)
			assert_string_equal(text, "void f<>()");
		if (n > 20)
			assert_null(text);
		free(text);
		free(name);
	}
}

/* Writes a reference of Rust: an offset behind "_R", less one, to the base 62. */
static void put_rust_reference(FILE *to, size_t offset)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	assert_in_range(offset, 1, 62 * 62);
	fputc('B', to);
	if (offset > 62)
		fputc(digits[(offset - 1) / 62], to);
	fputc(digits[(offset - 1) % 62], to);
	fputc('_', to);
}

/* Writes TYPE and N further types, each of which is the type before it twice. */
static void put_rust_doubled(FILE *to, const char *type, unsigned n)
{
	long before = ftell(to) - 2, begin;

	fputs(type, to);
	for (unsigned i = 0; i < n; i++) {
		begin = ftell(to) - 2;
		fputc('T', to);
		put_rust_reference(to, (size_t)before);
		put_rust_reference(to, (size_t)before);
		fputc('E', to);
		before = begin;
	}
}

static void demangle_of_rust_without_an_end_leaves_it(void **state)
{
	/* libiberty holds memory while it prints the second type. */
	static const char *const types[] = {"h", "NtC1au30____7hkackfecea1cbdathfdh9hlq6y"};

	(void)state;
	for (unsigned i = 0; i < 2 * 60; i++) {
		char *name = NULL, *text;
		size_t size;
		FILE *to = open_memstream(&name, &size);

		assert_non_null(to);
		fputs("_RIC1a", to);
		put_rust_doubled(to, types[i % 2], i / 2);
		fputc('E', to);
		fclose(to);
		assert_true(size <= DEMANGLE_MAX_NAME);
		text = demangle(name);
		assert_int_equal(text != NULL, i / 2 < (i % 2 ? 5 : 9));
		free(text);
		free(name);
	}
}

/* Around the limit the last part of a name may be too long; then there is no name. */
static void demangle_of_rust_ends_with_the_whole_name(void **state)
{
	unsigned there = 0;

	(void)state;
	for (unsigned n = 400; n < 600; n++) {
		char *name = NULL, *text;
		size_t size;
		FILE *to = open_memstream(&name, &size);

		assert_non_null(to);
		fputs("_RNvIC1a", to);
		put_rust_doubled(to, "l", 8);
		fprintf(to, "E%u", n);
		for (unsigned i = 0; i < n; i++)
			fputc('x', to);
		fclose(to);
		assert_true(size <= DEMANGLE_MAX_NAME);
		text = demangle(name);
		assert_true(!text || strspn(text + strlen(text) - n, "x") == n);
		there += text != NULL;
		free(text);
		free(name);
	}
	assert_in_range(there, 50, 150);
}

/* libiberty counts up to the number of bound lifetimes, even where it prints none of them.
 * References that lead into the middle of an identifier could hide such numbers. */
static void demangle_of_rust_with_many_lifetimes_leaves_it(void **state)
{
	char *text = demangle("_RINvC1a1bFG10_hEuE");

	(void)state;
	assert_non_null(text);
	free(text);
	check("_RINvC1a1bFG11_hEuE", NULL);
	check("_RINvC1a1bDGzzzzzzzzz_NtC1a1cEL_E", NULL);
	check("_RXIC0PPFFFFFFFFFFGPFFFFF0P_opsB_", NULL);
	check("_RNvXIC1aFGzzzzzzzzz_hEuEhC1a1b", NULL);
	check("_RNvC1a1bIC1aFGzzzzzzzzz_hEuE", NULL);
	check("_RINvC1a20XIC1aFGzzzzzz_hEuEhhB7_E", NULL);
	check("_RINvC1a1bB0_E", "a::b::<a::b>");
	check("_RINvC1a1bB_E", NULL);
	check("_RINvC1a1bB7_E", NULL);
	check("_RINvC1a1bBa_E", NULL);
	check("_RINvC1a1bBzzzzzzzzzzzzzzz_E", NULL);
}

/* libiberty makes the whole text of a name of D, so the limit is the number of references. */
static void demangle_of_d_with_many_references_leaves_it(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 40; n++) {
		char *name = repeat("_D1a1bFaPa", "Qc", "Zv", "", n, ""), *text = demangle(name);

		assert_int_equal(text != NULL, n <= 10);
		free(text);
		free(name);
	}
}

static void demangle_of_deep_names_has_room_enough(void **state)
{
	static const struct {
		const char *begin, *a, *middle, *b, *end;
		size_t n;
	} deep[] = {
		{"_Z1f", "P", "i", "", "", 1019},
		{"_Z1f", "PFv", "v", "E", "", 254},
		{"_Z1f", "1aI", "i", "E", "", 254},
		{"_Z1fIiEvDT", "pp", "T_E", "", "", 500},
		{"_Z1fIiEvDT", "pl", "T_", "T_", "E", 250},
		{"_Z1fIiEv", "Dp", "T_", "", "", 500},
		{"_Z", "Z1fvE", "1a", "", "", 200},
		{"_Z", "Z", "1fv", "E1a", "", 250},
		{"_Z", "GV", "1a", "", "", 500},
		{"_Z1fI", "J", "", "E", "Evv", 500},
		{"_ZN", "1a", "E", "", "v", 500},
		{"_Z1f", "A_", "i", "", "", 500},
		{"_RIC1a", "R", "u", "", "E", 1000},
		{"_RIC1a", "TA", "u", "E", "E", 200},
		{"_R", "Nv", "C1a", "1b", "", 250},
		{"_D1a", "P", "i", "", "", 1010},
		{"_D1aF", "PF", "v", "Zv", "", 250},
		{"_D3__T1a", "T", "i", "i", "", 400},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deep); i++) {
		char *name = repeat(deep[i].begin, deep[i].a, deep[i].middle, deep[i].b, deep[i].n,
				    deep[i].end);

		assert_true(strlen(name) <= DEMANGLE_MAX_NAME);
		free(demangle(name));
		free(name);
	}
}

/* --- Compared with c++filt --- */

static FILE *ask_filter(const char *names_path)
{
	char command[256];

	snprintf(command, sizeof(command), "c++filt -i < %s", names_path);
	return popen(command, "r");
}

static size_t put_names(const struct elf_file *f, const char *path)
{
	FILE *to = fopen(path, "we");
	size_t n;
	const struct elf_symbol *s = elf_file_symbols(f, &n);

	assert_non_null(to);
	for (size_t i = 0; i < n; i++)
		if (s[i].name)
			fprintf(to, "%s\n", s[i].name);
	assert_int_equal(fclose(to), 0);
	return n;
}

static void compare_with_filter(const struct elf_file *f, FILE *filter)
{
	size_t n, capacity = 0, named = 0, mangled = 0;
	const struct elf_symbol *s = elf_file_symbols(f, &n);
	char *line = NULL;

	for (size_t i = 0; i < n; i++) {
		CLEANUP_FREE char *text = s[i].name ? demangle(s[i].name) : NULL;

		if (!s[i].name)
			continue;
		named++;
		assert_true(getline(&line, &capacity, filter) > 0);
		line[strcspn(line, "\n")] = 0;
		assert_string_equal(text ? text : s[i].name, line);
		mangled += text != NULL;
	}
	assert_true(mangled > named / 2);
	free(line);
}

static void demangle_agrees_with_cplusfilt(void **state)
{
	struct file library = file_map("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	char path[] = "/tmp/ptsnap-names-XXXXXX";
	CLEANUP_CLOSE int fd = -1;
	struct elf_file *f;
	FILE *filter;

	(void)state;
	if (!library.bytes || system("c++filt --version > /dev/null 2>&1") != 0)
		skip();
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(elf_file_new(library.bytes, library.size, &f), 0);
	assert_true(put_names(f, path) > 1000);
	filter = ask_filter(path);
	assert_non_null(filter);
	compare_with_filter(f, filter);
	assert_int_equal(pclose(filter), 0);
	unlink(path);
	elf_file_free(f);
	file_unmap(&library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangle_of_cplus_is_the_declaration),
		cmocka_unit_test(demangle_of_rust_is_the_path),
		cmocka_unit_test(demangle_of_rust_knows_all_types),
		cmocka_unit_test(demangle_of_d_is_the_path),
		cmocka_unit_test(demangle_keeps_what_was_added),
		cmocka_unit_test(demangle_of_names_of_c_says_that_they_are_names),
		cmocka_unit_test(demangle_of_an_empty_part_survives),
		cmocka_unit_test(demangle_of_long_names_leaves_them),
		cmocka_unit_test(demangle_of_names_with_a_long_text_leaves_them),
		cmocka_unit_test(demangle_of_texts_without_an_end_leaves_them),
		cmocka_unit_test(demangle_of_conversions_within_conversions_leaves_them),
		cmocka_unit_test(demangle_of_packs_without_an_end_leaves_them),
		cmocka_unit_test(demangle_of_rust_without_an_end_leaves_it),
		cmocka_unit_test(demangle_of_rust_ends_with_the_whole_name),
		cmocka_unit_test(demangle_of_rust_with_many_lifetimes_leaves_it),
		cmocka_unit_test(demangle_of_d_with_many_references_leaves_it),
		cmocka_unit_test(demangle_of_deep_names_has_room_enough),
		cmocka_unit_test(demangle_agrees_with_cplusfilt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
