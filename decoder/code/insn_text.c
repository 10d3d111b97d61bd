/*
 * Zydis decodes the instruction with its operands, and formats it.
 */
#include "decoder/code/insn_text.h"

#include <stdlib.h>

#include <Zydis/Zydis.h>

struct insn_text {
	ZydisDecoder decoders[3]; /* by enum insn_mode */
	ZydisFormatter formatter;
};

struct insn_text *insn_text_new(enum insn_syntax syntax)
{
	static const struct {
		ZydisMachineMode machine;
		ZydisStackWidth stack;
	} modes[] = {
		[INSN_MODE_64] = {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64},
		[INSN_MODE_32] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32},
		[INSN_MODE_16] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16},
	};
	struct insn_text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	for (size_t i = 0; i < 3; i++)
		ZydisDecoderInit(&t->decoders[i], modes[i].machine, modes[i].stack);
	ZydisFormatterInit(&t->formatter, syntax == INSN_INTEL ? ZYDIS_FORMATTER_STYLE_INTEL
							       : ZYDIS_FORMATTER_STYLE_ATT);
	/* Zeros in front of an address tell nobody anything. */
	ZydisFormatterSetProperty(&t->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&t->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	return t;
}

void insn_text_freep(struct insn_text **t)
{
	free(*t);
	*t = NULL;
}

size_t insn_text_write(const struct insn_text *t, enum insn_mode mode, uint64_t ip,
		       const uint8_t *bytes, size_t n, char ret[static INSN_TEXT_MAX])
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;

	ret[0] = '\0';
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&t->decoders[mode], bytes, n, &insn, operands)) ||
	    ZYAN_FAILED(ZydisFormatterFormatInstruction(&t->formatter, &insn, operands,
							insn.operand_count_visible, ret,
							INSN_TEXT_MAX, ip, NULL))) {
		ret[0] = '\0';
		return 0;
	}
	return insn.length;
}
