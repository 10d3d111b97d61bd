/*
 * image_find() and image_index(): which bytes a mapping shows, or why it shows none.
 */
#include "sideband/symbols/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

static uint8_t bytes[0x3000];

static const struct image_source sources[] = {
	{.path = "/a",
	 .maj = 8,
	 .min = 1,
	 .ino = 10,
	 .ino_generation = 3,
	 .bytes = bytes,
	 .size = sizeof(bytes)},
	{.path = "/a", .maj = 8, .min = 1, .ino = 11, .bytes = bytes, .size = 0x1800},
	{.path = "/only-path", .bytes = bytes, .size = sizeof(bytes)},
	{.path = "/gone", .ino = 12, .missing = "deleted"},
	{.path = "/part", .ino = 13, .bytes = bytes, .size = 0x1000, .offset = 0x5000},
	{.path = "[vdso]", .bytes = bytes, .size = 0x1000},
	{.path = "/a",
	 .maj = 8,
	 .min = 1,
	 .ino = 10,
	 .ino_generation = 4,
	 .bytes = bytes,
	 .size = sizeof(bytes)},
};

static struct image_set *new_set(void)
{
	struct image_set *s = NULL;

	assert_int_equal(image_set_new(sources, ARRAY_SIZE(sources), NULL, &s), 0);
	return s;
}

static void index_is_by_inode_else_by_path(void **state)
{
	static const struct {
		struct space_file file;
		uint32_t image;
	} cases[] = {
		{{.maj = 8, .min = 1, .ino = 10, .ino_generation = 3, .path = "/a"}, 0},
		{{.maj = 8, .min = 1, .ino = 10, .ino_generation = 4, .path = "/x"}, 6},
		/* /proc/PID/maps has no generation. */
		{{.maj = 8, .min = 1, .ino = 10, .path = "/a"}, 0},
		{{.maj = 8, .min = 1, .ino = 11, .ino_generation = 9, .path = "/a"}, 1},
		/* Another file with that path (upgraded), and another device. */
		{{.maj = 8, .min = 1, .ino = 99, .path = "/a"}, UINT32_MAX},
		{{.maj = 9, .min = 1, .ino = 10, .path = "/a"}, UINT32_MAX},
		{{.maj = 8, .min = 1, .ino = 10, .ino_generation = 5, .path = "/a"}, UINT32_MAX},
		{{.path = "/only-path"}, 2},
		{{.path = "/a"}, 0},
		{{.maj = 8, .min = 1, .ino = 77, .path = "/only-path"}, 2},
		{{.path = "/none"}, UINT32_MAX},
	};
	struct image_set *s = new_set();

	(void)state;
	for (int twice = 0; twice < 2; twice++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			assert_int_equal(image_index(s, &cases[i].file), cases[i].image);
	image_set_free(s);
}

/* A library was replaced under its path; the recorder has both files, or only the old one. */
static void index_by_path_goes_by_the_build_id(void **state)
{
	static const struct image_source both[] = {
		{.path = "/lib", .maj = 8, .ino = 1},
		{.path = "/lib", .maj = 8, .ino = 2, .build_id_size = 20, .build_id = {1}},
		{.path = "/lib", .build_id_size = 20, .build_id = {2}},
		{.path = "/other", .build_id_size = 20, .build_id = {3}},
	};
	static const struct space_file one = {.path = "/lib", .build_id_size = 20, .build_id = {1}},
				       two = {.path = "/lib", .build_id_size = 20, .build_id = {2}},
				       third = {.path = "/lib",
						.build_id_size = 20,
						.build_id = {3}};
	struct image_set *s;

	(void)state;
	assert_int_equal(image_set_new(both, ARRAY_SIZE(both), NULL, &s), 0);
	assert_int_equal(image_index(s, &one), 1);
	assert_int_equal(image_index(s, &two), 2);
	/* The image without a known build id may be the file. */
	assert_int_equal(image_index(s, &third), 0);
	image_set_free(s);
	assert_int_equal(image_set_new(both + 1, ARRAY_SIZE(both) - 1, NULL, &s), 0);
	assert_int_equal(image_index(s, &third), UINT32_MAX);
	image_set_free(s);
}

static void source_beyond_the_last_is_none(void **state)
{
	struct image_set *s = new_set();

	(void)state;
	assert_string_equal(image_source(s, 3)->missing, "deleted");
	assert_null(image_source(s, ARRAY_SIZE(sources)));
	assert_null(image_source(s, UINT32_MAX));
	image_set_free(s);
}

static void find_gives_code_or_the_reason(void **state)
{
	static const struct space_file a = {
		.maj = 8, .min = 1, .ino = 10, .ino_generation = 3, .path = "/a"};
	static const struct space_file gone = {.ino = 12, .path = "/gone"};
	static const struct space_file unknown = {.ino = 1, .path = "/unknown"};
	static const struct space_file part = {.ino = 13, .path = "/part"};
	static const struct space_file anon = {.path = "//anon"};
	static const struct space_file heap = {.path = "[heap]"};
	static const struct space_file vdso = {.path = "[vdso]"};
	static const struct {
		uint64_t start, size, pgoff;
		const struct space_file *file;
		uint64_t ask;
		int result;
		uint64_t address, code_size, offset;
	} cases[] = {
		{0x10000, 0x2000, 0x1000, &a, 0x10800, 0, 0x10000, 0x2000, 0x1000},
		{0x10000, 0x2000, 0x1000, &a, 0x12000, IMAGE_UNMAPPED, 0, 0, 0},
		/* The last page of a mapping beyond the end of the file. */
		{0x10000, 0x2000, 0x2000, &a, 0x10fff, 0, 0x10000, 0x1000, 0x2000},
		{0x10000, 0x2000, 0x2000, &a, 0x11000, IMAGE_SHORT, 0, 0, 0},
		{0x10000, 0x2000, UINT64_MAX - 4, &a, 0x10004, IMAGE_SHORT, 0, 0, 0},
		{0x10000, 0x2000, UINT64_MAX - 4, &a, 0x10005, IMAGE_SHORT, 0, 0, 0},
		{0x10000, 0x2000, 0, &gone, 0x10000, IMAGE_MISSING, 0, 0, 0},
		{0x10000, 0x2000, 0, &unknown, 0x10000, IMAGE_MISSING, 0, 0, 0},
		{0x10000, 0x3000, 0x4000, &part, 0x10fff, IMAGE_MISSING, 0, 0, 0},
		{0x10000, 0x3000, 0x4000, &part, 0x11fff, 0, 0x11000, 0x1000, 0x5000},
		{0x10000, 0x3000, 0x4000, &part, 0x12000, IMAGE_SHORT, 0, 0, 0},
		{0x10000, 0x2000, 0, &anon, 0x10000, IMAGE_ANONYMOUS, 0, 0, 0},
		{0x10000, 0x2000, 0, &heap, 0x10000, IMAGE_ANONYMOUS, 0, 0, 0},
		{0x10000, 0x1000, 0, &vdso, 0x10010, 0, 0x10000, 0x1000, 0},
	};
	struct image_set *set = new_set();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct space *s = space_new(true);
		struct image_code code;

		assert_int_equal(space_map(s, 5, cases[i].start, cases[i].size, cases[i].pgoff, 5,
					   2, cases[i].file),
				 0);
		assert_int_equal(image_find(set, s, 4, cases[i].ask, &code), IMAGE_UNMAPPED);
		assert_int_equal(image_find(set, s, 5, cases[i].ask, &code), cases[i].result);
		if (cases[i].result == 0) {
			assert_int_equal(code.address, cases[i].address);
			assert_int_equal(code.size, cases[i].code_size);
			assert_int_equal(code.offset, cases[i].offset);
			assert_ptr_equal(code.bytes, bytes + code.offset -
							     image_source(set, code.image)->offset);
		}
		space_free(s);
	}
	image_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_is_by_inode_else_by_path),
		cmocka_unit_test(index_by_path_goes_by_the_build_id),
		cmocka_unit_test(source_beyond_the_last_is_none),
		cmocka_unit_test(find_gives_code_or_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
