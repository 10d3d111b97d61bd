/*
 * What systemd must let the recorder and its decoders have, computed from the configuration:
 * drop-ins for ptsnapd.service and ptsnap-decode@.service. The limits are nets for our bugs, so
 * they lie above the recorder's own. Called by generator.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"

/* Of code in memory and its names in one bundle: memory_default_limits (memory_read.h), without the
 * code that comes with it. */
#define UNIT_LIMITS_CODE (512ull << 20)

struct unit_limits_host {
	size_t n_cpus;	 /* that there may ever be; at least 1 */
	uint64_t memory; /* bytes; 0: not known */
	uint64_t budget; /* of rings, where the configuration says none */
};

struct unit_limits {
	uint64_t recorder_high, recorder_max; /* bytes: MemoryHigh=, MemoryMax= */
	uint64_t decoder_max;		      /* bytes: MemoryMax= of one */
	uint64_t decoder_seconds;	      /* RuntimeMaxSec= */
};

/* This one. */
void unit_limits_host(struct unit_limits_host *ret);
/* The recorder: its rings and their copy, a bundle for each snapshot that may wait, what is
 * remembered, and itself; not more than a quarter of the host's memory, unless one snapshot takes
 * that. */
void unit_limits(const struct config *c, const struct unit_limits_host *host,
		 struct unit_limits *ret);
/* Below directory DIR: ptsnapd.service.d/50-memory.conf, ptsnap-decode@.service.d/50-limits.conf.
 * 0 or the first -errno; the other file is tried all the same. */
int unit_limits_write(const struct unit_limits *l, const char *dir);
