/*
 * A file of which only requested ranges are present, for fuzzers.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct some {
	const uint8_t *data;
	uint8_t *copy;
	size_t size;
};

static inline bool bring(void *userdata, uint64_t offset, uint64_t size)
{
	const struct some *s = userdata;

	assert(size > 0 && offset <= s->size && size <= s->size - offset);
	memcpy(s->copy + offset, s->data + offset, size);
	return true;
}
