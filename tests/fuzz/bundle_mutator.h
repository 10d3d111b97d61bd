/*
 * Mutates bundles, for mutators of libFuzzer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's own mutator of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Mutates the bundle in DATA, which has room for MAX_SIZE bytes. Returns the new size. */
size_t bundle_mutate(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
