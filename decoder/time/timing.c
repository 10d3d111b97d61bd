/*
 * Divides a trace into segments between anchors, and answers questions about the time of a place.
 *
 * Anchors are packets that tell a time: TSC; and MTC once a TSC with a TMA has told where the CTC
 * stood. Packets before an anchor tell of instructions that executed no later, packets behind it of
 * instructions that executed no earlier (SDM volume 3, edition 083, 33.4.2: "Application" of TSC,
 * TMA and MTC packets). A segment lies between two anchors, and its CYCs divide it. CYCs bind to
 * packets in the same way, and tell the time of the packet directly behind them, of a TNT the time
 * of its first branch (33.3.6.2 "Cycle Packet Semantics"). A segment is read twice: first up to its
 * second anchor for what holds for all of it, then as the questions come. timing_cycles.c explains
 * what cycles say about time.
 *
 * Lost packets: the MTCs that an overflow lost can be counted if the next TSC shows that they were
 * less than 256 periods; else their chain begins anew with that TSC. With the erratum SKL168 no
 * count goes across a PSB. A chain of MTCs whose time comes to be later than the next TSC is wrong
 * as a whole and is not used. A TSC that is earlier than the anchor before has jumped, and nothing
 * is known about the time between the two.
 *
 * Work: each byte is read at most three times (to the next TSC, to the next anchor, and for its
 * CYCs). As long as no speed is known, it is read again in each of up to PEEK looks ahead, and
 * bytes up to LOOK behind the first CYCs once more. Memory is constant. In runs of branches and
 * MTCs, which are most of most traces, the first two readings are one, and fast (timing_read.c),
 * and the segments from MTC to MTC are made without the general code (next_plain).
 */
#include "decoder/time/timing.h"

#include <assert.h>

#include "decoder/time/timing_private.h"
#include "proto/base.h"

#define PEEK 4u		/* segments; two with CYCs at their ends show a speed */
#define LOOK (1u << 20) /* bytes, read once to see how steady the clock is */
#define MANY 4u		/* MTCs that are worth passing at once */

void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config)
{
	assert(offset <= size);
	*t = (struct timing){.config = *config, .trace = trace};
	t->scan.cursor = (struct packet_cursor){
		.pos = trace + offset, .end = trace + size, .quirks = config->quirks};
}

/* Sets the base of the segment NEXT, which follows the present one. */
static void hand_over(struct timing *t, struct timing_segment *next)
{
	const struct timing_segment *s = &t->segment;

	next->counted = next->base_near = s->near;
	next->base_lo = s->near ? s->b_lo : next->lo;
	next->base_hi = s->near ? s->hi : UINT64_MAX;
	next->first_hi = s->hi;
	if (s->near || !s->steady || !s->counted)
		return;
	next->counted = true;
	next->base_lo = s->base_lo;
	next->base_hi = s->base_hi;
	if (s->cycs)
		timing_bound(t, s->total, &next->base_lo, &next->base_hi);
}

/* With a new ratio, the speed measured so far is void. */
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
		s->total = MIN_OF(timing_plus(s->total, p->u.cyc.value), TIMING_TICKS_MAX);
	else
		s->first_count = p->u.cyc.value;
	s->cycs = t->cycs = true;
}

static void on_loss(struct timing *t)
{
	t->segment.whole = t->segment.steady = false;
	if (!t->scan.chain.through)
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

/* Whether the PSB+ whose TSC stands before C was written while tracing was off: it has no FUP, or
 * by an erratum one although TIP.PGE follows (BDM70). Stops at the next TSC, so that work stays
 * linear. */
static bool was_off(struct packet_cursor c)
{
	bool fup = false;
	struct packet p;

	do {
		if (packet_next(&c, &p) != 0 || p.type == PACKET_TSC || p.type == PACKET_OVF)
			return true;
		fup = fup || p.type == PACKET_FUP;
	} while (p.type != PACKET_PSBEND);
	do {
		if (packet_next(&c, &p) != 0)
			return !fup;
	} while (p.type == PACKET_PAD || p.type == PACKET_CYC || p.type == PACKET_MODE_EXEC);
	return !fup || p.type == PACKET_TIP_PGE;
}

/* Whether TIP.PGE is the last packet of a branch before the PSB+ in which the scan stands, as where
 * TraceEn goes from 0 to 1 in traced code. */
static bool was_enabled(const struct timing *t)
{
	struct packet_cursor c = t->walk;
	bool enabled = false;
	struct packet p;

	while (c.pos < t->scan.cursor.pos && timing_next_packet(&c, &p) != TIMING_END) {
		if (p.type >= PACKET_TNT && p.type <= PACKET_FUP)
			enabled = p.type == PACKET_TIP_PGE;
	}
	return enabled;
}

/* Before a TSC outside of PSB+, or in a PSB+ that was written where tracing was off, the cycle
 * counter may have stood still, or begun anew. A CYC before such a TSC may be of the time before
 * the stop. */
static void note_stop(struct timing *t)
{
	struct timing_segment *s = &t->segment;
	bool off = t->scan.in_psb && t->cycs && was_off(t->scan.cursor);
	bool enabled = t->scan.in_psb && t->cycs && !off && was_enabled(t);

	if (t->scan.in_psb && !off && !enabled) {
		s->sure = s->total;
		return;
	}
	s->sure = enabled ? 0 : s->sure;
	s->stopped = s->steady && !enabled;
	s->near = s->steady = false;
}

static void on_tsc(struct timing *t, const struct packet *p, uint64_t offset)
{
	struct timing_segment *s = &t->segment;
	uint64_t tsc = p->u.tsc.value;

	end_segment(t, offset, tsc, tsc);
	note_stop(t);
	if (t->scan.in_psb && t->config.skl168)
		s->near = s->steady = false;
	timing_chain_tsc(&t->scan.chain, tsc);
	if (tsc >= s->lo)
		return;
	s->lo = 0;
	s->hi = UINT64_MAX;
	s->whole = s->steady = s->stopped = false;
}

static void on_tma(struct timing *t, const struct packet *p)
{
	if (t->scan.chain.tma)
		return;
	timing_chain_tma(&t->scan.chain, &t->config, p);
	if (t->scan.chain.tma && !timing_chain_holds(t, t->scan, &t->scan.chain.through))
		t->scan.chain = (struct timing_chain){0};
}

/* Notes what stands before the scan, which is behind P now. */
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

/* Returns whether P is an anchor, which ends the segment. */
static bool on_packet(struct timing *t, const struct packet *p, uint64_t offset)
{
	uint64_t lo, hi;

	switch (p->type) {
	case PACKET_TSC: on_tsc(t, p, offset); return true;
	case PACKET_MTC:
		if (!timing_chain_mtc(&t->scan.chain, &t->config, p->u.mtc.ctc, &lo, &hi))
			return false;
		end_segment(t, offset, lo, hi);
		t->segment.sure = t->segment.total;
		return true;
	case PACKET_TMA: on_tma(t, p); break;
	case PACKET_CYC: on_cyc(t, p); break;
	case PACKET_CBR: on_cbr(t, p); break;
	case PACKET_OVF: on_loss(t); break;
	default: break;
	}
	return false;
}

/* Makes t->run the run in which the scan stands. False: the scan stands in no run, or in a short
 * run before the run that was read ahead. */
static bool stands_in_run(struct timing *t)
{
	const struct packet_cursor *c = &t->scan.cursor;
	uint64_t offset = (uint64_t)(c->pos - t->trace);

	if (offset < t->run.to)
		return offset >= t->run.from;
	return timing_run_read(&t->run, t->trace, c);
}

/* Finds the next anchor if only branches and MTCs come before it; else leaves the scan where these
 * end. If a CYC stands before the scan (near), the general code is needed. */
static bool find_mtc(struct timing *t, uint64_t *ret_offset, uint64_t *ret_lo, uint64_t *ret_hi)
{
	struct packet_cursor *c = &t->scan.cursor;

	while (!t->scan.near && stands_in_run(t)) {
		while (timing_run_mtc(&t->run, (uint64_t)(c->pos - t->trace), ret_offset)) {
			const uint8_t *mtc = t->trace + *ret_offset;

			c->pos = mtc + 2;
			if (timing_chain_mtc(&t->scan.chain, &t->config, mtc[1], ret_lo, ret_hi))
				return true;
		}
		c->pos = t->trace + t->run.to;
	}
	return false;
}

/* Reads up to the next anchor, which ends the segment. */
static void find_end(struct timing *t)
{
	uint64_t offset, lo, hi;
	bool done = false;
	struct packet p;

	while (!done) {
		enum timing_step step;

		if (find_mtc(t, &offset, &lo, &hi)) {
			end_segment(t, offset, lo, hi);
			return;
		}

		if (timing_skip_branches(&t->scan.cursor)) {
			t->scan.near = false;
			t->segment.sure = t->segment.total;
		}
		offset = (uint64_t)(t->scan.cursor.pos - t->trace);
		step = timing_next_packet(&t->scan.cursor, &p);
		if (step == TIMING_END)
			return;
		if (step == TIMING_LOSS) {
			on_loss(t);
			t->scan.near = false;
			continue;
		}
		done = on_packet(t, &p, offset);
		note_place(&t->scan, &p);
	}
}

/* Makes the segment from the last anchor to an MTC at OFFSET, before the first CYC of the trace.
 * Nothing reads the other fields of a segment without CYCs. */
static void end_plain(struct timing *t, uint64_t offset, uint64_t lo, uint64_t hi)
{
	t->segment.lo = t->segment.b_lo;
	t->segment.end = offset;
	t->segment.b_lo = lo;
	t->segment.hi = hi;
}

static __attribute__((noinline)) bool find_plain(struct timing *t)
{
	uint64_t offset, lo, hi;

	if (!find_mtc(t, &offset, &lo, &hi))
		return false;
	end_plain(t, offset, lo, hi);
	return true;
}

/* Passes many MTCs before OFFSET, as while tracing is off, up to the last one in the run. */
static void pass_plain(struct timing *t, uint64_t offset)
{
	struct timing_run *r = &t->run;
	struct timing_chain chain = t->scan.chain;
	const uint8_t *begin = t->trace + r->from, *mtc = NULL;
	uint64_t lo = 0;
	uint32_t i;

	for (i = r->next; i < r->n && r->from + r->mtcs[i] < offset; i++) {
		const uint8_t *next = begin + r->mtcs[i];

		if (!timing_chain_next(&chain, &t->config, next[1], &lo))
			break;
		mtc = next;
	}
	if (!mtc)
		return;
	r->next = i;
	t->scan.chain = chain;
	t->scan.cursor.pos = mtc + 2;
	end_plain(t, (uint64_t)(mtc - t->trace), lo, lo + 1);
}

/* The usual case, for speed: the segment ends with another MTC of the run, one period later. May
 * pass several MTCs before OFFSET. */
static bool next_plain(struct timing *t, uint64_t offset)
{
	struct timing_run *r = &t->run;
	const uint8_t *begin = t->trace + r->from, *pos = t->scan.cursor.pos, *mtc;
	uint64_t lo;

	if (t->cycs || !t->begun)
		return false;
	if (pos < begin || r->next == r->n || begin + r->mtcs[r->next] < pos)
		return find_plain(t);
	if (r->n - r->next > MANY && r->from + r->mtcs[r->next + MANY] < offset)
		pass_plain(t, offset);
	if (r->next == r->n)
		return true;
	mtc = begin + r->mtcs[r->next];
	if (!timing_chain_next(&t->scan.chain, &t->config, mtc[1], &lo))
		return find_plain(t);
	r->next++;
	t->scan.cursor.pos = mtc + 2;
	end_plain(t, (uint64_t)(mtc - t->trace), lo, lo + 1);
	return true;
}

static void next_segment(struct timing *t);

/* While no speed is known, as in the first segment: takes the speed of the next segments, which is
 * the same as long as the CBR is. */
static void look_for_speed(struct timing *t)
{
	struct timing ahead = *t;

	ahead.peeking = true;
	for (unsigned int i = 0; i < PEEK && ahead.segment.end != UINT64_MAX; i++) {
		next_segment(&ahead);
		if (ahead.scan.cbr != t->scan.cbr)
			return;
		if (ahead.rate.cycles == 0)
			continue;
		t->rate = ahead.rate;
		return;
	}
}

/* At the first CYCs: looks ahead for how far the clock swings, which holds for them, too. */
static void look_for_swing(struct timing *t)
{
	struct timing ahead = *t;

	ahead.peeking = true;
	while (!timing_swing_known(&ahead) && ahead.segment.end != UINT64_MAX &&
	       ahead.segment.end - t->segment.end < LOOK)
		next_segment(&ahead);
	t->swing.seen = ahead.swing.seen;
	t->swing.worst = ahead.swing.worst;
	t->swing.until = ahead.segment.end;
	t->swing.looked = true;
}

/* The segment that begins where the last one ends. */
static void next_segment(struct timing *t)
{
	struct timing_segment s = {.end = UINT64_MAX,
				   .hi = t->config.end_tsc != 0 ? t->config.end_tsc : UINT64_MAX,
				   .base_hi = UINT64_MAX,
				   .first_hi = UINT64_MAX,
				   .whole = true,
				   .steady = true,
				   .fastest = t->scan.cbr};

	if (t->begun) {
		s.lo = t->segment.b_lo;
		/* The TSC of a packet wraps, and a stranger's packets have any. */
		if (s.hi < s.lo)
			s.hi = UINT64_MAX;
		hand_over(t, &s);
		timing_measure(t);
	}
	t->begun = true;
	t->segment = s;
	t->walk = t->scan.cursor;
	t->have_cyc = t->have_next = false;
	find_end(t);
	timing_check_speed(t);
	if (t->segment.cycs && t->segment.near && !t->swing.looked && !t->peeking)
		look_for_swing(t);
	if (t->segment.cycs && t->segment.steady && !t->segment.pinned && t->rate.cycles == 0 &&
	    !t->peeking)
		look_for_speed(t);
}

/* Finds the CYC behind the present one, if there is one in the segment. */
static void find_cyc(struct timing *t, uint64_t cycles)
{
	bool first = !t->have_cyc && !t->segment.counted;
	struct packet p;

	t->have_next = false;
	for (;;) {
		uint64_t offset;

		timing_skip_branches(&t->walk);
		offset = (uint64_t)(t->walk.pos - t->trace);
		if (offset >= t->segment.end || timing_next_packet(&t->walk, &p) != TIMING_PACKET)
			return;
		if (p.type != PACKET_CYC)
			continue;
		t->next.offset = offset;
		t->next.end = offset + p.size;
		t->next.cycles =
			first ? 0 : MIN_OF(timing_plus(cycles, p.u.cyc.value), TIMING_TICKS_MAX);
		timing_bound(t, t->next.cycles, &t->next.lo, &t->next.hi);
		t->have_next = true;
		return;
	}
}

/* The present CYC stands directly before OFFSET, and tells the time of the packet there, if that is
 * one of branches; of a TNT the time of its first branch. */
static void take_cyc(struct timing *t, uint64_t offset, uint64_t *hi)
{
	struct packet p;

	if (packet_read(t->trace + offset, t->scan.cursor.end, &p) != 0 || p.type < PACKET_TNT ||
	    p.type > PACKET_FUP)
		return;
	t->first_hi = t->cyc.hi;
	if (p.type != PACKET_TNT)
		*hi = t->cyc.hi;
}

/* Narrows the interval of OFFSET by the CYCs around it in its segment. */
static __attribute__((noinline)) void at_cycs(struct timing *t, uint64_t offset, uint64_t *ret_lo,
					      uint64_t *ret_hi)
{
	if (!t->have_cyc && !t->have_next) {
		timing_settle(t);
		find_cyc(t, 0);
	}
	while (t->have_next && t->next.offset < offset) {
		t->cyc = t->next;
		t->have_cyc = true;
		find_cyc(t, t->cyc.cycles);
	}
	if (t->have_cyc)
		*ret_lo = t->cyc.lo;
	if (t->have_next) {
		*ret_hi = t->first_hi = t->next.hi;
		t->until = t->next.offset;
	}
	if (t->have_cyc && t->cyc.end == offset)
		take_cyc(t, offset, ret_hi);
	/* The packet directly behind the present CYC may have a time of its own. */
	if (t->have_cyc && offset <= t->cyc.end)
		t->until = offset;
	*ret_lo = MIN_OF(*ret_lo, *ret_hi);
}

void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi)
{
	while (!t->begun || offset > t->segment.end)
		if (!next_plain(t, offset))
			next_segment(t);
	*ret_lo = MIN_OF(t->segment.lo, t->segment.hi);
	*ret_hi = t->first_hi = t->segment.hi;
	t->until = t->segment.end;
	if (t->segment.cycs && t->segment.whole)
		at_cycs(t, offset, ret_lo, ret_hi);
}

uint64_t timing_first(const struct timing *t)
{
	return t->first_hi;
}

uint64_t timing_until(const struct timing *t)
{
	return t->until;
}
