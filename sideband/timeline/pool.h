/*
 * Memory for many small things of few sizes, byte-limited. What is put back is kept for others, so
 * that a steady load allocates nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SMALL_CLASSES 18
#define POOL_LARGE_CLASSES 40

struct pool {
	size_t limit;	    /* never more bytes taken from malloc than this */
	size_t pages_limit; /* and of these for pages */
	size_t taken, pages_taken;
	size_t used;   /* handed out now, rounded up to the class */
	bool exceeded; /* the last refusal was the limit's, not malloc's */
	struct pool_chunk *chunks;
	struct pool_page *empty;
	struct pool_page *partial[POOL_SMALL_CLASSES];
	struct pool_large *waiting[POOL_LARGE_CLASSES];
	struct pool_large *large; /* handed out */
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
