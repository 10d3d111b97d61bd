/*
 * Blocks come in classes: steps of 16 up to 256 bytes, powers of two above. Small ones are cut off
 * chunks, big ones are chunks of their own; a block put back waits in its class. Neither blocks nor
 * chunks return to malloc before the end. Only at the limit are larger waiting blocks cut up.
 *
 * Used by the timeline, in the daemon (base state, must not allocate per record) and in the worker
 * (history, freed in one go).
 */
#include "sideband/pool.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define STEP	     16u
#define STEPS	     16u /* classes of STEP, 2 * STEP ... 256 */
#define CHUNK_MIN    1024u
#define CHUNK_MAX    65536u
#define CHUNK_HEADER 16u
#define SIZE_LIMIT   ((size_t)1 << 40)

struct pool_chunk {
	struct pool_chunk *next;
};

struct pool_block {
	struct pool_block *next;
};

static size_t class_size(unsigned class)
{
	return class < STEPS ? (class + 1) * STEP : (size_t)512 << (class - STEPS);
}

static unsigned class_of(size_t size)
{
	if (size <= STEP * STEPS)
		return size == 0 ? 0 : (unsigned)((size - 1) / STEP);
	if (size <= 2 * STEP * STEPS)
		return STEPS;
	return STEPS + (unsigned)(64 - __builtin_clzll((size - 1) >> 9));
}

void pool_init(struct pool *p, size_t limit)
{
	size_t chunk = limit / 16 & ~(size_t)(STEP - 1);

	*p = (struct pool){.limit = limit,
			   .chunk_size = MAX_OF(CHUNK_MIN, MIN_OF(CHUNK_MAX, chunk))};
}

void pool_done(struct pool *p)
{
	struct pool_chunk *next;

	for (struct pool_chunk *c = p->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	*p = (struct pool){0};
}

static void keep(struct pool *p, unsigned class, void *data)
{
	struct pool_block *b = data;

	b->next = p->free[class];
	p->free[class] = b;
}

static void *reuse(struct pool *p, unsigned class)
{
	struct pool_block *b = p->free[class];

	if (b)
		p->free[class] = b->next;
	return b;
}

/* SIZE bytes (a multiple of STEP) that nobody uses become blocks of the largest classes that fit.
 */
static void cut_up(struct pool *p, uint8_t *data, size_t size)
{
	while (size >= STEP) {
		unsigned class = class_of(size);

		if (class_size(class) > size)
			class --;
		keep(p, class, data);
		data += class_size(class);
		size -= class_size(class);
	}
}

static uint8_t *new_chunk(struct pool *p, size_t size)
{
	struct pool_chunk *c;

	p->exceeded = size + CHUNK_HEADER > p->limit - MIN_OF(p->limit, p->taken);
	if (p->exceeded)
		return NULL;
	c = malloc(size + CHUNK_HEADER);
	if (!c)
		return NULL;
	p->taken += size + CHUNK_HEADER;
	c->next = p->chunks;
	p->chunks = c;
	return (uint8_t *)c + CHUNK_HEADER;
}

static void *from_larger(struct pool *p, unsigned class)
{
	for (unsigned c = class + 1; c < POOL_CLASSES; c++) {
		uint8_t *data = reuse(p, c);

		if (!data)
			continue;
		cut_up(p, data + class_size(class), class_size(c) - class_size(class));
		return data;
	}
	return NULL;
}

static void *from_fresh(struct pool *p, size_t size)
{
	uint8_t *chunk;

	if ((size_t)(p->fresh_end - p->fresh) < size) {
		chunk = new_chunk(p, p->chunk_size);
		if (!chunk)
			return NULL;
		cut_up(p, p->fresh, (size_t)(p->fresh_end - p->fresh));
		p->fresh = chunk;
		p->fresh_end = chunk + p->chunk_size;
	}
	chunk = p->fresh;
	p->fresh += size;
	return chunk;
}

void *pool_get(struct pool *p, size_t size)
{
	unsigned class;
	void *data;

	if (size > SIZE_LIMIT) {
		p->exceeded = true;
		return NULL;
	}
	class = class_of(size);
	data = reuse(p, class);
	if (!data)
		data = class_size(class) > p->chunk_size / 2 ? new_chunk(p, class_size(class))
							     : from_fresh(p, class_size(class));
	if (!data)
		data = from_larger(p, class);
	if (!data)
		return NULL;
	p->used += class_size(class);
	return memset(data, 0, class_size(class));
}

void pool_put(struct pool *p, void *data, size_t size)
{
	unsigned class = class_of(size);

	if (!data)
		return;
	p->used -= class_size(class);
	keep(p, class, data);
}

void *pool_grow(struct pool *p, void *data, size_t from, size_t to)
{
	void *grown = pool_get(p, to);

	if (!grown)
		return NULL;
	if (data)
		memcpy(grown, data, from);
	pool_put(p, data, from);
	return grown;
}
