/*
 * Debug files of images, and images as ELF files.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/image.h"

#define MIB 0x100000u
#define N   3u

static const uint8_t id[] = {1, 2, 3, 4};
static const uint8_t bytes_at_hand[] = "at hand";

/* Each byte of a file is the file's letter: 'a' for image 0. */
struct user {
	uint64_t size[2 * N]; /* of images, then of their debug files; 0: there is none */
	uint64_t read;
	unsigned asked, opened;
};

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	struct user *u = userdata;

	assert_true(image < N);
	u->opened++;
	*ret_size = u->size[image];
	return u->size[image] ? 0 : -ENOENT;
}

static int open_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      uint64_t *ret_size)
{
	struct user *u = userdata;

	assert_true(image < N);
	assert_int_equal(id_size, sizeof(id));
	assert_memory_equal(build_id, id, sizeof(id));
	u->asked++;
	*ret_size = u->size[N + image];
	return u->size[N + image] ? 0 : -ENOENT;
}

static ssize_t read_image(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	struct user *u = userdata;

	assert_true(image < 2 * N);
	assert_true(offset <= u->size[image] && size <= u->size[image] - offset);
	memset(to, 'a' + (int)image, size);
	u->read += size;
	return (ssize_t)size;
}

static struct image_set *new_set(struct user *u, bool with_debug, uint64_t max_filled)
{
	const struct image_source sources[N] = {
		{.path = "/0", .ino = 1, .loadable = true},
		{.path = "/1", .ino = 2, .loadable = true},
		{.path = "/2", .ino = 3, .bytes = bytes_at_hand, .size = sizeof(bytes_at_hand)},
	};
	const struct image_loader loader = {.open = open_image,
					    .read = read_image,
					    .userdata = u,
					    .max_filled = max_filled,
					    .debug = with_debug ? open_debug : NULL};
	struct image_set *s = NULL;

	assert_int_equal(image_set_new(sources, N, &loader, &s), 0);
	return s;
}

static int note(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	unsigned *images = userdata;

	(void)offset;
	(void)size;
	*images |= 1u << image;
	return 0;
}

static unsigned needed(struct image_set *s)
{
	unsigned images = 0;

	assert_int_equal(image_set_needed(s, true, note, &images), 0);
	return images;
}

static void open_debug_gives_the_number_behind_all_images(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB + 5, 2 * MIB}};
	struct image_set *s = new_set(&u, true, 0);
	const uint8_t *bytes;
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(image_open_debug(s, i, id, sizeof(id), &number), 0);
		assert_int_equal(number, N + i);
		bytes = image_need(s, number, 100, 65536);
		assert_non_null(bytes);
		assert_int_equal(bytes[0], 'a' + (int)number);
		assert_int_equal(bytes[65535], 'a' + (int)number);
		assert_null(image_need(s, number, u.size[number] - 1, 2));
	}
	assert_int_equal(u.asked, N);
	assert_int_equal(image_open_debug(s, 1, id, sizeof(id), &number), 0);
	assert_int_equal(number, N + 1);
	assert_int_equal(u.asked, N);
	/* The image itself is another file. */
	assert_int_equal(u.opened, 0);
	assert_int_equal(image_need(s, 1, 0, 1)[0], 'b');
	image_set_free(s);
}

static void open_debug_of_what_nobody_has_is_asked_once(void **state)
{
	struct user u = {.size = {MIB, MIB, 0}};
	struct image_set *s = new_set(&u, true, 0);
	uint32_t number;

	(void)state;
	assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), ELF_NOT);
	assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), ELF_NOT);
	assert_int_equal(u.asked, 1);
	assert_null(image_need(s, N, 0, 1));
	image_set_free(s);
}

static void open_debug_of_a_stranger_or_without_a_loader_says_not(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB, MIB}};
	uint32_t number;

	(void)state;
	for (unsigned with = 0; with < 2; with++) {
		struct image_set *s = new_set(&u, with, 0);

		for (uint32_t i = with ? N : 0; i < 3 * N; i++)
			assert_int_equal(image_open_debug(s, i, id, sizeof(id), &number), ELF_NOT);
		assert_int_equal(image_open_debug(s, UINT32_MAX, id, sizeof(id), &number), ELF_NOT);
		image_set_free(s);
	}
	assert_int_equal(u.asked, 0);
}

/* A caller may use any number. */
static void numbers_of_files_apart_are_no_images(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB, MIB}};
	struct image_set *s = new_set(&u, true, 0);
	struct image_code code;
	struct elf_bytes bytes;
	struct elf_file *f;
	uint32_t number;

	(void)state;
	for (unsigned opened = 0; opened < 2; opened++) {
		for (uint32_t i = N; i <= 2 * N; i++) {
			assert_null(image_source(s, i));
			assert_false(image_was_asked(s, i));
			assert_int_equal(image_at(s, i, 0, &code), IMAGE_MISSING);
			assert_int_equal(image_open_elf(s, i, &f), ELF_NOT);
			if (opened && i == N)
				continue;
			assert_null(image_need(s, i, 0, 1));
			assert_int_equal(image_elf_bytes(s, i, &bytes), ELF_NOT);
		}
		assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), 0);
	}
	assert_int_equal(image_elf_bytes(s, number, &bytes), 0);
	image_set_free(s);
}

static void needed_does_not_tell_of_files_apart(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB, MIB}};
	struct image_set *s = new_set(&u, true, 0);
	uint32_t number;

	(void)state;
	assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), 0);
	assert_non_null(image_need(s, number, 0, MIB));
	assert_int_equal(needed(s), 0);
	assert_non_null(image_need(s, 1, 0, 1));
	assert_int_equal(needed(s), 2);
	image_set_free(s);
}

/* The bytes of debug files count with those of images. */
static void need_of_files_apart_ends_at_the_same_limit(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB, MIB}};
	struct image_set *s = new_set(&u, true, MIB);
	uint32_t number;

	(void)state;
	assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), 0);
	assert_non_null(image_need(s, number, 0, MIB / 2));
	assert_non_null(image_need(s, 1, 0, MIB / 2));
	assert_null(image_need(s, number, MIB / 2, 1));
	assert_null(image_need(s, 1, MIB / 2, 1));
	assert_int_equal(u.read, MIB);
	image_set_free(s);
}

static void open_debug_of_too_large_a_file_says_not(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, IMAGE_MAX_SIZE + 1, UINT64_MAX, MIB}};
	struct image_set *s = new_set(&u, true, 0);
	uint32_t number;

	(void)state;
	assert_int_equal(image_open_debug(s, 0, id, sizeof(id), &number), ELF_NOT);
	assert_int_equal(image_open_debug(s, 1, id, sizeof(id), &number), ELF_NOT);
	assert_int_equal(image_open_debug(s, 2, id, sizeof(id), &number), 0);
	image_set_free(s);
}

static void elf_bytes_bring_what_they_are_asked_for(void **state)
{
	struct user u = {.size = {MIB, MIB, 0, MIB, MIB, MIB}};
	struct image_set *s = new_set(&u, true, 0);
	struct elf_bytes a, b;

	(void)state;
	assert_int_equal(image_elf_bytes(s, 0, &a), 0);
	assert_int_equal(image_elf_bytes(s, 1, &b), 0);
	assert_int_equal(a.size, MIB);
	assert_int_equal(a.bytes[MIB - 1], 0);
	assert_true(a.need(a.userdata, MIB - 1, 1));
	assert_int_equal(a.bytes[MIB - 1], 'a');
	assert_false(a.need(a.userdata, MIB, 1));
	assert_true(b.need(b.userdata, 0, 1));
	assert_int_equal(b.bytes[0], 'b');
	assert_ptr_equal(a.room, b.room);
	assert_int_equal(image_elf_bytes(s, 2, &a), 0);
	assert_ptr_equal(a.bytes, bytes_at_hand);
	assert_int_equal(a.size, sizeof(bytes_at_hand));
	assert_null(a.need);
	image_set_free(s);
}

static void elf_bytes_of_the_middle_of_a_file_say_not(void **state)
{
	const struct image_source source = {.path = "/m",
					    .bytes = bytes_at_hand,
					    .size = sizeof(bytes_at_hand),
					    .offset = 4096};
	struct image_set *s = NULL;
	struct elf_bytes bytes;

	(void)state;
	assert_int_equal(image_set_new(&source, 1, NULL, &s), 0);
	assert_int_equal(image_elf_bytes(s, 0, &bytes), ELF_NOT);
	image_set_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_debug_gives_the_number_behind_all_images),
		cmocka_unit_test(open_debug_of_what_nobody_has_is_asked_once),
		cmocka_unit_test(open_debug_of_a_stranger_or_without_a_loader_says_not),
		cmocka_unit_test(numbers_of_files_apart_are_no_images),
		cmocka_unit_test(needed_does_not_tell_of_files_apart),
		cmocka_unit_test(need_of_files_apart_ends_at_the_same_limit),
		cmocka_unit_test(open_debug_of_too_large_a_file_says_not),
		cmocka_unit_test(elf_bytes_bring_what_they_are_asked_for),
		cmocka_unit_test(elf_bytes_of_the_middle_of_a_file_say_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
