/*
 * For every import into a bundle: the files that records map, and two messages.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"
#include "proto/perf/perfrecord.h"

/* Prints that memory is short. Returns an exit code. */
int import_no_memory(void);
/* R is the result of bundle_write_...(). Returns 0 for 0, else an exit code after a message. */
int import_written(int r);

struct import_images {
	void *files;		   /* a tree (tsearch(3)) of struct import_file */
	void *build_ids;	   /* a tree of struct import_build_id */
	struct import_file **list; /* the files of the tree, in the order of the records */
	size_t n;
	uint64_t dropped; /* mappings of files beyond the number that a manifest can hold */
};

void import_images_init(struct import_images *i);
void import_images_done(struct import_images *i);
/* Adds the file of the MMAP2 record R, which maps code. If R has no inode, R gets an inode that the
 * image will have, too. 0 or -ENOMEM. */
int import_images_add(struct import_images *i, struct perfrecord *r);
/* Says that the file PATH had the build id ID while it was recorded; records with an inode have no
 * build id. 0 or -ENOMEM. */
int import_images_add_build_id(struct import_images *i, const char *path, const uint8_t *id,
			       uint8_t size);
/* Makes each file an image of the manifest and, if its bytes are found, a member of the bundle.
 * Files are looked for below SYSROOT, or, if that is NULL, on this host. 0, or an exit code after
 * a message. */
int import_images_write(const struct import_images *i, const char *sysroot, struct manifest *m,
			struct bundle_writer *w);
