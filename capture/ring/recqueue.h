/*
 * Perf records in memory between two threads: one puts, one takes, neither waits for the other. An
 * entry is some records of one ring; it lies whole, in the order in which they were put.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECQUEUE_MIN_BYTES (1u << 20)

struct recqueue {
	uint8_t *bytes;
	uint64_t size;
	/* Running positions. Each is written by one thread, which is why they are apart. */
	uint64_t head __attribute__((aligned(64))); /* of who puts */
	uint64_t origin;			    /* the position of the first byte */
	uint64_t most;				    /* the highest fill */
	uint64_t reserved;			    /* the head after recqueue_commit */
	uint64_t tail __attribute__((aligned(64))); /* of who takes */
};

/* SIZE: a power of two, at least RECQUEUE_MIN_BYTES. Its memory is touched as it is used first.
 * 0, -EINVAL, -ENOMEM. */
int recqueue_init(struct recqueue *q, uint64_t size);
void recqueue_done(struct recqueue *q);

/* Who puts: SIZE bytes (a multiple of 8, up to RECQUEUE_MAX_ENTRY) with a number of their own.
 * False: there is no room now. An empty queue begins at its first byte again, so that one that is
 * seldom full stays in little memory. */
#define RECQUEUE_MAX_ENTRY (512u << 10)
bool recqueue_put(struct recqueue *q, uint32_t index, const void *bytes, size_t size);
/* The same in two steps: where the bytes shall be, NULL: no room; then they are there. */
uint8_t *recqueue_reserve(struct recqueue *q, uint32_t index, size_t size);
void recqueue_commit(struct recqueue *q);

/* Who takes: the oldest entry, good until recqueue_consume. 0 or RECQUEUE_EMPTY. */
#define RECQUEUE_EMPTY 1
int recqueue_peek(struct recqueue *q, uint32_t *ret_index, const void **ret_bytes,
		  size_t *ret_size);
/* The entry that recqueue_peek gave. */
void recqueue_consume(struct recqueue *q);

/* Anybody; of this moment. Bytes, with the little that is lost where records do not fit. */
uint64_t recqueue_used(const struct recqueue *q);
uint64_t recqueue_most(const struct recqueue *q);
