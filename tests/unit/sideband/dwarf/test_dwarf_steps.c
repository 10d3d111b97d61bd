/*
 * Limits of sideband/dwarf on time, counted in bytes that it looks at and never by the clock, and
 * limits that several files share.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <elf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "tests/unit/sideband/dwarf_maker.h"

#define BEGIN 0x1000u
#define SIZE  0x100u

static struct dwarf_maker m;

/* --- Abbreviations --- */

#define UNIT	 1u
#define VARIABLE 2u
#define FUNCTION 3u

static void begin_abbrev(unsigned code, unsigned tag, bool children)
{
	dwarf_put_unsigned(&m.abbrev, code);
	dwarf_put_unsigned(&m.abbrev, tag);
	dwarf_put(&m.abbrev, children, 1);
}

static void put_attribute(unsigned name, unsigned form)
{
	dwarf_put_unsigned(&m.abbrev, name);
	dwarf_put_unsigned(&m.abbrev, form);
}

static void put_code(void)
{
	put_attribute(DW_AT_low_pc, DW_FORM_addr);
	put_attribute(DW_AT_high_pc, DW_FORM_data4);
	put_attribute(0, 0);
}

/* Entries with abbreviation VARIABLE have WIDTH attributes, and are one byte if VARIABLE is less
 * than 128. */
static void put_abbrevs(unsigned width, unsigned variable)
{
	begin_abbrev(UNIT, DW_TAG_compile_unit, true);
	put_code();
	begin_abbrev(variable, DW_TAG_variable, false);
	for (unsigned i = 0; i < width; i++)
		put_attribute(DW_AT_external, DW_FORM_flag_present);
	put_attribute(0, 0);
	begin_abbrev(FUNCTION, DW_TAG_subprogram, false);
	put_code();
	dwarf_put(&m.abbrev, 0, 1);
}

static void put_code_at(unsigned abbrev)
{
	dwarf_put_unsigned(&m.info, abbrev);
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
}

static void begin_unit(void)
{
	dwarf_put(&m.info, 0, 4);
	dwarf_put(&m.info, 4, 2); /* version */
	dwarf_put(&m.info, 0, 4); /* .debug_abbrev */
	dwarf_put(&m.info, 8, 1); /* address size */
	put_code_at(UNIT);
}

/* A unit with N variables and one function behind them. */
static void put_variables(unsigned width, unsigned n)
{
	m = (struct dwarf_maker){0};
	put_abbrevs(width, VARIABLE);
	begin_unit();
	while (n-- > 0)
		dwarf_put(&m.info, VARIABLE, 1);
	put_code_at(FUNCTION);
	dwarf_put(&m.info, 0, 1);
	dwarf_maker_end_unit(&m);
}

/* --- Opening --- */

static int open_made(struct dwarf_limits *limits)
{
	struct elf_bytes e = {0};
	uint8_t *bytes = dwarf_maker_file(&m, &e.size);
	struct dwarf_frame frame;
	struct dwarf_file *f;
	int r;

	e.bytes = bytes;
	r = dwarf_file_open_within(&e, limits, &f);
	if (r == 0) {
		r = 100 + (int)dwarf_file_find(f, BEGIN, &frame, 1);
		dwarf_file_free(f);
	}
	free(bytes);
	return r;
}

enum { FOUND_NONE = 100, FOUND = 101 };

static void open_of_an_abbreviation_that_is_very_wide_is_not_done(void **state)
{
	(void)state;
	put_variables(256, 1);
	assert_int_equal(open_made(NULL), FOUND);
	put_variables(257, 1);
	assert_int_equal(open_made(NULL), DWARF_NONE);
	put_variables(10000, 1);
	assert_int_equal(open_made(NULL), DWARF_NONE);
}

static void open_of_abbreviations_with_numbers_far_apart_is_not_done(void **state)
{
	(void)state;
	m = (struct dwarf_maker){0};
	put_abbrevs(1, 60000);
	begin_unit();
	put_code_at(FUNCTION);
	dwarf_put(&m.info, 0, 1);
	dwarf_maker_end_unit(&m);
	assert_int_equal(open_made(NULL), FOUND);
	m.abbrev.n = 0;
	put_abbrevs(1, 70000);
	assert_int_equal(open_made(NULL), DWARF_NONE);
}

/* Some readers take a single zero for the end of the attributes, and some do not. */
static void open_of_an_abbreviation_that_may_end_is_not_done(void **state)
{
	(void)state;
	put_variables(1, 1);
	m.abbrev.n = 0;
	begin_abbrev(UNIT, DW_TAG_compile_unit, true);
	put_attribute(0, DW_FORM_flag_present);
	put_code();
	put_abbrevs(1, VARIABLE);
	assert_int_equal(open_made(NULL), DWARF_NONE);
}

/* --- Asking for the end --- */

struct asked {
	size_t n, last; /* calls so far; calls that are answered by false */
};

static bool ask(void *userdata)
{
	struct asked *a = userdata;

	return ++a->n > a->last;
}

static size_t count_asked(unsigned width, unsigned n, int expected)
{
	struct asked a = {0, 1000000};
	struct dwarf_limits limits = {UINT64_MAX, ask, &a};

	put_variables(width, n);
	assert_int_equal(open_made(&limits), expected);
	return a.n;
}

static void find_counts_attributes_as_entries(void **state)
{
	(void)state;
	/* Less than 64 KiB of entries, but with 200 attributes each. */
	assert_int_equal(count_asked(1, 40000, FOUND), 0);
	assert_in_range(count_asked(200, 40000, FOUND), 4, 20);
}

static void find_ends_where_it_is_enough(void **state)
{
	struct asked a = {0, 0};
	struct dwarf_limits limits = {UINT64_MAX, ask, &a};

	(void)state;
	put_variables(200, 40000);
	assert_int_equal(open_made(&limits), FOUND_NONE);
	/* The search goes no further then. */
	assert_in_range(a.n, 1, 3);
}

/* --- Several files --- */

static bool bring(void *userdata, uint64_t offset, uint64_t size)
{
	(void)offset;
	*(uint64_t *)userdata += size;
	return true;
}

static int open_brought(struct dwarf_limits *limits, uint64_t *ret_brought)
{
	struct elf_bytes e = {.need = bring, .userdata = ret_brought};
	uint8_t *bytes = dwarf_maker_file(&m, &e.size);
	struct dwarf_file *f;
	int r;

	*ret_brought = 0;
	e.bytes = bytes;
	r = dwarf_file_open_within(&e, limits, &f);
	if (r == 0)
		dwarf_file_free(f);
	free(bytes);
	return r;
}

static void open_of_several_files_brings_no_more_than_is_left(void **state)
{
	struct dwarf_limits limits = {0};
	uint64_t all, brought;

	(void)state;
	put_variables(10, 30000);
	assert_int_equal(open_brought(NULL, &all), 0);
	limits.left = 2 * (m.info.n + m.abbrev.n) + m.info.n / 2;
	assert_int_equal(open_brought(&limits, &brought), 0);
	assert_int_equal(brought, all);
	assert_int_equal(open_brought(&limits, &brought), 0);
	assert_int_equal(limits.left, m.info.n / 2);
	assert_int_equal(open_brought(&limits, &brought), DWARF_LARGE);
	assert_true(brought + m.info.n <= all);
}

/* --- Behind the end --- */

/* Moves the section with the bytes of FROM to the end of the file of SIZE bytes at BYTES, where
 * there is space for them. Returns the new size. */
static size_t move_to_end(uint8_t *bytes, size_t size, const struct dwarf_bytes *from)
{
	Elf64_Ehdr h;
	Elf64_Shdr s;

	memcpy(&h, bytes, sizeof(h));
	for (size_t i = 0; i < h.e_shnum; i++) {
		uint8_t *at = bytes + h.e_shoff + i * sizeof(s);

		memcpy(&s, at, sizeof(s));
		if (s.sh_size != from->n || memcmp(bytes + s.sh_offset, from->bytes, from->n) != 0)
			continue;
		s.sh_offset = size;
		memcpy(at, &s, sizeof(s));
		memcpy(bytes + size, from->bytes, from->n);
		return size + from->n;
	}
	fail();
	return 0;
}

/* libdw reads the length of an expression before it checks that the length is within the section.
 */
static void put_cut_expression(void)
{
	m = (struct dwarf_maker){0};
	begin_abbrev(UNIT, DW_TAG_compile_unit, true);
	put_code();
	begin_abbrev(VARIABLE, DW_TAG_variable, false);
	put_attribute(DW_AT_location, DW_FORM_exprloc);
	put_attribute(0, 0);
	dwarf_put(&m.abbrev, 0, 1);
	begin_unit();
	dwarf_put(&m.info, VARIABLE, 1);
	dwarf_maker_end_unit(&m);
}

static void find_in_what_is_cut_at_the_end_of_the_file_reads_nothing_behind_it(void **state)
{
	const size_t area = 1u << 20, page = 4096;
	uint8_t *map =
		mmap(NULL, area + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct dwarf_frame frame;
	struct elf_bytes e = {0};
	struct dwarf_file *f;
	uint8_t *made;
	size_t size;

	(void)state;
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map + area, page, PROT_NONE), 0);
	put_cut_expression();
	made = dwarf_maker_file(&m, &size);
	e.bytes = map + area - size - m.info.n;
	memcpy(map + area - size - m.info.n, made, size);
	e.size = move_to_end(map + area - size - m.info.n, size, &m.info);
	free(made);
	assert_ptr_equal(e.bytes + e.size, map + area);
	assert_int_equal(dwarf_file_open(&e, &f), 0);
	dwarf_file_find(f, BEGIN, &frame, 1);
	dwarf_file_free(f);
	munmap(map, area + page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_of_an_abbreviation_that_is_very_wide_is_not_done),
		cmocka_unit_test(open_of_abbreviations_with_numbers_far_apart_is_not_done),
		cmocka_unit_test(open_of_an_abbreviation_that_may_end_is_not_done),
		cmocka_unit_test(find_counts_attributes_as_entries),
		cmocka_unit_test(find_ends_where_it_is_enough),
		cmocka_unit_test(open_of_several_files_brings_no_more_than_is_left),
		cmocka_unit_test(
			find_in_what_is_cut_at_the_end_of_the_file_reads_nothing_behind_it),
	};

	return cmocka_run_group_tests_name("dwarf_steps", tests, NULL, NULL);
}
