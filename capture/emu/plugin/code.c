/*
 * Translated blocks and the class of their last instruction, by Zydis. QEMU translates in any guest
 * thread, with its mmap_lock held.
 */
#include "capture/emu/plugin/code.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define BUCKETS	     65536u
#define MAX_HANDLERS 256u
#define PAGE_MASK    0xfffull

/* The flags that instructions have. */
#define OF_BYTES (BLOCK_CR3 | BLOCK_CLOCK | BLOCK_IFLAG | BLOCK_HALT)

/* arch/x86/include/uapi/asm/vsyscall.h. QEMU handles calls to this page itself; no code runs there.
 */
#define VSYSCALL_PAGE 0xffffffffff600000ull

struct code {
	pthread_mutex_t lock;
	ZydisDecoder decoder, compat;
	struct block *buckets[BUCKETS];
	uint64_t handlers[MAX_HANDLERS];
	size_t n_handlers;
	uint32_t n_blocks;
};

struct code *code_new(void)
{
	struct code *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	ZydisDecoderInit(&c->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderInit(&c->compat, ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32);
	return c;
}

void code_free(struct code *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (c->buckets[i]) {
			struct block *b = c->buckets[i];

			c->buckets[i] = b->chain;
			free(b);
		}
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct block **bucket_of(struct code *c, uint64_t ip)
{
	return &c->buckets[(ip * 0x9e3779b97f4a7c15ull) >> 48];
}

static bool is_repeated(const ZydisDecodedInstruction *insn)
{
	if (insn->meta.category != ZYDIS_CATEGORY_STRINGOP &&
	    insn->meta.category != ZYDIS_CATEGORY_IOSTRINGOP)
		return false;
	for (size_t i = 0; i < insn->raw.prefix_count; i++)
		if (insn->raw.prefixes[i].value == 0xf2 || insn->raw.prefixes[i].value == 0xf3)
			return true;
	return false;
}

static enum block_kind near_kind(const ZydisDecodedInstruction *insn, bool call)
{
	if (insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return BLOCK_FAR;
	if (!insn->raw.imm[0].is_relative)
		return call ? BLOCK_CALL_IND : BLOCK_JMP_IND;
	return call ? BLOCK_CALL : BLOCK_JMP;
}

static enum block_kind classify(const ZydisDecodedInstruction *insn)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return insn->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? BLOCK_PLAIN : BLOCK_COND;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return insn->mnemonic == ZYDIS_MNEMONIC_JMP ? near_kind(insn, false) : BLOCK_PLAIN;
	case ZYDIS_CATEGORY_CALL: return near_kind(insn, true);
	case ZYDIS_CATEGORY_RET:
		return insn->mnemonic == ZYDIS_MNEMONIC_RET &&
				       insn->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR
			       ? BLOCK_RET
			       : BLOCK_FAR;
	case ZYDIS_CATEGORY_SYSRET: return BLOCK_FAR;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_INTERRUPT: return BLOCK_KERNEL;
	default: return is_repeated(insn) ? BLOCK_REP : BLOCK_PLAIN;
	}
}

static const ZydisDecoder *decoder_of(const struct code *c, const struct code_block *in)
{
	return in->compat ? &c->compat : &c->decoder;
}

/* MOV CR3, r64: 0f 22 /3. */
static bool writes_cr3(const ZydisDecodedInstruction *insn)
{
	return insn->opcode_map == ZYDIS_OPCODE_MAP_0F && insn->opcode == 0x22 &&
	       insn->raw.modrm.reg == 3;
}

/* Sets kind, target and flags of B. False: Zydis does not know the last instruction. */
static bool describe_last(struct code *c, const struct code_block *in, struct block *b)
{
	ZydisDecodedInstruction insn;

	b->kind = BLOCK_PLAIN;
	/* The last instruction was dropped. The one before it is no branch, or the block would have
	 * ended there. */
	if (!in->last_bytes)
		return true;
	if ((b->ip & ~PAGE_MASK) == VSYSCALL_PAGE) {
		b->kind = BLOCK_TRAP;
		return true;
	}
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder_of(c, in), NULL, in->last_bytes,
							in->length[in->n - 1], &insn)))
		return false;
	b->kind = (uint8_t)classify(&insn);
	b->flags = writes_cr3(&insn) ? BLOCK_CR3 : 0;
	if (insn.mnemonic == ZYDIS_MNEMONIC_HLT)
		b->flags |= BLOCK_HALT;
	if (insn.raw.imm[0].is_relative)
		b->target = b->next + (uint64_t)insn.raw.imm[0].value.s;
	if (in->compat)
		b->target &= UINT32_MAX;
	/* A call of the next instruction only reads the IP; hardware does not push it on the return
	 * stack (SDM "RET compression"). */
	if (b->kind == BLOCK_CALL && b->target == b->next)
		b->kind = BLOCK_JMP;
	return true;
}

static struct block *compose(struct code *c, const struct code_block *in, bool *ret_known)
{
	uint8_t last_size = in->last_bytes ? in->length[in->n - 1] : 0;
	struct block *b = calloc(1, sizeof(*b) + in->n + last_size);
	uint64_t at = in->ip;

	if (!b)
		return NULL;
	for (size_t i = 0; i < in->n; i++) {
		b->last = at;
		at += in->length[i];
	}
	b->ip = in->ip;
	b->next = at;
	b->target = at; /* unless the last instruction is a direct branch */
	b->n = (uint16_t)in->n;
	memcpy(b->length, in->length, in->n);
	b->last_size = last_size;
	if (last_size > 0)
		memcpy(b->length + in->n, in->last_bytes, last_size);
	*ret_known = describe_last(c, in, b);
	if (in->reads_clock)
		b->flags |= BLOCK_CLOCK;
	if (in->iflag > 0 && in->iflag <= in->n) {
		b->flags |= BLOCK_IFLAG;
		b->iflag = in->iflag;
	}
	return b;
}

static bool is_handler(const struct code *c, uint64_t ip)
{
	for (size_t i = 0; i < c->n_handlers; i++)
		if (c->handlers[i] == ip)
			return true;
	return false;
}

/* Returns the block of the table that equals B, and frees B; or adds B to the table. The bytes of
 * equal blocks may differ, but their last instructions branch in the same way. */
static struct block *intern(struct code *c, struct block *b)
{
	struct block **bucket = bucket_of(c, b->ip);

	for (struct block *o = *bucket; o; o = o->chain)
		if (o->ip == b->ip && o->n == b->n && o->kind == b->kind &&
		    o->target == b->target && ((o->flags ^ b->flags) & OF_BYTES) == 0 &&
		    o->iflag == b->iflag && memcmp(o->length, b->length, b->n) == 0) {
			free(b);
			return o;
		}
	if (b->n == 1 && b->kind == BLOCK_PLAIN && (b->next & ~PAGE_MASK) == (b->ip & ~PAGE_MASK))
		b->flags |= BLOCK_SINGLE;
	if (is_handler(c, b->ip))
		b->flags |= BLOCK_HANDLER;
	b->number = c->n_blocks++;
	b->chain = *bucket;
	*bucket = b;
	return b;
}

struct block *code_add(struct code *c, struct code_block *in, bool *ret_known)
{
	ZydisDecodedInstruction insn;
	struct block *b;
	uint8_t last;

	*ret_known = true;
	if (in->n == 0)
		return NULL;
	/* Drop a last instruction that lacks bytes, which follow on the next page. */
	last = in->length[in->n - 1];
	if (in->n > 1 && (last == 0 || ZydisDecoderDecodeInstruction(decoder_of(c, in), NULL,
								     in->last_bytes, last, &insn) ==
					       ZYDIS_STATUS_NO_MORE_DATA)) {
		in->n--;
		in->last_bytes = NULL;
	}
	pthread_mutex_lock(&c->lock);
	b = compose(c, in, ret_known);
	if (b)
		b = intern(c, b);
	pthread_mutex_unlock(&c->lock);
	return b;
}

void code_forked(struct code *c)
{
	pthread_mutex_init(&c->lock, NULL);
}

void code_add_handler(struct code *c, uint64_t ip)
{
	pthread_mutex_lock(&c->lock);
	for (struct block *b = *bucket_of(c, ip); b; b = b->chain)
		if (b->ip == ip)
			b->flags |= BLOCK_HANDLER;
	if (!is_handler(c, ip) && c->n_handlers < MAX_HANDLERS)
		c->handlers[c->n_handlers++] = ip;
	pthread_mutex_unlock(&c->lock);
}

bool block_is_iret(const struct block *b)
{
	const uint8_t *bytes = b->length + b->n;

	return b->kind == BLOCK_FAR && b->last_size > 0 && bytes[b->last_size - 1] == 0xcf;
}

int block_index(const struct block *b, uint64_t ip)
{
	uint64_t at = b->ip;

	if (ip < b->ip || ip > b->last)
		return -1;
	for (int i = 0; i < b->n; i++) {
		if (at == ip)
			return i;
		at += b->length[i];
	}
	return -1;
}
