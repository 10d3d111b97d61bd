/*
 * The threads that copy rings while CPUs are not traced.
 *
 * They sleep between snapshots and have real-time priority (realtime.h). On a host with several
 * memory nodes each thread stays on the CPUs of one node and takes the rings of that node first,
 * since copying between nodes costs half the speed. When all rings of its node are begun, it helps
 * with the others.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"

struct copiers;

#define COPIERS_MAX 64u
/* How many threads copy at a time, with the caller of copiers_run(), on a host with ONLINE CPUs in
 * NODES memory nodes: an eighth of the CPUs, but at least 8 and more than one for each node; at
 * most half of the CPUs, rounded up, and COPIERS_MAX. */
unsigned copiers_default(unsigned online, unsigned nodes);

/* Starts N - 1 threads for the nodes of S's CPUs; N 0: copiers_default(), within the number of S's
 * CPUs. If threads cannot be started, fewer copy. 0 or -ENOMEM. */
int copiers_new(const struct source *s, unsigned n, struct copiers **ret);
/* Must not be called during copiers_run(). */
void copiers_free(struct copiers *c);

/* Calls SERVE once for each of the N indices of CPUs in ORDER, and returns when all are served. The
 * CPUs of one node are begun in this order, the first CPU of all by the calling thread, which
 * serves CPUs like the others. N is at most the number of CPUs of the source that copiers_new()
 * got; S may be another source. One call at a time. */
void copiers_run(struct copiers *c, const struct source *s, const uint32_t *order, size_t n,
		 void (*serve)(void *userdata, uint32_t index), void *userdata);
