/*
 * Snapshots that are not decoded yet, kept in systemd's file descriptor store
 * (sd_pid_notify_with_fds(3), FDSTORE=1), so that they outlive a crash of the recorder: the sealed
 * bundle and the files of programs that its decoder may ask for. Without systemd nothing is kept.
 *
 * Of one snapshot systemd has one descriptor: a socket in whose queue all others wait
 * (unix(7), SCM_RIGHTS), as the store has few places.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"

/* What is beyond that is not kept, and counted. */
#define FDSTORE_MAX_IMAGES 4096u

struct fdstore_image {
	uint32_t index; /* in the bundle's manifest */
	int fd;
	uint64_t size; /* bytes of it that count */
};

struct fdstore_item {
	char id[ENTRY_ID_SIZE];
	bool again; /* it was taken up before, and that ended a recorder */
	int bundle_fd;
	struct fdstore_image *images;
	size_t n_images;
};

/* All of ITEM in one socket: *ret_fd, the caller's, which systemd may keep. The descriptors of ITEM
 * are borrowed. *ret_left_out: images that found no room. 0 or -errno. */
int fdstore_pack(const struct fdstore_item *item, int *ret_fd, size_t *ret_left_out);
/* What fdstore_pack made, FD (borrowed) being empty afterwards: RET's id and again are not touched.
 * Images for which there is no descriptor any more are left out. 0, -EBADMSG: it is something else,
 * or -errno. */
int fdstore_unpack(int fd, struct fdstore_item *ret);
void fdstore_item_done(struct fdstore_item *item);

/* Has systemd keep ITEM, or forget it. May be called in any thread; what fails is only not kept. */
void fdstore_keep(const struct fdstore_item *item);
void fdstore_drop(const char *id, bool again);
/* What systemd kept for us of a run before: *ret (freed with fdstore_free) in any order. The
 * environment variables that tell of descriptors are gone afterwards. 0 or -ENOMEM. */
int fdstore_take(struct fdstore_item **ret, size_t *ret_n);
void fdstore_free(struct fdstore_item *items, size_t n);
