/*
 * A bundle: a snapshot at rest, written and read.
 *
 * A bundle is an uncompressed POSIX (ustar) tar, readable with every tar:
 *
 *   manifest.json     what the snapshot says about itself (manifest.h)
 *   cpuN.pt           AUX bytes of CPU N, oldest first
 *   trace/INDEX       AUX bytes of element INDEX of the manifest's cpus, if that is a thread
 *   sideband          perf records in the kernel's format with our sample_id trailer; records with
 *                     time 0 describe the state before the first record with a time
 *   images/INDEX      bytes of element INDEX of the manifest's images, or pieces of them
 *   texts/INDEX       element INDEX of the manifest's texts
 *   pevent/INDEX      perf records of a foreign layout: element INDEX of the manifest's pevents
 *
 * bundle_write.c writes members one after the other to a descriptor, and has the tar's header
 * blocks. bundle_read.c maps a bundle and checks everything. manifest.c has the manifest in memory,
 * manifest_fields.c the table of its keys, manifest_json.c its JSON. kept.c has the list of image
 * bytes that a stored bundle needs, and label.c the labels of a snapshot.
 *
 * Decisions that govern the room:
 * - A bundle decodes on any host. A bundle in the recorder's store is the exception: the bytes of
 *   programs lie once a host in an image cache, in the pieces that the decode needed (kept.h), and
 *   ptsnapctl joins both.
 * - A bundle comes from a stranger. The reader checks all of it once, before it returns a pointer
 *   into it: every member lies within the file, has a known name, appears once, and has the size
 *   that the manifest says. One wrong member makes the whole bundle invalid.
 * - One table of keys is read by the writer and by the reader of the manifest, so that neither has
 * a key that the other lacks. Unknown keys are ignored, because later versions may add some.
 * - The writer needs a descriptor that takes bytes in order and no seeking.
 *
 * The writer's first failure stays. A file that is truncated while it is mapped kills the reader
 * with SIGBUS; ptsnap-decode then dies alone.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

#define BUNDLE_MAX_BYTES (64ull << 30)

struct bundle_writer {
	int fd; /* borrowed, at its end */
	uint64_t bytes;
	int error; /* the first failure, as -errno, or 0 */
};

void bundle_writer_init(struct bundle_writer *w, int fd);
/* Writes one member from memory. All functions return 0 or the writer's error. */
int bundle_write_member(struct bundle_writer *w, const char *name, const void *data, size_t size);
/* Writes one member from N parts. */
struct iovec;
int bundle_write_parts(struct bundle_writer *w, const char *name, const struct iovec *parts,
		       size_t n);
/* Writes one member: SIZE bytes of FROM from OFFSET on. If FROM ends early, zeros fill the member,
 * so that the archive stays valid; *ret_copied is the number of bytes from the file. */
int bundle_write_file(struct bundle_writer *w, const char *name, int from, uint64_t offset,
		      uint64_t size, uint64_t *ret_copied);
/* Writes the manifest, and the two zero blocks that end an archive. */
int bundle_write_end(struct bundle_writer *w, const struct manifest *m);

struct bundle;

/* Maps FD (borrowed; may be closed afterwards) and checks the archive: checksums of headers, sizes,
 * the manifest, and each member against the manifest. 0; -EBADMSG: not a bundle, truncated or
 * damaged; -EPROTONOSUPPORT: of a newer version; -EFBIG; -ENOMEM; or another -errno. */
int bundle_open(int fd, struct bundle **ret);
void bundle_free(struct bundle *b);
void bundle_freep(struct bundle **b);
const struct manifest *bundle_manifest(const struct bundle *b);
/* Return the bytes (borrowed) of a member and their size: of cpus[INDEX] (never NULL, also without
 * bytes), of the sideband, of images[INDEX] (NULL and 0 if the image is missing or elsewhere), of
 * pevents[INDEX], of texts[INDEX] (NULL and 0 if missing). */
const uint8_t *bundle_cpu(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_sideband(const struct bundle *b, size_t *ret_size);
const uint8_t *bundle_image(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_pevent(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_text(const struct bundle *b, size_t index, size_t *ret_size);
/* Returns the pieces (borrowed) of which bundle_image(INDEX) consists, in order. They are together
 * as large as its bytes. NULL for an image without bytes. */
const struct manifest_piece *bundle_image_pieces(const struct bundle *b, size_t index,
						 size_t *ret_n);
