/*
 * The view of packets: a line a packet, as libipt's ptdump writes it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/fault.h"
#include "decoder/worker/view/lines.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"

#define VIEWS_PACKETS_BEFORE (16u << 10) /* bytes before a gap */

/* All packets of all CPUs; with more than one, "# cpu N" before each. What is no packet is said in
 * a line and skipped up to the next PSB. Of a raw trace nothing else is written; of another one
 * what lies before the first PSB and a packet that the end cut off are said in lines beginning with
 * "#". Of OPTIONS show and kernel_start are used. 0 or -errno. */
int views_packets(const struct bundle *b, const struct decode_options *options, struct lines *l);
/* Those of the last 16 KiB before OFFSET of the INDEXth trace, from a packet's beginning on, then
 * "# gap KIND" and the packet at OFFSET. Where the trace cannot be read from before that on, it is
 * from its next PSB on. 0 or -errno. */
int views_packets_before(const struct bundle *b, const struct decode_options *options, size_t index,
			 uint64_t offset, enum fault kind, struct lines *l);
