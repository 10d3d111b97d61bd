/*
 * Turns MTCs into times: counts ticks of the CTC since the last TSC with a TMA.
 *
 * SDM volume 3 (edition 083), 33.8.3.2 "Estimating TSC within Intel PT".
 */
#include "decoder/time/timing_private.h"
#include "proto/base.h"

/* A run of so many bytes is worth keeping for the scan. */
#define LONG 512u

void timing_chain_tsc(struct timing_chain *c, uint64_t tsc)
{
	*c = (struct timing_chain){.tsc = true, .base = tsc};
}

void timing_chain_tma(struct timing_chain *c, const struct timing_config *config,
		      const struct packet *p)
{
	uint64_t period;

	if (!c->tsc || c->tma || p->u.tma.fc > c->base)
		return;
	/* 15 is the largest period that IA32_RTIT_CTL can hold. */
	if (config->mtc_period > 15 || config->tsc_art_num == 0 || config->tsc_art_den == 0)
		return;
	period = (UINT64_C(1) << config->mtc_period) * config->tsc_art_num;
	c->period = period / config->tsc_art_den;
	c->period_rest = period % config->tsc_art_den;
	c->tma = true;
	c->base -= p->u.tma.fc;
	c->last = p->u.tma.ctc;
}

/* CTC ticks from the TMA to the first MTC; 0: the TMA lies in the MTC's period. Both packets hold
 * only some bits of the CTC (TMA 15:0, MTC period+7:period). */
static uint32_t ctc_from_tma(const struct timing_chain *c, uint32_t period, uint8_t mtc)
{
	uint32_t bits = MIN_OF(period + 8, 16u);
	uint32_t mask = (1u << bits) - 1, ctc = (uint32_t)mtc << period;

	if (((ctc ^ c->last) & mask) >> period == 0)
		return 0;
	return (ctc - c->last) & mask;
}

/* The interval allows for a base that is less than a tick off, and for rounding down. */
bool timing_chain_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload,
		      uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint32_t ticks; /* of the CTC, less than 2^23 */
	uint64_t parts;

	if (!c->tma)
		return false;
	if (c->mtc)
		ticks = ((payload - c->last) & 0xff) << config->mtc_period;
	else
		ticks = ctc_from_tma(c, config->mtc_period, payload);
	if (ticks == 0)
		return false;
	parts = (uint64_t)ticks * config->tsc_art_num + c->rest;
	c->passed = MIN_OF(c->passed + parts / config->tsc_art_den, TIMING_TICKS_MAX);
	c->rest = parts % config->tsc_art_den;
	c->mtc = true;
	c->last = payload;
	*ret_lo = c->base + c->passed;
	*ret_hi = *ret_lo + 1;
	return true;
}

static void take_mtc(struct timing_chain *c, const struct timing_config *config, uint8_t payload)
{
	uint64_t lo, hi;

	if (!timing_chain_next(c, config, payload, &lo))
		timing_chain_mtc(c, config, payload, &lo, &hi);
}

/* The reading of runs ahead of the scan. */
struct ahead {
	uint64_t since;		/* the offset of the scan */
	struct timing_run *run; /* where to read the next run: the scan's run, or spare */
	struct timing_run spare;
};

/* Takes the MTCs up to the next packet that does not belong in a run. With CYCs there are no long
 * runs. A long run that the scan will soon come to stays in T. */
static void take_runs(struct timing *t, struct timing_scan *s, struct ahead *a)
{
	while (!t->cycs && timing_run_read(a->run, t->trace, &s->cursor)) {
		const struct timing_run *r = a->run;

		for (uint32_t i = 0; i < r->n; i++)
			take_mtc(&s->chain, &t->config, t->trace[r->from + r->mtcs[i] + 1]);
		s->cursor.pos = t->trace + r->to;
		if (r->to - r->from >= LONG && r->from - a->since < LONG)
			a->run = &a->spare;
	}
	timing_skip_cycles(&s->cursor);
}

/* The time of the last MTC. */
static uint64_t time_of(const struct timing_chain *c)
{
	return c->mtc ? c->base + c->passed : 0;
}

static bool holds(struct timing *t, struct timing_scan *s, struct ahead *a, bool *ret_through)
{
	/* Between MTCs 255 periods apart, no wrap of their 8 bits can be missed. */
	const uint64_t longest = timing_scaled(UINT64_C(255) << t->config.mtc_period,
					       t->config.tsc_art_num, t->config.tsc_art_den);
	uint64_t before_loss = UINT64_MAX, last;
	enum timing_step step;
	struct packet p;

	while (take_runs(t, s, a), (step = timing_next_packet(&s->cursor, &p)) != TIMING_END) {
		if (step == TIMING_LOSS || p.type == PACKET_OVF) {
			before_loss = MIN_OF(before_loss, time_of(&s->chain));
		} else if (p.type == PACKET_MTC) {
			take_mtc(&s->chain, &t->config, p.u.mtc.ctc);
		} else if (p.type == PACKET_TSC) {
			uint64_t tsc = p.u.tsc.value;

			last = time_of(&s->chain);
			*ret_through = s->chain.mtc && tsc >= last && tsc - last < longest;
			return tsc >= MIN_OF(last, before_loss);
		}
	}
	return true;
}

bool timing_chain_holds(struct timing *t, struct timing_scan s, bool *ret_through)
{
	struct ahead a;
	bool result;

	a.since = (uint64_t)(s.cursor.pos - t->trace);
	a.run = &t->run;
	*ret_through = false;
	result = holds(t, &s, &a, ret_through);
	if (a.run == &t->run)
		t->run = (struct timing_run){0};
	return result;
}
