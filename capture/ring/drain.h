/*
 * The one thread that empties DATA rings: it copies records into a queue in memory, and does
 * nothing else, so that nothing that takes long or blocks elsewhere (a snapshot, a slow disk, a
 * mount) lets a ring overflow. The recorder's loop takes the records out of the queue.
 *
 * All functions are for one thread, the loop's; the drain's own thread is inside.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/ring/ring.h"

struct drain;

struct drain_stats {
	uint64_t queue_bytes, queue_used, queue_most; /* bytes; most: the highest fill so far */
	uint64_t stalls; /* times that the queue was full and rings had to wait */
};

/* QUEUE_BYTES: a power of two, at least 1 MiB; the memory is touched as it is used first, and
 * reused from its beginning whenever the queue is empty. PERIOD_USEC: how often rings that nobody
 * wakes for are looked at (milliseconds, rounded up). 0 or -errno. */
int drain_new(uint64_t queue_bytes, uint64_t period_usec, struct drain **ret);
/* Ends the thread. The rings must still be mapped, or have been removed. */
void drain_free(struct drain *d);

/* RING (borrowed until drain_remove) of CPU INDEX. FD (borrowed, nothing is read from it): each
 * time that it becomes readable all rings are emptied, and four times a second besides; 0 or less,
 * or one that cannot be polled: the ring is looked at every period. 0 or -ENOMEM. */
int drain_add(struct drain *d, uint32_t index, struct ring *ring, int fd);
/* Takes what RING holds into the queue and forgets it: the caller may unmap it. Its records that
 * are in the queue stay there. What finds no room is thrown away, so the queue should have been
 * emptied before. A ring that was not added is ignored. */
void drain_remove(struct drain *d, struct ring *ring);

/* An eventfd that is readable while the queue is not empty; borrowed. For the loop to wait for. */
int drain_fd(const struct drain *d);
/* All that the rings hold now goes into the queue. 0; DRAIN_FULL: the queue is full: take records
 * out and call again, which goes on where this call ended; after as many calls as it takes to move
 * all rings' bytes once, it is done however fast they are written. */
#define DRAIN_FULL 1
int drain_flush(struct drain *d);
/* The oldest record in the queue: of CPU *ret_index, good until drain_consume. 0 or DRAIN_EMPTY.
 * Records of one ring come in its order; those of different rings are not ordered. */
#define DRAIN_EMPTY 1
int drain_peek(struct drain *d, uint32_t *ret_index, const void **ret_record, size_t *ret_size);
void drain_consume(struct drain *d);
/* Bytes that were thrown away since the last call, with rings that contradicted themselves or that
 * were removed while the queue was full. */
uint64_t drain_take_bad_bytes(struct drain *d);
void drain_get_stats(const struct drain *d, struct drain_stats *ret);
