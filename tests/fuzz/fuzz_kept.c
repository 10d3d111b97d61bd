/*
 * Fuzzes the parser of kept lists and their pieces. Invariant: an accepted list can be written,
 * reads back the same, and names no file outside of its directory.
 */
#include "proto/bundle/kept.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_image(const struct kept_image *image)
{
	uint64_t end = 0;

	assert(image->index < MANIFEST_MAX_IMAGES && !strchr(image->name, '/'));
	assert(image->name[0] && image->name[0] != '.' && strlen(image->name) <= KEPT_NAME_MAX);
	for (size_t i = 0; i < image->n_pieces; i++) {
		const struct manifest_piece *p = &image->pieces[i];

		assert(p->size > 0 && (i == 0 || p->offset > end));
		end = p->offset + p->size;
		assert(end > p->offset && end <= image->file_size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	CLEANUP(kept_done) struct kept k;

	kept_init(&k);
	bytes_out_init(&text, SIZE_MAX);
	if (kept_read(bytes, size, &k) < 0) {
		assert(k.n == 0);
		return 0;
	}
	for (size_t i = 0; i < k.n; i++)
		check_image(&k.images[i]);
	assert(kept_write(&k, &text) == 0);
	/* A list has exactly one text form. */
	assert(text.size == size && (size == 0 || memcmp(text.data, bytes, size) == 0));
	return 0;
}
