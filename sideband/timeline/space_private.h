/*
 * What the timeline does with spaces beside the questions of space.h: all of its spaces live in one
 * pool.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sideband/timeline/pool.h"
#include "sideband/timeline/space.h"

/* A process cannot have more mappings at a time; sysctl vm.max_map_count is 65530. */
#define SPACE_MAX_MAPPINGS 65536u

/* As space_new() and space_fork(), in POOL, that of SPACE, too, which must outlive both. A space
 * with history gives its memory back only with the pool; those without share what they have in
 * common. */
struct space *space_new_in(struct pool *pool, bool history);
struct space *space_fork_in(struct pool *pool, struct space *space, uint64_t time);
/* Mappings alive now. */
size_t space_n_mappings(const struct space *space);
