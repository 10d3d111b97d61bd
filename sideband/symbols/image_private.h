/*
 * What image.c, image_index.c, image_bytes.c and image_elf.c share: the set, and the state of each
 * image's bytes.
 */
#pragma once

#include "sideband/symbols/image.h"

#define IMAGE_CACHE_SIZE 64u /* a power of two */

/* The answer for a file of the timeline, which may have died since: its identity counts. */
struct image_cached {
	const struct space_file *file;
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t build_id_size;
	uint8_t build_id[20];
	uint32_t image;
};

enum image_state {
	IMAGE_NEW,  /* nobody asked for it yet */
	IMAGE_OPEN, /* there are bytes */
	IMAGE_NONE, /* there are none, the source says why */
};

/* What an ELF file of the set asks for its bytes. */
struct image_reading {
	struct image_set *set;
	uint32_t image;
};

/* The bytes of one image. */
struct image_body {
	enum image_state state;
	uint64_t size;	  /* of the whole */
	uint64_t end;	  /* SIZE, or where reading ended before */
	uint8_t *region;  /* NULL: the source's own bytes are at hand in one piece */
	uint8_t *blocks;  /* what is in the region: enum block of image_bytes.c */
	uint8_t *touched; /* a byte a page, of images that lie elsewhere */
	bool named;	  /* somebody read its names */
	/* Where each piece begins among the source's bytes; of images in pieces. */
	uint64_t *starts;
	struct image_reading reading;
};

struct image_set {
	struct image_source *sources;
	struct image_body *bodies;
	size_t n;
	size_t n_all; /* with their files apart, which are behind them; they are no images */
	struct image_loader loader;
	uint64_t reserved; /* bytes of all regions */
	uint64_t room;	   /* bytes that may still be filled, or unpacked */
	/* Sorted lists of indices; of each: */
	uint32_t *by_key;    /* files with a device or inode */
	uint32_t *by_path;   /* those without */
	uint32_t *by_memory; /* memory images */
	size_t n_by_key, n_by_path, n_by_memory;
	struct image_cached cache[IMAGE_CACHE_SIZE];
};

/* Sorts the sources. 0 or -ENOMEM. */
int image_index_init(struct image_set *s);
void image_index_done(struct image_set *s);
/* The memory image that SPACE has at ADDRESS, which lies in M; UINT32_MAX: none. *ret_offset: of
 * ADDRESS in it. */
uint32_t image_index_memory(const struct image_set *s, const struct space *space,
			    const struct space_mapping *m, uint64_t address, uint64_t *ret_offset);

/* Bytes of an image at hand: [begin, end) of it, without a hole. */
struct image_range {
	uint64_t begin, end;
	const uint8_t *bytes; /* of begin */
	uint8_t *touched;     /* of the page of begin; NULL: nobody wants to know */
};

/* Opens IMAGE, which may be a file apart, if nobody did, and says whether it has bytes: 0,
 * IMAGE_MISSING, _MISMATCH or _GONE. Files apart are opened by image_open_debug() alone. */
int image_bytes_open(struct image_set *s, uint32_t image);
/* What is at hand around OFFSET of IMAGE, which is open: after what is read for code there, or,
 * where SIZE is not 0, for so many bytes. 0, IMAGE_MISSING or _SHORT. */
int image_bytes_around(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size,
		       struct image_range *ret);
/* A region for IMAGE, whose size is known. 0 or -errno. */
int image_bytes_reserve(struct image_set *s, uint32_t image);
void image_bytes_done(struct image_set *s);

/* Whether IMAGE, which is open, has the build id that its source has; true where that has none. */
bool image_has_its_build_id(struct image_set *s, uint32_t image);
