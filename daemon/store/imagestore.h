/*
 * The host's image cache: what stored snapshots need of the programs that ran, once, in the
 * directory "images" of the state directory. Files are shared by content: what is taken for the
 * same image has the same bytes wherever two snapshots look, or becomes another file.
 *
 * Which snapshot needs which file is known here, too; a file that none needs any more goes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "daemon/store/imagefile.h"
#include "proto/bundle/kept.h"
#include "proto/bundle/manifest.h"

#define IMAGESTORE_DIR "images"

struct imagestore;

/* In the state directory STATE_FD (borrowed): lists what is there, removes what a crash left half
 * written. Without a place on the disk the directory is made later. 0 or -errno. */
int imagestore_new(int state_fd, struct imagestore **ret);
/* Waits until what is to be removed is. */
void imagestore_free(struct imagestore *s);

/* For the loop; none of them waits for a disk that is busy with images. */

/* At the start: snapshot ID needs what KEPT says. 0 or -ENOMEM. */
int imagestore_load(struct imagestore *s, const char *id, const struct kept *kept);
/* At the start, after all snapshots: what none of them needs goes. */
void imagestore_collect(struct imagestore *s);
/* Snapshot ID is gone, with its list. */
void imagestore_release(struct imagestore *s, const char *id);
/* Bytes of all files that are needed. */
uint64_t imagestore_bytes(struct imagestore *s);
/* Of those that snapshots need for which IS_ONE says yes; each file once. */
uint64_t imagestore_bytes_of(struct imagestore *s, bool (*is_one)(void *userdata, const char *id),
			     void *userdata);
/* How many bytes imagestore_keep may add. */
void imagestore_set_room(struct imagestore *s, uint64_t bytes);
/* The file that has image INDEX of snapshot ID, read-only. 0; -ENOENT; -errno. */
int imagestore_open(struct imagestore *s, const char *id, uint32_t index, int *ret_fd,
		    uint64_t *ret_size);

/* For jobs' threads. */

struct imagestore_wish {
	const char *id; /* borrowed, all */
	const struct manifest_image *image;
	uint32_t index;
	int fd;
	uint64_t file_size;
	struct manifest_piece
		*pieces; /* as manifest_pieces_join leaves them; cut where FD has less */
	size_t n_pieces;
	uint64_t cut;			/* out: bytes that were */
	char name[IMAGEFILE_NAME_SIZE]; /* out */
};

/* How many bytes that would add, about. */
uint64_t imagestore_missing(struct imagestore *s, const struct imagestore_wish *wish);
/* Keeps the pieces of one image for snapshot ID, which needs them from now on. 0, also when nothing
 * is left of the pieces; -EDQUOT: no room; -EMLINK: too many different files of that name; -errno
 * (-ENOSPC): nothing is kept of it. */
int imagestore_keep(struct imagestore *s, struct imagestore_wish *wish);
/* The names of new files, to the disk: before a list of them is written. 0 or -errno. */
int imagestore_sync(struct imagestore *s);
