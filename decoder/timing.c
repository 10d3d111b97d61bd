/*
 * Timing packets -> intervals. Used by the walk (flow.c) and by whoever looks ahead of it.
 *
 * Anchors are packets that give a time: TSC, and MTC once a TSC with TMA told where the CTC stood.
 * What stands before one executed no later, what stands behind it no earlier (SDM volume 3, edition
 * 083, 33.4.2: "Application" of TSC, TMA and MTC packets). Between two anchors, a segment, CYCs
 * divide the time. They bind to the packets in the same way, and give the time of what follows them
 * directly, of a TNT's first branch (33.3.6.2 "Cycle Packet Semantics"). A segment is read twice:
 * up to its second anchor for what holds for all of it, then as the questions come.
 *
 * What N cycles say of the ticks between two CYCs:
 *
 * - Not before: the core never runs faster than its ratio to the bus, the CBR, which is a rounded
 *   number: at least N * max_nonturbo / (CBR + 1) ticks. A stopped clock only adds to that.
 * - Not after: the core clock has one speed as long as no CBR changes it, and whatever stops it is
 *   followed by a TSC (33.4.2, TSC, "Generation Scenario"). So in a segment without new CBR, loss
 *   or such a TSC, a steady one, the speed is constant, and known as soon as two anchors of one
 *   speed have been seen that have a CYC directly before them: between those N cycles last T ticks
 *   to the exactness of the anchors. A speed that the CBR contradicts shows that a stop was not
 *   told, and counts as no steady one.
 * - A spread spectrum clock is not quite constant: 0.5 % from one end to the other at some 30 kHz,
 *   which is never more than some 21 ns ahead or behind of one that is. Each use of a speed allows
 *   for that; between two anchors that both have a CYC (pinned) with the second bound, too.
 *
 * Lost packets: the MTCs that an overflow swallowed cannot be counted, their chain begins anew with
 * the next TSC; with the erratum SKL168 no count goes across a PSB. A chain of MTCs that comes to
 * be later than the next TSC is wrong as a whole and is not used. A TSC that is earlier than what
 * is known has jumped: nothing is known of what lies between.
 *
 * Work: each byte is read at most three times (to the next TSC, to the next anchor, and for its
 * CYCs), whatever stands there; memory is constant.
 */
#include "decoder/timing.h"

#include <string.h>

#include "decoder/sync.h"
#include "proto/base.h"
#include "proto/ptpacket.h"

/* Larger than any difference of TSC values that means something; sums of two do not overflow. */
#define TICKS_MAX (UINT64_MAX / 4)

#define SPREAD 200u /* a spread spectrum clock deviates by 1 in so many */

/* A speed is measured over so many cycles: over fewer it is hardly known, over more it is no better
 * known, and numbers stay small. */
#define MEASURE_MIN 64u
#define MEASURE_MAX (UINT64_C(1) << 40)

void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config)
{
	*t = (struct timing){.config = *config, .trace = trace};
	t->scan.cursor = (struct packet_cursor){
		.pos = trace + offset, .end = trace + size, .quirks = config->quirks};
}

static uint64_t scaled(uint64_t value, uint64_t num, uint64_t den)
{
	unsigned __int128 product = (unsigned __int128)value * num / den;

	return product > TICKS_MAX ? TICKS_MAX : (uint64_t)product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a - MIN_OF(a, b);
}

static uint64_t end_of_time(const struct timing *t)
{
	return t->config.end_tsc != 0 ? t->config.end_tsc : UINT64_MAX;
}

/* The size of a packet that begins with BYTE and tells of branches, of no time; 0: of another. */
static size_t branch_size(uint8_t byte)
{
	static const uint8_t ip_bytes[8] = {
		[PT_IPB_UPDATE16] = 2, [PT_IPB_UPDATE32] = 4, [PT_IPB_SEXT48] = 6,
		[PT_IPB_UPDATE48] = 6, [PT_IPB_FULL] = 8,     [5] = UINT8_MAX,
		[7] = UINT8_MAX};
	uint8_t opcode = byte & 0x1f, n = ip_bytes[byte >> 5];

	if ((byte & 1) == 0)
		return byte != PT_OPC_PAD && byte != PT_OPC_EXT;
	if (opcode != PT_OPC_TIP && opcode != PT_OPC_TIP_PGE && opcode != PT_OPC_TIP_PGD &&
	    opcode != PT_OPC_FUP)
		return 0;
	return n != UINT8_MAX ? 1u + n : 0;
}

/* Most packets are of that kind. True: there were any. */
static bool skip_branches(struct packet_cursor *c)
{
	const uint8_t *begin = c->pos;
	size_t size;

	/* Between BBP and BEP the same bytes are others. */
	while (c->bip_bytes == 0 && c->pos < c->end) {
		size = branch_size(*c->pos);
		if (size == 0 || size > (size_t)(c->end - c->pos))
			break;
		c->pos += size;
	}
	return c->pos > begin;
}

enum step { STEP_PACKET, STEP_LOSS, STEP_END };

/* The next packet; LOSS: bytes up to the next PSB are none. */
static enum step next_packet(struct packet_cursor *c, struct packet *p)
{
	const uint8_t *psb;

	if (c->pos >= c->end)
		return STEP_END;
	if (packet_next(c, p) == 0)
		return STEP_PACKET;
	psb = sync_find(c->pos + 1, c->end);
	c->pos = psb != NULL ? psb : c->end;
	c->bip_bytes = 0;
	return STEP_LOSS;
}

/* --- MTCs --- */

static void chain_tsc(struct timing_chain *c, uint64_t tsc)
{
	*c = (struct timing_chain){.tsc = true, .base = tsc};
}

static void chain_tma(struct timing_chain *c, const struct packet *p)
{
	if (!c->tsc || c->tma || p->u.tma.fc > c->base)
		return;
	c->tma = true;
	c->base -= p->u.tma.fc;
	c->last = p->u.tma.ctc;
}

/* CTC ticks from the TMA to the first MTC; 0: the MTC is of the period the TMA lies in. Both know
 * only some bits of the CTC (TMA 15:0, MTC period+7:period). */
static uint32_t ctc_from_tma(const struct timing_chain *c, uint32_t period, uint8_t mtc)
{
	uint32_t bits = MIN_OF(period + 8, 16u);
	uint32_t mask = (1u << bits) - 1, ctc = (uint32_t)mtc << period;

	if (((ctc ^ c->last) & mask) >> period == 0)
		return 0;
	return (ctc - c->last) & mask;
}

/* True: the MTC tells a time. The base is less than a tick off, the product is rounded down. */
static bool chain_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload,
		      uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint32_t ticks, period = config->mtc_period;
	uint64_t time;

	/* Period 15 is the largest that IA32_RTIT_CTL can say. */
	if (!c->tma || period > 15 || config->tsc_art_num == 0 || config->tsc_art_den == 0)
		return false;
	if (c->mtc)
		ticks = ((payload - c->last) & 0xff) << period;
	else
		ticks = ctc_from_tma(c, period, payload);
	if (ticks == 0)
		return false;
	c->mtc = true;
	c->last = payload;
	c->ctc += ticks;
	time = c->base + scaled(c->ctc, config->tsc_art_num, config->tsc_art_den);
	*ret_lo = time;
	*ret_hi = time + 1;
	return true;
}

/* Behind the TMA of S: whether its MTCs all come before the next TSC. */
static bool chain_holds(const struct timing *t, struct timing_scan s)
{
	uint64_t lo, hi, last = 0;
	struct packet p;
	enum step step;

	while (skip_branches(&s.cursor), (step = next_packet(&s.cursor, &p)) != STEP_END) {
		if (step == STEP_LOSS || p.type == PACKET_OVF)
			s.chain.tma = false;
		else if (p.type == PACKET_TSC)
			return p.u.tsc.value >= last;
		else if (p.type == PACKET_MTC &&
			 chain_mtc(&s.chain, &t->config, p.u.mtc.ctc, &lo, &hi))
			last = lo;
	}
	return true;
}

/* --- Cycles --- */

static uint64_t by_ratio(const struct timing *t, uint64_t cycles)
{
	const struct timing_segment *s = &t->segment;

	if (s->fastest == 0 || t->ratio_wrong)
		return 0;
	return scaled(cycles, t->config.max_nonturbo_ratio, s->fastest + 1u);
}

/* Two CYCs that are CYCLES apart are so many ticks apart at least. Each counts whole cycles, so
 * that they may be less than one more or less apart. */
static uint64_t at_least(const struct timing *t, uint64_t cycles)
{
	uint64_t ticks, measured;

	cycles = minus(cycles, 1);
	ticks = by_ratio(t, cycles);
	if (t->rate.cycles == 0)
		return ticks;
	measured = scaled(cycles, t->rate.lo, t->rate.cycles + 1);
	return MAX_OF(ticks, measured - measured / SPREAD - (measured % SPREAD != 0));
}

/* And so many at most, in a steady segment. */
static uint64_t at_most(const struct timing *t, uint64_t cycles)
{
	uint64_t measured;

	if (t->rate.cycles == 0)
		return UINT64_MAX;
	measured = scaled(cycles + 1, t->rate.hi, t->rate.cycles - 1) + 1;
	return measured + measured / SPREAD + 1;
}

/* Between two anchors that have CYCs. */
static void bound_pinned(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;
	uint64_t all = s->hi - s->base_lo;
	uint64_t slack = scaled(MIN_OF(cycles, left), all, s->total) / SPREAD;

	/* 25 ns. */
	if (t->config.max_nonturbo_ratio != 0)
		slack = MIN_OF(slack, UINT64_C(5) * t->config.max_nonturbo_ratio / 2);
	/* A cycle: they are counted as whole ones. */
	slack += all / s->total + 1;
	*lo = MAX_OF(*lo,
		     minus(s->base_lo + scaled(cycles, s->b_lo - s->base_lo, s->total), slack));
	*hi = MIN_OF(*hi, s->base_hi + scaled(cycles, s->hi - s->base_hi, s->total) + 1 + slack);
}

static void bound_loose(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;

	*lo = MAX_OF(*lo, plus(s->base_lo, at_least(t, cycles)));
	if (s->hi != UINT64_MAX)
		*hi = MIN_OF(*hi, minus(s->hi, at_least(t, left)));
	if (!s->steady)
		return;
	*hi = MIN_OF(*hi, plus(s->base_hi, at_most(t, cycles)));
	if (s->near)
		*lo = MAX_OF(*lo, minus(s->b_lo, at_most(t, left)));
}

/* The time of a CYC that comes CYCLES cycles behind the segment's base. */
static void bound(const struct timing *t, uint64_t cycles, uint64_t *ret_lo, uint64_t *ret_hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t lo = s->lo, hi = s->hi;

	if (s->pinned)
		bound_pinned(t, cycles, &lo, &hi);
	else
		bound_loose(t, cycles, &lo, &hi);
	/* They contradict each other: some number is wrong. */
	*ret_lo = lo <= hi ? lo : s->lo;
	*ret_hi = lo <= hi ? hi : s->hi;
}

/* --- From anchor to anchor --- */

/* Where the CYCs of the segment behind S count from. */
static void hand_over(struct timing *t, struct timing_segment *next)
{
	const struct timing_segment *s = &t->segment;

	next->counted = next->base_near = s->near;
	next->base_lo = s->near ? s->b_lo : next->lo;
	next->base_hi = s->near ? s->hi : UINT64_MAX;
	if (s->near || !s->steady || !s->counted)
		return;
	next->counted = true;
	next->base_lo = s->base_lo;
	next->base_hi = s->base_hi;
	if (s->cycs)
		bound(t, s->total, &next->base_lo, &next->base_hi);
}

/* The speed that S shows, when it is over. */
static void measure(struct timing *t)
{
	const struct timing_segment *s = &t->segment;
	uint64_t cycles = plus(t->measure_cycles, s->total);

	if (!s->steady || cycles > MEASURE_MAX)
		t->measuring = false;
	t->measure_cycles = cycles;
	if (!s->near)
		return;
	if (t->measuring && cycles >= MAX_OF(t->rate.cycles, MEASURE_MIN))
		t->rate = (struct timing_rate){minus(s->b_lo, t->measure_hi),
					       minus(s->hi, t->measure_lo), cycles};
	if (t->measuring)
		return;
	t->measuring = true;
	t->measure_lo = s->b_lo;
	t->measure_hi = s->hi;
	t->measure_cycles = 0;
}

/* A new ratio: what was measured is of the old one. */
static void on_cbr(struct timing *t, const struct packet *p)
{
	struct timing_segment *s = &t->segment;
	uint32_t before = t->scan.cbr;

	t->scan.cbr = p->u.cbr.ratio;
	s->fastest = MAX_OF(s->fastest, t->scan.cbr);
	if (before == 0 || before == t->scan.cbr)
		return;
	s->steady = false;
	t->rate.cycles = 0;
}

static void on_cyc(struct timing *t, const struct packet *p)
{
	struct timing_segment *s = &t->segment;

	if (s->cycs || s->counted)
		s->total = MIN_OF(plus(s->total, p->u.cyc.value), TICKS_MAX);
	s->cycs = true;
}

static void on_loss(struct timing *t)
{
	t->segment.whole = t->segment.steady = false;
	t->scan.chain = (struct timing_chain){0};
	t->scan.in_psb = false;
}

static void end_segment(struct timing *t, uint64_t offset, uint64_t lo, uint64_t hi)
{
	struct timing_segment *s = &t->segment;

	s->end = offset;
	s->b_lo = lo;
	s->hi = hi;
	s->near = t->scan.near;
}

static void on_tsc(struct timing *t, const struct packet *p, uint64_t offset)
{
	struct timing_segment *s = &t->segment;
	uint64_t tsc = p->u.tsc.value;

	end_segment(t, offset, tsc, tsc);
	if (!t->scan.in_psb)
		s->steady = false;
	else if (t->config.skl168)
		s->near = s->steady = false;
	chain_tsc(&t->scan.chain, tsc);
	if (tsc >= s->lo)
		return;
	s->lo = 0;
	s->hi = UINT64_MAX;
	s->whole = s->steady = false;
}

static void on_tma(struct timing *t, const struct packet *p)
{
	if (t->scan.chain.tma)
		return;
	chain_tma(&t->scan.chain, p);
	if (t->config.mtc_period <= 15 && t->scan.chain.tma && !chain_holds(t, t->scan))
		t->scan.chain = (struct timing_chain){0};
}

static void note_place(struct timing_scan *s, const struct packet *p)
{
	if (p->type == PACKET_PSB)
		s->in_psb = true;
	else if (p->type == PACKET_PSBEND || p->type == PACKET_OVF)
		s->in_psb = false;
	if (p->type == PACKET_CYC)
		s->near = true;
	else if (p->type != PACKET_PAD && p->type != PACKET_PSB)
		s->near = false;
}

/* True: it is an anchor, and the segment has its end. */
static bool on_packet(struct timing *t, const struct packet *p, uint64_t offset)
{
	uint64_t lo, hi;

	switch (p->type) {
	case PACKET_TSC: on_tsc(t, p, offset); return true;
	case PACKET_MTC:
		if (!chain_mtc(&t->scan.chain, &t->config, p->u.mtc.ctc, &lo, &hi))
			return false;
		end_segment(t, offset, lo, hi);
		return true;
	case PACKET_TMA: on_tma(t, p); break;
	case PACKET_CYC: on_cyc(t, p); break;
	case PACKET_CBR: on_cbr(t, p); break;
	case PACKET_OVF: on_loss(t); break;
	default: break;
	}
	return false;
}

static void find_end(struct timing *t)
{
	bool done = false;
	struct packet p;

	while (!done) {
		uint64_t offset;
		enum step step;

		if (skip_branches(&t->scan.cursor))
			t->scan.near = false;
		offset = (uint64_t)(t->scan.cursor.pos - t->trace);
		step = next_packet(&t->scan.cursor, &p);
		if (step == STEP_END)
			return;
		if (step == STEP_LOSS) {
			on_loss(t);
			t->scan.near = false;
			continue;
		}
		done = on_packet(t, &p, offset);
		note_place(&t->scan, &p);
	}
}

/* What CBR and anchors say of each other in a segment that is pinned. */
static void check_speed(struct timing *t)
{
	struct timing_segment *s = &t->segment;
	uint32_t ratio = t->config.max_nonturbo_ratio;

	s->pinned = s->steady && s->near && s->base_near && s->total > 0 && s->b_lo >= s->base_lo &&
		    s->hi >= s->base_hi;
	if (!s->pinned || s->fastest == 0 || ratio == 0)
		return;
	if (by_ratio(t, s->total) > s->hi - s->base_lo + 1)
		t->ratio_wrong = true;
	if (!t->ratio_wrong &&
	    minus(s->b_lo, s->base_hi) > scaled(s->total, ratio + 1u, s->fastest) + 2)
		s->pinned = s->steady = false;
}

/* The segment that begins where the last one ends. */
static void next_segment(struct timing *t)
{
	struct timing_segment s = {.end = UINT64_MAX,
				   .hi = end_of_time(t),
				   .whole = true,
				   .steady = true,
				   .fastest = t->scan.cbr};

	if (t->begun) {
		s.lo = t->segment.b_lo;
		hand_over(t, &s);
		measure(t);
	}
	t->begun = true;
	t->segment = s;
	t->walk = t->scan.cursor;
	t->have_cyc = t->have_next = false;
	find_end(t);
	check_speed(t);
}

/* --- Questions --- */

/* The CYC behind the one in hand, if it lies in the segment. */
static void find_cyc(struct timing *t, uint64_t cycles)
{
	bool first = !t->have_cyc && !t->segment.counted;
	struct packet p;

	t->have_next = false;
	for (;;) {
		uint64_t offset;

		skip_branches(&t->walk);
		offset = (uint64_t)(t->walk.pos - t->trace);
		if (offset >= t->segment.end || next_packet(&t->walk, &p) != STEP_PACKET)
			return;
		if (p.type != PACKET_CYC)
			continue;
		t->next.offset = offset;
		t->next.end = offset + p.size;
		t->next.cycles = first ? 0 : MIN_OF(plus(cycles, p.u.cyc.value), TICKS_MAX);
		bound(t, t->next.cycles, &t->next.lo, &t->next.hi);
		t->have_next = true;
		return;
	}
}

/* In the segment that OFFSET lies in. */
static void find_cycs_around(struct timing *t, uint64_t offset)
{
	if (!t->have_cyc && !t->have_next)
		find_cyc(t, 0);
	while (t->have_next && t->next.offset < offset) {
		t->cyc = t->next;
		t->have_cyc = true;
		find_cyc(t, t->cyc.cycles);
	}
}

/* What tells of events that a CYC directly before it gives the time of: of one, or of a TNT the
 * first. */
static bool is_timed(const struct packet *p)
{
	return p->type >= PACKET_TNT && p->type <= PACKET_FUP;
}

/* The CYC in hand stands directly before OFFSET. */
static void take_cyc(struct timing *t, uint64_t offset, uint64_t *hi)
{
	struct packet p;

	if (packet_read(t->trace + offset, t->scan.cursor.end, &p) != 0 || !is_timed(&p))
		return;
	t->first_hi = t->cyc.hi;
	if (p.type != PACKET_TNT)
		*hi = t->cyc.hi;
}

void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi)
{
	while (!t->begun || offset > t->segment.end)
		next_segment(t);
	*ret_lo = t->segment.lo;
	*ret_hi = t->first_hi = t->segment.hi;
	if (t->segment.cycs && t->segment.whole) {
		find_cycs_around(t, offset);
		if (t->have_cyc)
			*ret_lo = t->cyc.lo;
		if (t->have_next)
			*ret_hi = t->first_hi = t->next.hi;
		if (t->have_cyc && t->cyc.end == offset)
			take_cyc(t, offset, ret_hi);
	}
	*ret_lo = MIN_OF(*ret_lo, *ret_hi);
}

uint64_t timing_first(const struct timing *t)
{
	return t->first_hi;
}
