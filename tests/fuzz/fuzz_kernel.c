/*
 * Fuzzes the kernel reader. Input: names (up to the first NUL), then changes: one byte of time, one
 * of the kind, one of the length, and the body of the record. Invariants: versions rise with time;
 * a result contains the requested address, can be read, and belongs to one version; a symbol
 * contains its address.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define SIZE 256u
#define READ 100u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_records(struct kernel *k, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t n = MIN_OF((size_t)data[2], size - 3);
		struct perfrecord r = {.time = data[0],
				       .type = data[1] & 1 ? PERF_RECORD_KSYMBOL
							   : PERF_RECORD_TEXT_POKE};

		r.u.raw.bytes = data + 3;
		r.u.raw.size = n;
		(void)kernel_add_record(k, &r);
		data += 3 + n;
		size -= 3 + n;
	}
}

static unsigned read_all(const struct kernel_code *code)
{
	unsigned sum = 0;

	for (uint64_t i = 0; i < code->size; i++)
		sum += code->bytes[i];
	return sum;
}

static void ask(struct kernel *k, uint64_t address)
{
	volatile unsigned sum = 0;
	uint32_t before = 0, last, version, most;
	struct kernel_symbol symbol;
	struct kernel_code code;

	if (kernel_symbol_at(k, address, &symbol))
		assert(address - symbol.address < symbol.size && symbol.name[0] != '\0');
	(void)kernel_version(k, address, 0, UINT64_MAX, &most);
	for (uint64_t time = 0; time < 256; time += 15) {
		version = kernel_version(k, address, time, time + 10, &last);
		assert(version <= last && last <= most && version >= before);
		assert((version == 0) == (most == 0));
		before = version;
		if (kernel_find(k, address, version, &code) != 0)
			continue;
		assert(code.address <= address && address - code.address < code.size);
		sum += read_all(&code);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t bytes[SIZE] = {0x0f, 0x1f, 0x44};
	const struct image_source source = {.path = "[kernel]",
					    .bytes = bytes,
					    .size = SIZE,
					    .memory = true,
					    .pid = IMAGE_ANY_PID,
					    .address = TEXT};
	const struct kernel_piece piece = {.address = TEXT, .size = SIZE, .read_ns = READ};
	const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
	size_t n = end != NULL ? (size_t)(end - data) : size;
	struct image_set *images;
	struct kernel *k;

	if (image_set_new(&source, 1, NULL, &images) != 0 || kernel_new(images, &k) != 0)
		abort();
	(void)kernel_add_piece(k, &piece);
	(void)kernel_add_masked(k, TEXT + 64, 5);
	(void)kernel_add_symbols(k, (const char *)data, n);
	if (end != NULL)
		add_records(k, end + 1, size - n - 1);
	assert(kernel_ready(k) == 0);
	for (uint64_t at = TEXT - 4; at < TEXT + SIZE + 4; at += 1 + at % 3)
		ask(k, at);
	kernel_free(k);
	image_set_free(images);
	return 0;
}
