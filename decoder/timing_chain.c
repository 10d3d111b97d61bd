/*
 * MTCs: ticks of the CTC since the last TSC that had a TMA -> TSC. Part of timing.c's work. SDM
 * volume 3 (edition 083), 33.8.3.2 "Estimating TSC within Intel PT".
 */
#include "decoder/timing_private.h"
#include "proto/base.h"

void timing_chain_tsc(struct timing_chain *c, uint64_t tsc)
{
	*c = (struct timing_chain){.tsc = true, .base = tsc};
}

void timing_chain_tma(struct timing_chain *c, const struct packet *p)
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

/* The base is less than a tick off, the product is rounded down. */
bool timing_chain_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload,
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
	time = c->base + timing_scaled(c->ctc, config->tsc_art_num, config->tsc_art_den);
	*ret_lo = time;
	*ret_hi = time + 1;
	return true;
}

/* MTCs 255 periods apart, so that none of the 8 bits' wraps is missed between. */
static uint64_t longest(const struct timing_config *config)
{
	return timing_scaled(UINT64_C(255) << config->mtc_period, config->tsc_art_num,
			     config->tsc_art_den);
}

bool timing_chain_holds(const struct timing *t, struct timing_scan s, bool *ret_through)
{
	uint64_t lo, hi, last = 0, before_loss = UINT64_MAX;
	struct packet p;
	enum timing_step step;

	*ret_through = false;
	while (timing_skip_branches(&s.cursor),
	       (step = timing_next_packet(&s.cursor, &p)) != TIMING_END) {
		if (step == TIMING_LOSS || p.type == PACKET_OVF) {
			before_loss = MIN_OF(before_loss, last);
		} else if (p.type == PACKET_MTC &&
			   timing_chain_mtc(&s.chain, &t->config, p.u.mtc.ctc, &lo, &hi)) {
			last = lo;
		} else if (p.type == PACKET_TSC) {
			uint64_t tsc = p.u.tsc.value;

			*ret_through =
				s.chain.mtc && tsc >= last && tsc - last < longest(&t->config);
			return tsc >= MIN_OF(last, before_loss);
		}
	}
	return true;
}
