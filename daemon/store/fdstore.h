/*
 * Snapshots that are not decoded yet, kept in systemd's file descriptor store
 * (sd_pid_notify_with_fds(3), FDSTORE=1), so that they outlive a crash of the recorder: the sealed
 * bundle, and the files of programs that its decoder may ask for. Without systemd nothing is kept.
 *
 * systemd's store has few places, so it gets one descriptor for each snapshot: a socket in whose
 * queue the snapshot's descriptors wait (unix(7), SCM_RIGHTS).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"

/* Images beyond this number are not kept, but counted. */
#define FDSTORE_MAX_IMAGES 4096u

struct fdstore_image {
	uint32_t index; /* in the bundle's manifest */
	int fd;
	uint64_t size; /* bytes that the image has */
};

struct fdstore_item {
	char id[ENTRY_ID_SIZE];
	bool again; /* the snapshot was taken up once before, and that recorder ended, too */
	int bundle_fd;
	struct fdstore_image *images;
	size_t n_images;
};

/* Queues all descriptors of ITEM (borrowed) in a socket: *ret_fd, the caller's. *ret_left_out
 * counts images for which the queue had no room. 0 or -errno. */
int fdstore_pack(const struct fdstore_item *item, int *ret_fd, size_t *ret_left_out);
/* Takes the queue that fdstore_pack() made out of FD (borrowed), which is then empty. Leaves out
 * images whose descriptors could not be received, and leaves RET's id and again alone. 0; -EBADMSG:
 * FD is something else; or -errno. */
int fdstore_unpack(int fd, struct fdstore_item *ret);
void fdstore_item_done(struct fdstore_item *item);

/* Have systemd keep ITEM, or forget it. Any thread may call them. On failure nothing is kept. */
void fdstore_keep(const struct fdstore_item *item);
void fdstore_drop(const char *id, bool again);
/* Takes what systemd kept from the run before, in any order. The environment variables that tell of
 * descriptors are unset. Free *ret with fdstore_free(). 0 or -ENOMEM. */
int fdstore_take(struct fdstore_item **ret, size_t *ret_n);
void fdstore_free(struct fdstore_item *items, size_t n);
