/*
 * Rounds of a decode with a deadline, newest first: which part of all traces a round decodes, back
 * to the same moment on all CPUs, and how large the next round may be. Reads no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/segment.h"

/* Where a CPU's part may begin. */
struct rounds_cpu {
	struct segment_psb *places; /* newest first, farther and farther apart */
	size_t n;
	uint64_t size; /* bytes of the trace */
};

struct rounds {
	struct rounds_cpu *cpus; /* as the manifest's */
	size_t n_cpus;
	uint64_t *times; /* TSCs of all places, latest first */
	size_t n_times;
	uint64_t bytes; /* that the decode was asked for, of all CPUs */
};

/* REPLAY is not used afterwards. 0 or -ENOMEM. */
int rounds_init(struct rounds *r, const struct replay *replay);
void rounds_done(struct rounds *r);
/* The parts of a round of no more than BYTES, one for each CPU, but at least the newest PSB segment
 * of each CPU, unless the segment is very large. True: the round is the whole decode, *RET are
 * zeros. */
bool rounds_parts(const struct rounds *r, uint64_t bytes, struct replay_part *ret);

/* How the last round went. */
struct rounds_pace {
	uint64_t total; /* bytes in all */
	uint64_t bytes; /* of the round */
	uint64_t took;	/* ns */
	uint64_t left;	/* ns for the next one */
};
/* Bytes of the next round; 0: no round that is worth the time can be done in time. */
uint64_t rounds_next(const struct rounds_pace *pace);
