/*
 * One header block of a POSIX (ustar) tar: composed and parsed side by side.
 * Layout: POSIX.1-2017, pax, "ustar Interchange Format".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BUNDLE_BLOCK	512u
#define BUNDLE_NAME_MAX 99u

#define BUNDLE_MANIFEST_NAME "manifest.json"
#define BUNDLE_SIDEBAND_NAME "sideband"

/* The header of a regular file. 0; -EINVAL: the name is empty or too long. */
int bundle_tar_compose(const char *name, uint64_t size, uint8_t block[BUNDLE_BLOCK]);
/* A checked header of a regular file: the name without directory prefix, of at most
 * BUNDLE_NAME_MAX bytes, and its size. 0; BUNDLE_TAR_ZERO: a block of zeros, as ends an archive;
 * -EBADMSG. */
#define BUNDLE_TAR_ZERO 1
int bundle_tar_parse(const uint8_t block[BUNDLE_BLOCK], char ret_name[BUNDLE_NAME_MAX + 1],
		     uint64_t *ret_size);
/* Zeros between a member of SIZE bytes and the next block. */
size_t bundle_tar_padding(uint64_t size);
