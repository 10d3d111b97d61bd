/*
 * Fuzzes the instruction decoder in all modes. Invariants: an instruction lies within the bytes and
 * within the maximum length; its bytes alone give the same result, and so does Zydis without
 * tables.
 */
#include <assert.h>
#include <string.h>

#include "decoder/code/insn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct insn_reader *r, enum insn_mode mode, const uint8_t *data, size_t n)
{
	struct insn insn, again;

	if (insn_read(r, mode, 0x401000, data, n, &insn) != 0)
		return;
	assert(insn.size > 0 && insn.size <= n && insn.size <= INSN_MAX_SIZE);
	assert(insn.class <= INSN_PTWRITE);
	assert(insn_read(r, mode, 0x401000, data, insn.size, &again) == 0);
	assert(again.size == insn.size && again.class == insn.class && again.target == insn.target);
	assert(insn_ask(r, mode, 0x401000, data, n, &again) == 0);
	assert(again.size == insn.size && again.class == insn.class && again.target == insn.target);
	if (insn.size > 1)
		assert(insn_read(r, mode, 0x401000, data, insn.size - 1u, &again) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct insn_reader *r = insn_reader_new();

	for (size_t i = 0; i < size && i < 4096; i++) {
		for (int mode = INSN_MODE_64; mode <= INSN_MODE_16; mode++)
			check(r, (enum insn_mode)mode, data + i, size - i);
	}
	insn_reader_free(r);
	return 0;
}
