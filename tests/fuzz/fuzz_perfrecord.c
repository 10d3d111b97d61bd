/*
 * Fuzzes the parser of sideband records. Invariant: a record that was parsed and composed parses
 * and composes to the same bytes again, and never grows.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compose_twice(const struct perfrecord *record, int known)
{
	static uint8_t first[PERFRECORD_MAX_SIZE], second[PERFRECORD_MAX_SIZE];
	struct perfrecord back;
	size_t size, again;

	assert(perfrecord_compose(record, first, sizeof(first), &size) == 0);
	assert(size <= record->size && perfrecord_parse(first, size, &back) == known);
	assert(perfrecord_compose(&back, second, size, &again) == 0);
	assert(size == again && memcmp(first, second, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfrecord record;

	do {
		int r = perfrecord_parse(data, size, &record);

		assert(record.size <= size && record.size % 8 == 0);
		if (r >= 0)
			compose_twice(&record, r);
		data += record.size;
		size -= record.size;
	} while (record.size > 0);
	return 0;
}
