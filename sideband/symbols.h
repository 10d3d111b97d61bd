/*
 * (image, offset) -> function. ELF files are opened on first use.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sideband/image.h"

struct symbols;

int symbols_new(struct image_set *images, struct symbols **ret);
void symbols_free(struct symbols *s);

struct symbol {
	uint32_t image;
	uint64_t offset;  /* start of the function in the file */
	uint64_t size;	  /* bytes up to its end */
	const char *name; /* borrowed; NULL: the image has no symbol there, the function is then the
			     gap between its neighbours */
};
/* The function around file offset OFFSET of IMAGE. Always fills *ret: where nothing is known,
 * offset is OFFSET and name NULL. */
void symbols_find(struct symbols *s, uint32_t image, uint64_t offset, struct symbol *ret);
/* Build id of an image; *ret_size 0: none. */
const uint8_t *symbols_build_id(struct symbols *s, uint32_t image, size_t *ret_size);
