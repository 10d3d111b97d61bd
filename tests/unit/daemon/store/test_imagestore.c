/*
 * The image cache: bytes are stored once, files are shared by content, and files that no snapshot
 * needs are removed, also after a full disk or a crash.
 */
#include "daemon/store/imagestore.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/daemon/scratch_dir.h"

#define SIZE 0x10000u
#define ID   "00000000003-abcd-1"
#define ID2  "00000000004-abcd-2"

static char build_id[] = "0123456789abcdef0123456789abcdef01234567";

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	int dir_fd;
	struct imagestore *store;
	struct manifest_image image;
};

static void open_store(struct fixture *f)
{
	assert_int_equal(imagestore_new(f->dir_fd, &f->store), 0);
	imagestore_set_room(f->store, UINT64_MAX);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	scratch_dir_make(f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	f->image.build_id = build_id;
	open_store(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	imagestore_free(f->store);
	close(f->dir_fd);
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

/* Makes a file of SIZE bytes, which depend on SEED and on their offsets. */
static int file_of(unsigned seed)
{
	uint8_t bytes[SIZE];
	int fd;

	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = (uint8_t)(seed + i + (i >> 8));
	assert_int_equal(memfd_new("test", 0, &fd), 0);
	assert_int_equal(memfd_write_all(fd, bytes, SIZE), 0);
	return fd;
}

/* Keeps one piece of the file FD for snapshot ID. */
static int keep(struct fixture *f, const char *id, int fd, uint64_t offset, uint64_t size,
		struct imagestore_wish *ret)
{
	struct manifest_piece piece = {offset, size};
	int r;

	*ret = (struct imagestore_wish){.id = id,
					.image = &f->image,
					.fd = fd,
					.file_size = SIZE,
					.pieces = &piece,
					.n_pieces = 1};
	r = imagestore_keep(f->store, ret);
	ret->pieces = NULL;
	return r;
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), IMAGESTORE_DIR "/%s", name);
	return faccessat(f->dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void assert_bytes(const struct fixture *f, const char *name, uint64_t offset, size_t size,
			 unsigned seed)
{
	uint8_t bytes[SIZE];
	char path[256];

	snprintf(path, sizeof(path), IMAGESTORE_DIR "/%s", name);
	CLEANUP_CLOSE int fd = openat(f->dir_fd, path, O_RDONLY);
	assert_int_equal(pread(fd, bytes, size, (off_t)offset), size);
	for (size_t i = 0; i < size; i++) {
		size_t at = offset + i;

		assert_int_equal(bytes[i], (uint8_t)(seed + at + (at >> 8)));
	}
}

/* Waits until all files that are to be removed have been. */
static void reopen(struct fixture *f)
{
	imagestore_free(f->store);
	open_store(f);
}

static void imagestore_keep_same_bytes_twice_is_one_file(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int a = file_of(1), b = file_of(1);
	struct imagestore_wish w;

	assert_int_equal(keep(f, ID, a, 0, 0x1000, &w), 0);
	assert_string_equal(w.name, build_id);
	assert_int_equal(imagestore_bytes(f->store), 0x1000);
	assert_int_equal(keep(f, ID2, b, 0x800, 0x1000, &w), 0);
	assert_string_equal(w.name, build_id);
	assert_int_equal(imagestore_bytes(f->store), 0x1800);
	assert_bytes(f, build_id, 0, 0x1800, 1);
	assert_int_equal(keep(f, ID2, b, 0, 0x1800, &w), 0);
	assert_int_equal(imagestore_bytes(f->store), 0x1800);
}

static void imagestore_keep_forged_build_id_is_another_file(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int real = file_of(1), forged = file_of(2);
	struct imagestore_wish w;
	char variant[64];

	snprintf(variant, sizeof(variant), "%s.1", build_id);
	assert_int_equal(keep(f, ID, forged, 0, 0x2000, &w), 0);
	assert_int_equal(keep(f, ID2, real, 0x1000, 0x2000, &w), 0);
	assert_string_equal(w.name, variant);
	assert_bytes(f, build_id, 0, 0x2000, 2);
	assert_bytes(f, variant, 0x1000, 0x2000, 1);
	/* Each of the two files is found again. */
	assert_int_equal(keep(f, ID2, real, 0x1000, 0x100, &w), 0);
	assert_string_equal(w.name, variant);
	assert_int_equal(keep(f, ID2, forged, 0x1000, 0x100, &w), 0);
	assert_string_equal(w.name, build_id);
}

static void imagestore_keep_other_size_is_another_file(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int a = file_of(1);
	struct manifest_piece piece = {0, 0x100};
	struct imagestore_wish w = {.id = ID,
				    .image = &f->image,
				    .fd = a,
				    .pieces = &piece,
				    .n_pieces = 1,
				    .file_size = SIZE / 2};
	struct imagestore_wish whole;

	assert_int_equal(imagestore_keep(f->store, &w), 0);
	assert_int_equal(keep(f, ID2, a, 0, 0x100, &whole), 0);
	assert_string_not_equal(w.name, whole.name);
}

static void imagestore_keep_too_many_different_files_is_refused(void **state)
{
	struct fixture *f = *state;
	struct imagestore_wish w;
	int r = 0;
	unsigned i;

	for (i = 0; i < 100 && r == 0; i++) {
		CLEANUP_CLOSE int fd = file_of(i);

		r = keep(f, ID, fd, 0, 0x100, &w);
	}
	assert_int_equal(r, -EMLINK);
	assert_int_equal(i, 65);
}

static void imagestore_keep_shrunk_file_is_cut(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct manifest_piece pieces[] = {{0x1000, 0x1000}, {0x4000, 0x1000}};
	struct imagestore_wish w = {.id = ID,
				    .image = &f->image,
				    .fd = fd,
				    .pieces = pieces,
				    .n_pieces = 2,
				    .file_size = SIZE};

	assert_int_equal(ftruncate(fd, 0x1800), 0);
	assert_int_equal(imagestore_keep(f->store, &w), 0);
	assert_int_equal(w.n_pieces, 1);
	assert_int_equal(pieces[0].offset, 0x1000);
	assert_int_equal(pieces[0].size, 0x800);
	assert_int_equal(w.cut, 0x1800);
	assert_bytes(f, w.name, 0x1000, 0x800, 1);
	/* The same when no byte is left. */
	pieces[0].size = 0x1000;
	w.n_pieces = 1;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(imagestore_keep(f->store, &w), 0);
	assert_int_equal(w.n_pieces, 0);
}

static void imagestore_keep_pieces_beyond_the_file_are_cut(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct imagestore_wish w;

	assert_int_equal(keep(f, ID, fd, SIZE - 0x10, (uint64_t)1 << 40, &w), 0);
	assert_int_equal(imagestore_bytes(f->store), 0x10);
	assert_int_equal(keep(f, ID, fd, (uint64_t)1 << 62, 0x1000, &w), 0);
	assert_int_equal(w.n_pieces, 0);
	assert_int_equal(imagestore_bytes(f->store), 0x10);
}

static void imagestore_keep_without_room_keeps_nothing(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct imagestore_wish w;

	imagestore_set_room(f->store, 0xfff);
	assert_int_equal(keep(f, ID, fd, 0, 0x1000, &w), -EDQUOT);
	assert_int_equal(imagestore_bytes(f->store), 0);
	assert_int_equal(keep(f, ID, fd, 0, 0xfff, &w), 0);
	/* Bytes that are there need no room. */
	assert_int_equal(keep(f, ID2, fd, 0, 0xfff, &w), 0);
	assert_int_equal(keep(f, ID2, fd, 0xfff, 1, &w), -EDQUOT);
}

/* The disk is full: the file stays as it was. */
static void imagestore_keep_on_a_full_disk_changes_nothing(void **state)
{
	const struct rlimit small = {0x3000, RLIM_INFINITY};
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1), other = file_of(2);
	struct imagestore_wish w;
	struct rlimit before;
	char variant[64];

	snprintf(variant, sizeof(variant), "%s.1", build_id);
	assert_int_equal(keep(f, ID, fd, 0, 0x2000, &w), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &small);
	{
		/* The first piece is written when the second one fails. */
		struct manifest_piece pieces[] = {{0x2000, 0x400}, {0x2800, 0x1000}};
		struct imagestore_wish two = {.id = ID2,
					      .image = &f->image,
					      .fd = fd,
					      .pieces = pieces,
					      .n_pieces = 2,
					      .file_size = SIZE};

		assert_int_equal(imagestore_keep(f->store, &two), -EFBIG);
	}
	assert_int_equal(keep(f, ID2, other, 0, 0x1000, &w), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(imagestore_bytes(f->store), 0x2000);
	assert_false(exists(f, variant));
	assert_int_equal(keep(f, ID2, fd, 0x2800, 0x1000, &w), 0);
	assert_bytes(f, build_id, 0x2800, 0x1000, 1);
}

static void imagestore_release_removes_what_nobody_needs(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int a = file_of(1), b = file_of(2);
	struct imagestore_wish shared, own;

	assert_int_equal(keep(f, ID, a, 0, 0x1000, &shared), 0);
	assert_int_equal(keep(f, ID2, a, 0, 0x1000, &shared), 0);
	assert_int_equal(keep(f, ID, b, 0, 0x400, &own), 0);
	assert_int_equal(imagestore_bytes(f->store), 0x1400);
	imagestore_release(f->store, ID);
	imagestore_release(f->store, "00000000009-abcd-9");
	assert_int_equal(imagestore_bytes(f->store), 0x1000);
	imagestore_free(f->store);
	assert_true(exists(f, shared.name));
	assert_false(exists(f, own.name));
	open_store(f);
	imagestore_collect(f->store);
	reopen(f);
	assert_false(exists(f, shared.name));
	assert_int_equal(scratch_dir_count(f->dir), 1);
}

/* A file that is needed again is there, in whatever order release and keep come. */
static void imagestore_keep_after_release_finds_or_makes_it(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct imagestore_wish w;

	for (int i = 0; i < 50; i++) {
		assert_int_equal(keep(f, ID, fd, 0, 0x1000, &w), 0);
		assert_bytes(f, w.name, 0, 0x1000, 1);
		imagestore_release(f->store, ID);
	}
	assert_int_equal(imagestore_bytes(f->store), 0);
}

static void imagestore_load_keeps_what_a_list_names(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int a = file_of(1), b = file_of(2), fd = -EBADF;
	struct manifest_piece piece = {0, 0x1000};
	CLEANUP(kept_done) struct kept kept;
	struct imagestore_wish named, other;
	uint64_t size;

	kept_init(&kept);
	assert_int_equal(keep(f, ID, a, 0, 0x1000, &named), 0);
	assert_int_equal(keep(f, ID, b, 0, 0x1000, &other), 0);
	assert_int_equal(kept_add(&kept, 4, named.name, SIZE, &piece, 1), 0);
	assert_int_equal(kept_add(&kept, 7, "absent", SIZE, &piece, 1), 0);
	assert_int_equal(kept_add(&kept, 8, other.name, SIZE, NULL, 0), 0);
	reopen(f);
	assert_int_equal(imagestore_bytes(f->store), 0);
	assert_int_equal(imagestore_load(f->store, ID, &kept), 0);
	imagestore_collect(f->store);
	assert_int_equal(imagestore_bytes(f->store), 0x1000);
	assert_int_equal(imagestore_open(f->store, ID, 4, &fd, &size), 0);
	assert_int_equal(size, SIZE);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(imagestore_open(f->store, ID, 7, &fd, &size), -ENOENT);
	assert_int_equal(imagestore_open(f->store, ID, 8, &fd, &size), -ENOENT);
	assert_int_equal(imagestore_open(f->store, ID2, 4, &fd, &size), -ENOENT);
	imagestore_free(f->store);
	assert_true(exists(f, named.name));
	assert_false(exists(f, other.name));
	open_store(f);
}

static void put_file(const struct fixture *f, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), IMAGESTORE_DIR "/%s", name);
	CLEANUP_CLOSE int fd = openat(f->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Files that are half written, files with damaged ranges, and files of other programs. */
static void imagestore_new_after_a_crash_trusts_ranges_only(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct manifest_piece piece = {0, 0x1000};
	CLEANUP(kept_done) struct kept kept;
	char beside[64], temporary[64];
	struct imagestore_wish w;

	kept_init(&kept);
	snprintf(beside, sizeof(beside), "%s.ranges", build_id);
	snprintf(temporary, sizeof(temporary), ".%s.ranges.tmp", build_id);
	assert_int_equal(keep(f, ID, fd, 0, 0x1000, &w), 0);
	assert_int_equal(kept_add(&kept, 0, w.name, SIZE, &piece, 1), 0);
	put_file(f, temporary, "0x0+0x10000");
	put_file(f, "orphan.ranges", "0x0+0x10000");
	put_file(f, "README.txt", "not ours");
	put_file(f, beside, "0x0+garbage");
	reopen(f);
	assert_int_equal(imagestore_load(f->store, ID, &kept), 0);
	imagestore_collect(f->store);
	assert_false(exists(f, temporary));
	assert_false(exists(f, "orphan.ranges"));
	assert_true(exists(f, "README.txt"));
	/* Nothing more is written into a file without valid ranges. */
	assert_int_equal(keep(f, ID2, fd, 0x1000, 0x1000, &w), 0);
	assert_string_not_equal(w.name, build_id);
	assert_bytes(f, build_id, 0, 0x1000, 1);
	put_file(f, "README.txt", "");
	imagestore_release(f->store, ID);
	reopen(f);
	assert_false(exists(f, build_id));
	assert_false(exists(f, beside));
}

/* Damaged ranges must not make the store remove old snapshots for room that no file takes. */
static void imagestore_load_of_ranges_beyond_the_file_counts_what_is_there(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int fd = file_of(1);
	struct manifest_piece piece = {0, 0x1000};
	CLEANUP(kept_done) struct kept kept;
	struct imagestore_wish w;
	char beside[64];

	kept_init(&kept);
	snprintf(beside, sizeof(beside), "%s.ranges", build_id);
	assert_int_equal(keep(f, ID, fd, 0, 0x1000, &w), 0);
	assert_int_equal(kept_add(&kept, 0, w.name, SIZE, &piece, 1), 0);
	put_file(f, beside, "0x0+0x7fffffff0000");
	reopen(f);
	assert_int_equal(imagestore_load(f->store, ID, &kept), 0);
	assert_in_range(imagestore_bytes(f->store), 1, SIZE);
}

/* An open that waits for a FIFO's other end would hang here. */
static void imagestore_keep_where_something_else_has_its_names(void **state)
{
	struct fixture *f = *state;
	CLEANUP_CLOSE int a = file_of(1);
	struct imagestore_wish w;
	char path[256], variant[64];
	uint64_t size;
	int fd;

	for (int i = 0; i < 3; i++) {
		static const char *const begins[] = {".", "", ""};
		static const char *const ends[] = {".2" IMAGEFILE_RANGES IMAGEFILE_TEMPORARY, "",
						   ".1"};

		snprintf(path, sizeof(path), IMAGESTORE_DIR "/%s%s%s", begins[i], build_id,
			 ends[i]);
		assert_int_equal(i == 2 ? mkdirat(f->dir_fd, path, 0700)
					: mkfifoat(f->dir_fd, path, 0600),
				 0);
	}
	snprintf(variant, sizeof(variant), "%s.2", build_id);
	assert_int_equal(keep(f, ID, a, 0, 0x1000, &w), 0);
	assert_string_equal(w.name, variant);
	assert_bytes(f, variant, 0, 0x1000, 1);
	/* The file is no longer the one that was kept. */
	snprintf(path, sizeof(path), IMAGESTORE_DIR "/%s", variant);
	assert_int_equal(unlinkat(f->dir_fd, path, 0), 0);
	assert_int_equal(mkfifoat(f->dir_fd, path, 0600), 0);
	assert_int_equal(imagestore_open(f->store, ID, 0, &fd, &size), -EBADMSG);
}

static void imagefile_name_is_of_what_the_image_is_known_by(void **state)
{
	static char evil[] = "../../etc/passwd";
	char name[IMAGEFILE_NAME_SIZE];
	struct manifest_image file = {.maj = 0xfe, .ino = 0x1234}, id = {.build_id = build_id};
	struct manifest_image bad = {.build_id = evil, .ino = 1};
	struct manifest_image jit = {.kind = (char *)(uintptr_t)MANIFEST_IMAGE_MEMORY,
				     .pid = UINT32_MAX,
				     .address = UINT64_MAX - 1,
				     .read_ns = UINT64_MAX};

	(void)state;
	imagefile_name(&file, 0x100, 0, name);
	assert_string_equal(name, "ffe-0-1234-100");
	assert_true(imagefile_is_name(name));
	imagefile_name(&id, 0x100, 63, name);
	assert_int_equal(strlen(name), 43);
	assert_true(imagefile_is_name(name));
	imagefile_name(&bad, 0x100, 0, name);
	assert_string_equal(name, "f0-0-1-100");
	imagefile_name(&jit, UINT64_MAX, 10, name);
	assert_true(imagefile_is_name(name));
	jit.kind = (char *)(uintptr_t)MANIFEST_IMAGE_JITDUMP;
	jit.read_ns = 0x99;
	imagefile_name(&jit, 0x100, 0, name);
	assert_string_equal(name, "jffffffff-99-100");
	assert_true(imagefile_is_name(name));
	assert_false(imagefile_is_name("x.ranges"));
	assert_false(imagefile_is_name("x.1.ranges"));
	assert_false(imagefile_is_name(".x"));
	assert_false(imagefile_is_name("x."));
	assert_false(imagefile_is_name("x/y"));
	assert_false(imagefile_is_name(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(imagestore_keep_same_bytes_twice_is_one_file),
		CASE(imagestore_keep_forged_build_id_is_another_file),
		CASE(imagestore_keep_other_size_is_another_file),
		CASE(imagestore_keep_too_many_different_files_is_refused),
		CASE(imagestore_keep_shrunk_file_is_cut),
		CASE(imagestore_keep_pieces_beyond_the_file_are_cut),
		CASE(imagestore_keep_without_room_keeps_nothing),
		CASE(imagestore_keep_on_a_full_disk_changes_nothing),
		CASE(imagestore_release_removes_what_nobody_needs),
		CASE(imagestore_keep_after_release_finds_or_makes_it),
		CASE(imagestore_load_keeps_what_a_list_names),
		CASE(imagestore_new_after_a_crash_trusts_ranges_only),
		CASE(imagestore_load_of_ranges_beyond_the_file_counts_what_is_there),
		CASE(imagestore_keep_where_something_else_has_its_names),
		cmocka_unit_test(imagefile_name_is_of_what_the_image_is_known_by),
	};

	return cmocka_run_group_tests_name("daemon/imagestore", tests, NULL, NULL);
}
