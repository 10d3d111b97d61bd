/*
 * symbols_find() on real files: every place in the code belongs to exactly one function.
 */
#include "sideband/symbols/symbols.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sideband/elf/elf.h"
#include "tests/unit/sideband/self.h"

__attribute__((noinline)) int test_symbols_known_function(int x);

__attribute__((noinline)) int test_symbols_known_function(int x)
{
	__asm__ volatile("nop\n\tnop" : "+r"(x));
	return x + 1;
}

struct fixture {
	struct file files[3];
	struct image_set *images;
	struct symbols *symbols;
};

static const uint8_t no_elf[] = "#!/bin/sh\n";

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct image_source sources[6] = {{.path = "/self"},   {.path = "/libc"},
					  {.path = "/python"}, {.path = "/script"},
					  {.path = "/gone"},   {.path = "/middle"}};
	char path[4096];
	uint64_t offset;

	f->files[0] = file_map("/proc/self/exe");
	if (file_of_address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), path, &offset))
		f->files[1] = file_map(path);
	f->files[2] = file_map("/usr/bin/python3");
	for (size_t i = 0; i < 3; i++) {
		sources[i].bytes = f->files[i].bytes;
		sources[i].size = f->files[i].size;
	}
	sources[3].bytes = no_elf;
	sources[3].size = sizeof(no_elf);
	sources[5] = sources[0];
	sources[5].path = "/middle";
	sources[5].offset = 0x1000;
	if (image_set_new(sources, 6, NULL, &f->images) != 0 ||
	    symbols_new(f->images, &f->symbols) != 0)
		return -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	symbols_free(f->symbols);
	image_set_free(f->images);
	for (size_t i = 0; i < 3; i++)
		file_unmap(&f->files[i]);
	free(f);
	return 0;
}

static void leave_out_reads_nothing(void **state)
{
	static const char map[] = "1000 10 jitted\n";
	struct fixture *f = *state;
	struct perfmap_function function;
	struct symbol s;
	uint64_t offset;
	size_t size;
	char path[4096];

	if (!file_of_address((void *)(uintptr_t)test_symbols_known_function, path, &offset))
		skip();
	assert_int_equal(symbols_add_map(f->symbols, 7, map, sizeof(map) - 1), 0);
	symbols_leave_out(f->symbols);
	symbols_find(f->symbols, 0, offset, &s);
	assert_null(s.name);
	assert_int_equal(s.offset, 0);
	assert_int_equal(s.size, f->files[0].size);
	symbols_find(f->symbols, 0, f->files[0].size, &s);
	assert_int_equal(s.offset, f->files[0].size);
	assert_int_equal(s.size, 0);
	assert_null(symbols_build_id(f->symbols, 0, &size));
	assert_false(symbols_has_map(f->symbols, 7));
	assert_false(symbols_find_in_map(f->symbols, 7, 0x1000, &function));
}

static void find_gives_the_function_around_an_offset(void **state)
{
	struct fixture *f = *state;
	struct symbol s;
	uint64_t offset;
	char path[4096];

	assert_int_equal(test_symbols_known_function(1), 2);
	assert_true(file_of_address((void *)test_symbols_known_function, path, &offset));
	for (uint64_t i = 0; i < 3; i++) {
		symbols_find(f->symbols, 0, offset + i, &s);
		assert_string_equal(s.name, "test_symbols_known_function");
		assert_int_equal(s.offset, offset);
		assert_true(i < s.size);
		assert_int_equal(s.image, 0);
	}
	assert_true(file_of_address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), path, &offset));
	symbols_find(f->symbols, 1, offset + 1, &s);
	assert_string_equal(s.name, "gnu_get_libc_version");
}

/* From one end of the file to the other, functions follow each other without a gap or an overlap,
 * and each is found from its last byte, too. */
static void find_divides_all_code_among_functions(void **state)
{
	struct fixture *f = *state;

	for (uint32_t image = 0; image < 2; image++) {
		uint64_t size = f->files[image].size;
		size_t named = 0, unnamed = 0, unbounded = 0;
		struct symbol s, last;

		for (uint64_t at = 0; at < size && named < 3000;
		     at = s.size ? s.offset + s.size : at + 1) {
			symbols_find(f->symbols, image, at, &s);
			assert_true(s.size == 0 || at - s.offset < s.size);
			if (s.size == 0) {
				assert_int_equal(s.offset, at);
				assert_null(s.name);
				continue;
			}
			symbols_find(f->symbols, image, s.offset + s.size - 1, &last);
			named += s.name != NULL;
			unnamed += s.name == NULL;
			/* Inner symbols may share the end. */
			assert_true(last.offset >= s.offset);
			assert_true(!s.unbounded || last.offset == s.offset);
			assert_false(s.name && s.unbounded);
			unbounded += s.unbounded;
		}
		assert_true(named > 10);
		assert_true(unbounded > 0);
		assert_true(unnamed > unbounded);
	}
}

/* The last byte of a symbol with a size belongs to it, the next byte does not. */
static void find_ends_a_function_at_its_size(void **state)
{
	struct fixture *f = *state;
	const struct elf_symbol *symbols;
	struct elf_file *elf;
	size_t n, checked = 0;

	assert_int_equal(elf_file_new(f->files[1].bytes, f->files[1].size, &elf), 0);
	symbols = elf_file_symbols(elf, &n);
	for (size_t i = 0; i + 1 < n; i++) {
		uint64_t end = symbols[i].offset + symbols[i].size;
		struct symbol s;

		if (symbols[i].size == 0 || end >= symbols[i + 1].offset)
			continue;
		symbols_find(f->symbols, 1, end - 1, &s);
		assert_int_equal(s.offset, symbols[i].offset);
		assert_int_equal(!s.name, !symbols[i].name);
		assert_int_equal(s.size, symbols[i].size);
		assert_false(s.unbounded);
		symbols_find(f->symbols, 1, end, &s);
		assert_int_not_equal(s.offset, symbols[i].offset);
		checked++;
	}
	assert_true(checked > 100);
	elf_file_free(elf);
}

static void find_without_symbols_gives_the_offset(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint32_t image;
		uint64_t offset;
	} cases[] = {{0, 0},	  {0, UINT64_MAX}, {3, 4},	   {4, 0x1000},
		     {5, 0x2000}, {6, 1},	   {UINT32_MAX, 1}};
	struct symbol s;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		symbols_find(f->symbols, cases[i].image, cases[i].offset, &s);
		assert_int_equal(s.image, cases[i].image);
		assert_int_equal(s.offset, cases[i].offset);
		assert_null(s.name);
	}
}

static void build_id_is_known_for_elf_files_only(void **state)
{
	struct fixture *f = *state;
	size_t size;

	assert_non_null(symbols_build_id(f->symbols, 1, &size));
	assert_int_equal(size, 20);
	assert_null(symbols_build_id(f->symbols, 3, &size));
	assert_int_equal(size, 0);
	assert_null(symbols_build_id(f->symbols, 4, &size));
	assert_null(symbols_build_id(f->symbols, 77, &size));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leave_out_reads_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(find_gives_the_function_around_an_offset, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(find_divides_all_code_among_functions, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(find_ends_a_function_at_its_size, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(find_without_symbols_gives_the_offset, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(build_id_is_known_for_elf_files_only, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
