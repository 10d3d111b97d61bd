/*
 * TSC ticks <-> the perf clock's nanoseconds, by the numbers that the kernel gives in
 * perf_event_mmap_page (include/uapi/linux/perf_event.h, cap_user_time_zero).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

struct tscmap {
	bool known;
	uint16_t shift;
	uint32_t mult;
	uint64_t zero;
	/* How far the perf clock is ahead of what these numbers say, ns (shift.h); 0 at first. */
	int64_t ahead;
	uint64_t doubt; /* by how much that may be too much or too little, ns */
};

void tscmap_init(struct tscmap *map, const struct manifest *m);
/* The perf time of TSC; MANIFEST_ABSENT: no clock is known, or the result does not fit. */
uint64_t tscmap_ns(const struct tscmap *map, uint64_t tsc);
/* The TSC at perf time NS, rounded down; MANIFEST_ABSENT: none. */
uint64_t tscmap_tsc(const struct tscmap *map, uint64_t ns);
/* The perf time that what happened at TSC is not before, or not after; 0 and UINT64_MAX where
 * nothing is known. A place between packets is known to a tick, and times are rounded to ns on both
 * sides. */
#define TSCMAP_SLACK_TICKS 2u
#define TSCMAP_SLACK_NS	   1u
uint64_t tscmap_not_before(const struct tscmap *map, uint64_t tsc);
uint64_t tscmap_not_after(const struct tscmap *map, uint64_t tsc);
/* The length of TICKS in ns; MANIFEST_ABSENT: no clock is known, or it does not fit. */
uint64_t tscmap_span(const struct tscmap *map, uint64_t ticks);
