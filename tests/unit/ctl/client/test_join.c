/*
 * ctl/client/join: a stored bundle, its list and its images are joined to a bundle that needs
 * nothing else; a list that does not fit is refused.
 */
#include "ctl/client/stored.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define SIZE 0x8000u

/* Four images: 0 in the bundle, 1 and 2 elsewhere, 3 missing. */
struct fixture {
	int bundle_fd, joined_fd, image_fd;
	struct bundle *bundle, *joined;
	struct kept kept;
	struct join_counts told;
	int open_result; /* of the source */
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i + (i >> 8) + 1);
}

static struct manifest_image *add_image(struct manifest *m, const char *path)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	image->path = strdup(path);
	return image;
}

static void make_bundle(struct fixture *f, uint64_t size)
{
	CLEANUP(manifest_done) struct manifest m;
	struct manifest_image *image;
	struct manifest_text *text;
	struct bundle_writer w;

	manifest_init(&m);
	m.id = strdup("test");
	m.version = strdup("0");
	m.source = strdup("emulated");
	m.trigger_kind = strdup("control");
	m.n_cpus = 0;
	manifest_add_cpu(&m)->bytes = 3;
	image = add_image(&m, "/in");
	image->size = 4;
	for (int i = 1; i <= 2; i++) {
		image = add_image(&m, "/elsewhere");
		image->elsewhere = true;
		image->file_size = size;
	}
	add_image(&m, "/missing")->missing = strdup("why");
	text = manifest_add_text(&m);
	text->kind = strdup(MANIFEST_TEXT_MODULES);
	text->size = 5;
	bundle_writer_init(&w, f->bundle_fd);
	bundle_write_member(&w, "cpu0.pt", "abc", 3);
	bundle_write_member(&w, "sideband", "", 0);
	bundle_write_member(&w, "images/0", "code", 4);
	bundle_write_member(&w, "texts/0", "hello", 5);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(f->bundle_fd, &f->bundle), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	uint8_t bytes[SIZE];

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = byte_at(i);
	assert_int_equal(memfd_new("bundle", 0, &f->bundle_fd), 0);
	assert_int_equal(memfd_new("joined", 0, &f->joined_fd), 0);
	assert_int_equal(memfd_new("image", 0, &f->image_fd), 0);
	assert_int_equal(memfd_write_all(f->image_fd, bytes, SIZE), 0);
	kept_init(&f->kept);
	make_bundle(f, SIZE);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	bundle_free(f->bundle);
	bundle_free(f->joined);
	kept_done(&f->kept);
	close(f->bundle_fd);
	close(f->joined_fd);
	close(f->image_fd);
	free(f);
	return 0;
}

static int open_image(void *userdata, const struct kept_image *image, int *ret_fd)
{
	struct fixture *f = userdata;

	(void)image;
	if (f->open_result != 0)
		return f->open_result;
	*ret_fd = dup(f->image_fd);
	return 0;
}

static int join(struct fixture *f, bool list)
{
	const struct join_source source = {open_image, f};
	int r = join_write(f->bundle, list ? &f->kept : NULL, &source, f->joined_fd, &f->told);

	if (r == 0)
		assert_int_equal(bundle_open(f->joined_fd, &f->joined), 0);
	return r;
}

static void add(struct fixture *f, uint32_t index, uint64_t size,
		const struct manifest_piece *pieces, size_t n)
{
	assert_int_equal(kept_add(&f->kept, index, "name", size, pieces, n), 0);
}

static void join_write_puts_pieces_where_they_belong(void **state)
{
	static const struct manifest_piece pieces[] = {{0, 0x10}, {0x1000, 0x2000}, {SIZE - 1, 1}};
	struct fixture *f = *state;
	const struct manifest_piece *got;
	const uint8_t *bytes;
	size_t size, n;

	add(f, 1, SIZE, pieces, 3);
	add(f, 2, SIZE, NULL, 0);
	assert_true(join_needed(bundle_manifest(f->bundle)));
	assert_int_equal(join(f, true), 0);
	assert_false(join_needed(bundle_manifest(f->joined)));
	got = bundle_image_pieces(f->joined, 1, &n);
	assert_int_equal(n, 3);
	assert_memory_equal(got, pieces, sizeof(pieces));
	bytes = bundle_image(f->joined, 1, &size);
	assert_int_equal(size, 0x2011);
	for (size_t i = 0, at = 0; i < n; i++)
		for (size_t k = 0; k < got[i].size; k++)
			assert_int_equal(bytes[at++], byte_at(got[i].offset + k));
	assert_int_equal(bundle_manifest(f->joined)->images[1].file_size, SIZE);
	assert_null(bundle_image(f->joined, 2, &size));
	assert_string_equal(bundle_manifest(f->joined)->images[2].missing,
			    "no code of it was needed");
	assert_int_equal(f->told.joined, 1);
	assert_int_equal(f->told.untouched, 1);
	assert_int_equal(f->told.lost, 0);
}

static void join_write_leaves_the_rest_as_it_was(void **state)
{
	struct fixture *f = *state;
	size_t size;

	add(f, 1, SIZE, NULL, 0);
	assert_int_equal(join(f, true), 0);
	assert_memory_equal(bundle_cpu(f->joined, 0, &size), "abc", 3);
	assert_int_equal(size, 3);
	assert_memory_equal(bundle_image(f->joined, 0, &size), "code", 4);
	assert_memory_equal(bundle_text(f->joined, 0, &size), "hello", 5);
	assert_string_equal(bundle_manifest(f->joined)->images[3].missing, "why");
	assert_int_equal(f->told.lost, 1);
}

static void join_write_whole_image_needs_no_pieces(void **state)
{
	static const struct manifest_piece whole = {0, SIZE};
	struct fixture *f = *state;

	add(f, 2, SIZE, &whole, 1);
	assert_int_equal(join(f, true), 0);
	assert_null(bundle_manifest(f->joined)->images[2].pieces);
	assert_int_equal(bundle_manifest(f->joined)->images[2].size, SIZE);
}

static void join_write_without_list_or_file_is_lost(void **state)
{
	static const struct manifest_piece whole = {0, SIZE};
	struct fixture *f = *state;

	assert_int_equal(join(f, false), 0);
	assert_int_equal(f->told.lost, 2);
	assert_string_equal(bundle_manifest(f->joined)->images[1].missing,
			    "the recorder could not keep it");
	add(f, 1, SIZE, &whole, 1);
	f->open_result = -ENOENT;
	assert_int_equal(join_write(f->bundle, &f->kept, &(struct join_source){open_image, f},
				    f->joined_fd, &f->told),
			 0);
	assert_int_equal(f->told.lost, 2);
	f->open_result = 7;
	assert_int_equal(join_write(f->bundle, &f->kept, &(struct join_source){open_image, f},
				    f->joined_fd, &f->told),
			 7);
}

static void join_write_list_of_another_bundle_is_refused(void **state)
{
	static const struct {
		uint32_t index;
		uint64_t size;
		struct manifest_piece piece;
	} cases[] = {
		{0, SIZE, {0, 1}}, /* is in the bundle */
		{3, SIZE, {0, 1}}, /* is missing */
		{4, SIZE, {0, 1}}, /* is not there */
		{MANIFEST_MAX_IMAGES - 1, SIZE, {0, 1}},
		{1, SIZE + 1, {0, 1}}, /* has another size */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		kept_done(&f->kept);
		kept_init(&f->kept);
		add(f, cases[i].index, cases[i].size, &cases[i].piece, 1);
		assert_int_equal(join(f, true), -EBADMSG);
	}
}

/* An image that is too large to map is lost, and the other images are not. */
static void join_write_monstrous_file_is_lost(void **state)
{
	static const struct manifest_piece piece = {0, 1};
	const uint64_t size = (uint64_t)1 << 62;
	struct fixture *f = *state;

	bundle_free(f->bundle);
	assert_int_equal(ftruncate(f->bundle_fd, 0), 0);
	lseek(f->bundle_fd, 0, SEEK_SET);
	make_bundle(f, size);
	assert_int_equal(ftruncate(f->image_fd, (off_t)size), 0);
	add(f, 1, size, &piece, 1);
	add(f, 2, size, NULL, 0);
	assert_int_equal(join(f, true), 0);
	assert_int_equal(f->told.lost, 1);
	assert_int_equal(f->told.untouched, 1);
}

static void join_write_short_file_is_refused(void **state)
{
	static const struct manifest_piece whole = {0, SIZE};
	struct fixture *f = *state;

	add(f, 1, SIZE, &whole, 1);
	assert_int_equal(ftruncate(f->image_fd, SIZE - 1), 0);
	assert_int_equal(join(f, true), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(join_write_puts_pieces_where_they_belong),
		CASE(join_write_leaves_the_rest_as_it_was),
		CASE(join_write_whole_image_needs_no_pieces),
		CASE(join_write_without_list_or_file_is_lost),
		CASE(join_write_list_of_another_bundle_is_refused),
		CASE(join_write_monstrous_file_is_lost),
		CASE(join_write_short_file_is_refused),
	};

	return cmocka_run_group_tests_name("ctl/join", tests, NULL, NULL);
}
