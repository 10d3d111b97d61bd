/*
 * A store in a directory of the test's own, and snapshots to put there. Include after cmocka.h.
 */
#pragma once

#include <errno.h>
#include <string.h>

#include "daemon/store/store.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/daemon/scratch_dir.h"

#define BOOT "abcdef01-2345-6789-abcd-ef0123456789"

static char dir[SCRATCH_DIR_SIZE];
static char why[512];

static inline int setup(void **state)
{
	(void)state;
	scratch_dir_make(dir);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	scratch_dir_remove(dir);
	return 0;
}

static inline struct store *open_store(uint64_t max_use, uint32_t max_entries)
{
	const struct store_limits limits = {max_use, max_entries, 2};
	struct store *s = NULL;

	assert_int_equal(store_new(dir, &limits, &s, why, sizeof(why)), 0);
	return s;
}

static inline int memory_of(char fill, size_t size)
{
	char block[4096];
	int fd;

	memset(block, fill, sizeof(block));
	assert_int_equal(memfd_new("test", 0, &fd), 0);
	for (; size; size -= MIN_OF(size, sizeof(block)))
		assert_int_equal(memfd_write_all(fd, block, MIN_OF(size, sizeof(block))), 0);
	assert_int_equal(memfd_seal(fd), 0);
	return fd;
}

/* Lists a snapshot that has not ended. */
static inline struct entry begin(struct store *s, uint64_t usec)
{
	struct entry e;

	entry_init(&e);
	strcpy(e.trigger, "control");
	strcpy(e.boot_id, BOOT);
	e.realtime_usec = usec;
	store_new_id(s, usec, BOOT, e.id);
	assert_int_equal(store_add(s, &e), 0);
	return e;
}

/* Stores a snapshot that has ended, with a bundle of SIZE bytes. */
static inline struct entry complete(struct store *s, uint64_t usec, size_t size)
{
	struct entry e = begin(s, usec);
	CLEANUP_CLOSE int fd = memory_of('b', size);

	e.state = ENTRY_DONE;
	e.bundle_bytes = size;
	assert_int_equal(store_make_room(s, e.id, size), 0);
	assert_int_equal(store_file_put(store_dir_fd(s), e.id, STORE_BUNDLE, fd, size), 0);
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &e), 0);
	store_end(s, &e, -EBADF, -EBADF);
	return e;
}

/* Keeps an image for the bundle of E: SIZE bytes FILL of a file that has inode INO. KEPT (may be
 * NULL) gets the entry of the image for the bundle's list. */
static inline void keep_image(struct store *s, const struct entry *e, uint64_t ino, char fill,
			      size_t size, struct kept *kept)
{
	CLEANUP_CLOSE int fd = memory_of(fill, size);
	const struct manifest_image image = {.ino = ino};
	struct manifest_piece piece = {0, size};
	struct imagestore_wish w = {.id = e->id,
				    .image = &image,
				    .index = 7,
				    .fd = fd,
				    .file_size = size,
				    .pieces = &piece,
				    .n_pieces = 1};

	store_make_room_for_images(s, e->id, size);
	assert_int_equal(imagestore_keep(store_images(s), &w), 0);
	if (kept)
		assert_int_equal(kept_add(kept, 7, w.name, size, w.pieces, w.n_pieces), 0);
}
