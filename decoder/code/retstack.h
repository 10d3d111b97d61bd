/*
 * Return addresses for compressed returns. SDM volume 3, 33.4.2.2 "RET Compression".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/perf/ptpacket.h"

/* A return address, or a node (decoder/hot/nodes.h) whose address is looked up when somebody asks
 * for the return address. */
struct retstack_entry {
	uint64_t edge;	/* to the node; 0: it is an address */
	uint64_t where; /* the address, or the node's place */
};

/* Which returns pop the return stack. The SDM says that each near return does (volume 3, edition
 * 083, 33.4.2.2), as perf decodes. libipt decodes as if only compressed returns did, and traces
 * exist that are like that. The two rules differ behind a return that a TIP describes although the
 * stack is not empty. */
enum retstack_rule {
	RETSTACK_ASK,	     /* not known: decoder/flow/flow_returns.c finds out */
	RETSTACK_ALL,	     /* each near return pops */
	RETSTACK_COMPRESSED, /* only compressed returns pop */
};

/* A circular stack: the 65th call drops the oldest entry, as the hardware's counter does. */
struct retstack {
	struct retstack_entry entries[PT_RET_STACK];
	uint32_t top;	 /* number of the next push; its index is that modulo PT_RET_STACK */
	uint32_t bottom; /* number of the oldest entry */
};

static inline void retstack_clear(struct retstack *s)
{
	s->bottom = s->top;
}

static inline bool retstack_is_empty(const struct retstack *s)
{
	return s->bottom == s->top;
}

/* Copies the entries to TO, which has room for all, the oldest entry first. Returns how many. */
static inline uint32_t retstack_list(const struct retstack *s, struct retstack_entry *to)
{
	uint32_t n = s->top - s->bottom;

	for (uint32_t i = 0; i < n; i++)
		to[i] = s->entries[(s->bottom + i) % PT_RET_STACK];
	return n;
}

/* Replaces all entries by the N entries at FROM, the oldest entry first. */
static inline void retstack_set(struct retstack *s, const struct retstack_entry *from, uint32_t n)
{
	s->bottom = 0;
	s->top = n;
	for (uint32_t i = 0; i < n; i++)
		s->entries[i] = from[i];
}

static inline void retstack_push(struct retstack *s, uint64_t address)
{
	s->entries[s->top % PT_RET_STACK] = (struct retstack_entry){.where = address};
	s->top++;
	if (s->top - s->bottom > PT_RET_STACK)
		s->bottom = s->top - PT_RET_STACK;
}

/* False: the stack is empty. */
static inline bool retstack_pop(struct retstack *s, struct retstack_entry *ret)
{
	if (retstack_is_empty(s))
		return false;
	s->top--;
	*ret = s->entries[s->top % PT_RET_STACK];
	return true;
}
