/*
 * One decode: replay every CPU of a bundle into what the view needs, and write it.
 */
#pragma once

#include <stdint.h>

#include "decoder/worker/view/views.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

/* OPTIONS are sound (decode_options_are_sound). *ret_faults: gaps found. 0 or -errno: -ENODATA a
 * gap that is not there, -ENOMEM, -E2BIG a report that does not fit its limit even when all is cut,
 * or of the output. */
int decode_run(const struct bundle *bundle, const struct decode_options *options,
	       const struct decode_sink *sink, uint64_t *ret_faults);
