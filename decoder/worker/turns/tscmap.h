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
/* The length of TICKS in ns; MANIFEST_ABSENT: no clock is known, or it does not fit. */
uint64_t tscmap_span(const struct tscmap *map, uint64_t ticks);
