/*
 * Joins a stored bundle and its images, which the recorder keeps elsewhere, into one bundle.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/kept.h"

/* Where the images are. */
struct join_source {
	/* Opens the file that has the bytes of IMAGE at their offsets; *ret_fd is the caller's. 0;
	 * -ENOENT: there is no such file; -errno; or an exit code after a message. */
	int (*open)(void *userdata, const struct kept_image *image, int *ret_fd);
	void *userdata;
};

/* How many images that were elsewhere had which fate. */
struct join_counts {
	uint64_t joined;
	uint64_t untouched; /* no code of them was needed */
	uint64_t lost;	    /* not in the list, or their file is gone */
};

/* Whether M has an image that is elsewhere. */
bool join_needed(const struct manifest *m);
/* Writes bundle B to fd TO, at its position, with the pieces of images that KEPT names (NULL: there
 * is no list). 0; -EBADMSG: the list belongs to another bundle, or a file is shorter than the list
 * says; -errno; or a positive result of SOURCE. */
int join_write(const struct bundle *b, const struct kept *kept, const struct join_source *source,
	       int to, struct join_counts *ret);
