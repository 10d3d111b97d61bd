/*
 * The views that are lines: branches, instructions, events.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/hash.h"
#include "decoder/worker/lines.h"
#include "decoder/worker/replay.h"
#include "proto/decode_options.h"

#define VIEWS_HASH_BASIS HASH_BASIS

/* Whose lines the last ones were. */
struct views_whose {
	bool known;
	size_t cpu;
	const struct timeline_thread *thread, *process;
};
/* Before the lines of S: "# cpu N pid P tid T", "-" where it is not known, when they are not of the
 * same CPU and thread as those before; where only the process is known, "# gap thread-uncertain"
 * follows. */
void views_whose(struct views_whose *v, struct lines *l, const struct replay_stretch *s,
		 const struct manifest *m);
/* A line a taken branch, "FROM TO"; TIME: "FROM TO LO HI", when it happened in TSC, 0 and all ones
 * where that is not known; PLACES: " OFFSET" of the packet too. SHOW: WORKER_SHOW_TIME, _PLACES.
 * GAPS: and "# gap KIND" at each gap. 0 or the sticky error of L. */
int views_branches(struct lines *l, const struct replay_stretch *s, bool gaps, uint64_t show);
/* A line an executed instruction, as above. */
int views_insns(struct lines *l, const struct replay_stretch *s, bool gaps);
/* The hashes of a CPU and of a thread, carried on over the addresses of all executed instructions.
 */
void views_hash_two(uint64_t *cpu, uint64_t *thread, const struct replay_stretch *s);
/* One hash, carried on. */
uint64_t views_hash(uint64_t hash, const struct replay_stretch *s);
