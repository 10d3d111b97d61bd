/*
 * One CPU's trace on its way through the replay: its flow, batch by batch, given to the consumer in
 * pieces of one thread each.
 */
#pragma once

#include "decoder/worker/replay/replay.h"

struct cpu_replay;

/* CPU number INDEX of the manifest. CONSUMER is borrowed. R->code is there, and lives longer. 0 or
 * -ENOMEM. */
int cpu_replay_new(struct replay *r, size_t index, const struct replay_consumer *consumer,
		   struct cpu_replay **ret);
/* A flow of no trace, which keeps the code for all flows of R. 0 or -ENOMEM. */
int cpu_replay_keeper(struct replay *r, struct flow **ret);
void cpu_replay_free(struct cpu_replay *c);
/* When (perf ns) its next piece's turn began, or may have begun; 0: not known. Never falls. */
uint64_t cpu_replay_at(const struct cpu_replay *c);
/* Gives pieces up to and including that time, or decodes on; makes at least one step, so it is to
 * be called for the CPU that is behind all others. 0; CPU_REPLAY_DONE; REPLAY_STOPPED; -ENOMEM, or
 * what the consumer returned. */
#define CPU_REPLAY_DONE 1
int cpu_replay_step(struct cpu_replay *c, uint64_t limit);
const struct flow_stats *cpu_replay_stats(const struct cpu_replay *c);
