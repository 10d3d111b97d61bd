/*
 * Mutates an input of fuzz_worker for libFuzzer: a bundle, or the request that follows it. An input
 * without a request gets one.
 */
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"
#include "tests/fuzz/bundle_mutator.h"

/* Bytes of a request (fuzz_worker.c, struct wish). */
#define REQUEST 16u

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t n = MIN_OF(size % BUNDLE_BLOCK, (size_t)REQUEST);
	uint8_t request[REQUEST];
	uint64_t random = seed;

	if (max_size < 2 * BUNDLE_BLOCK)
		return size;
	size -= size % BUNDLE_BLOCK;
	memcpy(request, data + size, n);
	/* A linear congruence: its upper bits are good enough for a first request. */
	for (; n < REQUEST; n++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		request[n] = (uint8_t)(random >> 56);
	}
	if (seed % 8 == 0)
		LLVMFuzzerMutate(request, REQUEST, REQUEST);
	else
		size = bundle_mutate(data, size, max_size - BUNDLE_BLOCK, seed / 8);
	/* Bytes that are no whole block would be taken for the request. */
	size -= size % BUNDLE_BLOCK;
	if (max_size - size < REQUEST)
		return size;
	memcpy(data + size, request, REQUEST);
	return size + REQUEST;
}
