/*
 * The times of streams for ptsnapctl (proto/callstream.h, proto/execstream.h): CLOCK_MONOTONIC in
 * ns, out of TSC and perf's clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"

struct stream_time {
	const struct replay *replay; /* borrowed */
	uint64_t first, last;	     /* of the traces, in the time of the stream; 0: not known */
	uint64_t trigger;	     /* 0: not known */
	int64_t offset;		     /* CLOCK_MONOTONIC less the perf clock */
};

/* An interval in the time of the stream. LO 0: not known. */
struct stream_when {
	uint64_t lo, hi;
};

/* The traces' first and last time are known as far as they are before they are decoded. */
struct stream_time stream_time_of(const struct replay *replay);
/* V in the time of the stream; perf ns; MANIFEST_ABSENT gives 0. */
uint64_t stream_time_ns(const struct stream_time *t, uint64_t perf_ns);
/* The interval [LO, HI] of the TSC on CPU number INDEX: 0 and UINT64_MAX are not known, and give
 * the traces' first and last time. */
struct stream_when stream_time_when(const struct stream_time *t, size_t index, uint64_t lo,
				    uint64_t hi);
