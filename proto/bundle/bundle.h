/*
 * A snapshot at rest: an uncompressed POSIX (ustar) tar, readable with tar everywhere:
 *
 *   manifest.json     what the snapshot says of itself (manifest.h)
 *   cpuN.pt           AUX bytes of CPU N, oldest first
 *   trace/INDEX       AUX bytes of the INDEXth of the manifest's CPUs, where that is a thread
 *   sideband          perf records in the kernel's format, each with its sample_id trailer; those
 *                     with time 0 describe the state before the first
 *   images/INDEX      bytes of the INDEXth image of the manifest, or pieces of them
 *   texts/INDEX       the INDEXth text of the manifest
 *   pevent/INDEX      perf records of a foreign layout, the INDEXth of the manifest's pevents
 *
 * The writer appends to an fd; the reader maps one and checks everything before it hands out
 * pointers into it. Numbers beyond 8 GiB use the base-256 form.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

#define BUNDLE_MAX_BYTES (64ull << 30)

struct bundle_writer {
	int fd; /* borrowed, positioned at its end */
	uint64_t bytes;
	int error; /* first failure, sticky */
};

void bundle_writer_init(struct bundle_writer *w, int fd);
/* One member from memory. All return 0 or the sticky -errno (-ENOSPC on a full disk). */
int bundle_write_member(struct bundle_writer *w, const char *name, const void *data, size_t size);
/* One member that is the N parts, one behind the other. */
struct iovec;
int bundle_write_parts(struct bundle_writer *w, const char *name, const struct iovec *parts,
		       size_t n);
/* One member of SIZE bytes of FROM at OFFSET; a file that ends early is filled up with zeros, so
 * that the archive stays well-formed, and *ret_copied tells what was there. */
int bundle_write_file(struct bundle_writer *w, const char *name, int from, uint64_t offset,
		      uint64_t size, uint64_t *ret_copied);
/* The manifest's member and the two zero blocks that end an archive. */
int bundle_write_end(struct bundle_writer *w, const struct manifest *m);

struct bundle;

/* Maps FD (borrowed, may be closed after) and checks the archive: header checksums, sizes against
 * the file, the manifest, each trace, images/N, texts/N and pevent/N against the
 * manifest.
 * 0, -EBADMSG (not a bundle, truncated or damaged), -EPROTONOSUPPORT, -EFBIG, -ENOMEM, -errno. */
int bundle_open(int fd, struct bundle **ret);
void bundle_free(struct bundle *b);
void bundle_freep(struct bundle **b);
const struct manifest *bundle_manifest(const struct bundle *b);
/* Borrowed bytes of manifest cpus[INDEX], of the sideband, of images[INDEX] (NULL and 0 when the
 * image is missing or elsewhere), of pevents[INDEX], of texts[INDEX] (NULL and 0: missing). A CPU
 * without a trace has 0 of them, and is not NULL. */
const uint8_t *bundle_cpu(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_sideband(const struct bundle *b, size_t *ret_size);
const uint8_t *bundle_image(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_pevent(const struct bundle *b, size_t index, size_t *ret_size);
const uint8_t *bundle_text(const struct bundle *b, size_t index, size_t *ret_size);
/* The pieces of images[INDEX] that bundle_image() gives, checked against its size; the bundle's.
 * Never NULL for an image that has bytes. */
const struct manifest_piece *bundle_image_pieces(const struct bundle *b, size_t index,
						 size_t *ret_n);
