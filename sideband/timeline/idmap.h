/*
 * Things found by a pid or tid: a hash table of nodes embedded in them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/timeline/pool.h"

struct idnode {
	struct idnode *next;
	uint32_t id;
};

struct idmap {
	struct idnode **buckets;
	unsigned bits; /* log2 of their number */
	size_t n;
};

struct idnode *idmap_find(const struct idmap *map, uint32_t id);
/* NODE, whose id is not in the map yet. False: no memory. */
bool idmap_add(struct idmap *map, struct pool *pool, struct idnode *node);
void idmap_remove(struct idmap *map, struct idnode *node);
