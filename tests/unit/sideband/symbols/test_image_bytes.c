/*
 * The bytes of images that are loaded, in pieces, or in memory.
 */
#include "sideband/symbols/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

#define MIB  0x100000u
#define PAGE 0x1000u
#define PID  7u
#define BASE UINT64_C(0x7f0000000000)

/* A file in which each byte follows from its offset. */
struct user {
	uint64_t size, there; /* bytes that it claims to have, and that it has */
	uint64_t bad;	      /* offset from which on reading fails */
	uint64_t read;	      /* bytes */
	unsigned opened;
};

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset ^ offset >> 8 ^ offset >> 16);
}

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	struct user *u = userdata;

	(void)image;
	u->opened++;
	*ret_size = u->size;
	return 0;
}

static ssize_t read_image(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	struct user *u = userdata;
	uint8_t *bytes = to;

	(void)image;
	if (u->bad && offset + size > u->bad)
		return -EIO;
	if (offset >= u->there)
		return 0;
	size = MIN_OF(size, (size_t)(u->there - offset));
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(offset + i);
	u->read += size;
	return (ssize_t)size;
}

static const struct space_file file = {.ino = 5, .path = "/f"};
static const struct image_source elsewhere = {.path = "/f", .ino = 5, .loadable = true};

static struct image_set *new_set(const struct image_source *source, struct user *u,
				 uint64_t max_filled)
{
	const struct image_loader loader = {
		.open = open_image, .read = read_image, .userdata = u, .max_filled = max_filled};
	struct image_set *s = NULL;

	assert_int_equal(image_set_new(source, 1, &loader, &s), 0);
	return s;
}

static struct space *new_space(uint64_t start, uint64_t size, uint64_t pgoff,
			       const struct space_file *mapped)
{
	struct space *s = space_new(true);

	assert_int_equal(space_map(s, 1, start, size, pgoff, 5, 2, mapped), 0);
	space_set_pid(s, PID);
	return s;
}

static void check_bytes(const struct image_code *code, uint64_t offset, uint64_t size)
{
	assert_int_equal(code->offset, offset);
	assert_int_equal(code->size, size);
	for (uint64_t i = 0; i < size; i += 511)
		assert_int_equal(code->bytes[i], byte_at(offset + i));
	assert_int_equal(code->bytes[size - 1], byte_at(offset + size - 1));
}

static void find_reads_what_lies_elsewhere_step_by_step(void **state)
{
	struct user u = {.size = 5 * MIB - 100, .there = 5 * MIB};
	struct image_set *s = new_set(&elsewhere, &u, 0);
	struct space *space = new_space(BASE, 4 * MIB, MIB + PAGE, &file);
	struct image_code code;

	(void)state;
	assert_false(image_was_asked(s, 0));
	assert_int_equal(image_find(s, space, 1, BASE + 4 * MIB, &code), IMAGE_UNMAPPED);
	assert_int_equal(u.opened, 0);
	assert_int_equal(image_find(s, space, 1, BASE, &code), 0);
	check_bytes(&code, MIB + PAGE, MIB - PAGE);
	assert_int_equal(code.address, BASE);
	assert_int_equal(code.map_begin, BASE);
	assert_int_equal(code.map_end, BASE + 4 * MIB - PAGE - 100);
	assert_int_equal(u.read, MIB);
	assert_int_equal(image_find(s, space, 1, BASE + 2 * MIB, &code), 0);
	check_bytes(&code, 3 * MIB, MIB);
	assert_int_equal(code.address, BASE + 2 * MIB - PAGE);
	assert_int_equal(code.map_begin, BASE);
	assert_int_equal(image_find(s, space, 1, BASE + 4 * MIB - 2 * PAGE, &code), 0);
	check_bytes(&code, 4 * MIB, MIB - 100);
	assert_int_equal(image_find(s, space, 1, BASE + 4 * MIB - PAGE - 100, &code), IMAGE_SHORT);
	assert_int_equal(image_find(s, space, 1, BASE + 4 * MIB - PAGE - 101, &code), 0);
	assert_int_equal(u.opened, 1);
	assert_int_equal(u.read, 3 * MIB - 100);
	assert_true(image_was_asked(s, 0));
	space_free(space);
	image_set_free(s);
}

/* A file may be cut while it is read. */
static void find_beyond_what_could_be_read_is_short(void **state)
{
	struct user u = {.size = 2 * MIB, .there = MIB + 5000};
	struct image_set *s = new_set(&elsewhere, &u, 0);
	struct space *space = new_space(BASE, 2 * MIB, 0, &file);
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE + MIB + 4999, &code), 0);
	check_bytes(&code, MIB, 5000);
	assert_int_equal(image_find(s, space, 1, BASE + MIB + 5000, &code), IMAGE_SHORT);
	assert_int_equal(image_find(s, space, 1, BASE + 4, &code), 0);
	space_free(space);
	image_set_free(s);
}

static void find_what_cannot_be_read_is_missing(void **state)
{
	struct user u = {.size = 3 * MIB, .there = 3 * MIB, .bad = 2 * MIB};
	struct image_set *s = new_set(&elsewhere, &u, 0);
	struct space *space = new_space(BASE, 3 * MIB, 0, &file);
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE + 2 * MIB, &code), IMAGE_MISSING);
	assert_string_equal(image_source(s, 0)->missing, "reading it failed");
	assert_int_equal(image_find(s, space, 1, BASE + 2 * MIB - 1, &code), 0);
	assert_int_equal(code.size, MIB);
	space_free(space);
	image_set_free(s);
}

static void find_more_than_the_limit_is_missing(void **state)
{
	struct user u = {.size = UINT64_C(1) << 32, .there = UINT64_C(1) << 32};
	struct image_set *s = new_set(&elsewhere, &u, 2 * MIB);
	struct space *space = new_space(BASE, UINT64_C(1) << 33, 0, &file);
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE + u.size - 1, &code), 0);
	assert_int_equal(image_find(s, space, 1, BASE + 7 * MIB, &code), 0);
	assert_int_equal(image_find(s, space, 1, BASE, &code), IMAGE_MISSING);
	assert_non_null(strstr(image_source(s, 0)->missing, "limit"));
	assert_int_equal(image_find(s, space, 1, BASE + 7 * MIB + 4, &code), 0);
	assert_int_equal(u.read, 2 * MIB);
	image_set_free(s);
	u.size++;
	s = new_set(&elsewhere, &u, 0);
	assert_int_equal(image_find(s, space, 1, BASE, &code), IMAGE_MISSING);
	assert_non_null(strstr(image_source(s, 0)->missing, "too large"));
	image_set_free(s);
	space_free(space);
}

struct needed {
	struct manifest_piece pieces[16];
	size_t n;
};

static int add_needed(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct needed *n = userdata;

	assert_int_equal(image, 0);
	assert_true(n->n < ARRAY_SIZE(n->pieces));
	n->pieces[n->n++] = (struct manifest_piece){offset, size};
	return 0;
}

static void needed_is_what_was_touched_in_blocks(void **state)
{
	struct user u = {.size = 3 * MIB + 100, .there = 4 * MIB};
	struct image_set *s = new_set(&elsewhere, &u, 0);
	struct space *space = new_space(BASE, 3 * MIB, 2 * PAGE, &file);
	static const struct manifest_piece expected[] = {
		{0, 0x8000}, {0x10000, 0x4000}, {MIB - 0x4000, 0x8000}, {3 * MIB, 100}};
	struct needed n = {0};
	struct image_code code;

	(void)state;
	assert_int_equal(image_set_needed(s, true, add_needed, &n), 0);
	assert_int_equal(n.n, 0);
	assert_int_equal(image_find(s, space, 1, BASE + 2 * PAGE + 7, &code), 0);
	assert_int_equal(code.address, BASE);
	code.touched[0x10000 / PAGE - 2] = 1;
	assert_int_equal(image_find(s, space, 1, BASE + MIB - 3 * PAGE, &code), 0);
	assert_int_equal(image_find(s, space, 1, BASE + MIB, &code), 0);
	assert_int_equal(image_find(s, space, 1, BASE + 3 * MIB - 2 * PAGE, &code), 0);
	assert_int_equal(code.size, 100);
	assert_int_equal(image_set_needed(s, false, add_needed, &n), 0);
	assert_int_equal(n.n, ARRAY_SIZE(expected));
	assert_int_equal(n.pieces[0].offset, 0x4000);
	n = (struct needed){0};
	/* Reads the first bytes, which are not those of an ELF file. */
	assert_int_equal(image_set_needed(s, true, add_needed, &n), 0);
	assert_int_equal(n.n, ARRAY_SIZE(expected));
	assert_memory_equal(n.pieces, expected, sizeof(expected));
	space_free(space);
	image_set_free(s);
}

/* The pages of the mapping are not pages of the file. */
static void needed_of_a_crooked_mapping_is_all_that_was_given(void **state)
{
	struct user u = {.size = 2 * MIB, .there = 2 * MIB};
	struct image_set *s = new_set(&elsewhere, &u, 0);
	struct space *space = new_space(BASE + 5, MIB, MIB, &file);
	struct needed n = {0};
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE + 9, &code), 0);
	assert_null(code.touched);
	assert_int_equal(image_set_needed(s, true, add_needed, &n), 0);
	assert_int_equal(n.n, 2);
	assert_int_equal(n.pieces[1].offset, MIB);
	assert_int_equal(n.pieces[1].size, MIB);
	space_free(space);
	image_set_free(s);
}

static void find_in_pieces_never_runs_over_a_hole(void **state)
{
	static const struct manifest_piece pieces[] = {
		{0x1000, 0x1000}, {0x2800, 0x800}, {MIB + 0x500, 0x1000}};
	static uint8_t bytes[0x2800];
	struct image_source source = {.path = "/f",
				      .ino = 5,
				      .bytes = bytes,
				      .size = sizeof(bytes),
				      .pieces = pieces,
				      .n_pieces = ARRAY_SIZE(pieces),
				      .file_size = 2 * MIB};
	static const struct {
		uint64_t ask;
		int result;
		uint64_t offset, size;
	} cases[] = {
		{0xfff, IMAGE_MISSING, 0, 0},
		{0x1000, 0, 0x1000, 0x1000},
		{0x1fff, 0, 0x1000, 0x1000},
		{0x2000, IMAGE_MISSING, 0, 0},
		{0x2800, 0, 0x2800, 0x800},
		{0x3000, IMAGE_MISSING, 0, 0},
		{MIB + 0x600, 0, MIB + 0x500, 0x1000},
		{MIB + 0x1500, IMAGE_MISSING, 0, 0},
		{2 * MIB, IMAGE_SHORT, 0, 0},
	};
	struct space *space = new_space(BASE, 3 * MIB, 0, &file);
	struct image_set *s;
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		for (uint64_t j = 0; j < pieces[i].size; j++)
			bytes[at++] = byte_at(pieces[i].offset + j);
	s = new_set(&source, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct image_code code;

		assert_int_equal(image_find(s, space, 1, BASE + cases[i].ask, &code),
				 cases[i].result);
		if (cases[i].result != 0)
			continue;
		check_bytes(&code, cases[i].offset, cases[i].size);
		assert_int_equal(code.map_begin, BASE);
		assert_int_equal(code.map_end, BASE + 2 * MIB);
		assert_null(code.touched);
	}
	assert_null(image_need(s, 0, 0x1800, 0x1000));
	assert_non_null(image_need(s, 0, 0x1800, 0x800));
	image_set_free(s);
	/* The pieces have more bytes than the source. */
	source.size--;
	s = new_set(&source, NULL, 0);
	assert_null(image_need(s, 0, 0x1800, 0x800));
	image_set_free(s);
	space_free(space);
}

static const struct space_file anonymous = {.path = "//anon"};
static const struct space_file vdso = {.path = "[vdso]"};

static void find_memory_is_by_process_and_address(void **state)
{
	static const uint8_t bytes[0x3000] = {1};
	struct space *space = new_space(BASE, 0x3000, 0, &anonymous);
	struct space *other = new_space(BASE, 0x3000, 0, &anonymous);
	struct image_source sources[] = {
		{.path = "", .memory = true, .pid = PID, .address = BASE - 0x1000},
		{.path = "", .memory = true, .pid = PID, .address = BASE + 0x2000},
		{.path = "", .memory = true, .pid = PID + 1, .address = BASE},
	};
	struct image_code code;
	struct image_set *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		sources[i].bytes = bytes;
		sources[i].size = i == 1 ? 0x800 : 0x2000;
	}
	sources[0].space = space;
	assert_int_equal(image_set_new(sources, ARRAY_SIZE(sources), NULL, &s), 0);
	assert_int_equal(image_find(s, space, 1, BASE + 4, &code), 0);
	assert_int_equal(code.image, 0);
	assert_int_equal(code.address, BASE);
	assert_int_equal(code.offset, 0x1000);
	assert_int_equal(code.size, 0x1000);
	assert_ptr_equal(code.bytes, bytes + 0x1000);
	assert_int_equal(image_find(s, space, 1, BASE + 0x1000, &code), IMAGE_ANONYMOUS);
	assert_int_equal(image_find(s, space, 1, BASE + 0x2000, &code), 0);
	assert_int_equal(code.image, 1);
	assert_int_equal(code.map_begin, BASE + 0x2000);
	assert_int_equal(code.map_end, BASE + 0x2800);
	assert_int_equal(image_find(s, space, 1, BASE + 0x2800, &code), IMAGE_ANONYMOUS);
	/* The address space of another process, without and with a known pid. */
	assert_int_equal(image_find(s, other, 1, BASE + 4, &code), IMAGE_ANONYMOUS);
	space_set_pid(other, PID + 1);
	assert_int_equal(image_find(s, other, 1, BASE + 4, &code), 0);
	assert_int_equal(code.image, 2);
	image_set_free(s);
	space_free(space);
	space_free(other);
}

static void find_vdso_is_by_size_unless_it_is_its_own(void **state)
{
	static const uint8_t bytes[0x2000] = {1};
	const struct image_source sources[] = {
		{.path = "[vdso]",
		 .vdso = true,
		 .pid = IMAGE_ANY_PID,
		 .bytes = bytes,
		 .size = 0x2000,
		 .file_size = 0x2000},
		{.path = "[vdso]",
		 .vdso = true,
		 .pid = PID + 1,
		 .address = BASE,
		 .bytes = bytes,
		 .size = 0x2000},
	};
	static const struct {
		uint64_t start, size;
		uint32_t pid;
		const struct space_file *file;
		uint32_t image;
	} cases[] = {
		{BASE, 0x2000, PID, &vdso, 0},	    {BASE, 0x2000, PID + 1, &vdso, 1},
		{BASE, 0x1000, PID, &vdso, 9},	    {0xf7f00000, 0x2000, PID, &vdso, 9},
		{BASE, 0x2000, PID, &anonymous, 9}, {BASE, 0x2000, PID, &file, 8},
	};
	struct image_set *s;

	(void)state;
	assert_int_equal(image_set_new(sources, ARRAY_SIZE(sources), NULL, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct space *space = new_space(cases[i].start, cases[i].size, 0, cases[i].file);
		struct image_code code = {.image = 99};
		int r;

		space_set_pid(space, cases[i].pid);
		r = image_find(s, space, 1, cases[i].start + 0x10, &code);
		if (cases[i].image >= 8) {
			assert_int_equal(r, cases[i].image == 9 ? IMAGE_ANONYMOUS : IMAGE_MISSING);
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(code.image, cases[i].image);
			assert_int_equal(code.offset, 0);
		}
		space_free(space);
	}
	image_set_free(s);
}

static void find_apart_is_never_mapped(void **state)
{
	static const uint8_t bytes[0x2000] = {1};
	const struct image_source source = {
		.path = "/f", .ino = 5, .bytes = bytes, .size = 0x2000, .apart = true};
	struct space *space = new_space(BASE, 0x2000, 0, &file);
	static const struct space_file by_name = {.path = "/f"};
	struct image_set *s = new_set(&source, NULL, 0);
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE, &code), IMAGE_MISSING);
	assert_int_equal(image_index(s, &by_name), UINT32_MAX);
	assert_int_equal(image_at(s, 0, 0x1234, &code), 0);
	assert_ptr_equal(code.bytes, bytes);
	assert_int_equal(code.address, 0);
	assert_int_equal(code.size, 0x2000);
	assert_int_equal(image_at(s, 0, 0x2000, &code), IMAGE_SHORT);
	assert_int_equal(image_at(s, 1, 0, &code), IMAGE_MISSING);
	image_set_free(s);
	space_free(space);
}

static void find_gone_is_said(void **state)
{
	const struct image_source source = {
		.path = "/f", .ino = 5, .missing = "gone: nobody had it", .gone = true};
	struct space *space = new_space(BASE, 0x2000, 0, &file);
	struct image_set *s = new_set(&source, NULL, 0);
	struct image_code code;

	(void)state;
	assert_int_equal(image_find(s, space, 1, BASE, &code), IMAGE_GONE);
	assert_int_equal(image_find(s, space, 1, BASE, &code), IMAGE_GONE);
	assert_string_equal(image_source(s, 0)->missing, "gone: nobody had it");
	image_set_free(s);
	space_free(space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_reads_what_lies_elsewhere_step_by_step),
		cmocka_unit_test(find_beyond_what_could_be_read_is_short),
		cmocka_unit_test(find_what_cannot_be_read_is_missing),
		cmocka_unit_test(find_more_than_the_limit_is_missing),
		cmocka_unit_test(needed_is_what_was_touched_in_blocks),
		cmocka_unit_test(needed_of_a_crooked_mapping_is_all_that_was_given),
		cmocka_unit_test(find_in_pieces_never_runs_over_a_hole),
		cmocka_unit_test(find_memory_is_by_process_and_address),
		cmocka_unit_test(find_vdso_is_by_size_unless_it_is_its_own),
		cmocka_unit_test(find_apart_is_never_mapped),
		cmocka_unit_test(find_gone_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
