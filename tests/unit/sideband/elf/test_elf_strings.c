/*
 * sideband/elf: tables of strings without an end, and very long strings. Names that have an end are
 * found, and a name that is too long to be read again and again is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"
#include "tests/unit/sideband/elf_maker.h"

#define LONGEST 16384u

/* An ELF file with one function, named by the first string of TEXT. The SIZE bytes of TEXT are the
 * whole table. */
static uint8_t *make_with(const char *text, size_t size, size_t *ret_size)
{
	const Elf64_Sym symbols[] = {{0},
				     {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = 1,
				      .st_value = 0x1000,
				      .st_size = 1}};
	struct elf_maker *m = malloc(sizeof(*m));
	size_t table, strings;
	uint8_t *file;

	elf_maker_init(m, ET_DYN);
	elf_maker_map(m, elf_maker_add(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, 0x1000, "x", 1));
	table = elf_maker_add(m, ".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols));
	strings = elf_maker_add(m, ".strtab", SHT_STRTAB, 0, 0, text, size);
	m->sections[table].sh_link = (Elf64_Word)strings;
	m->sections[table].sh_entsize = sizeof(Elf64_Sym);
	file = elf_maker_end(m, ret_size);
	free(m);
	return file;
}

/* The number of names of the file with that table. */
static size_t names_with(const char *text, size_t size)
{
	struct elf_file *f;
	size_t file_size, n;
	uint8_t *file = make_with(text, size, &file_size);

	assert_int_equal(elf_file_new(file, file_size, &f), 0);
	(void)elf_file_symbols(f, &n);
	elf_file_free(f);
	free(file);
	return n;
}

static void string_of_a_table_without_an_end_is_there_where_it_ends_itself(void **state)
{
	(void)state;
	assert_int_equal(names_with("first\0second", 12), 1);
	assert_int_equal(names_with("first", 5), 0);
	assert_int_equal(names_with("first", 6), 1);
	assert_int_equal(names_with("", 1), 0);
}

static void string_beyond_the_table_is_none(void **state)
{
	const struct elf_strings s = {"a\0bc", 5}, none = {NULL, 0};

	(void)state;
	assert_string_equal(elf_string(&s, 0), "a");
	assert_string_equal(elf_string(&s, 3), "c");
	assert_string_equal(elf_string(&s, 4), "");
	assert_null(elf_string(&s, 5));
	assert_null(elf_string(&s, UINT64_MAX));
	assert_null(elf_string(&none, 0));
}

static void string_that_is_too_long_is_none(void **state)
{
	char *text = malloc(LONGEST + 2);

	(void)state;
	memset(text, '_', LONGEST + 1);
	text[LONGEST + 1] = '\0';
	assert_int_equal(names_with(text, LONGEST + 2), 0);
	assert_int_equal(names_with(text + 1, LONGEST + 1), 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(string_of_a_table_without_an_end_is_there_where_it_ends_itself),
		cmocka_unit_test(string_beyond_the_table_is_none),
		cmocka_unit_test(string_that_is_too_long_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
