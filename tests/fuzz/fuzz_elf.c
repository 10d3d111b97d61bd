/*
 * A stranger's ELF file. Invariant: symbols are named, in order, and within the file; the build id
 * can be read to its end.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "sideband/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct elf_symbol *symbols;
	const uint8_t *id;
	struct elf_file *f;
	uint64_t begin, end;
	size_t n, sum = 0;

	if (elf_file_new(data, size, &f) != 0)
		return 0;
	symbols = elf_file_symbols(f, &n);
	for (size_t i = 0; i < n; i++) {
		assert(symbols[i].offset < size && strlen(symbols[i].name) > 0);
		assert(i == 0 || symbols[i - 1].offset < symbols[i].offset);
		assert(!elf_file_code(f, symbols[i].offset, &begin, &end) || end <= size);
	}
	id = elf_file_build_id(f, &n);
	for (size_t i = 0; i < n; i++)
		sum += id[i];
	elf_file_free(f);
	return sum == SIZE_MAX;
}
