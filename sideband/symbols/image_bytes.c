/*
 * The bytes of images: opened on first use, the build id compared.
 *
 * An image that is loaded, or whose bytes are in pieces, has a region: an address range of the
 * image's size that is filled block by block. A block that is not filled is read-only and reads as
 * zeros, so a limit on writable memory (RLIMIT_DATA) counts only filled blocks.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "sideband/symbols/image_private.h"

#define PAGE_SHIFT IMAGE_PAGE_SHIFT
/* Regions are filled, and made writable, in blocks of 64 KiB. IMAGE_MAX_FILLED bytes of blocks of
 * which no two touch need fewer mappings than a process may have (vm.max_map_count, 65530). */
#define BLOCK_SHIFT 16
#define BLOCK	    (UINT64_C(1) << BLOCK_SHIFT)
#define STEP_BLOCKS 16u /* blocks that are read at once for code */

enum block { BLOCK_UNREAD, BLOCK_READ, BLOCK_FAILED };

static uint64_t blocks_of(uint64_t size)
{
	return (size + BLOCK - 1) >> BLOCK_SHIFT;
}

/* --- Filling regions --- */

/* The first piece that ends behind OFFSET; n_pieces: none. */
static size_t find_piece(const struct image_source *source, uint64_t offset)
{
	return FIRST_WHERE(i, source->n_pieces,
			   source->pieces[i].offset + source->pieces[i].size > offset);
}

/* Copies the parts of [BEGIN, END) that the pieces hold. */
static void copy_pieces(const struct image_source *source, const struct image_body *b,
			uint64_t begin, uint64_t end)
{
	for (size_t i = find_piece(source, begin); i < source->n_pieces; i++) {
		const struct manifest_piece *p = &source->pieces[i];
		uint64_t from = MAX_OF(p->offset, begin), to = MIN_OF(p->offset + p->size, end);

		if (from >= to)
			return;
		memcpy(b->region + from, source->bytes + b->starts[i] + (from - p->offset),
		       (size_t)(to - from));
	}
}

/* Reads [BEGIN, END); if the loader brings less, the image ends there. 0 or -errno. */
static int load(struct image_set *s, uint32_t image, uint64_t begin, uint64_t end)
{
	struct image_body *b = &s->bodies[image];

	while (begin < end) {
		ssize_t n = s->loader.read(s->loader.userdata, image, begin, b->region + begin,
					   (size_t)(end - begin));

		if (n < 0)
			return (int)n;
		if (n == 0) {
			b->end = MIN_OF(b->end, begin);
			return 0;
		}
		begin += MIN_OF((uint64_t)n, end - begin);
	}
	return 0;
}

/* Fills [BEGIN, END), whole blocks up to the image's end. 0 or -errno. */
static int fill(struct image_set *s, uint32_t image, uint64_t begin, uint64_t end)
{
	struct image_source *source = &s->sources[image];
	struct image_body *b = &s->bodies[image];
	uint64_t room = (end - begin + BLOCK - 1) & ~(BLOCK - 1);

	if (room > s->room) {
		source->missing = "no more bytes of images are read: the limit was reached";
		return -ENOSPC;
	}
	if (mprotect(b->region + begin, (size_t)room, PROT_READ | PROT_WRITE) < 0) {
		source->missing = "there was no memory for all of its bytes";
		return -errno;
	}
	s->room -= room;
	if (source->n_pieces) {
		copy_pieces(source, b, begin, end);
		return 0;
	}
	if (load(s, image, begin, end) < 0) {
		source->missing = "reading it failed";
		return -EIO;
	}
	return 0;
}

/* Fills the blocks of [FIRST, LAST) that were not tried before, neighbours together. */
static void fill_blocks(struct image_set *s, uint32_t image, uint64_t first, uint64_t last)
{
	struct image_body *b = &s->bodies[image];

	while (first < last) {
		uint64_t n = 0;
		int r;

		while (first + n < last && b->blocks[first + n] == BLOCK_UNREAD)
			n++;
		if (n == 0) {
			first++;
			continue;
		}
		r = fill(s, image, first << BLOCK_SHIFT,
			 MIN_OF((first + n) << BLOCK_SHIFT, b->size));
		memset(b->blocks + first, r == 0 ? BLOCK_READ : BLOCK_FAILED, (size_t)n);
		first += n;
	}
}

/* Fills the step around OFFSET, or the blocks of SIZE bytes; *ret is what was filled around OFFSET
 * within them. */
static int range_in_region(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size,
			   struct image_range *ret)
{
	struct image_body *b = &s->bodies[image];
	uint64_t at = offset >> BLOCK_SHIFT, first = at / STEP_BLOCKS * STEP_BLOCKS;
	uint64_t last = MIN_OF(first + STEP_BLOCKS, blocks_of(b->size));

	if (size > 0) {
		first = at;
		last = blocks_of(offset + MIN_OF(size, b->size - offset));
	}
	fill_blocks(s, image, first, last);
	if (offset >= b->end)
		return IMAGE_SHORT;
	if (b->blocks[at] != BLOCK_READ)
		return IMAGE_MISSING;
	for (uint64_t i = at; i > first; i--)
		if (b->blocks[i - 1] != BLOCK_READ)
			first = i;
	for (uint64_t i = at; i < last; i++)
		if (b->blocks[i] != BLOCK_READ)
			last = i;
	ret->begin = first << BLOCK_SHIFT;
	ret->end = MIN_OF(last << BLOCK_SHIFT, b->end);
	return 0;
}

int image_bytes_around(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size,
		       struct image_range *ret)
{
	const struct image_source *source = &s->sources[image];
	const struct image_body *b = &s->bodies[image];
	int r;

	assert(b->state == IMAGE_OPEN);
	if (offset >= b->size)
		return IMAGE_SHORT;
	if (!b->region) {
		*ret = (struct image_range){source->offset, source->offset + source->size,
					    source->bytes, NULL};
		return offset < ret->begin || offset >= ret->end ? IMAGE_MISSING : 0;
	}
	r = range_in_region(s, image, offset, size, ret);
	if (r != 0)
		return r;
	if (source->n_pieces) {
		size_t i = find_piece(source, offset);
		const struct manifest_piece *piece = &source->pieces[i];

		if (i == source->n_pieces || piece->offset > offset)
			return IMAGE_MISSING;
		ret->begin = MAX_OF(ret->begin, piece->offset);
		ret->end = MIN_OF(ret->end, piece->offset + piece->size);
	}
	ret->bytes = b->region + ret->begin;
	ret->touched = b->touched ? b->touched + (ret->begin >> PAGE_SHIFT) : NULL;
	return 0;
}

/* --- Opening --- */

int image_bytes_reserve(struct image_set *s, uint32_t image)
{
	struct image_source *source = &s->sources[image];
	struct image_body *b = &s->bodies[image];
	uint64_t size = blocks_of(b->size) << BLOCK_SHIFT;
	void *region;

	source->missing = "it is too large";
	if (b->size > IMAGE_MAX_SIZE || size > IMAGE_MAX_RESERVED - s->reserved)
		return -E2BIG;
	source->missing = "there was no memory for it";
	b->blocks = calloc((size_t)blocks_of(size) + 1, 1);
	if (source->loadable)
		b->touched = calloc((size_t)(size >> PAGE_SHIFT) + 1, 1);
	if (!b->blocks || (source->loadable && !b->touched))
		return -ENOMEM;
	/* An empty image needs an address, too. */
	region = mmap(NULL, (size_t)MAX_OF(size, BLOCK), PROT_READ,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		return -ENOMEM;
	b->region = region;
	s->reserved += size;
	source->missing = NULL;
	return 0;
}

/* Notes where each piece begins. 0, -EBADMSG or -ENOMEM. */
static int open_pieces(const struct image_source *source, struct image_body *b)
{
	uint64_t before = 0, sum = 0;

	b->size = source->file_size;
	b->starts = calloc(source->n_pieces, sizeof(*b->starts));
	if (!b->starts)
		return -ENOMEM;
	for (size_t i = 0; i < source->n_pieces; i++) {
		const struct manifest_piece *p = &source->pieces[i];

		b->starts[i] = sum;
		if (p->offset < before || p->offset > b->size || p->size > b->size - p->offset ||
		    p->size > source->size - sum)
			return -EBADMSG;
		before = p->offset + p->size;
		sum += p->size;
	}
	return 0;
}

/* 0 or -errno. */
static int open_image(struct image_set *s, uint32_t image)
{
	struct image_source *source = &s->sources[image];
	struct image_body *b = &s->bodies[image];
	int r;

	if (source->bytes && !source->n_pieces) {
		b->size = b->end = MAX_OF(source->file_size, source->offset + source->size);
		return 0;
	}
	if (!source->bytes && !source->loadable)
		return -ENOENT;
	if (source->bytes) {
		r = open_pieces(source, b);
	} else {
		r = s->loader.open ? s->loader.open(s->loader.userdata, image, &b->size) : -ENOENT;
		if (r < 0)
			source->missing = r == -ENOENT
						  ? "it is not at hand any more"
						  : "it could not be opened when it was needed";
	}
	b->end = b->size;
	if (r == 0)
		r = image_bytes_reserve(s, image);
	return r;
}

static int why_not(const struct image_source *source)
{
	if (source->gone)
		return IMAGE_GONE;
	return source->mismatch ? IMAGE_MISMATCH : IMAGE_MISSING;
}

int image_bytes_open(struct image_set *s, uint32_t image)
{
	struct image_source *source = &s->sources[image];
	struct image_body *b = &s->bodies[image];

	if (b->state == IMAGE_OPEN)
		return 0;
	if (b->state == IMAGE_NONE || image >= s->n)
		return why_not(source);
	b->state = open_image(s, image) == 0 ? IMAGE_OPEN : IMAGE_NONE;
	if (b->state == IMAGE_OPEN && !image_has_its_build_id(s, image)) {
		b->state = IMAGE_NONE;
		source->mismatch = true;
		source->missing = "the file has another build id than what was mapped";
	}
	return b->state == IMAGE_OPEN ? 0 : why_not(source);
}

void image_bytes_done(struct image_set *s)
{
	for (size_t i = 0; i < s->n_all; i++) {
		struct image_body *b = &s->bodies[i];

		if (b->region)
			munmap(b->region, (size_t)MAX_OF(blocks_of(b->size) << BLOCK_SHIFT, BLOCK));
		free(b->blocks);
		free(b->touched);
		free(b->starts);
	}
}
