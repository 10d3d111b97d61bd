/*
 * Finds the length, class and target of one instruction: our tables (insn_quick.c) have ordinary
 * instructions; Zydis and the opcode tell those of all others. An instruction is read when its code
 * is seen for the first time, never when it is executed again.
 */
#include "decoder/code/insn.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "decoder/code/insn_private.h"

struct insn_reader {
	ZydisDecoder decoders[3]; /* by enum insn_mode */
};

struct insn_reader *insn_reader_new(void)
{
	static const struct {
		ZydisMachineMode machine;
		ZydisStackWidth stack;
	} modes[] = {
		[INSN_MODE_64] = {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64},
		[INSN_MODE_32] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32},
		[INSN_MODE_16] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16},
	};
	struct insn_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	for (size_t i = 0; i < 3; i++) {
		ZydisDecoderInit(&r->decoders[i], modes[i].machine, modes[i].stack);
		ZydisDecoderEnableMode(&r->decoders[i], ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	}
	return r;
}

void insn_reader_free(struct insn_reader *r)
{
	free(r);
}

/* SDM volume 2, appendix A, group 5 (FF). */
static enum insn_class class_of_group5(uint8_t reg)
{
	switch (reg) {
	case 2: return INSN_CALL_IND;
	case 4: return INSN_JUMP_IND;
	case 3:
	case 5: return INSN_FAR;
	default: return INSN_OTHER;
	}
}

static enum insn_class class_of_one_byte(const ZydisDecodedInstruction *d)
{
	if ((d->opcode & 0xf0) == 0x70)
		return INSN_COND;
	switch (d->opcode) {
	case 0xe0: /* loopne */
	case 0xe1: /* loope */
	case 0xe2: /* loop */
	case 0xe3: /* jrcxz */ return INSN_COND;
	case 0xe9:
	case 0xeb: return INSN_JUMP;
	case 0xe8: return INSN_CALL;
	case 0xc2:
	case 0xc3: return INSN_RET;
	case 0x9a: /* far call */
	case 0xea: /* far jump */
	case 0xca:
	case 0xcb: /* far return */
	case 0xcf: /* iret */ return INSN_FAR;
	case 0xcc: /* int3 */
	case 0xcd: /* int n */
	case 0xce: /* into */
	case 0xf1: /* int1 */ return INSN_SYSCALL;
	case 0xff: return class_of_group5(d->raw.modrm.reg);
	default: return INSN_OTHER;
	}
}

/* SDM volume 2, appendix A, group 7 (0F 01). */
static enum insn_class class_of_group7(const ZydisDecodedInstruction *d)
{
	if (d->raw.modrm.mod != 3)
		return INSN_OTHER;
	if (d->raw.modrm.reg == 0 && d->raw.modrm.rm == 1) /* vmcall */
		return INSN_FAR;
	if (d->raw.modrm.reg == 0 && (d->raw.modrm.rm == 2 || d->raw.modrm.rm == 3))
		return INSN_VMENTRY;
	return d->mnemonic == ZYDIS_MNEMONIC_UIRET ? INSN_FAR : INSN_OTHER; /* F3 0F 01 EC */
}

static enum insn_class class_of_two_byte(const ZydisDecodedInstruction *d)
{
	if ((d->opcode & 0xf0) == 0x80)
		return INSN_COND;
	switch (d->opcode) {
	case 0x05: /* syscall */
	case 0x34: /* sysenter */ return INSN_SYSCALL;
	case 0x07: /* sysret */
	case 0x35: /* sysexit */
	case 0xaa: /* rsm */ return INSN_FAR;
	case 0x22: return d->raw.modrm.reg == 3 ? INSN_CR3 : INSN_OTHER;
	case 0x01: return class_of_group7(d);
	case 0xae: /* F3: group 15 */
		return d->raw.modrm.reg == 4 && d->mnemonic == ZYDIS_MNEMONIC_PTWRITE ? INSN_PTWRITE
										      : INSN_OTHER;
	case 0xc7: /* group 9 */
		return d->mnemonic == ZYDIS_MNEMONIC_VMPTRLD ? INSN_VMPTRLD : INSN_OTHER;
	default: return INSN_OTHER;
	}
}

static enum insn_class class_of(const ZydisDecodedInstruction *d)
{
	if (d->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return INSN_OTHER;
	if (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return class_of_one_byte(d);
	if (d->opcode_map == ZYDIS_OPCODE_MAP_0F)
		return class_of_two_byte(d);
	return INSN_OTHER;
}

static uint64_t target_of(const ZydisDecodedInstruction *d, enum insn_mode mode, uint64_t ip)
{
	uint64_t target = ip + d->length + d->raw.imm[0].value.u;

	if (mode == INSN_MODE_64)
		return target;
	/* A trace has linear addresses. It does not say where a 16-bit segment begins, and so not
	 * where the instruction pointer wraps. 32-bit segments are flat. */
	if (mode == INSN_MODE_32 && d->operand_width == 16)
		return target & UINT64_C(0xffff);
	return target & UINT64_C(0xffffffff);
}

/* The number of legacy prefixes at BYTES. */
static size_t count_prefixes(const uint8_t *bytes, size_t n)
{
	static const uint8_t prefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e,
					   0x36, 0x3e, 0x26, 0x64, 0x65};
	size_t i = 0;

	while (i < n && memchr(prefixes, bytes[i], sizeof(prefixes)) != NULL)
		i++;
	return i;
}

/* Reads FRED's returns (SDM volume 1, "Flexible Return and Event Delivery"): F2 or F3, 0F 01 CA.
 * Zydis 4.0 does not know them. */
static int read_fred(const uint8_t *bytes, size_t n, struct insn *ret)
{
	if (n < 4 || (bytes[0] != 0xf2 && bytes[0] != 0xf3) || bytes[1] != 0x0f ||
	    bytes[2] != 0x01 || bytes[3] != 0xca)
		return INSN_BAD;
	*ret = (struct insn){.size = 4, .class = INSN_FAR};
	return 0;
}

/* Reads an instruction with APX's REX2 prefix (APX specification, 3.1.1), which Zydis 4.0 does not
 * know either. REX2 is D5 and a byte that has the map in bit 7, and a REX prefix's bits in its low
 * bits. If REX2 is replaced by REX and, for map 1, 0F, Zydis knows the instruction. JMPABS (A1, an
 * absolute jump) has the form of a MOV. */
static int read_rex2(const struct insn_reader *r, uint64_t ip, const uint8_t *bytes, size_t n,
		     struct insn *ret)
{
	uint8_t copy[INSN_MAX_SIZE];
	size_t at, map;
	int result;

	n = n < INSN_MAX_SIZE ? n : INSN_MAX_SIZE;
	at = count_prefixes(bytes, n);
	if (at >= n || bytes[at] != 0xd5)
		return INSN_BAD;
	if (at + 2 >= n)
		return INSN_SHORT;
	map = bytes[at + 1] >> 7;
	memcpy(copy, bytes, at);
	copy[at] = (uint8_t)(0x40 | (bytes[at + 1] & 0x0f));
	copy[at + 1] = 0x0f;
	memcpy(copy + at + 1 + map, bytes + at + 2, n - at - 2);
	if (copy[at + 1 + map] == 0xd5)
		return INSN_BAD;
	result = insn_ask(r, INSN_MODE_64, ip + 1 - map, copy, n - 1 + map, ret);
	if (result != 0)
		return result;
	ret->size = (uint8_t)(ret->size + 1 - map);
	if (map == 0 && bytes[at + 2] == 0xa1)
		ret->class = INSN_JUMP_IND;
	return ret->size > INSN_MAX_SIZE ? INSN_BAD : 0;
}

int insn_ask(const struct insn_reader *r, enum insn_mode mode, uint64_t ip, const uint8_t *bytes,
	     size_t n, struct insn *ret)
{
	ZydisDecodedInstruction d;
	ZyanStatus status;

	status = ZydisDecoderDecodeInstruction(&r->decoders[mode], NULL, bytes, n, &d);
	if (status == ZYDIS_STATUS_NO_MORE_DATA)
		return INSN_SHORT;
	if (!ZYAN_SUCCESS(status) && mode == INSN_MODE_64)
		return read_fred(bytes, n, ret) == 0 ? 0 : read_rex2(r, ip, bytes, n, ret);
	if (!ZYAN_SUCCESS(status))
		return INSN_BAD;
	ret->size = d.length;
	ret->class = (uint8_t)class_of(&d);
	ret->target = 0;
	if (ret->class == INSN_COND || ret->class == INSN_JUMP || ret->class == INSN_CALL)
		ret->target = target_of(&d, mode, ip);
	return 0;
}

int insn_read(const struct insn_reader *r, enum insn_mode mode, uint64_t ip, const uint8_t *bytes,
	      size_t n, struct insn *ret)
{
	if (insn_quick_read(mode, ip, bytes, n, ret))
		return 0;
	return insn_ask(r, mode, ip, bytes, n, ret);
}

int insn_read_run(const struct insn_reader *r, enum insn_mode mode, uint64_t ip,
		  const uint8_t *bytes, size_t n, struct insn_run *run)
{
	while (!insn_quick_run(mode, ip, bytes, n, run)) {
		size_t at = run->bytes;
		struct insn insn;
		int result = insn_read(r, mode, ip + at, bytes + at, n - at, &insn);

		if (result != 0)
			return result;
		run->last = insn;
		run->sizes[run->n++] = insn.size;
		run->bytes += insn.size;
		if (insn.class != INSN_OTHER)
			return 0;
	}
	return 0;
}
