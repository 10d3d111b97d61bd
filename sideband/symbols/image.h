/*
 * (space, time, address) -> bytes: joins the timeline's mappings with the images' bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sideband/timeline/space.h"

struct image_set;

#define IMAGE_ANY_PID UINT32_MAX

struct manifest_piece;

/* One image, all borrowed. Its bytes are at hand (BYTES), or elsewhere (LOADABLE: the set's loader
 * brings them when they are first needed), or missing. */
struct image_source {
	const char *path;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	const uint8_t *bytes; /* N_PIECES 0: SIZE of them from OFFSET of the file on; else the
			       * PIECES one behind the other */
	size_t size;
	uint64_t offset;
	const struct manifest_piece *pieces;
	size_t n_pieces;
	uint64_t file_size; /* of the whole; 0: offset + size */
	bool loadable;
	const char *missing;   /* why there are none, NULL: unknown */
	bool mismatch;	       /* because those at hand are not those that were mapped */
	bool gone;	       /* because process and file were gone before it could be opened */
	uint8_t build_id_size; /* 0: unknown */
	uint8_t build_id[20];
	/* Memory instead of a file: found by whose it is and where. */
	bool memory;	  /* anonymous code of process PID, or its vDSO */
	bool vdso;	  /* so; PID ANY: of every process whose [vdso] has FILE_SIZE bytes */
	uint32_t pid;	  /* ANY */
	uint64_t address; /* of its first byte; ABSENT */
	const struct space *space; /* only this one's of process PID; NULL: any */
	bool apart; /* no process maps it (kernel text): image_find() never gives it */
};

/* An image larger than this is missing; so are those for which there are no addresses left: regions
 * for images that lie elsewhere, or in pieces, are reserved whole and filled as needed. */
#define IMAGE_MAX_SIZE	   (UINT64_C(4) << 30)
#define IMAGE_MAX_RESERVED (UINT64_C(64) << 30)
/* So much of them is filled at most. */
#define IMAGE_MAX_FILLED (UINT64_C(1) << 30)

/* How bytes that lie elsewhere are had. */
struct image_loader {
	/* The size of IMAGE. 0 or -errno. */
	int (*open)(void *userdata, uint32_t image, uint64_t *ret_size);
	/* SIZE bytes of IMAGE from OFFSET to TO, as pread(2): their number (less: the file ends
	 * there), or -errno. */
	ssize_t (*read)(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size);
	void *userdata;
	uint64_t max_filled; /* bytes that are read, or unpacked, at most; 0: IMAGE_MAX_FILLED */
	/* The size of a file apart that has the names and the DWARF of IMAGE, which has that build
	 * id. It is read as image number N + IMAGE, where N is that of the set's sources. 0 or
	 * -errno. NULL: there are none. */
	int (*debug)(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint64_t *ret_size);
};

/* LOADER may be NULL. 0, -ENOMEM, -E2BIG. */
int image_set_new(const struct image_source *sources, size_t n, const struct image_loader *loader,
		  struct image_set **ret);
void image_set_free(struct image_set *s);
/* What was needed of images that lie elsewhere: for each of them the pieces, in order: the code
 * pages that were touched (in blocks of 16 KiB) and what names and build ids were read from; with
 * NAMES also of images whose names nobody has read yet, which are then. FN's first non-zero result
 * ends it. */
int image_set_needed(struct image_set *s, bool names,
		     int (*fn)(void *userdata, uint32_t image, uint64_t offset, uint64_t size),
		     void *userdata);

struct image_code {
	const uint8_t *bytes; /* code from address on, contiguous in file and memory */
	uint64_t address;     /* start of the mapped piece that holds the asked address */
	uint64_t size;
	uint32_t image;	 /* index of the source */
	uint64_t offset; /* file offset of address */
	/* The mapping, as far as the file goes: where BYTES may not be all that there is. */
	uint64_t map_begin, map_end;
	uint8_t *touched; /* as in struct flow_code; NULL where nobody wants to know */
};

/* 0; or why not: */
#define IMAGE_UNMAPPED	1 /* no mapping there at that time */
#define IMAGE_ANONYMOUS 2 /* no file: JIT, [heap], [stack], [vdso] */
#define IMAGE_MISSING	3 /* mapped file, but its bytes are not at hand */
#define IMAGE_SHORT	4 /* beyond the end of the file */
#define IMAGE_MISMATCH	5 /* the file at hand has another build id */
#define IMAGE_GONE	6 /* process and file were gone before it could be opened */
int image_find(struct image_set *s, const struct space *space, uint64_t time, uint64_t address,
	       struct image_code *ret);
/* The image that a file of the timeline means, UINT32_MAX: none: by device and inode; else by path,
 * where what both know of build ids must agree. */
uint32_t image_index(struct image_set *s, const struct space_file *file);
const struct image_source *image_source(const struct image_set *s, uint32_t image);
/* The bytes of IMAGE around OFFSET, whoever maps it: ADDRESS is a file offset, too. 0, or
 * IMAGE_MISSING, _SHORT, _MISMATCH, _GONE. */
int image_at(struct image_set *s, uint32_t image, uint64_t offset, struct image_code *ret);
/* SIZE bytes of IMAGE from OFFSET on, now at hand and needed; valid as long as the set. NULL: they
 * are not all there. */
const uint8_t *image_need(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size);
/* IMAGE as an ELF file, *ret to be freed before the set: results as of elf_file_open(), ELF_NOT
 * also where its first byte is not at hand. */
struct elf_file;
int image_open_elf(struct image_set *s, uint32_t image, struct elf_file **ret);
/* Asks the loader for the file apart of IMAGE, which has that build id: 0, then it is had by
 * image_need() and image_elf_bytes() as number *ret_image; nothing else takes that number, and
 * image_set_needed() does not tell of it. ELF_NOT: there is none. Its build id is the caller's to
 * compare. */
int image_open_debug(struct image_set *s, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint32_t *ret_image);
/* IMAGE for elf_file_open() and the like: what they need is brought when they ask. *RET is valid as
 * long as the set. 0, or ELF_NOT: its first byte is not at hand. */
struct elf_bytes;
int image_elf_bytes(struct image_set *s, uint32_t image, struct elf_bytes *ret);
/* Whether anybody asked for its bytes. */
bool image_was_asked(const struct image_set *s, uint32_t image);
