/*
 * Bytes of a trace put together at random, the same each time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ANY_BYTES_MAX 100000u

struct any_bytes {
	uint8_t bytes[ANY_BYTES_MAX];
	size_t size;
	uint64_t random;
};

static inline void any_begin(struct any_bytes *in)
{
	in->size = 0;
	in->random = 88172645463325252u;
}

/* From 0 to BELOW - 1. */
static inline uint64_t any(struct any_bytes *in, uint64_t below)
{
	in->random ^= in->random << 13;
	in->random ^= in->random >> 7;
	in->random ^= in->random << 17;
	return in->random % below;
}

static inline void add(struct any_bytes *in, const void *bytes, size_t size)
{
	assert_true(in->size + size <= ANY_BYTES_MAX);
	memcpy(in->bytes + in->size, bytes, size);
	in->size += size;
}
