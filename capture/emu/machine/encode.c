/*
 * The packet writer. It was written from the SDM alone, independently of the decoder, so that each
 * tests the other.
 */
#include "capture/emu/machine/encode.h"

#include <string.h>

void encode_init(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt, uint8_t *aux,
		 uint64_t aux_size)
{
	encode_attach(e, state, tnt, aux, aux_size);
	memset(state, 0, sizeof(*state));
	encode_forget_branches(e);
}

void encode_attach(struct encoder *e, struct encode_state *state, _Atomic uint64_t *tnt,
		   uint8_t *aux, uint64_t aux_size)
{
	*e = (struct encoder){.state = state, .tnt = tnt, .aux = aux, .aux_size = aux_size};
}

/* Copies at most 16 bytes by two overlapping stores, which is faster than memcpy with a variable
 * length. Writes no byte beyond SIZE: the oldest part of the trace follows there. */
static void put_unwrapped(uint8_t *to, const uint8_t *bytes, size_t size)
{
	uint64_t a, b;
	uint32_t c, d;

	if (size >= 8) {
		memcpy(&a, bytes, 8);
		memcpy(&b, bytes + size - 8, 8);
		memcpy(to, &a, 8);
		memcpy(to + size - 8, &b, 8);
	} else if (size >= 4) {
		memcpy(&c, bytes, 4);
		memcpy(&d, bytes + size - 4, 4);
		memcpy(to, &c, 4);
		memcpy(to + size - 4, &d, 4);
	} else {
		for (size_t i = 0; i < size; i++)
			to[i] = bytes[i];
	}
}

/* Appends at most 16 bytes. The thread may be killed at any instruction, therefore all bytes are
 * stored before pos covers them. */
static inline void put(struct encoder *e, const uint8_t *bytes, size_t size)
{
	uint64_t at = e->state->pos & (e->aux_size - 1);

	if (__builtin_expect(e->state->dropping, 0))
		return;
	if (__builtin_expect(at + size <= e->aux_size, 1)) {
		put_unwrapped(e->aux + at, bytes, size);
	} else {
		for (size_t i = 0; i < size; i++)
			e->aux[(at + i) & (e->aux_size - 1)] = bytes[i];
	}
	atomic_signal_fence(memory_order_seq_cst);
	e->state->pos += size;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void store_le(uint8_t *to, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)(v >> (8 * i));
}

void encode_tnt(struct encoder *e)
{
	uint64_t tnt = atomic_load_explicit(e->tnt, memory_order_relaxed);
	uint8_t bytes[8] = {PT_OPC_EXT, PT_EXT_TNT64};

	if (tnt == 1)
		return;
	encode_forget_branches(e);
	if ((tnt >> (PT_TNT8_MAX + 1)) == 0) {
		bytes[0] = (uint8_t)(tnt << 1);
		put(e, bytes, 1);
		return;
	}
	store_le(bytes + 2, tnt, 6);
	put(e, bytes, 8);
}

/* SDM table "IP packet compression". Hardware uses the sign-extended form after a PSB. */
static enum pt_ipbytes choose_form(const struct encode_state *s, uint64_t ip, size_t *ret_size)
{
	uint64_t changed = ip ^ s->last_ip;
	uint64_t sign = (uint64_t)((int64_t)(ip << 16) >> 16);

	*ret_size = 2;
	if (s->last_ip_known && changed >> 16 == 0)
		return PT_IPB_UPDATE16;
	*ret_size = 4;
	if (s->last_ip_known && changed >> 32 == 0)
		return PT_IPB_UPDATE32;
	*ret_size = 6;
	if (sign == ip)
		return PT_IPB_SEXT48;
	if (s->last_ip_known && changed >> 48 == 0)
		return PT_IPB_UPDATE48;
	*ret_size = 8;
	return PT_IPB_FULL;
}

void encode_ip(struct encoder *e, uint8_t opcode, uint64_t ip)
{
	uint8_t bytes[16];
	size_t size;
	enum pt_ipbytes form = choose_form(e->state, ip, &size);

	bytes[0] = (uint8_t)(opcode | form << 5);
	store_le(bytes + 1, ip, 8);
	put(e, bytes, 1 + size);
	e->state->last_ip = ip;
	e->state->last_ip_known = 1;
}

void encode_ip_suppressed(struct encoder *e, uint8_t opcode)
{
	put(e, &opcode, 1);
}

void encode_psb(struct encoder *e)
{
	uint8_t bytes[PT_PSB_SIZE];

	for (size_t i = 0; i < PT_PSB_SIZE; i += 2) {
		bytes[i] = PT_OPC_EXT;
		bytes[i + 1] = PT_EXT_PSB;
	}
	put(e, bytes, sizeof(bytes));
	e->state->last_ip = 0;
	e->state->last_ip_known = 0;
	encode_forget_calls(e->state);
}

void encode_psbend(struct encoder *e)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, PT_EXT_PSBEND}, 2);
}

void encode_ovf(struct encoder *e)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, PT_EXT_OVF}, 2);
	e->state->last_ip_known = 0;
	encode_forget_calls(e->state);
}

void encode_tsc(struct encoder *e, uint64_t tsc)
{
	uint8_t bytes[1 + PT_TSC_BYTES] = {PT_OPC_TSC};

	store_le(bytes + 1, tsc, PT_TSC_BYTES);
	put(e, bytes, sizeof(bytes));
}

void encode_tma(struct encoder *e, uint16_t ctc, uint16_t fast_counter)
{
	uint8_t bytes[7] = {PT_OPC_EXT, PT_EXT_TMA};

	store_le(bytes + 2, ctc, 2);
	store_le(bytes + 5, fast_counter & 0x1ff, 2);
	put(e, bytes, sizeof(bytes));
}

void encode_cbr(struct encoder *e, uint8_t ratio)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, PT_EXT_CBR, ratio, 0}, 4);
}

void encode_mtc(struct encoder *e, uint8_t ctc)
{
	put(e, (const uint8_t[]){PT_OPC_MTC, ctc}, 2);
}

/* Five bits in the first byte, seven in each further byte; a flag says that another byte follows.
 */
void encode_cyc(struct encoder *e, uint64_t cycles)
{
	uint8_t bytes[16];
	size_t size = 1;

	bytes[0] = (uint8_t)(PT_OPC_CYC | (cycles & 0x1f) << 3);
	cycles >>= 5;
	if (cycles != 0)
		bytes[0] |= 4;
	while (cycles != 0) {
		bytes[size] = (uint8_t)((cycles & 0x7f) << 1);
		cycles >>= 7;
		if (cycles != 0)
			bytes[size] |= 1;
		size++;
	}
	put(e, bytes, size);
}

void encode_mode_exec(struct encoder *e, uint8_t bits)
{
	put(e, (const uint8_t[]){PT_OPC_MODE, PT_MODE_EXEC | bits}, 2);
}

/* Bits 47:1 of the payload are CR3[51:5], bit 0 is NR. */
void encode_pip(struct encoder *e, uint64_t cr3)
{
	uint8_t bytes[8] = {PT_OPC_EXT, PT_EXT_PIP};

	store_le(bytes + 2, cr3 >> 5 << 1, 6);
	put(e, bytes, sizeof(bytes));
}

void encode_mode_tsx(struct encoder *e)
{
	put(e, (const uint8_t[]){PT_OPC_MODE, PT_MODE_TSX}, 2);
}

void encode_tracestop(struct encoder *e)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, PT_EXT_TRACESTOP}, 2);
}

void encode_cfe(struct encoder *e, uint8_t type, uint8_t vector, bool ip)
{
	put(e,
	    (const uint8_t[]){PT_OPC_EXT, PT_EXT_CFE, (uint8_t)(type | (ip ? PT_CFE_IP : 0)),
			      vector},
	    4);
}

void encode_evd_cr2(struct encoder *e, uint64_t cr2)
{
	uint8_t bytes[11] = {PT_OPC_EXT, PT_EXT_EVD, PT_EVD_CR2};

	store_le(bytes + 3, cr2, 8);
	put(e, bytes, sizeof(bytes));
}

void encode_exstop(struct encoder *e, bool ip)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, ip ? PT_EXT_EXSTOP_IP : PT_EXT_EXSTOP}, 2);
}

void encode_pwre(struct encoder *e, uint8_t state)
{
	put(e, (const uint8_t[]){PT_OPC_EXT, PT_EXT_PWRE, 0, (uint8_t)(state << 4)}, 4);
}

void encode_pwrx(struct encoder *e, uint8_t state, uint16_t reason)
{
	uint8_t bytes[7] = {PT_OPC_EXT, PT_EXT_PWRX};

	store_le(bytes + 2, (uint64_t)state << 4 | state | reason, 5);
	put(e, bytes, sizeof(bytes));
}

void encode_torn_cyc(struct encoder *e)
{
	put(e, (const uint8_t[]){PT_OPC_CYC | PT_CYC_MORE}, 1);
}
