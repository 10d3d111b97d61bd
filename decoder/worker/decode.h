/*
 * One request: replay every CPU of a bundle into what the view needs, and write it.
 */
#pragma once

#include <stdint.h>

#include "decoder/worker/gaps.h"
#include "decoder/worker/marks.h"
#include "decoder/worker/replay.h"
#include "decoder/worker/tally.h"
#include "proto/worker.h"

/* One CPU's numbers besides the tally's. */
struct decode_cpu {
	struct flow_stats stats;
	uint64_t head_bytes; /* before its first PSB */
	uint64_t hash;	     /* of all its instruction addresses, when asked for */
	unsigned percent;    /* done */
};

/* All that a finished replay leaves; what the report and the summary are written from. */
struct decode {
	struct replay *replay;
	struct tally tally;
	struct gaps gaps;
	struct marks marks;	 /* only for the report */
	struct decode_cpu *cpus; /* as the manifest's */
	uint64_t percents;	 /* sum over the CPUs */
};

struct decode_sink {
	int fd; /* borrowed; where the view goes */
	const char *version;
	/* May be NULL. */
	void (*progress)(void *userdata, enum worker_phase phase, unsigned percent);
	/* Of an image that lies elsewhere these bytes were needed: 0 or -errno. May be NULL. */
	int (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	void *userdata;
	const struct image_loader *loader; /* of such images; may be NULL */
};

/* *ret_faults: gaps found. 0 or -errno: -EINVAL an unknown view, -ENODATA a gap that is not there,
 * -ENOMEM, -E2BIG a report that does not fit its limit even when all is cut, or of the output. */
int decode_run(const struct bundle *bundle, const struct worker_request *request,
	       const struct decode_sink *sink, uint64_t *ret_faults);

/* Sums over the CPUs. */
struct flow_stats decode_total(const struct decode *d);
/* Decoded bytes in percent of BYTES, rounded down so that only all is 100; negative: of nothing. */
double decode_percent(uint64_t decoded, uint64_t bytes);
