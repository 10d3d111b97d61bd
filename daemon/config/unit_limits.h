/*
 * The limits that systemd needs for the recorder and its decoders, computed from the configuration,
 * as drop-ins for ptsnapd.service and ptsnap-decode@.service.
 *
 * The limits catch our bugs, so they lie above the recorder's own limits.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"

/* Bytes of code in memory and of its names in one bundle: memory_default_limits (memory_read.h),
 * without the code that comes with them. */
#define UNIT_LIMITS_CODE (512ull << 20)

struct unit_limits_host {
	size_t n_cpus;	 /* possible CPUs; at least 1 */
	uint64_t memory; /* bytes; 0: not known */
	uint64_t budget; /* of rings, if the configuration has none */
};

struct unit_limits {
	uint64_t recorder_high, recorder_max; /* bytes: MemoryHigh=, MemoryMax= */
	uint64_t decoder_max;		      /* bytes: MemoryMax= of one decoder */
	uint64_t decoder_seconds;	      /* RuntimeMaxSec= */
};

/* Describes this host. */
void unit_limits_host(struct unit_limits_host *ret);
/* Computes the limits. The recorder needs its rings and their copy, a bundle for each snapshot that
 * may wait, what it remembers, and itself; but gets at most a quarter of the host's memory, unless
 * one snapshot needs more. */
void unit_limits(const struct config *c, const struct unit_limits_host *host,
		 struct unit_limits *ret);
/* Writes ptsnapd.service.d/50-memory.conf and ptsnap-decode@.service.d/50-limits.conf in directory
 * DIR. 0 or the first -errno; both files are tried. */
int unit_limits_write(const struct unit_limits *l, const char *dir);
