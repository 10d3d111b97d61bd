/*
 * The host's image cache: what stored snapshots need of the programs that ran, kept once, in the
 * directory "images" of the state directory.
 *
 * Files are shared by content: two snapshots share a file of the cache if all bytes that both need
 * are equal; else the second one gets another file of the same name and a number (a variant). The
 * cache also knows which snapshot needs which file, and removes files that none needs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/entry.h"
#include "proto/bundle/kept.h"
#include "proto/bundle/manifest.h"

/* --- One file of the cache (imagefile.c) --- */

/* A file has some bytes of one image, at their offsets; the rest is a hole. "NAME.ranges" beside
 * the file says which bytes are there. */

#define IMAGEFILE_RANGES    ".ranges"
#define IMAGEFILE_NAME_SIZE (KEPT_NAME_MAX + 1)
#define IMAGEFILE_TEMPORARY ".tmp"
/* "NAME.ranges", ".NAME.ranges.tmp" */
#define IMAGEFILE_BESIDE_SIZE (IMAGEFILE_NAME_SIZE + sizeof(IMAGEFILE_RANGES IMAGEFILE_TEMPORARY))

/* The name for IMAGE, of FILE_SIZE bytes: its build id, or else what identifies it. VARIANT: 0 for
 * the first file of that name, n for its nth alternative. */
void imagefile_name(const struct manifest_image *image, uint64_t file_size, unsigned variant,
		    char ret[IMAGEFILE_NAME_SIZE]);
/* Whether NAME has the form of such a name. ".ranges" files and temporary files do not. */
bool imagefile_is_name(const char *name);
void imagefile_ranges_name(const char *name, char ret[IMAGEFILE_BESIDE_SIZE]);

/* Reads the ranges of NAME in DIR_FD; *ret is the caller's. 0; -ENOENT; -EBADMSG: damaged; or
 * -errno. */
int imagefile_ranges(int dir_fd, const char *name, struct manifest_piece **ret, size_t *ret_n);
/* How many bytes of PIECES (in order) are not in NAME; all if there is no such file. */
uint64_t imagefile_missing(int dir_fd, const char *name, const struct manifest_piece *pieces,
			   size_t n);

struct imagefile_put {
	int from; /* borrowed; read with pread(2) only, as the file may be another user's */
	uint64_t file_size;	       /* of the whole image */
	uint64_t room;		       /* bytes that may be added */
	struct manifest_piece *pieces; /* borrowed; in order, not touching. Bytes that FROM no
					* longer has are cut off. */
	size_t n;
	uint64_t added; /* out: bytes that were not there before */
	uint64_t cut;	/* out: bytes of PIECES that could not be read */
};

/* Adds the pieces to the file NAME of DIR_FD, which is made if missing. 0; IMAGEFILE_DIFFERS: the
 * file has other bytes, another size, or no valid ranges; -EDQUOT: no room; -E2BIG: too many
 * ranges; or -errno (-ENOSPC). Unless 0 is returned, the file is as it was. */
#define IMAGEFILE_DIFFERS 1
int imagefile_put(int dir_fd, const char *name, struct imagefile_put *put);

/* --- The cache --- */

#define IMAGESTORE_DIR "images"

struct imagestore;

/* Opens the cache in the state directory STATE_FD (borrowed), lists its files, and removes what a
 * crash left half written. If the disk has no room for the directory, it is made later. 0 or
 * -errno. */
int imagestore_new(int state_fd, struct imagestore **ret);
/* Waits until all files that are to be removed have been. */
void imagestore_free(struct imagestore *s);

/* For the loop: these functions do not wait for a disk that is busy with images. */

/* At the start: snapshot ID needs the files that KEPT lists. 0 or -ENOMEM. */
int imagestore_load(struct imagestore *s, const char *id, const struct kept *kept);
/* At the start, after all snapshots are loaded: removes files that none of them needs. */
void imagestore_collect(struct imagestore *s);
/* Snapshot ID and its list are removed: it needs no files any more. */
void imagestore_release(struct imagestore *s, const char *id);
/* Bytes of all files that are needed. */
uint64_t imagestore_bytes(struct imagestore *s);
/* Bytes of the files that the snapshots for which IS_ONE is true need, each file once. */
uint64_t imagestore_bytes_of(struct imagestore *s, bool (*is_one)(void *userdata, const char *id),
			     void *userdata);
/* How many bytes imagestore_keep() may add from now on. */
void imagestore_set_room(struct imagestore *s, uint64_t bytes);
/* Opens the file that has image INDEX of snapshot ID, read-only. 0; -ENOENT; or -errno. */
int imagestore_open(struct imagestore *s, const char *id, uint32_t index, int *ret_fd,
		    uint64_t *ret_size);

/* For jobs' threads. */

/* The bytes of one image to be kept for a snapshot. Pointers and FD are borrowed. */
struct imagestore_wish {
	const char *id; /* the snapshot's */
	const struct manifest_image *image;
	uint32_t index; /* of the image in the snapshot's manifest */
	int fd;
	uint64_t file_size;
	/* As manifest_pieces_join() leaves them. Bytes that FD does not have are cut off. */
	struct manifest_piece *pieces;
	size_t n_pieces;
	uint64_t cut;			/* out: bytes that were cut off */
	char name[IMAGEFILE_NAME_SIZE]; /* out: file of the cache */
};

/* Estimates how many bytes imagestore_keep() would add for WISH. */
uint64_t imagestore_missing(struct imagestore *s, const struct imagestore_wish *wish);
/* Keeps the pieces of one image for snapshot WISH->id, which needs them from now on. 0, also if
 * nothing is left of the pieces; -EDQUOT: no room; -EMLINK: too many variants; or -errno (-ENOSPC).
 * On failure nothing of the image is kept. */
int imagestore_keep(struct imagestore *s, struct imagestore_wish *wish);
/* Syncs the names of new files; call it before a list of them is written. 0 or -errno. */
int imagestore_sync(struct imagestore *s);
