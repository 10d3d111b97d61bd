/*
 * FNV-1a, 64 bits: over instruction addresses, little-endian, so that two streams can be compared
 * without keeping them.
 */
#pragma once

#include <stdint.h>

#define HASH_BASIS 0xcbf29ce484222325ull
#define HASH_PRIME 0x100000001b3ull

/* HASH, carried on over the 8 bytes of V. */
static inline uint64_t hash_u64(uint64_t hash, uint64_t v)
{
	int shift;

	for (shift = 0; shift < 64; shift += 8)
		hash = (hash ^ (v >> shift & 0xff)) * HASH_PRIME;
	return hash;
}
