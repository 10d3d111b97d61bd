/*
 * Which bytes of which images a stored bundle needs, and in which files of the image cache they
 * lie: the text file "ID.images" beside ID.ptsnap. One line an image, in order of INDEX:
 *
 *   INDEX NAME FILE-SIZE PIECES
 *
 * NAME is a file of the directory "images" beside it that has the bytes at the offsets that they
 * have in the image; PIECES as in the manifest ("-": none were needed). Written and read by the
 * recorder, read by ptsnapctl.
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
	char *name;		       /* owned; [0-9a-z.-] only, does not begin with a dot */
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
/* One more, with PIECES (copied); INDEX greater than the last one's. 0, -EINVAL, -ENOMEM, -E2BIG.
 */
int kept_add(struct kept *k, uint32_t index, const char *name, uint64_t file_size,
	     const struct manifest_piece *pieces, size_t n);
const struct kept_image *kept_find(const struct kept *k, uint32_t index); /* NULL: none */
/* Appended to OUT. 0, -ENOMEM, -E2BIG. */
int kept_write(const struct kept *k, struct bytes_out *out);
/* K is initialised; empty again on failure. 0, -EBADMSG, -ENOMEM. */
int kept_read(const void *text, size_t size, struct kept *k);
