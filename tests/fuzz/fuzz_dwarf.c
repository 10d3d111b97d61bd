/*
 * Fuzzes the DWARF reader: an untrusted file is asked for addresses all over it, including
 * addresses that its own bytes hold. Invariants: chains of inlined functions do not exceed the
 * limit, and all text is terminated. The same must hold for a file of which only requested ranges
 * are present.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "tests/fuzz/some_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESSES 64u

static size_t ask(struct dwarf_file *f, uint64_t address)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t n = dwarf_file_find(f, address, frames, ARRAY_SIZE(frames)), sum = n;

	assert(n <= DWARF_MAX_FRAMES);
	for (size_t i = 0; i < n; i++) {
		assert(!frames[i].function || frames[i].function[0]);
		sum += frames[i].function ? strlen(frames[i].function) : 0;
		sum += frames[i].file ? strlen(frames[i].file) : 0;
	}
	assert(dwarf_file_find(f, address, frames, 1) <= 1);
	return sum;
}

/* Programs of the corpus are small and have low addresses. */
static size_t look(struct dwarf_file *f, const uint8_t *data, size_t size)
{
	size_t sum = 0;

	for (unsigned i = 0; i < ADDRESSES; i++) {
		uint64_t held = 0;

		if (size >= sizeof(held))
			memcpy(&held, data + (size - sizeof(held)) / ADDRESSES * i, sizeof(held));
		sum += ask(f, held) + ask(f, 0x1000 + 16ull * i);
	}
	return sum;
}

static size_t look_at_some(const uint8_t *data, size_t size)
{
	struct some some = {data, calloc(1, size + 1), size};
	uint64_t room = 16u << 20;
	const struct elf_bytes bytes = {some.copy, size, bring, &some, &room};
	struct dwarf_file *f;
	size_t sum = 0;

	assert(some.copy != NULL);
	if (dwarf_file_open(&bytes, &f) == 0) {
		sum = look(f, data, size);
		dwarf_file_free(f);
	}
	assert(room == 16u << 20);
	free(some.copy);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct elf_bytes bytes = {.bytes = data, .size = size};
	struct dwarf_file *f;
	size_t sum = look_at_some(data, size);

	if (dwarf_file_open(&bytes, &f) != 0)
		return 0;
	sum += look(f, data, size);
	dwarf_file_free(f);
	return sum == SIZE_MAX;
}
