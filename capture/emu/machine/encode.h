/*
 * The packet writer: Intel PT packets into an AUX ring that is overwritten. It knows formats, IP
 * compression, the pending TNT bits and the return stack; when a packet is due is pmu.h's matter.
 * Formats: Intel SDM volume 3, "Intel Processor Trace", "Trace Packets and Data Types".
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/ptpacket.h"

/* Lies in shared memory, so that it outlives the process. */
struct encode_state {
	uint64_t pos; /* bytes written since the start, not wrapped */
	uint64_t last_ip;
	uint32_t last_ip_known;
	uint32_t ret_top;   /* where the next return address goes */
	uint32_t ret_depth; /* valid entries, at most PT_RET_STACK */
	uint32_t dropping;  /* an overflow: packets are lost */
	uint64_t ret[PT_RET_STACK];
};

struct encoder {
	struct encode_state *state;
	_Atomic uint64_t *tnt; /* pending branches, newest in bit 0, below a stop bit; 1: none */
	uint8_t *aux;
	uint64_t aux_size; /* power of two */
};

/* TNT lies apart from STATE: the recorder reads it when the process died. */
void encode_init(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt, uint8_t *aux,
		 uint64_t aux_size);
/* The same in the middle of a trace: what STATE and TNT hold stays. */
void encode_attach(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt,
		   uint8_t *aux, uint64_t aux_size);

/* The outcome of a conditional branch or compressed return. True: the bits are full, encode_tnt is
 * due before the next one. */
static inline bool encode_branch(_Atomic uint64_t *pending, bool taken)
{
	uint64_t tnt = atomic_load_explicit(pending, memory_order_relaxed) << 1 | taken;

	atomic_store_explicit(pending, tnt, memory_order_relaxed);
	return (tnt >> PT_TNT64_MAX) != 0;
}

static inline void encode_forget_branches(const struct encoder *e)
{
	atomic_store_explicit(e->tnt, 1, memory_order_relaxed);
}

/* A near call was executed whose return address is IP. The oldest of more than 64 is lost. */
static inline void encode_call(struct encode_state *s, uint64_t ip)
{
	s->ret[s->ret_top] = ip;
	s->ret_top = (s->ret_top + 1) % PT_RET_STACK;
	if (s->ret_depth < PT_RET_STACK)
		s->ret_depth++;
}

/* A near return to IP was executed; true: the call stack foretold it, it can be compressed. The
 * entry is taken off in either case (SDM "RET compression": only corresponding calls count). */
static inline bool encode_return(struct encode_state *s, uint64_t ip)
{
	if (s->ret_depth == 0)
		return false;
	s->ret_depth--;
	s->ret_top = (s->ret_top + PT_RET_STACK - 1) % PT_RET_STACK;
	return s->ret[s->ret_top] == ip;
}

static inline void encode_forget_calls(struct encode_state *s)
{
	s->ret_depth = 0;
}

static inline bool encode_tnt_pending(const struct encoder *e)
{
	return atomic_load_explicit(e->tnt, memory_order_relaxed) != 1;
}

/* Writes the pending bits, if any: up to 6 as a short TNT, more as a long one. */
void encode_tnt(struct encoder *e);
/* OPCODE is PT_OPC_TIP, _TIP_PGE, _TIP_PGD or _FUP; the shortest form that gives IP. */
void encode_ip(struct encoder *e, uint8_t opcode, uint64_t ip);
/* The same without an IP (out of context). */
void encode_ip_suppressed(struct encoder *e, uint8_t opcode);
/* PSB; the last IP and the return stack are forgotten, as every decoder does there. */
void encode_psb(struct encoder *e);
void encode_psbend(struct encoder *e);
/* OVF; the last IP is not used any more, and the return stack is empty. */
void encode_ovf(struct encoder *e);
void encode_tsc(struct encoder *e, uint64_t tsc);
void encode_tma(struct encoder *e, uint16_t ctc, uint16_t fast_counter);
void encode_cbr(struct encoder *e, uint8_t ratio);
void encode_mtc(struct encoder *e, uint8_t ctc);
void encode_cyc(struct encoder *e, uint64_t cycles);
/* 64-bit code. */
void encode_mode_exec(struct encoder *e);
