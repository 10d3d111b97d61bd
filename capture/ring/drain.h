/*
 * The one thread that empties DATA rings into a queue in memory.
 *
 * The thread does nothing else. Thus no ring overflows because of something that takes long or
 * blocks elsewhere (a snapshot, a slow disk, a mount). The recorder's loop takes the records out of
 * the queue. All functions are for one thread, the loop's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/ring/ring.h"

struct drain;

struct drain_stats {
	uint64_t queue_bytes, queue_used, queue_most; /* bytes; most: the highest fill so far */
	uint64_t stalls; /* how many times the queue was full and rings had to wait */
};

/* QUEUE_BYTES: a power of two, at least 1 MiB; the kernel allocates the memory when it is first
 * used, and the queue starts again at its beginning whenever it is empty. PERIOD_USEC: how often to
 * look at rings that have no wakeup (rounded up to milliseconds). 0 or -errno. */
int drain_new(uint64_t queue_bytes, uint64_t period_usec, struct drain **ret);
/* Ends the thread. All rings that were not removed must still be mapped. */
void drain_free(struct drain *d);

/* Adds the RING (borrowed until drain_remove) of CPU INDEX. FD (borrowed, never read): all rings
 * are emptied whenever FD becomes readable, and four times a second. If FD is 0 or less, or cannot
 * be polled, the ring is looked at every period. 0 or -ENOMEM. */
int drain_add(struct drain *d, uint32_t index, struct ring *ring, int fd);
/* Moves the records of RING to the queue and forgets the ring, which the caller may then unmap.
 * Records that find no room in the queue are discarded, so the caller should have emptied the
 * queue. A ring that was not added is ignored. */
void drain_remove(struct drain *d, struct ring *ring);

/* An eventfd, borrowed, that is readable while the queue is not empty. */
int drain_fd(const struct drain *d);
/* Moves all records that the rings hold now to the queue. 0; or DRAIN_FULL: the queue is full, and
 * the caller must take records out and call again. The next call goes on where this call ended, and
 * the calls end after moving at most each ring's size once, however fast the rings are written. */
#define DRAIN_FULL 1
int drain_flush(struct drain *d);
/* Returns the oldest record in the queue and the index of its CPU, valid until drain_consume(). 0
 * or DRAIN_EMPTY. Records of one ring come in the ring's order; records of different rings come in
 * no particular order. */
#define DRAIN_EMPTY 1
int drain_peek(struct drain *d, uint32_t *ret_index, const void **ret_record, size_t *ret_size);
void drain_consume(struct drain *d);
/* Bytes discarded since the last call: of rings with contradictory contents, and of rings that were
 * removed while the queue was full. */
uint64_t drain_take_bad_bytes(struct drain *d);
void drain_get_stats(const struct drain *d, struct drain_stats *ret);
