/*
 * Writes the packets of one trace. SDM sections are those of volume 3, edition 083.
 */
#include "tests/vm/walk_packets.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "ctl/check/walk_model.h"
#include "proto/perf/ptpacket.h"

#define PSB_EVERY	2048 /* bytes */
#define MOST_MTCS	64   /* in a row; after a longer silence a new TSC is written instead */
#define CBR_RATIO	27
#define BUFFER		4096
#define PSB_PLUS_LENGTH 128 /* bytes, at most */

struct writer {
	const struct walk_packets_config *config;
	uint8_t bytes[BUFFER + PSB_PLUS_LENGTH];
	size_t n;
	int error;
	uint64_t since_psb;
	uint64_t last_ip;
	/* Decisions without a packet so far; the oldest in the highest bit. */
	unsigned tnt, n_tnt;
	/* Return addresses that the processor compares (33.4.2.2). A push onto the full stack
	 * overwrites the oldest. */
	uint64_t stack[PT_RET_STACK];
	unsigned top, depth;
	uint64_t mtc; /* CTC of the last MTC or TSC, in periods */
};

static void flush(struct writer *w)
{
	ssize_t n = w->error != 0 ? 0 : write(w->config->feed, w->bytes, w->n);

	if (n < 0)
		w->error = -errno;
	else if ((size_t)n < w->n && w->error == 0)
		w->error = -EAGAIN;
	w->n = 0;
}

static void put(struct writer *w, const void *bytes, size_t n)
{
	if (w->n + n > sizeof(w->bytes))
		flush(w);
	memcpy(w->bytes + w->n, bytes, n);
	w->n += n;
	w->since_psb += n;
}

/* Appends an opcode of one or two bytes, and the N lowest bytes of VALUE, lowest first. */
static void put_packet(struct writer *w, bool extended, uint8_t opcode, uint64_t value, size_t n)
{
	uint8_t bytes[2 + sizeof(value)] = {PT_OPC_EXT};
	size_t at = extended;

	bytes[at++] = opcode;
	for (size_t i = 0; i < n; i++)
		bytes[at++] = (uint8_t)(value >> 8 * i);
	put(w, bytes, at);
}

static void flush_tnt(struct writer *w)
{
	uint8_t byte = (uint8_t)((1u << w->n_tnt | w->tnt) << 1);

	if (w->n_tnt > 0)
		put(w, &byte, 1);
	w->tnt = w->n_tnt = 0;
}

static void put_tnt(struct writer *w, bool taken)
{
	w->tnt = w->tnt << 1 | taken;
	if (++w->n_tnt == PT_TNT8_MAX)
		flush_tnt(w);
}

/* 33.4.2.2, IP compression: as few bytes as the last IP allows. */
static void put_ip(struct writer *w, uint8_t opcode, uint64_t ip)
{
	uint64_t changed = ip ^ w->last_ip;
	enum pt_ipbytes how = PT_IPB_SEXT48;
	size_t n = 6;

	if (changed >> 16 == 0) {
		how = PT_IPB_UPDATE16;
		n = 2;
	} else if (changed >> 32 == 0) {
		how = PT_IPB_UPDATE32;
		n = 4;
	}
	put_packet(w, false, (uint8_t)(opcode | how << 5), ip, n);
	w->last_ip = ip;
}

static void put_no_ip(struct writer *w, uint8_t opcode)
{
	put_packet(w, false, opcode, 0, 0);
}

static uint64_t ctc(const struct writer *w, uint64_t tsc)
{
	return tsc / w->config->art_num * w->config->art_den +
	       tsc % w->config->art_num * w->config->art_den / w->config->art_num;
}

/* Appends TSC and TMA; TMA ties the CTC to the TSC. */
static void put_time(struct writer *w)
{
	uint64_t now = __rdtsc(), ticks = ctc(w, now);
	uint64_t fast = now - ticks * w->config->art_num / w->config->art_den;

	put_packet(w, false, PT_OPC_TSC, now & PT_TSC_MASK, PT_TSC_BYTES);
	if (w->config->mtc_period == UINT32_MAX)
		return;
	put_packet(w, true, PT_EXT_TMA, (ticks & 0xffff) | (fast & 0x1ff) << 24, 5);
	w->mtc = ticks >> w->config->mtc_period;
}

/* 33.4.2.17, PSB+; IP 0: tracing is disabled. */
static void put_psb_plus(struct writer *w, uint64_t ip)
{
	flush_tnt(w);
	for (int i = 0; i < PT_PSB_SIZE / 2; i++)
		put_packet(w, true, PT_EXT_PSB, 0, 0);
	w->since_psb = 0;
	w->last_ip = 0;
	w->depth = 0;
	put_time(w);
	put_packet(w, true, PT_EXT_CBR, CBR_RATIO, 2);
	if (ip != 0) {
		put_packet(w, false, PT_OPC_MODE, PT_MODE_EXEC | PT_MODE_EXEC_CSL, 1);
		put_ip(w, PT_OPC_FUP, ip);
	}
	put_packet(w, true, PT_EXT_PSBEND, 0, 0);
}

/* Appends the packets that are due between two instructions; IP is the next one. */
static void pass_time(struct writer *w, uint64_t ip)
{
	uint64_t now;

	if (w->since_psb >= PSB_EVERY) {
		put_psb_plus(w, ip);
		return;
	}
	if (w->config->mtc_period == UINT32_MAX)
		return;
	now = ctc(w, __rdtsc()) >> w->config->mtc_period;
	if (now == w->mtc)
		return;
	flush_tnt(w);
	if (now - w->mtc > MOST_MTCS) {
		put_psb_plus(w, ip);
		return;
	}
	while (w->mtc < now)
		put_packet(w, false, PT_OPC_MTC, ++w->mtc & 0xff, 1);
}

static void push(struct writer *w, const struct walk_branch *b)
{
	w->stack[w->top++ % PT_RET_STACK] = b->from + b->size;
	if (w->depth < PT_RET_STACK)
		w->depth++;
}

/* A return is a TNT bit if its target is the address on top of the stack. */
static void put_return(struct writer *w, uint64_t to)
{
	bool compressed = false;

	if (w->depth > 0) {
		compressed = w->stack[--w->top % PT_RET_STACK] == to;
		w->depth--;
	}
	if (compressed) {
		put_tnt(w, true);
		return;
	}
	flush_tnt(w);
	put_ip(w, PT_OPC_TIP, to);
}

/* Leaves user code for the kernel and returns. */
static void put_syscall(struct writer *w, uint64_t to)
{
	flush_tnt(w);
	put_no_ip(w, PT_OPC_TIP_PGD);
	put_ip(w, PT_OPC_TIP_PGE, to);
}

static void put_branch(struct writer *w, const struct walk_branch *b)
{
	switch ((enum walk_kind)b->kind) {
	case WALK_KIND_TAKEN:
	case WALK_KIND_NOT_TAKEN: put_tnt(w, b->kind == WALK_KIND_TAKEN); break;
	case WALK_KIND_JUMP: break;
	case WALK_KIND_CALL:
		if (b->to != b->from + b->size)
			push(w, b);
		break;
	case WALK_KIND_CALL_IND:
		push(w, b);
		/* fall through */
	case WALK_KIND_JUMP_IND:
		flush_tnt(w);
		put_ip(w, PT_OPC_TIP, b->to);
		break;
	case WALK_KIND_RET: put_return(w, b->to); break;
	case WALK_KIND_SYSCALL: put_syscall(w, b->to); break;
	}
	pass_time(w, b->to);
}

static uint64_t expect(FILE *f, const struct walk_branch *b)
{
	if (b->kind == WALK_KIND_NOT_TAKEN)
		return 0;
	if (b->kind != WALK_KIND_SYSCALL) {
		fprintf(f, "%llx %llx\n", (unsigned long long)b->from, (unsigned long long)b->to);
		return 1;
	}
	fprintf(f, "%llx 0\n0 %llx\n", (unsigned long long)b->from, (unsigned long long)b->to);
	return 2;
}

int walk_packets_feed(const struct walk_packets_config *config, uint64_t *ret_branches)
{
	static struct walk_model model;
	struct writer w = {.config = config};
	struct walk_branch b = {.to = WALK_ROUND};

	walk_model_init(&model, config->seed, 0);
	put_psb_plus(&w, 0);
	put_packet(&w, false, PT_OPC_MODE, PT_MODE_EXEC | PT_MODE_EXEC_CSL, 1);
	put_ip(&w, PT_OPC_TIP_PGE, b.to);
	fprintf(config->expected, "0 %llx\n", (unsigned long long)b.to);
	*ret_branches = 1;
	for (uint32_t round = 0; round < config->rounds;) {
		walk_model_next(&model, &b);
		put_branch(&w, &b);
		*ret_branches += expect(config->expected, &b);
		round += b.from == WALK_AGAIN_AT;
	}
	/* An interrupt: 33.4.2.4, 33.4.2.5. */
	flush_tnt(&w);
	put_ip(&w, PT_OPC_FUP, b.to);
	put_no_ip(&w, PT_OPC_TIP_PGD);
	flush(&w);
	fprintf(config->expected, "%llx 0\n", (unsigned long long)b.to);
	*ret_branches += 1;
	return w.error;
}
