/*
 * Memory for many small things of few sizes, byte-limited. What is put back is kept for the next
 * one of its size, so that a steady load allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_CLASSES 56

struct pool {
	size_t limit;  /* never more bytes taken from malloc than this */
	size_t taken;  /* from malloc */
	size_t used;   /* handed out now, rounded up to the class */
	bool exceeded; /* the last refusal was the limit's, not malloc's */
	size_t chunk_size;
	struct pool_chunk *chunks;
	uint8_t *fresh, *fresh_end; /* what is left of the newest chunk */
	struct pool_block *free[POOL_CLASSES];
};

void pool_init(struct pool *p, size_t limit);
/* Everything that came from the pool is gone. */
void pool_done(struct pool *p);
/* Zeroed, aligned to 16; NULL: no memory or limit. */
void *pool_get(struct pool *p, size_t size);
/* SIZE as asked for; DATA may be NULL. */
void pool_put(struct pool *p, void *data, size_t size);
/* DATA, of FROM bytes, moved to TO > FROM bytes; NULL: no memory, DATA is still good. */
void *pool_grow(struct pool *p, void *data, size_t from, size_t to);
