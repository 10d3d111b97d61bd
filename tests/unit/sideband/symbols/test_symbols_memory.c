/*
 * Names of code in memory: those of JIT code are in the process' perf map, those of a vDSO in the
 * vDSO itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procscan.h"
#include "proto/bytes.h"
#include "sideband/symbols/symbols.h"
#include "sideband/timeline/timeline.h"

#define VDSO_SIZE 0x2000

static const char map_of_7[] = "10010 20 early\n10030 10 seven\n10ff0 100 across\n";
static const char map_of_8[] = "10000 1000 eight\n";
static const uint8_t code[0x1000] = {0xc3};

struct fixture {
	struct image_set *images;
	struct symbols *symbols;
};

static int set_up(void **state)
{
	const struct image_source sources[] = {
		{.path = "//anon", .memory = true, .pid = 7, .address = 0x10000},
		{.path = "//anon", .memory = true, .pid = 8, .address = 0x10000},
		{.path = "//anon", .memory = true, .pid = 9, .address = 0x10000},
		{.path = "[vdso]", .vdso = true, .pid = IMAGE_ANY_PID, .address = UINT64_MAX},
		{.path = "//anon", .memory = true, .pid = 7, .address = 0x11000},
	};
	struct image_source given[5];
	struct fixture *f = calloc(1, sizeof(*f));

	for (size_t i = 0; i < 5; i++) {
		given[i] = sources[i];
		given[i].bytes = code;
		given[i].size = sizeof(code);
	}
	given[3].bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	given[3].size = VDSO_SIZE;
	if (image_set_new(given, 5, NULL, &f->images) != 0 ||
	    symbols_new(f->images, &f->symbols) != 0)
		return -1;
	assert_int_equal(symbols_add_map(f->symbols, 8, map_of_8, strlen(map_of_8)), 0);
	assert_int_equal(symbols_add_map(f->symbols, 7, map_of_7, strlen(map_of_7)), 0);
	assert_int_equal(symbols_add_map(f->symbols, 7, map_of_8, strlen(map_of_8)), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	symbols_free(f->symbols);
	image_set_free(f->images);
	free(f);
	return 0;
}

static void check(const struct fixture *f, uint32_t image, uint64_t at, uint64_t offset,
		  uint64_t size, const char *name)
{
	struct symbol s;

	symbols_find(f->symbols, image, at, &s);
	assert_int_equal(s.image, image);
	assert_int_equal(s.offset, offset);
	assert_int_equal(s.size, size);
	if (name)
		assert_string_equal(s.name, name);
	else
		assert_null(s.name);
}

static void symbols_find_in_memory_gives_the_names_of_its_process(void **state)
{
	const struct fixture *f = *state;

	check(f, 0, 0x35, 0x30, 0x10, "seven");
	check(f, 0, 0x10, 0x10, 0x20, "early");
	check(f, 1, 0x35, 0, 0x1000, "eight");
	/* between functions */
	check(f, 0, 0x40, 0x40, 0xfb0, NULL);
	check(f, 0, 0x5, 0, 0x10, NULL);
}

static void symbols_find_function_that_crosses_images_is_cut_at_their_ends(void **state)
{
	const struct fixture *f = *state;

	check(f, 0, 0xff8, 0xff0, 0x10, "across");
	check(f, 4, 0, 0, 0xf0, "across");
}

static void symbols_find_in_memory_without_a_map_gives_no_name(void **state)
{
	check(*state, 2, 0x35, 0x35, 0, NULL);
}

/* The image is this program's own vDSO. */
static void symbols_find_in_vdso_gives_its_own_names(void **state)
{
	const struct fixture *f = *state;
	bool found = false;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	for (uint64_t at = 0; at < VDSO_SIZE; at += 16) {
		struct symbol s;

		symbols_find(f->symbols, 3, at, &s);
		found |= s.name && strcmp(s.name, "__vdso_clock_gettime") == 0;
	}
	assert_true(found);
}

static void image_find_vdso_of_any_process_and_memory_of_its_own(void **state)
{
	const struct fixture *f = *state;
	const struct space_file vdso = {.path = "[vdso]"}, anon = {.path = "//anon"};
	struct space *s = space_new(true);
	struct image_code found;

	space_set_pid(s, 8);
	assert_int_equal(space_map(s, 5, 0x7ffd00000000, VDSO_SIZE, 0, PROT_EXEC, 2, &vdso), 0);
	assert_int_equal(space_map(s, 5, 0x7ffe00000000, 0x4000, 0, PROT_EXEC, 2, &vdso), 0);
	assert_int_equal(space_map(s, 5, 0xf7f00000, VDSO_SIZE, 0, PROT_EXEC, 2, &vdso), 0);
	assert_int_equal(space_map(s, 5, 0x10000, 0x10000, 0x10000, PROT_EXEC, 2, &anon), 0);
	assert_int_equal(image_find(f->images, s, 6, 0x7ffd00000a00, &found), 0);
	assert_int_equal(found.image, 3);
	/* There is no image for a vDSO of another size, nor for one of 32-bit code. */
	assert_int_equal(image_find(f->images, s, 6, 0x7ffe00000a00, &found), IMAGE_ANONYMOUS);
	assert_int_equal(image_find(f->images, s, 6, 0xf7f00a00, &found), IMAGE_ANONYMOUS);
	assert_int_equal(image_find(f->images, s, 6, 0x10800, &found), 0);
	assert_int_equal(found.image, 1);
	/* This part of the mapping was not read. */
	assert_int_equal(image_find(f->images, s, 6, 0x12000, &found), IMAGE_ANONYMOUS);
	space_free(s);
}

static int on_record(void *userdata, const void *record, size_t size)
{
	bytes_put_block(userdata, record, size);
	return 0;
}

/* This process, as the recorder sees it when the recorder starts. */
static void image_find_vdso_of_a_real_process_leads_to_its_names(void **state)
{
	const struct fixture *f = *state;
	uint64_t begin = getauxval(AT_SYSINFO_EHDR), bad, found = 0;
	struct bytes_out records;
	struct timeline *t;
	const struct space *s;

	if (!begin)
		skip();
	bytes_out_init(&records, 1u << 24);
	assert_int_equal(procscan_process("/proc", (uint32_t)getpid(), on_record, &records), 0);
	assert_int_equal(timeline_load(records.data, records.size, &t, &bad), 0);
	s = timeline_space(t, (uint32_t)getpid(), SPACE_NOW - 1);
	assert_non_null(s);
	for (uint64_t at = 0; at < VDSO_SIZE; at += 16) {
		struct image_code where;
		struct symbol symbol;

		assert_int_equal(image_find(f->images, s, SPACE_NOW - 1, begin + at, &where), 0);
		assert_int_equal(where.image, 3);
		assert_int_equal(where.offset + (begin + at - where.address), at);
		symbols_find(f->symbols, where.image, at, &symbol);
		found += symbol.name && strcmp(symbol.name, "__vdso_clock_gettime") == 0;
	}
	assert_true(found > 0);
	timeline_free(t);
	bytes_out_done(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_find_in_memory_gives_the_names_of_its_process),
		cmocka_unit_test(symbols_find_function_that_crosses_images_is_cut_at_their_ends),
		cmocka_unit_test(symbols_find_in_memory_without_a_map_gives_no_name),
		cmocka_unit_test(symbols_find_in_vdso_gives_its_own_names),
		cmocka_unit_test(image_find_vdso_of_any_process_and_memory_of_its_own),
		cmocka_unit_test(image_find_vdso_of_a_real_process_leads_to_its_names),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
