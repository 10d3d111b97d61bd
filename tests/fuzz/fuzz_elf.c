/*
 * Fuzzes the ELF reader with an untrusted file in five forms: whole; with only requested ranges
 * present; as the separate debug file of an ELF with its build id; packed by xz within another ELF;
 * and as the packed bytes themselves. Invariants: symbols have names or sizes, are in order, and
 * lie within the file; the build id is readable to its end; memory for unpacking is freed.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lzma.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "tests/fuzz/some_bytes.h"
#include "tests/unit/sideband/elf_maker.h"

#define ROOM (UINT64_C(1) << 40)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t look(const struct elf_file *f, size_t size)
{
	const struct elf_symbol *symbols;
	const uint8_t *id;
	uint64_t begin, end;
	size_t n, sum = 0;

	symbols = elf_file_symbols(f, &n);
	for (size_t i = 0; i < n; i++) {
		assert(symbols[i].offset < size);
		assert(symbols[i].name ? strlen(symbols[i].name) > 0 : symbols[i].size > 0);
		assert(i == 0 || symbols[i - 1].offset < symbols[i].offset);
		assert(!elf_file_code(f, symbols[i].offset, &begin, &end) || end <= size);
	}
	for (size_t i = 0; i < n; i++) /* one address for each symbol */
		sum += elf_file_address(f, symbols[i].offset, &begin);
	id = elf_file_build_id(f, &n);
	for (size_t i = 0; i < n; i++)
		sum += id[i];
	return sum;
}

static size_t look_at_some(const uint8_t *data, size_t size, enum elf_wanted wanted)
{
	struct some some = {data, calloc(1, size + 1), size};
	uint64_t room = ROOM;
	const struct elf_bytes bytes = {some.copy, size, bring, &some, &room};
	struct elf_file *f;
	size_t sum = 0;

	assert(some.copy != NULL);
	if (elf_file_open(&bytes, wanted, &f) == 0) {
		sum = look(f, size);
		/* The file is also its own separate debug file. */
		elf_file_add_names(f, &bytes);
		sum += look(f, size);
		elf_file_free(f);
	}
	free(some.copy);
	assert(room == ROOM);
	return sum;
}

/* An ELF file whose .gnu_debugdata is the input. Its code begins at address 0. */
static size_t look_at_packed(const uint8_t *packed, size_t size)
{
	static const uint8_t code[4096];
	struct elf_maker *m = malloc(sizeof(*m));
	struct elf_bytes bytes = {0};
	uint64_t room = ROOM;
	struct elf_file *f;
	uint8_t *file;
	size_t sum;

	assert(m);
	elf_maker_init(m, ET_DYN);
	elf_maker_map(
		m, elf_maker_add(m, ".text", SHT_PROGBITS, SHF_EXECINSTR, 0, code, sizeof(code)));
	elf_maker_add(m, ".gnu_debugdata", SHT_PROGBITS, 0, 0, packed, size);
	file = elf_maker_end(m, &bytes.size);
	bytes.bytes = file;
	bytes.room = &room;
	assert(elf_file_open(&bytes, ELF_NAMES, &f) == 0);
	sum = look(f, bytes.size);
	elf_file_free(f);
	assert(room == ROOM);
	free(file);
	free(m);
	return sum;
}

static size_t look_when_packed(const uint8_t *data, size_t size)
{
	static uint8_t packed[ELF_MAKER_BYTES / 2];
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	size_t n = 0;

	assert(!lzma_lzma_preset(&options, 0));
	options.dict_size = LZMA_DICT_SIZE_MIN;
	options.depth = 1;
	if (lzma_stream_buffer_encode(filters, LZMA_CHECK_NONE, NULL, data, size, packed, &n,
				      sizeof(packed)) != LZMA_OK)
		return 0;
	return look_at_packed(packed, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *f;
	size_t sum;

	sum = look_at_some(data, size, ELF_BUILD_ID) + look_at_some(data, size, ELF_NAMES);
	sum += look_when_packed(data, size);
	if (size < ELF_MAKER_BYTES / 2)
		sum += look_at_packed(data, size);
	if (elf_file_new(data, size, &f) != 0)
		return 0;
	sum += look(f, size);
	elf_file_free(f);
	return sum == SIZE_MAX;
}
