/*
 * sideband/dwarf on DWARF made by hand, and on this program's own if it has some.
 * tests/oracle/dwarf.py compares with addr2line of binutils.
 */
#include "sideband/dwarf/dwarf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>

#include "sideband/elf/elf.h"
#include "tests/unit/sideband/dwarf_maker.h"
#include "tests/unit/sideband/self.h"

static struct dwarf_maker m;

static struct dwarf_file *open_bytes(const uint8_t *bytes, size_t size)
{
	const struct elf_bytes e = {.bytes = bytes, .size = size};
	struct dwarf_file *f = NULL;

	assert_int_equal(dwarf_file_open(&e, &f), 0);
	return f;
}

static void assert_frame(const struct dwarf_frame *frame, const char *function, const char *file,
			 uint32_t line)
{
	if (function)
		assert_string_equal(frame->function, function);
	else
		assert_null(frame->function);
	if (file)
		assert_string_equal(frame->file, file);
	else
		assert_null(frame->file);
	assert_int_equal(frame->line, line);
}

static void put_lines(void)
{
	size_t begin = dwarf_maker_lines(&m);

	dwarf_maker_row(&m, 0x1000, 0, 1, 9); /* a.c:10 */
	dwarf_maker_row(&m, 0, 0x10, 2, 20);  /* b.h:30 */
	dwarf_maker_row(&m, 0, 0x10, 3, -25); /* /c.h:5 */
	dwarf_maker_row(&m, 0, 0, 9, 1);      /* replaced by the next row */
	dwarf_maker_row(&m, 0, 0, 1, 6);      /* a.c:12 */
	dwarf_maker_row(&m, 0, 0x10, 17, 88); /* ?:100 */
	dwarf_maker_end_sequence(&m, 0x10);
	dwarf_maker_end_lines(&m, begin);
}

/* "outer" [1000, 1040) contains a block without ranges, the block contains the inlined "second"
 * [1010, 1030), and "second" contains the inlined "first" [1010, 1020). */
static void put_functions(void)
{
	uint32_t first, second;

	dwarf_maker_unit(&m, 0x1000, 0x80);
	first = dwarf_maker_abstract(&m, "first", "_Z5firstv");
	second = dwarf_maker_abstract(&m, "second", "");
	dwarf_maker_entry(&m, SHAPE_SPACE);
	dwarf_put_text(&m.info, "space");
	dwarf_maker_function(&m, "outer", 0x1000, 0x40);
	dwarf_maker_entry(&m, SHAPE_BLOCK);
	dwarf_maker_inlined(&m, second, 0x1010, 0x20, 77);
	dwarf_maker_inlined(&m, first, 0x1010, 0x10, 88);
	dwarf_put(&m.info, 0, 6);
	dwarf_maker_end_unit(&m);
}

static uint8_t *make(size_t *ret_size)
{
	dwarf_maker_init(&m, 4, 0);
	put_functions();
	put_lines();
	return dwarf_maker_file(&m, ret_size);
}

static void check_chain(struct dwarf_file *f)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];

	assert_int_equal(dwarf_file_find(f, 0x1010, frames, ARRAY_SIZE(frames)), 3);
	assert_frame(&frames[0], "_Z5firstv", "/src/sub/b.h", 30);
	assert_frame(&frames[1], "second", "/src/a.c", 88);
	assert_int_equal(frames[1].column, 7);
	assert_frame(&frames[2], "outer", "/src/a.c", 77);
	assert_int_equal(dwarf_file_find(f, 0x1020, frames, ARRAY_SIZE(frames)), 2);
	assert_frame(&frames[0], "second", "/src/a.c", 12);
	assert_frame(&frames[1], "outer", "/src/a.c", 77);
}

static void find_in_inlined_functions_gives_the_whole_chain(void **state)
{
	size_t size;
	uint8_t *bytes = make(&size);
	struct dwarf_file *f = open_bytes(bytes, size);
	struct dwarf_frame frames[DWARF_MAX_FRAMES];

	(void)state;
	check_chain(f);
	assert_int_equal(dwarf_file_find(f, 0x1000, frames, ARRAY_SIZE(frames)), 1);
	assert_frame(&frames[0], "outer", "/src/a.c", 10);
	/* The innermost frames of a longer chain are returned. */
	assert_int_equal(dwarf_file_find(f, 0x1010, frames, 2), 2);
	assert_frame(&frames[0], "_Z5firstv", "/src/sub/b.h", 30);
	assert_frame(&frames[1], "second", "/src/a.c", 88);
	assert_int_equal(dwarf_file_find(f, 0x1010, frames, 0), 0);
	dwarf_file_free(f);
	free(bytes);
}

static void find_where_something_is_unknown_gives_the_rest(void **state)
{
	size_t size;
	uint8_t *bytes = make(&size);
	struct dwarf_file *f = open_bytes(bytes, size);
	struct dwarf_frame frames[DWARF_MAX_FRAMES];

	(void)state;
	/* The table does not have the file; the unit does not have the function. */
	assert_int_equal(dwarf_file_find(f, 0x1030, frames, ARRAY_SIZE(frames)), 1);
	assert_frame(&frames[0], "outer", NULL, 100);
	assert_int_equal(dwarf_file_find(f, 0x1040, frames, ARRAY_SIZE(frames)), 0);
	assert_int_equal(dwarf_file_find(f, 0xfff, frames, ARRAY_SIZE(frames)), 0);
	assert_int_equal(dwarf_file_find(f, 0x1080, frames, ARRAY_SIZE(frames)), 0);
	assert_int_equal(dwarf_file_find(f, UINT64_MAX, frames, ARRAY_SIZE(frames)), 0);
	dwarf_file_free(f);
	free(bytes);
}

/* A function that the linker left out begins at zero, and may overlap others. */
static void find_in_what_lies_over_another_takes_the_smaller_one(void **state)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct dwarf_file *f;
	uint8_t *bytes;
	size_t size, begin;

	(void)state;
	dwarf_maker_init(&m, 4, 0);
	dwarf_maker_unit(&m, 0, 0x4000);
	dwarf_maker_function(&m, "gone", 0, 0x3000);
	dwarf_put(&m.info, 0, 1);
	dwarf_maker_function(&m, "there", 0x1000, 0x40);
	dwarf_put(&m.info, 0, 2);
	dwarf_maker_end_unit(&m);
	begin = dwarf_maker_lines(&m);
	dwarf_maker_row(&m, 0, 0, 1, 1);
	dwarf_maker_row(&m, 0, 0x1010, 2, 1);
	dwarf_maker_end_sequence(&m, 0x1000);
	dwarf_maker_row(&m, 0x1000, 0, 1, 9);
	dwarf_maker_end_sequence(&m, 0x40);
	dwarf_maker_end_lines(&m, begin);
	bytes = dwarf_maker_file(&m, &size);
	f = open_bytes(bytes, size);
	assert_int_equal(dwarf_file_find(f, 0x1020, frames, ARRAY_SIZE(frames)), 1);
	assert_frame(&frames[0], "there", "/src/a.c", 10);
	dwarf_file_free(f);
	free(bytes);
}

/* Old compilers and assemblers make units without ranges. */
static void find_in_a_unit_without_ranges_goes_by_its_functions(void **state)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct dwarf_file *f;
	uint8_t *bytes;
	size_t size;

	(void)state;
	dwarf_maker_init(&m, 4, 0);
	dwarf_maker_entry(&m, SHAPE_LINKED);
	dwarf_put(&m.info, 0, 4);
	dwarf_maker_function(&m, "outer", 0x1000, 0x40);
	dwarf_put(&m.info, 0, 2);
	dwarf_maker_end_unit(&m);
	put_lines();
	bytes = dwarf_maker_file(&m, &size);
	f = open_bytes(bytes, size);
	assert_int_equal(dwarf_file_find(f, 0x1010, frames, ARRAY_SIZE(frames)), 1);
	/* The compilation directory is unknown. */
	assert_frame(&frames[0], "outer", "sub/b.h", 30);
	dwarf_file_free(f);
	free(bytes);
}

static void open_of_packed_sections_unpacks_them(void **state)
{
	static const enum dwarf_packing all[] = {DWARF_ZLIB, DWARF_ZSTD, DWARF_OLD};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct dwarf_file *f;
		uint8_t *bytes;
		size_t size;

		dwarf_maker_init(&m, 4, 0);
		put_functions();
		put_lines();
		m.packing = all[i];
		bytes = dwarf_maker_file(&m, &size);
		f = open_bytes(bytes, size);
		check_chain(f);
		dwarf_file_free(f);
		free(bytes);
	}
}

static void open_of_what_has_no_dwarf_says_none(void **state)
{
	static const uint8_t zeros[4096];
	const struct elf_bytes none = {.bytes = zeros, .size = sizeof(zeros)};
	struct file ls = file_map("/bin/ls");
	const struct elf_bytes stripped = {.bytes = ls.bytes, .size = ls.size};
	struct dwarf_file *f;

	(void)state;
	assert_int_equal(dwarf_file_open(&none, &f), DWARF_NONE);
	assert_int_equal(dwarf_file_open(&stripped, &f), DWARF_NONE);
	file_unmap(&ls);
}

/* --- This program --- */

__attribute__((always_inline)) static inline int inlined(int x)
{
	__asm__ volatile("nop" : "+r"(x));
	return x;
}

__attribute__((noinline)) int test_dwarf_outer(int x);

enum { LINE = __LINE__ };
__attribute__((noinline)) int test_dwarf_outer(int x)
{
	__asm__ volatile("" : "+r"(x));
	return inlined(x) + 1;
}

static void check_self(struct dwarf_file *f, uint64_t address)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	bool found = false;

	assert_int_equal(dwarf_file_find(f, address, frames, ARRAY_SIZE(frames)), 1);
	assert_string_equal(frames[0].function, "test_dwarf_outer");
	assert_in_range(frames[0].line, LINE + 1, LINE + 2);
	assert_non_null(strstr(frames[0].file, "test_dwarf.c"));
	assert_int_equal(frames[0].file[0], '/');
	for (uint64_t i = 0; i < 64 && !found; i++)
		found = dwarf_file_find(f, address + i, frames, ARRAY_SIZE(frames)) == 2 &&
			strcmp(frames[0].function, "inlined") == 0;
	assert_true(found);
	assert_string_equal(frames[1].function, "test_dwarf_outer");
	assert_int_equal(frames[1].line, LINE + 4);
}

static void find_in_this_program_gives_its_lines(void **state)
{
	struct file self = file_map("/proc/self/exe");
	const struct elf_bytes e = {.bytes = self.bytes, .size = self.size};
	struct elf_file *elf;
	struct dwarf_file *f;
	uint64_t offset, address;
	char path[4096];

	(void)state;
	assert_int_equal(test_dwarf_outer(1), 2);
	if (dwarf_file_open(&e, &f) != 0)
		skip();
	assert_true(file_of_address((void *)test_dwarf_outer, path, &offset));
	assert_int_equal(elf_file_new(self.bytes, self.size, &elf), 0);
	assert_true(elf_file_address(elf, offset, &address));
	check_self(f, address);
	elf_file_free(elf);
	dwarf_file_free(f);
	file_unmap(&self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_in_inlined_functions_gives_the_whole_chain),
		cmocka_unit_test(find_where_something_is_unknown_gives_the_rest),
		cmocka_unit_test(find_in_what_lies_over_another_takes_the_smaller_one),
		cmocka_unit_test(find_in_a_unit_without_ranges_goes_by_its_functions),
		cmocka_unit_test(open_of_packed_sections_unpacks_them),
		cmocka_unit_test(open_of_what_has_no_dwarf_says_none),
		cmocka_unit_test(find_in_this_program_gives_its_lines),
	};

	return cmocka_run_group_tests_name("dwarf", tests, NULL, NULL);
}
