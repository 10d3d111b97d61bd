/*
 * A stored bundle with its images, from the recorder or from a state directory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/kept.h"

#include "ctl/base/option.h"

struct stored;

/* The functions of stored.c that return int print what is wrong and return an exit code. */

/* Gets snapshot ID ("latest", or the beginning of an ID) from the recorder. SETTINGS are borrowed
 * for the life of *ret, which is the caller's. */
int stored_from_recorder(const struct settings *settings, const char *id, struct stored **ret);
/* Takes the file PATH, open as FD, which is taken over also on failure. The images are looked for
 * beside PATH. A file without a list of images beside it, or that is no bundle, is taken as it is.
 */
int stored_from_file(const char *path, int fd, struct stored **ret);
void stored_freep(struct stored **s);

/* Checks that the file is a bundle. */
int stored_check(const struct stored *s);
/* Writes the bundle, joined with its images, to fd TO. Unless QUIET, prints how many images are
 * missing. */
int stored_write(struct stored *s, bool quiet, int to);
/* The same as a file without a name; *ret_fd is the caller's. Afterwards *s may only be freed. */
int stored_open(struct stored *s, bool quiet, int *ret_fd);

/* --- join.c: joins a stored bundle and its images into one bundle --- */

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
