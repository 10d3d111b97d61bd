/*
 * Timing packets -> intervals. A second reader runs ahead of the walk from anchor to anchor.
 * Anchors are packets that give a time: TSC, and MTC once a TSC with TMA told where the CTC stood.
 * CYC packets between two anchors only bound from below how much time passed (a halted core counts
 * no cycles, and none counts faster than its ratio says): for each of them "not before" follows
 * from the anchor in front, "not after" from the anchor behind. SDM volume 3 (edition 083), 33.8.3
 * "Wall-Clock Time Reconstruction", and the packets' definitions.
 */
#include "decoder/timing.h"

#include <string.h>

#include "decoder/sync.h"
#include "proto/base.h"

/* Larger than any difference of TSC values that means something; sums of two do not overflow. */
#define TICKS_MAX (UINT64_MAX / 4)

void timing_init(struct timing *t, const uint8_t *trace, size_t size, size_t offset,
		 const struct timing_config *config)
{
	memset(t, 0, offsetof(struct timing, points));
	t->trace = trace;
	t->scan = (struct packet_cursor){.pos = trace + offset, .end = trace + size};
	t->config = *config;
}

static uint64_t scaled(uint64_t value, uint64_t num, uint64_t den)
{
	unsigned __int128 product = (unsigned __int128)value * num / den;

	return product > TICKS_MAX ? TICKS_MAX : (uint64_t)product;
}

static uint64_t end_of_time(const struct timing *t)
{
	return t->config.end_tsc != 0 ? t->config.end_tsc : UINT64_MAX;
}

/* The points that still lack their HI have cyc_all of their place there instead. */
static void close_points(struct timing *t, uint64_t hi)
{
	for (size_t i = t->head; i < t->tail; i++) {
		struct timing_point *p = &t->points[i];
		uint64_t behind = t->cyc_all - p->hi;

		p->hi = hi == UINT64_MAX ? hi : hi - MIN_OF(behind, hi);
		p->hi = MAX_OF(p->hi, p->lo);
	}
}

static void anchor(struct timing *t, uint64_t offset, uint64_t lo, uint64_t hi)
{
	close_points(t, hi);
	t->points[t->tail++] = (struct timing_point){offset, lo, hi};
	t->anchor_lo = lo;
	t->cyc_lo = t->cyc_all = 0;
	t->cyc_whole = t->cyc_near;
	t->cyc_lost = false;
}

static void on_cyc(struct timing *t, const struct packet *p, uint64_t offset)
{
	uint32_t fastest = MAX_OF(t->cbr, t->cbr_before);
	uint64_t ticks = 0;

	/* The ratio is a rounded number: one more. */
	if (fastest != 0)
		ticks = scaled(p->u.cyc.value, t->config.max_nonturbo_ratio, fastest + 1u);
	t->cbr_before = t->cbr;
	t->cyc_all = MIN_OF(t->cyc_all + ticks, TICKS_MAX);
	if (!t->cyc_lost && t->cyc_whole)
		t->cyc_lo = MIN_OF(t->cyc_lo + ticks, TICKS_MAX);
	t->cyc_whole = true;
	/* A point left out widens intervals and nothing else; the last place is the anchor's. */
	if (t->tail < TIMING_POINTS - 1)
		t->points[t->tail++] =
			(struct timing_point){offset, t->anchor_lo + t->cyc_lo, t->cyc_all};
}

static bool on_tsc(struct timing *t, const struct packet *p, uint64_t offset)
{
	t->tsc = p->u.tsc.value;
	t->have_tsc = true;
	t->have_tma = t->have_mtc = false;
	anchor(t, offset, t->tsc, t->tsc);
	return true;
}

static void on_tma(struct timing *t, const struct packet *p)
{
	if (!t->have_tsc || t->have_tma || p->u.tma.fc > t->tsc)
		return;
	t->have_tma = true;
	t->ctc_base = t->tsc - p->u.tma.fc;
	t->ctc_last = p->u.tma.ctc;
	t->ctc = 0;
}

/* CTC ticks from the TMA to the first MTC; 0: the MTC is of the period the TMA lies in. Both know
 * only some bits of the CTC (TMA 15:0, MTC period+7:period). */
static uint32_t ctc_from_tma(const struct timing *t, uint8_t mtc)
{
	uint32_t period = t->config.mtc_period, bits = MIN_OF(period + 8, 16u);
	uint32_t mask = (1u << bits) - 1, ctc = (uint32_t)mtc << period;

	if (((ctc ^ t->ctc_last) & mask) >> period == 0)
		return 0;
	return (ctc - t->ctc_last) & mask;
}

static bool on_mtc(struct timing *t, const struct packet *p, uint64_t offset)
{
	uint32_t ticks;
	uint64_t time;

	/* Period 15 is the largest that IA32_RTIT_CTL can say. */
	if (!t->have_tma || t->config.mtc_period > 15 || t->config.tsc_art_num == 0 ||
	    t->config.tsc_art_den == 0)
		return false;
	if (t->have_mtc)
		ticks = ((p->u.mtc.ctc - t->ctc_last) & 0xff) << t->config.mtc_period;
	else
		ticks = ctc_from_tma(t, p->u.mtc.ctc);
	if (ticks == 0)
		return false;
	t->have_mtc = true;
	t->ctc_last = p->u.mtc.ctc;
	t->ctc += ticks;
	time = t->ctc_base + scaled(t->ctc, t->config.tsc_art_num, t->config.tsc_art_den);
	/* The base is known to a tick, the product is rounded down. */
	anchor(t, offset, time - MIN_OF(time, UINT64_C(1)), time + 2);
	return true;
}

/* MTCs that were lost cannot be counted: the chain begins anew at the next TSC. */
static void on_loss(struct timing *t)
{
	t->have_tma = t->have_mtc = false;
	t->cyc_lost = true;
}

/* True: the packet is an anchor. */
static bool on_packet(struct timing *t, const struct packet *p, uint64_t offset)
{
	switch (p->type) {
	case PACKET_TSC: return on_tsc(t, p, offset);
	case PACKET_MTC: return on_mtc(t, p, offset);
	case PACKET_TMA: on_tma(t, p); break;
	case PACKET_CYC: on_cyc(t, p, offset); break;
	case PACKET_CBR:
		t->cbr_before = MAX_OF(t->cbr_before, t->cbr);
		t->cbr = p->u.cbr.ratio;
		break;
	case PACKET_OVF: on_loss(t); break;
	default: break;
	}
	return false;
}

static void note_nearness(struct timing *t, const struct packet *p)
{
	if (p->type == PACKET_CYC)
		t->cyc_near = true;
	else if (p->type != PACKET_PAD && p->type != PACKET_PSB)
		t->cyc_near = false;
}

/* False: the trace ended and all points have what they will get. */
static bool scan_to_anchor(struct timing *t)
{
	struct packet p;

	while (t->scan.pos < t->scan.end) {
		uint64_t offset = (uint64_t)(t->scan.pos - t->trace);
		bool stop;

		if (packet_next(&t->scan, &p) != 0) {
			const uint8_t *psb = sync_find(t->scan.pos + 1, t->scan.end);

			on_loss(t);
			t->scan.pos = psb != NULL ? psb : t->scan.end;
			t->scan.bip_bytes = 0;
			continue;
		}
		stop = on_packet(t, &p, offset);
		note_nearness(t, &p);
		if (stop)
			return true;
	}
	close_points(t, end_of_time(t));
	return false;
}

void timing_at(struct timing *t, uint64_t offset, uint64_t *ret_lo, uint64_t *ret_hi)
{
	for (;;) {
		while (t->head < t->tail && t->points[t->head].offset < offset)
			t->lo = t->points[t->head++].lo;
		if (t->head < t->tail)
			break;
		t->head = t->tail = 0;
		if (!scan_to_anchor(t) && t->tail == 0)
			break;
	}
	*ret_lo = t->lo;
	*ret_hi = t->head < t->tail ? t->points[t->head].hi : end_of_time(t);
	*ret_lo = MIN_OF(*ret_lo, *ret_hi);
}
