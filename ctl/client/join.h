/*
 * A bundle as the recorder stores it, whose images lie elsewhere, made whole: one that needs
 * nothing else. Called by stored.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/kept.h"

/* Where the images are. */
struct join_source {
	/* The file that has the bytes of IMAGE at their offsets: *ret_fd, the caller's. 0, -ENOENT,
	 * or -errno; a positive number is an exit code and was said. */
	int (*open)(void *userdata, const struct kept_image *image, int *ret_fd);
	void *userdata;
};

/* What became of images that were elsewhere. */
struct join_told {
	uint64_t joined;
	uint64_t untouched; /* no code of them was needed */
	uint64_t lost;	    /* that are not in the list, or whose file is gone */
};

/* Is there an image elsewhere? */
bool join_needed(const struct manifest *m);
/* The bundle B to TO (at its position), with what KEPT (NULL: there is no list) says of its images.
 * 0; -EBADMSG: the list is not this bundle's, or a file has less than it says; -errno; a positive
 * number: of SOURCE's. */
int join_write(const struct bundle *b, const struct kept *kept, const struct join_source *source,
	       int to, struct join_told *ret);
