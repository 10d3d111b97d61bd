/*
 * One decode: replay every CPU of a bundle into what the view needs, and write it.
 */
#pragma once

#include <stdint.h>

#include "proto/bundle/bundle.h"
#include "proto/worker.h"

struct crew;
struct image_loader;

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

/* OPTIONS are sound (decode_options_are_sound). *ret_faults: gaps found. 0 or -errno: -ENODATA a
 * gap that is not there, -ENOMEM, -E2BIG a report that does not fit its limit even when all is cut,
 * or of the output. */
int decode_run(const struct bundle *bundle, const struct decode_options *options,
	       const struct decode_sink *sink, uint64_t *ret_faults);
