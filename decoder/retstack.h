/*
 * Return addresses for compressed returns. SDM volume 3, 33.4.2.2 "RET Compression".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/ptpacket.h"

/* Circular: the 65th call drops the oldest, as the hardware's counter does. */
struct retstack {
	uint64_t addresses[PT_RET_STACK];
	uint32_t top; /* index of the next push, modulo the size */
	uint32_t depth;
};

static inline void retstack_clear(struct retstack *s)
{
	s->depth = 0;
}

static inline void retstack_push(struct retstack *s, uint64_t address)
{
	s->addresses[s->top % PT_RET_STACK] = address;
	s->top = (s->top + 1) % PT_RET_STACK;
	if (s->depth < PT_RET_STACK)
		s->depth++;
}

/* False: it is empty. */
static inline bool retstack_pop(struct retstack *s, uint64_t *ret_address)
{
	if (s->depth == 0)
		return false;
	s->depth--;
	s->top = (s->top + PT_RET_STACK - 1) % PT_RET_STACK;
	*ret_address = s->addresses[s->top];
	return true;
}
