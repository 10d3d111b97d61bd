/*
 * The list itself, which store.c keeps and store_room.c makes shorter.
 */
#pragma once

#include "daemon/store/store.h"

struct store_item {
	struct entry entry; /* first: a struct entry * that a caller gives us is its item */
	uint64_t sizes[STORE_N_PARTS]; /* bytes on disk */
	int fds[STORE_N_PARTS];	       /* memory files; -EBADF: none */
	bool unfinished;	       /* of a former run, and can still be decoded */
};

struct store {
	int dir_fd;
	struct imagestore *images;
	struct store_limits limits;
	struct store_stats stats;
	struct store_item *items; /* sorted by id */
	size_t n, capacity;
	uint64_t last_usec; /* in the newest id */
	unsigned sequence;
	bool images_unknown; /* a snapshot's list of images could not be read: remove no image */
};

/* NULL: not listed. */
struct store_item *store_item_of(const struct store *s, const char *id);
/* Bytes on disk, without images. */
uint64_t store_item_bytes(const struct store_item *item);
/* Measures the files of ITEM for the quota. */
void store_measure(struct store *s, struct store_item *item);
/* Takes back what the entry promises of files that no longer exist. */
void store_note_lost(struct store_item *item);
/* Removes the item at INDEX, its files, and the images that no other snapshot needs. */
void store_remove(struct store *s, size_t index);

/* Removes the oldest snapshots until there is room for BYTES, which are at most what the store may
 * hold. SPARE (may be NULL) has only just ended and stays. */
void store_evict(struct store *s, uint64_t bytes, const char *spare);
/* Removes at most STORE_TRIM snapshots beyond the limits, so that N more can be listed. Returns
 * whether more remain to be removed. */
bool store_trim_for(struct store *s, size_t n);
