/*
 * The manifest's images as the timeline asks for them. Used by replay.c.
 */
#pragma once

#include "proto/bundle/bundle.h"
#include "sideband/symbols/image.h"
#include "sideband/timeline/timeline.h"

/* Every image has the number that it has in the manifest. Those of the kernel's kinds are in the
 * set (image_at()), but no process maps them. LOADER brings those that lie elsewhere; NULL: they
 * are missing. All but *LOADER is borrowed until image_set_free. 0, -ENOMEM, -E2BIG. */
int replay_images(const struct bundle *bundle, const struct timeline *timeline,
		  const struct image_loader *loader, struct image_set **ret);
