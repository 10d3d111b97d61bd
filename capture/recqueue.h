/*
 * Perf records in memory between two threads: one puts, one takes, neither waits for the other.
 * Records lie whole, in the order in which they were put.
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
	uint64_t tail __attribute__((aligned(64))); /* of who takes */
};

/* SIZE: a power of two, at least RECQUEUE_MIN_BYTES. Its memory is touched as it is used first.
 * 0, -EINVAL, -ENOMEM. */
int recqueue_init(struct recqueue *q, uint64_t size);
void recqueue_done(struct recqueue *q);

/* Who puts: a record of SIZE bytes (up to PERFRECORD_MAX_SIZE) with a number of its own. False:
 * there is no room now. An empty queue begins at its first byte again, so that one that is seldom
 * full stays in little memory. */
bool recqueue_put(struct recqueue *q, uint32_t index, const void *record, size_t size);

/* Who takes: the oldest record, good until recqueue_consume. 0 or RECQUEUE_EMPTY. */
#define RECQUEUE_EMPTY 1
int recqueue_peek(struct recqueue *q, uint32_t *ret_index, const void **ret_record,
		  size_t *ret_size);
/* The record that recqueue_peek gave. */
void recqueue_consume(struct recqueue *q);

/* Anybody; of this moment. Bytes, with the little that is lost where records do not fit. */
uint64_t recqueue_used(const struct recqueue *q);
uint64_t recqueue_most(const struct recqueue *q);
