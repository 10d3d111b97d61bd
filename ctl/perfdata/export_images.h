/*
 * perf reads code from the files that the records name, on the host where it runs. The bundle's own
 * copies, for when those are not the same.
 */
#pragma once

#include <stddef.h>

#include "proto/bundle/bundle.h"

struct images_told {
	size_t n;		 /* files that the bundle has bytes of */
	size_t good;		 /* written, or the same on this host */
	const char *first_other; /* path of the first that is not; into the bundle; NULL: none */
};

/* A tree for `perf script --symfs DIR': every image at DIR/PATH, those with a build id also in
 * DIR/.debug/.build-id, where perf looks first. DIR is made, or must be empty. What has no path
 * that can be made below DIR ("..", not absolute), or one that another image has too, is not good
 * but fails nothing. 0, -ENOTEMPTY, or -errno of making or writing. */
int images_write(const struct bundle *b, const char *dir, struct images_told *ret);
/* Is what lies at each path on this host what the bundle has? Reads all of them. */
void images_compare(const struct bundle *b, struct images_told *ret);
