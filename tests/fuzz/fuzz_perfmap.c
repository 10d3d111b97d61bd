/*
 * Fuzzes the parser of perf maps. Invariant: every address is in exactly one function or gap, and
 * stepping from one to the next reaches the end.
 */
#include "sideband/symbols/symbols.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perfmap_function f = {0};
	struct perfmap *m;
	uint64_t at = 0;
	size_t n = 0;

	if (perfmap_new(bytes, size, &m) != 0)
		return 0;
	/* Gaps and functions together: at most four for each line, plus the last gap. */
	while (at != UINT64_MAX) {
		perfmap_find(m, at, &f);
		assert(f.start == at && f.size > 0);
		assert(f.name == NULL || strlen(f.name) <= PERFMAP_NAME_MAX);
		assert(++n <= 4 * perfmap_count(m) + 1);
		at = f.start + f.size;
	}
	for (size_t i = 0; i + sizeof(at) <= size && i < 64; i++) {
		memcpy(&at, bytes + i, sizeof(at));
		perfmap_find(m, at, &f);
		assert(at >= f.start && (at - f.start < f.size || at == UINT64_MAX));
	}
	perfmap_free(m);
	return 0;
}
