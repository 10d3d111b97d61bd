/*
 * Chained hash table by a 32-bit id, doubled when as full as it has buckets. Used by the timeline
 * in the daemon and in the worker.
 */
#include "sideband/timeline/idmap.h"

#include "proto/base.h"

#define FIRST_BITS 6u
#define MAX_BITS   26u

/* Fibonacci hashing: neighbouring pids spread over the table. */
static size_t bucket_of(uint32_t id, unsigned bits)
{
	return (uint32_t)(id * 2654435769u) >> (32 - bits);
}

struct idnode *idmap_find(const struct idmap *map, uint32_t id)
{
	struct idnode *node;

	if (!map->buckets)
		return NULL;
	for (node = map->buckets[bucket_of(id, map->bits)]; node; node = node->next)
		if (node->id == id)
			return node;
	return NULL;
}

static bool grow(struct idmap *map, struct pool *pool)
{
	unsigned bits = map->buckets ? map->bits + 1 : FIRST_BITS;
	size_t old = map->buckets ? (size_t)1 << map->bits : 0;
	struct idnode **buckets;

	if (bits > MAX_BITS)
		return true;
	buckets = pool_get(pool, ((size_t)1 << bits) * sizeof(struct idnode *));
	if (!buckets)
		return map->buckets;
	for (size_t i = 0; i < old; i++)
		for (struct idnode *node = map->buckets[i], *next; node; node = next) {
			struct idnode **to = &buckets[bucket_of(node->id, bits)];

			next = node->next;
			node->next = *to;
			*to = node;
		}
	pool_put(pool, map->buckets, old * sizeof(struct idnode *));
	map->buckets = buckets;
	map->bits = bits;
	return true;
}

bool idmap_add(struct idmap *map, struct pool *pool, struct idnode *node)
{
	struct idnode **to;

	if ((!map->buckets || map->n >> map->bits) && !grow(map, pool))
		return false;
	to = &map->buckets[bucket_of(node->id, map->bits)];
	node->next = *to;
	*to = node;
	map->n++;
	return true;
}

void idmap_remove(struct idmap *map, struct idnode *node)
{
	struct idnode **at = &map->buckets[bucket_of(node->id, map->bits)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	map->n--;
}
