/*
 * The list of image bytes that a stored bundle needs, and where in the image cache they lie: the
 * text file "ID.images" beside ID.ptsnap. One line for each image, in order of INDEX:
 *
 *   INDEX NAME FILE-SIZE PIECES
 *
 * NAME is a file of the directory "images" beside the list, with the bytes at the same offsets as
 * in the image. PIECES are as in the manifest; "-": none were needed. The recorder writes and reads
 * the list; ptsnapctl reads it, and trusts it no more than a stranger's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#define KEPT_NAME_MAX 127u
#define KEPT_MAX_TEXT (256u << 20)

struct kept_image {
	uint32_t index;		       /* in the manifest */
	char *name;		       /* owned; of [0-9a-z.-], not beginning with a dot */
	uint64_t file_size;	       /* bytes of the whole image */
	struct manifest_piece *pieces; /* owned */
	size_t n_pieces;
};

struct kept {
	struct kept_image *images;
	size_t n, capacity;
};

void kept_init(struct kept *k);
void kept_done(struct kept *k);
/* Adds an image, with a copy of NAME and PIECES. INDEX must be greater than the last one's. 0,
 * -EINVAL, -ENOMEM, -E2BIG. */
int kept_add(struct kept *k, uint32_t index, const char *name, uint64_t file_size,
	     const struct manifest_piece *pieces, size_t n);
/* Returns the image INDEX, or NULL. */
const struct kept_image *kept_find(const struct kept *k, uint32_t index);
/* Appends the text to OUT. 0, -ENOMEM, -E2BIG. */
int kept_write(const struct kept *k, struct bytes_out *out);
/* Reads the text into K, which must be empty and is empty after a failure. 0, -EBADMSG, -ENOMEM. */
int kept_read(const void *text, size_t size, struct kept *k);
