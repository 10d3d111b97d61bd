/*
 * What store.c (the list, and what is removed) and store_pin.c (what is not) share: the list.
 */
#pragma once

#include "daemon/store/store.h"

struct store_item {
	struct entry entry; /* first: a struct entry that we gave out leads back to its item */
	uint64_t sizes[STORE_N_PARTS]; /* on disk */
	int fds[STORE_N_PARTS];	       /* in memory; -EBADF */
	bool unfinished;	       /* a former run began it, and it can be taken up */
};

struct store {
	int dir_fd;
	struct imagestore *images;
	struct store_limits limits;
	struct store_stats stats;
	struct store_item *items; /* sorted by id */
	size_t n, capacity;
	uint64_t last_usec;
	unsigned sequence;
	bool images_unknown; /* some snapshot's list could not be read: nothing is removed */
};

/* NULL: there is none. */
struct store_item *store_item_of(const struct store *s, const char *id);
/* What it has on the disk, without images. */
uint64_t store_item_bytes(const struct store_item *item);

/* Does a file say that snapshot ID is pinned? */
bool store_pin_is_there(int dir_fd, const char *id);
/* So, but there is no other file of it: it goes. */
bool store_pin_is_orphan(int dir_fd, const char *id);
