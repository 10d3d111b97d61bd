/*
 * A memory pool with a byte limit, for many small blocks of few sizes. Blocks that are put back are
 * kept for later use, so a steady load takes nothing from malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SMALL_CLASSES 18
#define POOL_LARGE_CLASSES 40

struct pool {
	size_t limit;	    /* the most bytes that the pool takes from malloc */
	size_t pages_limit; /* the most of these bytes that become pages */
	size_t taken, pages_taken;
	size_t used;   /* bytes handed out now, each block rounded up to its class */
	bool exceeded; /* the last pool_get() that failed met the limit, not malloc */
	struct pool_chunk *chunks;
	struct pool_page *empty;
	struct pool_page *partial[POOL_SMALL_CLASSES];
	struct pool_large *spare[POOL_LARGE_CLASSES]; /* put back, for the next of their class */
	struct pool_large *large;		      /* handed out */
};

/* LIMIT in bytes; SIZE_MAX: none. */
void pool_init(struct pool *p, size_t limit);
/* Frees all blocks, also those that were not put back. */
void pool_done(struct pool *p);
/* Returns SIZE zeroed bytes, aligned to 16. NULL: no memory, or the limit is reached. */
void *pool_get(struct pool *p, size_t size);
/* Puts back DATA (may be NULL). SIZE is the size that pool_get() was called with. */
void pool_put(struct pool *p, void *data, size_t size);
/* Moves DATA from FROM bytes to TO > FROM bytes. NULL: no memory, and DATA stays valid. */
void *pool_grow(struct pool *p, void *data, size_t from, size_t to);
