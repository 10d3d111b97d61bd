/*
 * Simulates a processor that takes a random way through a world's code and writes its trace.
 * Packets follow the SDM (volume 3, edition 083, 33.4), in more orders than any one processor uses.
 */
#include <string.h>

#include "decoder/code/insn.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"
#include "tests/oracle/nodes_world.h"

#define CALLS	  96u /* more than the hardware's stack holds */
#define TIPS	  8u
#define QUIET_MAX 60u /* instructions without a packet before an interrupt comes */

struct run {
	struct nodes_world *w;
	struct diff_random *r;
	struct insn_reader *insns;
	size_t max; /* bytes of trace */
	uint64_t context, ip;
	enum insn_mode mode;
	bool on;
	unsigned int quiet;
	/* The program's stack, and the hardware's copy of it. */
	uint64_t calls[CALLS];
	size_t n_calls;
	uint64_t returns[PT_RET_STACK];
	size_t n_returns; /* valid entries, the newest at the end */
	/* Pending decisions, and the TIPs behind them. */
	uint64_t bits;
	uint32_t n_bits;
	uint64_t tips[TIPS];
	size_t n_tips;
	uint64_t last_ip, tsc;
	uint8_t mtc;
	bool in_tx;
	/* Constant during a run. */
	bool compress, keep, long_tnt; /* KEEP: only compressed returns pop */
	size_t defer, time, cyc, event, psb, hot, odd_return; /* one in this many; 0: never */
	size_t next_psb;
	uint64_t targets[8];
};

static bool once(struct run *s, size_t n)
{
	return n != 0 && diff_below(s->r, n) == 0;
}

/* --- Packets --- */

static void put(struct run *s, const void *bytes, size_t n)
{
	struct nodes_world *w = s->w;

	if (w->size + n > NODES_TRACE_MAX)
		return;
	memcpy(w->trace + w->size, bytes, n);
	w->size += n;
	s->quiet = 0;
}

static void put_tsc(struct run *s)
{
	uint8_t p[8] = {PT_OPC_TSC};

	memcpy(p + 1, &s->tsc, PT_TSC_BYTES);
	put(s, p, sizeof(p));
}

static void put_cyc(struct run *s)
{
	uint32_t value = (uint32_t)diff_below(s->r, once(s, 8) ? 5000 : 31);
	uint8_t p[3] = {(uint8_t)((value & 31) << 3 | 3)};
	size_t n = 1;

	s->tsc += value;
	if (value > 31) {
		p[0] |= 4;
		p[n++] = (uint8_t)((value >> 5 & 127) << 1 | (value >> 12 != 0));
		if (value >> 12 != 0)
			p[n++] = (uint8_t)(value >> 12 << 1);
	}
	put(s, p, n);
}

static void put_tma(struct run *s)
{
	uint8_t p[7] = {PT_OPC_EXT, PT_EXT_TMA, s->mtc, 0, 0, (uint8_t)diff_random(s->r), 0};

	put(s, p, sizeof(p));
}

/* Writes some packets of time, or none. */
static void put_time(struct run *s)
{
	if (!once(s, s->time))
		return;
	s->tsc += diff_below(s->r, 3000);
	switch (diff_below(s->r, 7)) {
	case 0:
		put_tsc(s);
		if (once(s, 2))
			put_tma(s);
		break;
	case 1:
	case 2:
		s->mtc = (uint8_t)(s->mtc + (once(s, 6) ? 3 : 1));
		put(s, (uint8_t[]){PT_OPC_MTC, s->mtc}, 2);
		break;
	case 3: put(s, "\x02\x03\x18\x00", 4); break;
	case 4: put(s, "\x00\x00\x00\x00\x00", 1 + diff_below(s->r, 5)); break;
	case 5: put_tma(s); break;
	default: put_cyc(s); break;
	}
}

static void put_cyc_before(struct run *s)
{
	if (once(s, s->cyc))
		put_cyc(s);
}

static void put_ip(struct run *s, uint8_t opcode, uint64_t ip)
{
	uint64_t diff = ip ^ s->last_ip;
	uint8_t p[9], n = 8, form = PT_IPB_FULL;

	if (!once(s, 6)) {
		if (diff >> 16 == 0)
			form = PT_IPB_UPDATE16;
		else if (diff >> 32 == 0)
			form = PT_IPB_UPDATE32;
		else if (diff >> 48 == 0 && once(s, 2))
			form = PT_IPB_UPDATE48;
		else if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
			form = PT_IPB_SEXT48;
	}
	n = form == PT_IPB_UPDATE16 ? 2 : form == PT_IPB_UPDATE32 ? 4 : form == PT_IPB_FULL ? 8 : 6;
	p[0] = (uint8_t)(opcode | form << 5);
	memcpy(p + 1, &ip, 8);
	put_cyc_before(s);
	put(s, p, 1u + n);
	s->last_ip = ip;
}

static void flush(struct run *s)
{
	uint64_t payload = s->bits | UINT64_C(1) << s->n_bits;
	uint8_t p[8] = {PT_OPC_EXT, PT_EXT_TNT64};

	if (s->n_bits > 0) {
		put_cyc_before(s);
		if (s->n_bits <= PT_TNT8_MAX && !once(s, 40)) {
			put(s, (uint8_t[]){(uint8_t)(payload << 1)}, 1);
		} else {
			memcpy(p + 2, &payload, 6);
			put(s, p, sizeof(p));
		}
	}
	s->bits = s->n_bits = 0;
	for (size_t i = 0; i < s->n_tips; i++) {
		put_time(s);
		put_ip(s, PT_OPC_TIP, s->tips[i]);
	}
	s->n_tips = 0;
}

static void decide(struct run *s, bool bit)
{
	s->bits = s->bits << 1 | bit;
	s->n_bits++;
	s->quiet = 0;
	if (s->n_bits == (s->long_tnt ? PT_TNT64_MAX : PT_TNT8_MAX) || once(s, 50))
		flush(s);
}

static void put_mode(struct run *s)
{
	static const uint8_t bits[] = {PT_MODE_EXEC_CSL, PT_MODE_EXEC_CSD, 0};

	put(s, (uint8_t[]){PT_OPC_MODE, bits[s->mode]}, 2);
}

static void target(struct run *s, uint64_t to)
{
	if (s->n_bits > 0 && s->n_tips < TIPS && once(s, s->defer)) {
		s->tips[s->n_tips++] = to;
		return;
	}
	flush(s);
	put_time(s);
	put_ip(s, PT_OPC_TIP, to);
}

static void put_psb(struct run *s)
{
	flush(s);
	put_cyc_before(s);
	for (size_t i = 0; i < PT_PSB_SIZE / 2; i++)
		put(s, "\x02\x82", 2);
	s->last_ip = 0;
	s->n_returns = 0;
	if (!once(s, 8))
		put_tsc(s);
	if (once(s, 2))
		put_tma(s);
	if (once(s, 2))
		put(s, "\x02\x03\x18\x00", 4);
	if (once(s, 8))
		put(s, "\x02\x43\x00\x10\x00\x00\x00\x00", 8);
	if (s->on || once(s, 2)) {
		put_mode(s);
		if (s->in_tx)
			put(s, "\x99\x21", 2);
	}
	if (s->on)
		put_ip(s, PT_OPC_FUP, s->ip);
	put(s, "\x02\x23", 2);
	s->next_psb = s->w->size + 20 + diff_below(s->r, 2 * s->psb);
}

/* --- Execution --- */

static uint64_t some_target(struct run *s)
{
	const struct nodes_world *w = s->w;
	const struct nodes_place *p = NULL;
	size_t n = 0;

	if (!once(s, s->hot) && s->targets[0] != 0)
		return s->targets[diff_below(s->r, ARRAY_SIZE(s->targets))];
	for (size_t i = 0; i < w->n_places; i++) {
		if (w->places[i].context == s->context && diff_below(s->r, ++n) == 0)
			p = &w->places[i];
	}
	if (p == NULL || once(s, 200))
		return once(s, 2) ? 0xffffffff81000000 : diff_below(s->r, 0x1000000);
	return p->address +
	       (w->blocks[p->content][diff_below(s->r, w->n_blocks[p->content])] - p->first) %
		       p->size;
}

static void choose_targets(struct run *s)
{
	s->targets[0] = 0;
	for (size_t i = ARRAY_SIZE(s->targets); i-- > 0;)
		s->targets[i] = some_target(s);
}

static void enable(struct run *s, bool same)
{
	struct nodes_world *w = s->w;
	uint64_t contexts = 0;

	for (size_t i = 0; i < w->n_places; i++)
		contexts = MAX_OF(contexts, w->places[i].context + 1);
	if (!same) {
		uint64_t before = s->context;

		s->context = diff_below(s->r, contexts);
		if (s->context != before)
			choose_targets(s);
		if (once(s, 12))
			s->mode = once(s, 3) ? INSN_MODE_64 : INSN_MODE_32;
		s->ip = some_target(s);
		s->n_calls = once(s, 2) ? s->n_calls : 0;
	}
	if (w->n_enables < NODES_ENABLES)
		w->enables[w->n_enables++] = (struct nodes_enable){w->size, s->context};
	put_mode(s);
	put_ip(s, PT_OPC_TIP_PGE, s->ip);
	s->on = true;
}

static void disable(struct run *s, bool with_ip, uint64_t ip)
{
	flush(s);
	if (with_ip)
		put_ip(s, PT_OPC_TIP_PGD, ip);
	else
		put(s, (uint8_t[]){PT_OPC_TIP_PGD}, 1);
	s->on = false;
	if (once(s, 6))
		put(s, "\x02\x43\x02\x10\x00\x00\x00\x00", 8);
}

/* Interrupts at s->ip; the handler is traced or not. */
static void interrupt(struct run *s)
{
	uint64_t from = s->ip;

	flush(s);
	put_ip(s, PT_OPC_FUP, from);
	if (once(s, 3)) {
		s->ip = some_target(s);
		put_ip(s, PT_OPC_TIP, s->ip);
	} else {
		disable(s, once(s, 8), 0);
		put_time(s);
		if (s->next_psb <= s->w->size && once(s, 2))
			put_psb(s);
		enable(s, once(s, 2) && nodes_world_find(s->w, s->context, from) != NULL);
	}
}

static void transaction(struct run *s)
{
	flush(s);
	if (s->in_tx && once(s, 2)) {
		/* Like erratum BDM64: the FUP is not at the target of the previous branch. */
		if (once(s, 3))
			s->ip = some_target(s);
		put(s, "\x99\x22", 2);
		put_ip(s, PT_OPC_FUP, s->ip);
		s->ip = some_target(s);
		put_ip(s, PT_OPC_TIP, s->ip);
		s->in_tx = false;
		return;
	}
	s->in_tx = !s->in_tx;
	put(s, s->in_tx ? "\x99\x21" : "\x99\x20", 2);
	put_ip(s, PT_OPC_FUP, s->ip);
}

static void overflow(struct run *s)
{
	flush(s);
	put(s, "\x02\xf3", 2);
	s->n_returns = once(s, 2) ? 0 : s->n_returns;
	if (once(s, 4)) {
		s->on = false;
		enable(s, false);
		return;
	}
	s->ip = some_target(s);
	put_ip(s, PT_OPC_FUP, s->ip);
}

static void event(struct run *s)
{
	switch (diff_below(s->r, 10)) {
	case 0:
	case 1:
	case 2: interrupt(s); break;
	case 3: overflow(s); break;
	case 4: transaction(s); break;
	case 5:
		if (once(s, 2))
			flush(s);
		put(s, "\x02\x12\x01\x02\x03\x04", 6);
		break;
	case 6:
		flush(s);
		put(s, "\x02\x92\x01\x02\x03\x04", 6);
		put_ip(s, PT_OPC_FUP, s->ip);
		break;
	case 7: put(s, "\x02\x43\x00\x10\x00\x00\x00\x00", 8); break;
	case 8: flush(s); break;
	default:
		flush(s);
		put(s, "\x02\xa2\x01\x02\x03\x04\x05", 7);
		break;
	}
}

static void call(struct run *s, uint64_t back)
{
	if (s->n_calls == CALLS)
		s->n_calls = 0;
	s->calls[s->n_calls++] = back;
	if (s->n_returns == PT_RET_STACK)
		memmove(s->returns, s->returns + 1, --s->n_returns * sizeof(s->returns[0]));
	s->returns[s->n_returns++] = back;
}

static void come_back(struct run *s)
{
	uint64_t to =
		s->n_calls > 0 && !once(s, s->odd_return) ? s->calls[--s->n_calls] : some_target(s);
	bool known = s->n_returns > 0 && s->returns[s->n_returns - 1] == to;

	/* The processor may choose whether to compress a return. */
	known = known && s->compress && s->n_tips == 0 && !once(s, 30);
	if (s->n_returns > 0 && (known || !s->keep))
		s->n_returns--;
	if (known)
		decide(s, true);
	else
		target(s, to);
	s->ip = to;
}

static void cross(struct run *s)
{
	uint64_t to = some_target(s);

	flush(s);
	if (once(s, 3)) {
		disable(s, once(s, 4), to);
		put_time(s);
		enable(s, once(s, 3));
		return;
	}
	if (once(s, 4)) {
		s->mode = once(s, 2) ? INSN_MODE_32 : INSN_MODE_64;
		put_mode(s);
	}
	put_ip(s, PT_OPC_TIP, to);
	s->ip = to;
}

/* Executes the instruction at s->ip. False: no instruction there. */
static bool fetch(const struct run *s, struct insn *ret)
{
	uint8_t bytes[INSN_MAX_SIZE];
	size_t n = 0;

	for (; n < sizeof(bytes); n++) {
		const struct nodes_place *p = nodes_world_find(s->w, s->context, s->ip + n);

		if (p == NULL)
			break;
		bytes[n] = s->w->codes[p->content][p->first + (s->ip + n - p->address)];
	}
	return n > 0 && insn_read(s->insns, s->mode, s->ip, bytes, n, ret) == 0;
}

static void execute(struct run *s, const struct insn *insn)
{
	uint64_t next = s->ip + insn->size;
	bool taken;

	switch (insn->class) {
	case INSN_COND:
		taken = !once(s, 3);
		s->ip = taken ? insn->target : next;
		decide(s, taken);
		break;
	case INSN_CALL:
		if (insn->target != next)
			call(s, next);
		s->ip = insn->target;
		break;
	case INSN_JUMP: s->ip = insn->target; break;
	case INSN_CALL_IND: call(s, next); /* fall through */
	case INSN_JUMP_IND:
		s->ip = some_target(s);
		target(s, s->ip);
		break;
	case INSN_RET: come_back(s); break;
	case INSN_FAR:
	case INSN_VMENTRY: cross(s); break;
	case INSN_SYSCALL:
		if (once(s, 3)) {
			cross(s);
			break;
		}
		disable(s, once(s, 4), 0xffffffff81000000);
		s->ip = next;
		enable(s, !once(s, 4));
		break;
	default: s->ip = next; break;
	}
}

static void step(struct run *s)
{
	struct insn insn;

	put_time(s);
	if (s->w->size >= s->next_psb && (s->n_tips == 0 || once(s, 2)))
		put_psb(s);
	if (once(s, s->event) || s->quiet > QUIET_MAX) {
		if (s->quiet > QUIET_MAX)
			interrupt(s);
		else
			event(s);
		return;
	}
	if (!fetch(s, &insn)) {
		flush(s);
		put_ip(s, PT_OPC_FUP, s->ip);
		disable(s, false, 0);
		enable(s, false);
		return;
	}
	s->quiet++;
	execute(s, &insn);
}

static void choose(struct run *s)
{
	static const size_t sizes[] = {60, 200, 400, 1000, 2000, 3000};
	static const size_t odds[] = {0, 0, 1, 2, 5, 20, 100};

	s->max = sizes[diff_below(s->r, ARRAY_SIZE(sizes))];
	if (once(s, 300))
		s->max = 60000;
	s->compress = !once(s, 4);
	s->long_tnt = once(s, 3);
	s->defer = once(s, 4) ? 1 + diff_below(s->r, 4) : 0;
	s->time = odds[diff_below(s->r, ARRAY_SIZE(odds))] * 4;
	s->cyc = odds[diff_below(s->r, ARRAY_SIZE(odds))];
	s->event = once(s, 3) ? 0 : 30 + diff_below(s->r, 400);
	s->psb = once(s, 3) ? 60 : 100 + diff_below(s->r, 2000);
	s->hot = once(s, 4) ? 1 : 10;
	s->odd_return = once(s, 4) ? 4 : 50;
	s->keep = once(s, 3);
}

void nodes_world_run(struct nodes_world *w, struct diff_random *r)
{
	struct run s = {.w = w,
			.r = r,
			.mode = once(&(struct run){.r = r}, 8) ? INSN_MODE_32 : INSN_MODE_64};
	size_t steps = 0;

	s.insns = insn_reader_new();
	if (s.insns == NULL)
		return;
	choose(&s);
	w->keep = s.keep;
	s.tsc = 0x10000;
	if (!once(&s, 20))
		put_psb(&s);
	choose_targets(&s);
	enable(&s, false);
	while (w->size < s.max && steps++ < 40 * s.max)
		step(&s);
	if (once(&s, 2))
		flush(&s);
	insn_reader_free(s.insns);
}
