/*
 * Fuzzes the bundle reader. Invariant: every byte that an accepted bundle hands out can be read,
 * and sizes are those of its manifest.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const uint8_t *bytes, size_t size, uint64_t expected)
{
	volatile uint8_t sum = 0;

	assert(size == expected);
	for (size_t i = 0; i < size; i++)
		sum = (uint8_t)(sum + bytes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const struct manifest *m;
	const uint8_t *bytes;
	size_t n;

	assert(memfd_new("fuzz", 0, &fd) == 0 && memfd_write_all(fd, data, size) == 0);
	if (bundle_open(fd, &b) < 0)
		return 0;
	m = bundle_manifest(b);
	for (size_t i = 0; i < m->n_cpus; i++) {
		bytes = bundle_cpu(b, i, &n);
		read_all(bytes, n, m->cpus[i].bytes);
	}
	for (size_t i = 0; i < m->n_images; i++) {
		bytes = bundle_image(b, i, &n);
		read_all(bytes, n, m->images[i].size);
	}
	bytes = bundle_sideband(b, &n);
	read_all(bytes, n, n);
	return 0;
}
