/*
 * Where the output of a request goes, and whom its progress is told.
 */
#pragma once

#include <stdint.h>

#include "decoder/hot/crew.h"
#include "proto/worker.h"
#include "sideband/symbols/image.h"

struct decode_sink {
	int fd; /* borrowed; where the view goes */
	const char *version;
	/* May be NULL. */
	void (*progress)(void *userdata, enum worker_phase phase, unsigned percent);
	/* Of an image that lies elsewhere these bytes were needed: 0 or -errno. May be NULL. */
	int (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	/* How long ago the request came, ns; NULL: no time passes. */
	uint64_t (*elapsed)(void *userdata);
	void *userdata;
	const struct image_loader *loader; /* of such images; may be NULL */
	struct crew *crew;		   /* of threads; NULL: they are started */
};
