/*
 * Code as sections of a libipt image.
 *
 * An image section cache keeps all sections mapped. The block decoder's own cache of a section
 * lives as long as the mapping, and would otherwise be dropped whenever a call changes files.
 */
#include "tests/bench/ipt_image.h"

#include <errno.h>
#include <stdio.h>

#define CACHE_BYTES (4ull << 30)

/* A later mapping replaces earlier ones at the same addresses. */
static int add_section(struct ipt_image *image, const struct code_section *s)
{
	char path[32];
	int isid;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	isid = pt_iscache_add_file(image->cache, path, s->offset, s->size, s->address);
	if (isid < 0)
		return -EINVAL;
	return pt_image_add_cached(image->image, image->cache, isid, NULL) < 0 ? -EINVAL : 0;
}

int ipt_image_open(const struct code *c, struct ipt_image *ret)
{
	int r = 0;

	ret->image = pt_image_alloc("bundle");
	ret->cache = pt_iscache_alloc("bundle");
	if (ret->image == NULL || ret->cache == NULL)
		return -ENOMEM;
	if (pt_iscache_set_limit(ret->cache, CACHE_BYTES) < 0)
		return -EINVAL;
	for (size_t i = 0; r == 0 && i < c->n; i++)
		r = add_section(ret, &c->sections[i]);
	return r;
}

void ipt_image_close(struct ipt_image *image)
{
	pt_image_free(image->image);
	pt_iscache_free(image->cache);
}
