/*
 * The packet writer: Intel PT packets into an AUX ring that wraps. It has the formats, IP
 * compression, the pending TNT bits and the return stack; pmu.h decides when a packet is due.
 * Formats: Intel SDM volume 3, "Intel Processor Trace", "Trace Packets and Data Types".
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/ptpacket.h"

/* In shared memory, because it must outlive the process. */
struct encode_state {
	uint64_t pos; /* bytes written since the start, not wrapped */
	uint64_t last_ip;
	uint32_t last_ip_known;
	uint32_t ret_top;   /* where the next return address goes */
	uint32_t ret_depth; /* valid entries, at most PT_RET_STACK */
	uint32_t dropping;  /* packets are lost (overflow) */
	uint64_t ret[PT_RET_STACK];
};

struct encoder {
	struct encode_state *state;
	_Atomic uint64_t
		*tnt; /* pending branches, the newest in bit 0, below a stop bit; 1: none */
	uint8_t *aux;
	uint64_t aux_size; /* power of two */
};

/* Clears STATE and TNT. All pointers are borrowed. */
void encode_init(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt, uint8_t *aux,
		 uint64_t aux_size);
/* The same in the middle of a trace: keeps STATE and TNT. */
void encode_attach(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt,
		   uint8_t *aux, uint64_t aux_size);

/* Adds the outcome of a conditional branch or compressed return. True: the bits are full, and
 * encode_tnt() must precede the next branch. */
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

/* A near call with return address IP executed. The stack keeps the newest 64 addresses. */
static inline void encode_call(struct encode_state *s, uint64_t ip)
{
	s->ret[s->ret_top] = ip;
	s->ret_top = (s->ret_top + 1) % PT_RET_STACK;
	if (s->ret_depth < PT_RET_STACK)
		s->ret_depth++;
}

/* A near return to IP executed. True: the return stack predicted IP, and the return can be
 * compressed. The entry is removed in either case (SDM "RET compression"). */
static inline bool encode_return(struct encode_state *s, uint64_t ip)
{
	if (s->ret_depth == 0)
		return false;
	s->ret_depth--;
	s->ret_top = (s->ret_top + PT_RET_STACK - 1) % PT_RET_STACK;
	return s->ret[s->ret_top] == ip;
}

/* Whether a near return to IP could be compressed now. */
static inline bool encode_predicts(const struct encode_state *s, uint64_t ip)
{
	return s->ret_depth > 0 && s->ret[(s->ret_top + PT_RET_STACK - 1) % PT_RET_STACK] == ip;
}

static inline void encode_forget_calls(struct encode_state *s)
{
	s->ret_depth = 0;
}

static inline bool encode_tnt_pending(const struct encoder *e)
{
	return atomic_load_explicit(e->tnt, memory_order_relaxed) != 1;
}

/* Writes the pending branches, if any: up to 6 in a short TNT, more in a long TNT. */
void encode_tnt(struct encoder *e);
/* OPCODE is PT_OPC_TIP, _TIP_PGE, _TIP_PGD or _FUP. IP is written in its shortest form. */
void encode_ip(struct encoder *e, uint8_t opcode, uint64_t ip);
/* The same without an IP (out of context). */
void encode_ip_suppressed(struct encoder *e, uint8_t opcode);
/* A PSB; clears the last IP and the return stack, as a decoder does. */
void encode_psb(struct encoder *e);
void encode_psbend(struct encoder *e);
/* An OVF; clears the last IP and the return stack. */
void encode_ovf(struct encoder *e);
void encode_tsc(struct encoder *e, uint64_t tsc);
void encode_tma(struct encoder *e, uint16_t ctc, uint16_t fast_counter);
void encode_cbr(struct encoder *e, uint8_t ratio);
void encode_mtc(struct encoder *e, uint8_t ctc);
void encode_cyc(struct encoder *e, uint64_t cycles);
/* MODE.Exec; BITS: PT_MODE_EXEC_CSL, PT_MODE_EXEC_CSD or 0. */
void encode_mode_exec(struct encoder *e, uint8_t bits);
/* MODE.TSX outside of transactions. */
void encode_mode_tsx(struct encoder *e);
/* A PIP without NR: the processor runs no guest. */
void encode_pip(struct encoder *e, uint64_t cr3);
void encode_tracestop(struct encoder *e);
/* Event Trace. TYPE: enum pt_cfe. IP: a FUP of this packet follows. */
void encode_cfe(struct encoder *e, uint8_t type, uint8_t vector, bool ip);
/* The EVD of a page fault. */
void encode_evd_cr2(struct encoder *e, uint64_t cr2);
/* Power Event Trace. IP: a FUP follows. STATE: the number of the C-state. */
void encode_exstop(struct encoder *e, bool ip);
void encode_pwre(struct encoder *e, uint8_t state);
/* REASON: PT_PWRX_*. */
void encode_pwrx(struct encoder *e, uint8_t state, uint16_t reason);
/* The first byte of a CYC of two bytes, as erratum SKD007 leaves it in front of an OVF. */
void encode_torn_cyc(struct encoder *e);
