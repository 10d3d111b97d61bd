/*
 * Fuzzes the manifest parser. Invariant: a manifest that was read, written and read again is
 * written the same.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(manifest_done) struct manifest m, back;
	CLEANUP(bytes_out_done) struct bytes_out first, second;

	manifest_init(&m);
	manifest_init(&back);
	bytes_out_init(&first, MANIFEST_MAX_TEXT);
	bytes_out_init(&second, MANIFEST_MAX_TEXT);
	if (manifest_read(data, size, &m) < 0) {
		assert(!m.id && m.n_cpus == 0 && m.n_images == 0);
		return 0;
	}
	assert(manifest_write(&m, &first) == 0);
	assert(manifest_read(first.data, first.size, &back) == 0);
	assert(manifest_write(&back, &second) == 0);
	assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
	return 0;
}
