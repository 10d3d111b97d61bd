/*
 * Fuzzes the reader of jitdump files. Invariants: each piece of code lies within the file; a place
 * that has code at some time has it in the piece that is found; no version is beyond the last one.
 */
#include "sideband/symbols/jitdump.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void on_ns(void *userdata, uint64_t time, uint64_t *ret_lo, uint64_t *ret_hi)
{
	(void)userdata;
	*ret_lo = time > 5 ? time - 5 : 0;
	*ret_hi = time < UINT64_MAX - 5 ? time + 5 : UINT64_MAX;
}

static void ask(const struct jitcode *c, uint32_t version, uint64_t address)
{
	struct jitcode_piece piece;
	uint64_t begin, end;

	if (!jitcode_find(c, version, address, &piece)) {
		jitcode_gap(c, version, address, &begin, &end);
		assert(begin <= address && address < end);
		return;
	}
	assert(piece.begin <= address && address < piece.end);
	assert(piece.begin >= piece.load->address);
	assert(piece.end - piece.load->address <= piece.load->size);
}

static void look_at_code(const struct jitdump *d, uint64_t begin)
{
	const struct jitcode_clock clock = {.ns = on_ns, .begin = begin};
	const struct jitdump_load *loads;
	uint32_t first, last;
	struct jitcode *c;
	size_t n;

	loads = jitdump_loads(d, &n);
	if (jitcode_new(d, &clock, &c) != 0)
		return;
	for (size_t i = 0; i < n && i < 256; i++) {
		ask(c, jitcode_at(c, loads[i].time), loads[i].address);
		ask(c, jitcode_at(c, loads[i].time), loads[i].address + loads[i].size - 1);
		ask(c, 0, loads[i].address + loads[i].size);
		jitcode_within(c, loads[i].time, loads[n - 1].time, &first, &last);
		assert(first <= last && last < jitcode_versions(c));
		assert(jitcode_at(c, loads[i].time) < jitcode_versions(c));
	}
	jitcode_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct jitdump_load *loads;
	struct jitdump *d;
	const char *file;
	uint32_t line;
	size_t n;

	if (jitdump_new(bytes, size, &d) != 0)
		return 0;
	loads = jitdump_loads(d, &n);
	for (size_t i = 0; i < n; i++) {
		assert(loads[i].size > 0 && loads[i].size <= size);
		assert(loads[i].offset <= size - loads[i].size);
		assert(strlen(loads[i].name) <= JITDUMP_NAME_MAX);
		assert(jitdump_at(d, loads[i].offset)->size == loads[i].size);
		assert(i == 0 || loads[i - 1].time <= loads[i].time);
		if (i < 64 && jitdump_line(d, loads[i].offset + loads[i].size - 1, &file, &line))
			assert(strlen(file) < size);
	}
	look_at_code(d, 0);
	look_at_code(d, n > 0 ? loads[n / 2].time : 0);
	jitdump_free(d);
	return 0;
}
