/*
 * One header block of a POSIX (ustar) tar, composed and parsed.
 *
 * Layout: POSIX.1-2017, pax, "ustar Interchange Format". We write what every tar reads, and read
 * what other tars write for the same members, so that a bundle can be taken apart and put together
 * by hand.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BUNDLE_BLOCK	512u
#define BUNDLE_NAME_MAX 99u

#define BUNDLE_MANIFEST_NAME "manifest.json"
#define BUNDLE_SIDEBAND_NAME "sideband"

/* Composes the header of a regular file. 0; -EINVAL: the name is empty or too long. */
int bundle_tar_compose(const char *name, uint64_t size, uint8_t block[BUNDLE_BLOCK]);
/* Parses and checks the header of a regular file. A name with a directory prefix is invalid. 0;
 * BUNDLE_TAR_ZERO: a block of zeros, which ends an archive; -EBADMSG. */
#define BUNDLE_TAR_ZERO 1
int bundle_tar_parse(const uint8_t block[BUNDLE_BLOCK], char ret_name[BUNDLE_NAME_MAX + 1],
		     uint64_t *ret_size);
/* Returns the number of zeros between a member of SIZE bytes and the next header. */
size_t bundle_tar_padding(uint64_t size);
