/*
 * Says whether a thread that was interrupted may have raised a signal itself.
 *
 * An instruction raises a signal by an access to memory, a division, a trap or an exception of
 * floating point. The instructions listed here work on general registers alone, or jump to an
 * address that they contain, or do nothing (SDM volume 2). The processor may still fault when it
 * fetches one, unless it has just executed another one of the same page.
 */
#include "decoder/code/insn.h"
#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define PAGE 4096u

/* Opcodes from FIRST to LAST. FIELDS: a bit for each value of the field "reg" of the ModRM byte,
 * which must name a register instead of memory; 0: it does not matter what follows. */
struct op {
	uint8_t first, last;
	uint8_t fields;
};

static const struct op OPS[] = {
	/* Arithmetic of a register and a number, or of two registers. */
	{0x00, 0x03, 0xff}, {0x04, 0x05, 0},	{0x08, 0x0b, 0xff}, {0x0c, 0x0d, 0},
	{0x10, 0x13, 0xff}, {0x14, 0x15, 0},	{0x18, 0x1b, 0xff}, {0x1c, 0x1d, 0},
	{0x20, 0x23, 0xff}, {0x24, 0x25, 0},	{0x28, 0x2b, 0xff}, {0x2c, 0x2d, 0},
	{0x30, 0x33, 0xff}, {0x34, 0x35, 0},	{0x38, 0x3b, 0xff}, {0x3c, 0x3d, 0},
	{0x63, 0x63, 0xff},			/* movsxd */
	{0x69, 0x69, 0xff},			/* imul */
	{0x6b, 0x6b, 0xff}, {0x70, 0x7f, 0},	/* jcc */
	{0x80, 0x81, 0xff}, {0x83, 0x8b, 0xff}, /* arithmetic, test, xchg, mov */
	{0x90, 0x99, 0},			/* nop, xchg, cwde, cdq */
	{0xa8, 0xa9, 0},			/* test */
	{0xb0, 0xbf, 0},			/* mov of a number */
	{0xc0, 0xc1, 0xff},			/* shifts */
	{0xc6, 0xc7, 0x01},			/* mov of a number; 7 is xabort and xbegin */
	{0xd0, 0xd3, 0xff},			/* shifts */
	{0xe9, 0xe9, 0},			/* jmp */
	{0xeb, 0xeb, 0},    {0xf6, 0xf7, 0x3d}, /* test, not, neg, mul, imul; 6 and 7 divide */
	{0xfe, 0xff, 0x03},			/* inc, dec */
};

static const struct op OPS_0F[] = {
	{0x1f, 0x1f, 0},    /* nop; its address is not used */
	{0x40, 0x4f, 0xff}, /* cmov */
	{0x80, 0x8f, 0},    /* jcc */
	{0x90, 0x9f, 0xff}, /* setcc */
	{0xa3, 0xa5, 0xff}, /* bt, shld */
	{0xab, 0xad, 0xff}, /* bts, shrd */
	{0xaf, 0xaf, 0xff}, /* imul */
	{0xb3, 0xb3, 0xff}, /* btr */
	{0xb6, 0xb7, 0xff}, /* movzx */
	{0xba, 0xba, 0xf0}, /* bt, bts, btr, btc */
	{0xbb, 0xbf, 0xff}, /* btc, bsf, bsr, movsx */
	{0xc8, 0xcf, 0},    /* bswap */
};

static bool has(const struct op *ops, size_t n, uint8_t opcode, uint8_t modrm)
{
	for (size_t i = 0; i < n; i++)
		if (opcode >= ops[i].first && opcode <= ops[i].last)
			return ops[i].fields == 0 ||
			       (modrm >> 6 == 3 && (ops[i].fields >> (modrm >> 3 & 7) & 1) != 0);
	return false;
}

/* Whether the instruction at CODE, of SIZE bytes, cannot raise a signal. */
static bool is_harmless(const uint8_t *code, size_t size)
{
	size_t at = 0;
	uint8_t modrm;
	bool wide;

	if (size == 2 && code[0] == 0xf3 && code[1] == 0x90) /* pause */
		return true;
	at += code[at] == 0x66;
	at += (code[at] & 0xf0) == 0x40;
	wide = code[at] == 0x0f;
	at += wide;
	if (at >= size)
		return false;
	modrm = code[MIN_OF(at + 1, size - 1)];
	if (wide)
		return has(OPS_0F, ARRAY_SIZE(OPS_0F), code[at], modrm);
	return code[at] == 0x8d /* lea */ || has(OPS, ARRAY_SIZE(OPS), code[at], modrm);
}

/* Whether an instruction of the page of IP was executed directly before IP: the branch B before it,
 * or another one behind that. */
static bool is_in_use(const struct tally_branch *b, uint64_t ip)
{
	if (b->to == ip)
		return b->from != 0 && b->from / PAGE == ip / PAGE;
	return b->to < ip && b->to / PAGE == ip / PAGE;
}

bool suspects_raised_nothing(const struct report *r, const struct tally_counters *c)
{
	const uint64_t n = c->n_last;
	const struct tally_branch *last, *before;
	uint8_t code[INSN_MAX_SIZE];
	struct insn insn;
	size_t size;

	if (n < 2 || !r->reader)
		return false;
	last = &c->last[(n - 1) % REPORT_LAST_BRANCHES];
	before = &c->last[(n - 2) % REPORT_LAST_BRANCHES];
	if (last->kind != FLOW_DISABLE || last->from == 0 || before->context != last->context ||
	    !is_in_use(before, last->from))
		return false;
	size = replay_read(r->d->replay, last->context, last->from, code, sizeof(code));
	if (size == 0 || insn_read(r->reader, INSN_MODE_64, last->from, code, size, &insn) != 0 ||
	    (last->from + insn.size - 1) / PAGE != last->from / PAGE)
		return false;
	return is_harmless(code, insn.size);
}
