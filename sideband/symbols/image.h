/*
 * Code by address space, time and address: joins the timeline's mappings with the bytes of images.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sideband/timeline/space.h"

struct image_set;
struct elf_bytes;
struct jitcode;
struct jitdump;
struct elf_file;
struct manifest_piece;

/* --- The set --- */

#define IMAGE_ANY_PID UINT32_MAX

/*
 * One image. Everything that it points to is borrowed as long as the set. Its bytes are at hand
 * (BYTES), or can be read when they are needed (LOADABLE), or are missing.
 */
struct image_source {
	const char *path; /* of a file; NULL: "" */
	uint32_t maj, min;
	uint64_t ino, ino_generation; /* the file's, with MAJ and MIN; all 0: unknown */
	/* N_PIECES 0: SIZE bytes of the file, from OFFSET on. Else the PIECES, SIZE bytes in all,
	 * one directly behind the other. */
	const uint8_t *bytes;
	size_t size;
	uint64_t offset;
	const struct manifest_piece *pieces;
	size_t n_pieces;
	uint64_t file_size;    /* of the whole file; 0: OFFSET + SIZE */
	bool loadable;	       /* the set's loader reads it */
	const char *missing;   /* why there are no bytes; NULL: unknown */
	bool mismatch;	       /* no bytes, as the file at hand is not the mapped one */
	bool gone;	       /* no bytes, as process and file ended before it could be opened */
	uint8_t build_id_size; /* 0: unknown */
	uint8_t build_id[20];
	/* Memory instead of a file: found by process and address. */
	bool memory;		   /* anonymous code of process PID, or its vDSO */
	bool vdso;		   /* a vDSO; PID IMAGE_ANY_PID: that of every process whose [vdso]
				      mapping has FILE_SIZE bytes */
	uint32_t pid;		   /* IMAGE_ANY_PID: no single process */
	uint64_t address;	   /* of its first byte; not of a vDSO of all processes */
	const struct space *space; /* the only address space of PID that has it; NULL: any */
	uint64_t unchanged;	   /* perf ns since when the bytes are certainly what they are;
				      UINT64_MAX: unknown */
	bool unverified;	   /* nothing shows that these are the bytes of the mapped file */
	bool apart; /* no process maps it (kernel text): image_find() never gives it */
	bool dump;  /* what a just-in-time compiler wrote down (image_add_jit()); also APART */
};

/* A larger image is missing. */
#define IMAGE_MAX_SIZE (UINT64_C(4) << 30)
/* Each image that is loaded, or in pieces, has an address range of its full size reserved. No more
 * than this is reserved in all; further such images are missing. */
#define IMAGE_MAX_RESERVED (UINT64_C(64) << 30)
/* No more than this many bytes of those address ranges are filled. */
#define IMAGE_MAX_FILLED (UINT64_C(1) << 30)

/* Brings the bytes of loadable images. */
struct image_loader {
	/* Tells the size of IMAGE. 0 or -errno. */
	int (*open)(void *userdata, uint32_t image, uint64_t *ret_size);
	/* As pread(2): SIZE bytes of IMAGE from OFFSET to TO. Returns their number (less: the file
	 * ends there) or -errno. */
	ssize_t (*read)(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size);
	void *userdata;
	uint64_t max_filled; /* bytes that are read or unpacked at most; 0: IMAGE_MAX_FILLED */
	/* Tells the size of the debug file of IMAGE, which has this build id. READ gets its bytes
	 * as those of image number N + IMAGE, where N is the number of sources. 0 or -errno.
	 * NULL: there are no debug files. */
	int (*debug)(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint64_t *ret_size);
};

/* Copies the N sources. LOADER may be NULL. 0, -ENOMEM, or -E2BIG. */
int image_set_new(const struct image_source *sources, size_t n, const struct image_loader *loader,
		  struct image_set **ret);
void image_set_free(struct image_set *s);
/* NULL: there is no such image. */
const struct image_source *image_source(const struct image_set *s, uint32_t image);

/* --- Code --- */

struct image_code {
	const uint8_t *bytes; /* code from ADDRESS on, contiguous in file and memory */
	uint64_t address;     /* start of the mapped piece that holds the asked address */
	uint64_t size;
	uint32_t image;	 /* index of the source */
	uint64_t offset; /* file offset of ADDRESS */
	/* The mapping, as far as the file reaches; BYTES may be a part of it. */
	uint64_t map_begin, map_end;
	/* Of a dump: the bytes hold in versions [JIT_SINCE, JIT_UNTIL) of its code. */
	uint32_t jit_since, jit_until;
	uint8_t *touched; /* as in struct flow_code; NULL: the image is not loaded */
};

/* 0, or the reason why there is no code: */
#define IMAGE_UNMAPPED	1 /* no mapping there at that time */
#define IMAGE_ANONYMOUS 2 /* no file: JIT, [heap], [stack], [vdso] */
#define IMAGE_MISSING	3 /* a mapped file, but its bytes are not at hand */
#define IMAGE_SHORT	4 /* beyond the end of the file */
#define IMAGE_MISMATCH	5 /* the file at hand has another build id */
#define IMAGE_GONE	6 /* process and file ended before it could be opened */
int image_find(struct image_set *s, const struct space *space, uint64_t time, uint64_t address,
	       struct image_code *ret);
/* The image that a file of the timeline means; UINT32_MAX: none. Compares device and inode; where
 * those are unknown, the path, and the build ids if both sides have one. */
uint32_t image_index(struct image_set *s, const struct space_file *file);
/* The bytes of IMAGE around OFFSET, whether or not a process maps it; ADDRESS is a file offset,
 * too. 0, or IMAGE_MISSING, _SHORT, _MISMATCH, _GONE. */
int image_at(struct image_set *s, uint32_t image, uint64_t offset, struct image_code *ret);

/* --- Dumps of just-in-time compilers (jitdump.h) --- */

/* Image IMAGE is DUMP, which process PID wrote; CODE is the same by time, or NULL if the dump's
 * times mean nothing here: then it gives no bytes. SPACE: the only address space that has the code;
 * NULL: any of the process. Takes over DUMP and CODE, also on failure. 0 or -ENOMEM. */
int image_add_jit(struct image_set *s, uint32_t image, uint32_t pid, const struct space *space,
		  struct jitdump *dump, struct jitcode *code);
/* The code that SPACE's process made; NULL: no dump tells. */
const struct jitcode *image_jitcode(const struct image_set *s, const struct space *space);
/* Image IMAGE as a dump; NULL: it is none. *ret_times: its times mean something here; may be NULL.
 */
const struct jitdump *image_jitdump(const struct image_set *s, uint32_t image, bool *ret_times);

/* --- Bytes --- */

/* SIZE bytes of IMAGE from OFFSET on, loaded where necessary and noted as needed; borrowed as long
 * as the set. NULL: some of them are missing. */
const uint8_t *image_need(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size);
/* Whether anything has asked for the bytes of IMAGE. */
bool image_was_asked(const struct image_set *s, uint32_t image);
/* Calls FN with the pieces of loaded images that were needed, image by image and in order: the code
 * pages that were touched (in blocks of 16 KiB), and what names and build ids were read from. With
 * NAMES, reads the names of images whose code was touched and whose names were not read yet. FN's
 * first result other than 0 ends the calls and is returned. */
int image_set_needed(struct image_set *s, bool names,
		     int (*fn)(void *userdata, uint32_t image, uint64_t offset, uint64_t size),
		     void *userdata);

/* --- Images as ELF files --- */

/* IMAGE as the bytes that elf_file_open() takes; loads what the reader of ELF asks for. *ret is
 * valid as long as the set. 0, or ELF_NOT: the image's first byte is not at hand. */
int image_elf_bytes(struct image_set *s, uint32_t image, struct elf_bytes *ret);
/* IMAGE as an ELF file with names; *ret is the caller's and is freed before the set. Results as of
 * elf_file_open(), ELF_NOT also if its first byte is not at hand. */
int image_open_elf(struct image_set *s, uint32_t image, struct elf_file **ret);
/* Asks the loader for the debug file of IMAGE, which has this build id. 0: image_need() and
 * image_elf_bytes() take it as image number *ret_image; no other function takes that number, and
 * image_set_needed() leaves it out. The caller compares its build id. ELF_NOT: there is none. */
int image_open_debug(struct image_set *s, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint32_t *ret_image);
