/*
 * Numbers for the states of address spaces that executed: what flow knows code by.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sideband/timeline/space.h"

/* Numbers that are no context: whose code it is, or what its process mapped, is not known; or it is
 * not to be decoded (permit.h). */
#define CONTEXTS_THREAD_UNCERTAIN UINT32_MAX
#define CONTEXTS_IMAGE_UNCERTAIN  (UINT32_MAX - 1)
#define CONTEXTS_EXCLUDED	  (UINT32_MAX - 2)
#define CONTEXTS_NONE		  CONTEXTS_EXCLUDED /* the first of them */

struct context {
	const struct space *space; /* NULL: number 0, nobody known */
	uint64_t generation;
	uint64_t time; /* at which the mappings are asked for */
};

struct contexts {
	struct context *list; /* list[0]: nobody */
	size_t n, capacity;
	uint32_t *slots; /* hash: index into list, 0: free */
	size_t n_slots;
};

/* 0 or -ENOMEM. */
int contexts_init(struct contexts *c);
void contexts_done(struct contexts *c);
/* The number of SPACE as it was at TIME, new or known. 0 or -ENOMEM. */
int contexts_intern(struct contexts *c, const struct space *space, uint64_t time, uint32_t *ret);
