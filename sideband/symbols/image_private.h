/*
 * Declares what image.c, image_index.c and image_bytes.c share: the set, and the state of each
 * image's bytes.
 */
#pragma once

#include "sideband/symbols/image.h"

#define IMAGE_PAGE_SHIFT 12
#define IMAGE_CACHE_SIZE 64u /* a power of two */

/* The answer for one file of the timeline. The pointer may be that of an earlier file at the same
 * address, so the file's identity is compared, too. */
struct image_cached {
	const struct space_file *file;
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t build_id_size;
	uint8_t build_id[20];
	uint32_t image;
};

enum image_state {
	IMAGE_NEW,  /* not asked for yet */
	IMAGE_OPEN, /* there are bytes */
	IMAGE_NONE, /* there are none, the source says why */
};

/* Userdata of the function that an ELF file of the set calls for its bytes. */
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
	uint8_t *touched; /* a byte a page, of loaded images */
	bool named;	  /* its names were read */
	uint64_t *starts; /* of an image in pieces: where each begins among the source's bytes */
	struct image_reading reading;
};

/* The dump of a process. */
struct image_jit {
	uint32_t pid, image;
	const struct space *space; /* NULL: any of PID */
	struct jitdump *dump;	   /* owned */
	struct jitcode *code;	   /* owned; NULL: no times */
};

struct image_set {
	struct image_source *sources;
	struct image_body *bodies;
	size_t n;
	size_t n_all; /* with the images' debug files, which come behind the images */
	struct image_loader loader;
	uint64_t reserved; /* bytes of all regions */
	uint64_t room;	   /* bytes that may still be filled, or unpacked */
	/* Sorted lists of indices: */
	uint32_t *by_key;    /* files with a device or inode */
	uint32_t *by_path;   /* files without */
	uint32_t *by_memory; /* memory images */
	size_t n_by_key, n_by_path, n_by_memory;
	struct image_cached cache[IMAGE_CACHE_SIZE];
	struct image_jit *jits;
	size_t n_jits, jits_capacity;
};

/* --- image_index.c --- */

/* Sorts the sources. 0 or -ENOMEM. */
int image_index_init(struct image_set *s);
void image_index_done(struct image_set *s);
/* The memory image that SPACE has at ADDRESS, which lies in M; UINT32_MAX: none. *ret_offset is
 * ADDRESS's offset in it. */
uint32_t image_index_memory(const struct image_set *s, const struct space *space,
			    const struct space_mapping *m, uint64_t address, uint64_t *ret_offset);

/* --- image_jit.c --- */

/* The code that the dump of SPACE's process has at ADDRESS, which is in M, at TIME. False: there is
 * none, or the process's memory has other bytes since. */
bool image_jit_find(struct image_set *s, const struct space *space, const struct space_mapping *m,
		    uint64_t time, uint64_t address, struct image_code *ret);
/* CODE is memory of SPACE at ADDRESS: leaves of it what is memory at TIME, and no code of the dump.
 */
void image_jit_clip(const struct image_set *s, const struct space *space, uint64_t time,
		    uint64_t address, struct image_code *code);
void image_jit_done(struct image_set *s);

/* --- image_bytes.c --- */

/* Bytes of an image at hand: [begin, end) of it, without a hole. */
struct image_range {
	uint64_t begin, end;
	const uint8_t *bytes; /* of BEGIN */
	uint8_t *touched;     /* of BEGIN's page; NULL: the image is not loaded */
};

/* Opens IMAGE, which may be a debug file, on first use. 0: there are bytes; or IMAGE_MISSING,
 * _MISMATCH, _GONE. A debug file is opened by image_open_debug() alone. */
int image_bytes_open(struct image_set *s, uint32_t image);
/* Loads bytes at OFFSET of IMAGE, which is open, and gives what is at hand around it. SIZE 0: loads
 * what is read at once for code there; else: loads SIZE bytes. 0, IMAGE_MISSING or _SHORT. */
int image_bytes_around(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size,
		       struct image_range *ret);
/* Reserves a region for IMAGE, whose size is known. 0 or -errno. */
int image_bytes_reserve(struct image_set *s, uint32_t image);
void image_bytes_done(struct image_set *s);

/* --- image.c --- */

/* Whether IMAGE, which is open, has the build id that its source tells; true if it tells none. */
bool image_has_its_build_id(struct image_set *s, uint32_t image);
