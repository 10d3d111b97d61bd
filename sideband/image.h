/*
 * (space, time, address) -> bytes: joins the timeline's mappings with the images' bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/space.h"

struct image_set;

/* Bytes of one image, borrowed. BYTES NULL: missing. OFFSET: the file offset at which BYTES begin.
 */
struct image_source {
	const char *path;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	const uint8_t *bytes;
	size_t size;
	uint64_t offset;
	const char *missing;   /* why there are none, NULL: unknown */
	bool mismatch;	       /* because those at hand are not those that were mapped */
	uint8_t build_id_size; /* 0: unknown */
	uint8_t build_id[20];
};

int image_set_new(const struct image_source *sources, size_t n, struct image_set **ret);
void image_set_free(struct image_set *s);

struct image_code {
	const uint8_t *bytes; /* code from address on, contiguous in file and memory */
	uint64_t address;     /* start of the mapped piece that holds the asked address */
	uint64_t size;
	uint32_t image;	 /* index of the source */
	uint64_t offset; /* file offset of address */
};

/* 0; or why not: */
#define IMAGE_UNMAPPED	1 /* no mapping there at that time */
#define IMAGE_ANONYMOUS 2 /* no file: JIT, [heap], [stack], [vdso] */
#define IMAGE_MISSING	3 /* mapped file, but its bytes are not at hand */
#define IMAGE_SHORT	4 /* beyond the end of the file */
#define IMAGE_MISMATCH	5 /* the file at hand has another build id */
int image_find(struct image_set *s, const struct space *space, uint64_t time, uint64_t address,
	       struct image_code *ret);
/* The image that a file of the timeline means, UINT32_MAX: none: by device and inode; else by path,
 * where what both know of build ids must agree. */
uint32_t image_index(struct image_set *s, const struct space_file *file);
const struct image_source *image_source(const struct image_set *s, uint32_t image);
