/*
 * One CPU's trace on its way through the replay: its flow, batch by batch, given to the consumer in
 * pieces of one thread each.
 */
#pragma once

#include "decoder/worker/replay/replay.h"

struct walk;

/* CPU number INDEX of the manifest. CONSUMER is borrowed. R->code is there, and lives longer. 0 or
 * -ENOMEM. */
int walk_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
	     struct walk **ret);
/* A flow of no trace, which keeps the code for all walks of R. 0 or -ENOMEM. */
int walk_keeper(struct replay *r, struct flow **ret);
void walk_free(struct walk *w);
/* When (perf ns) its next piece's turn began, or may have begun; 0: not known. Never falls. */
uint64_t walk_at(const struct walk *w);
/* Gives pieces up to and including that time, or decodes on; makes at least one step, so it is to
 * be called for the walk that is behind all others. 0; WALK_DONE; REPLAY_STOPPED; -ENOMEM, or what
 * the consumer returned. */
#define WALK_DONE 1
int walk_on(struct walk *w, uint64_t limit);
const struct flow_stats *walk_stats(const struct walk *w);
