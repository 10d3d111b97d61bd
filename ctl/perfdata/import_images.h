/*
 * The files that the records of a perf.data map, looked for on this machine or below --sysroot, and
 * put into the bundle.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/perf/perfrecord.h"

struct import_images {
	void *files;		   /* a tree (tsearch(3)) of struct import_file */
	void *build_ids;	   /* of struct import_build_id */
	struct import_file **list; /* those of the tree, as they came */
	size_t n;
	uint64_t dropped; /* mappings of more files than a manifest can hold */
};

void import_images_init(struct import_images *i);
void import_images_done(struct import_images *i);
/* The MMAP2 record R maps code. Where it does not tell an inode it gets one that we make up, so
 * that the image is found by it whatever its path is made of. 0 or -ENOMEM. */
int import_images_add(struct import_images *i, struct perfrecord *r);
/* The file of that name had that build id, which records that hold an inode do not know. 0 or
 * -ENOMEM. */
int import_images_add_build_id(struct import_images *i, const char *path, const uint8_t *id,
			       uint8_t size);
/* Each file becomes an image of the manifest and, when its bytes are found, a member of the bundle.
 * SYSROOT NULL: the files of this machine. 0, or an exit code after a message. */
int import_images_write(const struct import_images *i, const char *sysroot, struct manifest *m,
			struct bundle_writer *w);
