/*
 * sideband/dwarf takes no more memory than there is room for, also where few bytes of DWARF take
 * much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/asan.h"
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "tests/support/child.h"
#include "tests/unit/sideband/dwarf_maker.h"

#define BEGIN 0x1000u
#define SIZE  0x100u
#define MIB   (UINT64_C(1) << 20)
/* Memory besides the room: that taken before, and one list that grows. */
#define SLACK (16 * MIB)

static struct dwarf_maker m;

/* Abbreviations 1 to N. Number OF_UNITS is that of units; the others are as short as possible. */
static void put_abbrevs(unsigned n, unsigned of_units)
{
	for (unsigned i = 1; i <= n; i++) {
		dwarf_put_unsigned(&m.abbrev, i);
		dwarf_put(&m.abbrev, 0x34, i == of_units ? 0 : 4); /* DW_TAG_variable */
		if (i != of_units)
			continue;
		dwarf_put(&m.abbrev, 0x0111, 2); /* DW_TAG_compile_unit with children */
		dwarf_put(&m.abbrev, 0x0111, 2); /* DW_AT_low_pc, DW_FORM_addr */
		dwarf_put(&m.abbrev, 0x0712, 2); /* DW_AT_high_pc, DW_FORM_data8 */
		dwarf_put(&m.abbrev, 0, 2);
	}
	dwarf_put(&m.abbrev, 0, 1);
}

/* A unit whose only entry has abbreviation ABBREV. */
static void put_unit(unsigned abbrev)
{
	struct dwarf_bytes unit = {0};

	dwarf_put(&unit, 4, 2); /* version */
	dwarf_put(&unit, 0, 4); /* .debug_abbrev */
	dwarf_put(&unit, 8, 1); /* address size */
	dwarf_put_unsigned(&unit, abbrev);
	dwarf_put(&unit, BEGIN, 8);
	dwarf_put(&unit, SIZE, 8);
	dwarf_put(&unit, 0, 1);
	dwarf_put(&m.info, unit.n, 4);
	memcpy(m.info.bytes + m.info.n, unit.bytes, unit.n);
	m.info.n += unit.n;
}

/* All units share one table of abbreviations, which libdw reads up to OF_UNITS for each unit. */
static void put_units(unsigned n, unsigned n_abbrevs, unsigned of_units)
{
	m = (struct dwarf_maker){0};
	put_abbrevs(n_abbrevs, of_units);
	while (n-- > 0)
		put_unit(of_units);
}

/* --- Line tables --- */

#define N_ROWS	30000u
#define N_UNITS 200u

/* Adjacent units that share one line table. Rows are kept only if the table ENDS its sequence. */
static void put_units_with_lines(bool ends)
{
	size_t begin;

	dwarf_maker_init(&m, 4, 0);
	for (unsigned i = 0; i < N_UNITS; i++) {
		if (i > 0) {
			const size_t before = m.unit;

			m.unit = m.info.n;
			memcpy(m.info.bytes + m.unit, m.info.bytes + before, 11);
			m.info.n += 11;
		}
		dwarf_maker_unit(&m, BEGIN + i * SIZE, SIZE);
		dwarf_put(&m.info, 0, 1);
		dwarf_maker_end_unit(&m);
	}
	begin = dwarf_maker_lines(&m);
	dwarf_maker_row(&m, BEGIN, 0, 1, 1);
	for (unsigned i = 0; i < N_ROWS; i++)
		dwarf_put(&m.line, 13 + 4 + 12, 1); /* the next line and the next address */
	if (ends)
		dwarf_maker_end_sequence(&m, N_UNITS * SIZE);
	dwarf_maker_end_lines(&m, begin);
}

static uint64_t heap(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* The bytes of heap that the lines of all units take within ROOM. */
static uint64_t find_in_all_units(uint64_t room, size_t *ret_found)
{
	uint64_t left = room, before, taken;
	struct elf_bytes e = {.room = &left};
	struct dwarf_frame frame;
	struct dwarf_file *f;

	e.bytes = dwarf_maker_file(&m, &e.size);
	assert_int_equal(dwarf_file_open(&e, &f), 0);
	before = heap();
	*ret_found = 0;
	for (unsigned i = 0; i < N_UNITS; i++)
		*ret_found += dwarf_file_find(f, BEGIN + i * SIZE, &frame, 1);
	taken = heap() - before;
	/* All of it is counted. */
	assert_true(room - left + MIB >= taken);
	dwarf_file_free(f);
	assert_int_equal(left, room);
	free((void *)(uintptr_t)e.bytes);
	return taken;
}

static void find_in_lines_that_are_thrown_away_keeps_none(void **state)
{
	size_t found;

	(void)state;
#if BUILT_WITH_ASAN
	skip();
#endif
	put_units_with_lines(false);
	assert_true(find_in_all_units(64 * MIB, &found) < MIB);
	assert_int_equal(found, 0);
}

static void find_in_lines_of_many_units_ends_with_the_room(void **state)
{
	size_t found;

	(void)state;
#if BUILT_WITH_ASAN
	skip();
#endif
	put_units_with_lines(true);
	assert_true(find_in_all_units(8 * MIB, &found) < 8 * MIB);
	assert_in_range(found, 1, N_UNITS - 1);
	assert_true(find_in_all_units(1024 * MIB, &found) > 64 * MIB);
	assert_int_equal(found, N_UNITS);
}

/* --- Units --- */

/* Opens with ROOM and SLACK bytes of memory, as ptsnap-decode does. Returns 0 if all is as
 * expected. */
static int open_in_a_child(uint64_t room, int expected)
{
	struct elf_bytes e = {.room = &room};
	struct dwarf_frame frame;
	struct dwarf_file *f;
	uint64_t before = room;

	e.bytes = dwarf_maker_file(&m, &e.size);
#if !BUILT_WITH_ASAN
	struct rlimit limit = {room + SLACK, room + SLACK};

	if (setrlimit(RLIMIT_DATA, &limit) < 0)
		return 10;
#endif
	if (dwarf_file_open(&e, &f) != expected)
		return 11;
	if (expected != 0)
		return room == before ? 0 : 12;
	if (room > before || dwarf_file_find(f, BEGIN, &frame, 1) > 1)
		return 13;
	dwarf_file_free(f);
	return room == before ? 0 : 14;
}

static void expect_open(uint64_t room, int expected)
{
	pid_t pid = test_fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(open_in_a_child(room, expected));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void open_of_many_units_with_many_abbreviations_ends_in_time(void **state)
{
	(void)state;
#if BUILT_WITH_ASAN
	skip(); /* the sanitizer's heap does not tell its size */
#endif
	/* The units together take more than a hundred megabytes. */
	put_units(800, 2000, 2000);
	expect_open(32 * MIB, DWARF_LARGE);
	expect_open(8 * MIB, DWARF_LARGE);
}

static void open_of_as_many_as_there_is_room_for_is_done(void **state)
{
	(void)state;
	put_units(20, 2000, 2000);
	expect_open(32 * MIB, 0);
	put_units(800, 2, 2);
	expect_open(32 * MIB, 0);
	/* As with link-time optimization: one table for all units, each using its beginning. */
	put_units(800, 2000, 1);
	expect_open(32 * MIB, 0);
}

static void open_of_one_that_may_be_too_much_is_not_tried(void **state)
{
	(void)state;
	put_units(1, 2000, 2000);
	expect_open(100000, DWARF_LARGE);
	expect_open(2 * MIB, 0);
}

/* Without the limits of a decoder. */
static void open_without_a_room_has_its_own_limits(void **state)
{
	struct elf_bytes e = {0};
	struct dwarf_file *f;

	(void)state;
	put_units(20, 2000, 2000);
	e.bytes = dwarf_maker_file(&m, &e.size);
	assert_int_equal(dwarf_file_open(&e, &f), 0);
	dwarf_file_free(f);
	free((void *)(uintptr_t)e.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_of_many_units_with_many_abbreviations_ends_in_time),
		cmocka_unit_test(open_of_as_many_as_there_is_room_for_is_done),
		cmocka_unit_test(open_of_one_that_may_be_too_much_is_not_tried),
		cmocka_unit_test(open_without_a_room_has_its_own_limits),
		cmocka_unit_test(find_in_lines_that_are_thrown_away_keeps_none),
		cmocka_unit_test(find_in_lines_of_many_units_ends_with_the_room),
	};

	return cmocka_run_group_tests_name("dwarf_room", tests, NULL, NULL);
}
