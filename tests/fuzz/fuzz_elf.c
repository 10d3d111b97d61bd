/*
 * A stranger's ELF file. Invariant: symbols are named, in order, and within the file; the build id
 * can be read to its end. The same of a file of which only what is asked for is there.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sideband/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t look(const struct elf_file *f, size_t size)
{
	const struct elf_symbol *symbols;
	const uint8_t *id;
	uint64_t begin, end;
	size_t n, sum = 0;

	symbols = elf_file_symbols(f, &n);
	for (size_t i = 0; i < n; i++) {
		assert(symbols[i].offset < size && strlen(symbols[i].name) > 0);
		assert(i == 0 || symbols[i - 1].offset < symbols[i].offset);
		assert(!elf_file_code(f, symbols[i].offset, &begin, &end) || end <= size);
	}
	id = elf_file_build_id(f, &n);
	for (size_t i = 0; i < n; i++)
		sum += id[i];
	return sum;
}

struct some {
	const uint8_t *data;
	uint8_t *copy;
	size_t size;
};

static bool bring(void *userdata, uint64_t offset, uint64_t size)
{
	const struct some *s = userdata;

	assert(size > 0 && offset <= s->size && size <= s->size - offset);
	memcpy(s->copy + offset, s->data + offset, size);
	return true;
}

static size_t look_at_some(const uint8_t *data, size_t size, enum elf_wanted wanted)
{
	struct some some = {data, calloc(1, size + 1), size};
	const struct elf_bytes bytes = {some.copy, size, bring, &some};
	struct elf_file *f;
	size_t sum = 0;

	assert(some.copy != NULL);
	if (elf_file_open(&bytes, wanted, &f) == 0) {
		sum = look(f, size);
		elf_file_free(f);
	}
	free(some.copy);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *f;
	size_t sum;

	sum = look_at_some(data, size, ELF_BUILD_ID) + look_at_some(data, size, ELF_NAMES);
	if (elf_file_new(data, size, &f) != 0)
		return 0;
	sum += look(f, size);
	elf_file_free(f);
	return sum == SIZE_MAX;
}
