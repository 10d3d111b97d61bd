/*
 * A member of a bundle, found without the recorder's own reader. Called by feeder.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The file at PATH in memory, never freed. 0 or -errno. */
int bundle_load(const char *path, const uint8_t **ret, size_t *ret_size);
/* Member NAME of it, in place. 0 or -ENOENT. */
int bundle_member(const uint8_t *bundle, size_t bundle_size, const char *name, const uint8_t **ret,
		  size_t *ret_size);
