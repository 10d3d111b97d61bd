/*
 * Finds a member of a bundle without the recorder's own reader, for feeder.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Reads the file at PATH into memory, which is never freed. 0 or -errno. */
int bundle_load(const char *path, const uint8_t **ret, size_t *ret_size);
/* Finds member NAME of the bundle; the result points into the bundle. 0 or -ENOENT. */
int bundle_member(const uint8_t *bundle, size_t bundle_size, const char *name, const uint8_t **ret,
		  size_t *ret_size);
