/*
 * One file of the image cache: bytes of one image at the offsets that they have there, the rest a
 * hole, and beside it "NAME.ranges", which says what is there. Called by imagestore.c, in job
 * threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/kept.h"
#include "proto/bundle/manifest.h"

#define IMAGEFILE_RANGES    ".ranges"
#define IMAGEFILE_NAME_SIZE (KEPT_NAME_MAX + 1)
#define IMAGEFILE_TEMPORARY ".tmp"
/* "NAME.ranges", ".NAME.ranges.tmp" */
#define IMAGEFILE_BESIDE_SIZE (IMAGEFILE_NAME_SIZE + sizeof(IMAGEFILE_RANGES IMAGEFILE_TEMPORARY))

/* The name under which IMAGE, of FILE_SIZE bytes, is looked for first: its build id, or what else
 * it is known by. VARIANT: the how-manieth other file of that name, 0: the first. */
void imagefile_name(const struct manifest_image *image, uint64_t file_size, unsigned variant,
		    char ret[IMAGEFILE_NAME_SIZE]);
/* Could NAME be one of those? ".ranges" files and temporary ones are not. */
bool imagefile_is_name(const char *name);
void imagefile_ranges_name(const char *name, char ret[IMAGEFILE_BESIDE_SIZE]);

/* What NAME in DIR_FD has; *ret is malloc'ed. 0; -ENOENT; -EBADMSG: damaged; -errno. */
int imagefile_ranges(int dir_fd, const char *name, struct manifest_piece **ret, size_t *ret_n);
/* How many bytes of PIECES (in order) are not in NAME: all, when there is no such file. */
uint64_t imagefile_missing(int dir_fd, const char *name, const struct manifest_piece *pieces,
			   size_t n);

struct imagefile_put {
	int from;	    /* borrowed; read with pread(2) only: the file may be a stranger's */
	uint64_t file_size; /* of the whole image */
	uint64_t room;	    /* bytes that may be added */
	struct manifest_piece *pieces; /* borrowed; in order, not touching; what FROM has no more
					* is cut from it */
	size_t n;
	uint64_t added; /* out: bytes that were not there */
	uint64_t cut;	/* out: bytes of PIECES that could not be read */
};

/* Brings the pieces into the file NAME of DIR_FD, which is made when it is not there. 0;
 * IMAGEFILE_DIFFERS: a file of that name has other bytes there, another size, or ranges that nobody
 * knows, and is untouched; -EDQUOT: no room; -E2BIG: too many ranges; -errno (-ENOSPC). On failure
 * the file is as it was. */
#define IMAGEFILE_DIFFERS 1
int imagefile_put(int dir_fd, const char *name, struct imagefile_put *put);
