/*
 * A queue of perf records in memory between two threads, the writer and the reader, without locks.
 *
 * An entry is some records of one ring. It lies in one piece, and entries keep their order.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECQUEUE_MIN_BYTES (1u << 20)

struct recqueue {
	uint8_t *bytes;
	uint64_t size;
	/* Running positions, in separate cache lines for the two threads. */
	uint64_t head __attribute__((aligned(64))); /* the writer's */
	uint64_t origin;			    /* the running position of bytes[0] */
	uint64_t most;				    /* the highest fill */
	uint64_t reserved;			    /* the head after recqueue_commit */
	uint64_t tail __attribute__((aligned(64))); /* the reader's */
};

/* SIZE: a power of two, at least RECQUEUE_MIN_BYTES. The kernel allocates the pages when they are
 * first used. 0, -EINVAL, or -ENOMEM. */
int recqueue_init(struct recqueue *q, uint64_t size);
void recqueue_done(struct recqueue *q);

/* For the writer: adds SIZE bytes (a multiple of 8, up to RECQUEUE_MAX_ENTRY) of ring INDEX. False:
 * there is no room now. An empty queue starts again at its first byte, so a queue that is seldom
 * full uses little memory. */
#define RECQUEUE_MAX_ENTRY (512u << 10)
bool recqueue_put(struct recqueue *q, uint32_t index, const void *bytes, size_t size);
/* The same in two steps: recqueue_reserve() returns the place for the bytes (NULL: no room), and
 * recqueue_commit() adds the entry. */
uint8_t *recqueue_reserve(struct recqueue *q, uint32_t index, size_t size);
void recqueue_commit(struct recqueue *q);

/* For the reader: returns the oldest entry, valid until recqueue_consume(). 0 or RECQUEUE_EMPTY. */
#define RECQUEUE_EMPTY 1
int recqueue_peek(struct recqueue *q, uint32_t *ret_index, const void **ret_bytes,
		  size_t *ret_size);
/* Removes the entry that recqueue_peek() returned. */
void recqueue_consume(struct recqueue *q);

/* For any thread: the bytes in use now, and the most ever, including headers and unused bytes at
 * the end. */
uint64_t recqueue_used(const struct recqueue *q);
uint64_t recqueue_most(const struct recqueue *q);
