/*
 * A DATA ring in ordinary memory that a test writes as the kernel does, with numbered records.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/ring/ring.h"

#define DATA_RING_TYPE 1000u /* of the records, which hold their number, as u64, and a pattern */

struct data_ring {
	struct ring ring;
	uint64_t next;	 /* number of the next record */
	uint8_t *memory; /* owned */
};

/* SIZE is the size of DATA: a power of two, at least a page. */
void data_ring_init(struct data_ring *r, uint64_t size);
void data_ring_done(struct data_ring *r);
/* Writes the next record, whose size depends on its number. False: the ring has no room. */
bool data_ring_put(struct data_ring *r);
/* Writes as many records as fit, at most N. Returns their number. */
uint64_t data_ring_fill(struct data_ring *r, uint64_t n);
/* Whether RECORD is record NUMBER, unharmed. */
bool data_ring_is(const void *record, size_t size, uint64_t number);
