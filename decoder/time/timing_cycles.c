/*
 * CYCs: what a number of core cycles says of time. Part of timing.c's work.
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
 *   told, and counts as no steady one. What stands before the TSC that tells of a stop was executed
 *   before the clock stopped: nothing is while it stands, and the TSC has the time at which it runs
 *   again (33.4.2, TSC, "Application"). So up to there the speed is constant.
 * - A spread spectrum clock is not quite constant: 0.5 % from one end to the other at some 30 kHz,
 *   which is never more than some 21 ns ahead or behind of one that is. Each use of a speed allows
 *   for that, unless the trace shows that its clock does not swing so far (timing_swing.c).
 *   Between two anchors that both have a CYC (pinned) it is held at both ends; how far it leaves
 *   the line between them is also bounded by how quickly its speed changes: PCI Express, whose
 *   reference clock this is on most boards, allows 1250 ppm a microsecond.
 *
 * Where a segment's first CYC counts from is not always known: at the first anchor of a trace, or
 * behind a stop. No later than from the first anchor, so it comes at most so many cycles behind
 * that. As long as no speed was measured the CBR, a rounded number again, says how slow it is.
 *
 * What remains uncertain is no less than what the trace leaves open: a branch that follows others
 * in its TNT, or that no packet tells of, lies anywhere between two CYCs. So the mean width is the
 * mean distance of the CYCs that the branches lie between, and a few ticks: the cycles are whole
 * ones, and the clock may swing. A branch that has a CYC directly before it has these few ticks
 * only, which more than pays for them in the mean. It is otherwise before the first anchor that has
 * a CYC, and where there is an MTC between two branches that packets tell of: one between them that
 * no packet tells of may be on either side of it.
 */
#include "decoder/time/timing_private.h"
#include "proto/base.h"

#define SPREAD 200u /* a spread spectrum clock deviates by 1 in so many */
/* The mean speed drifts by 1 in so many. */
#define DRIFT 16384u
/* It leaves the line between two anchors T ticks apart by T * T / SAG ticks at most. */
#define SAG(ratio) (UINT64_C(640000) * (ratio))

/* A speed is measured over so many cycles: over fewer it is hardly known, over more it is no better
 * known, and numbers stay small. */
#define MEASURE_MIN 64u
#define MEASURE_MAX (UINT64_C(1) << 40)

/* By how much TICKS of a measured speed may be wrong. */
static uint64_t uncertain(const struct timing *t, uint64_t ticks)
{
	uint64_t slack = ticks / SPREAD, swing;

	if (t->config.max_nonturbo_ratio != 0 && t->rate.lo != 0) {
		swing = timing_swing(t);
		swing += timing_scaled(ticks, swing, t->rate.lo) + ticks / DRIFT;
		slack = MIN_OF(slack, swing);
	}
	return slack + 1;
}

static uint64_t by_ratio(const struct timing *t, uint64_t cycles)
{
	const struct timing_segment *s = &t->segment;

	if (s->fastest == 0 || t->ratio_wrong)
		return 0;
	return timing_scaled(cycles, t->config.max_nonturbo_ratio, s->fastest + 1u);
}

/* Two CYCs that are CYCLES apart are so many ticks apart at least. Each counts whole cycles, so
 * that they may be less than one more or less apart. */
static uint64_t at_least(const struct timing *t, uint64_t cycles)
{
	uint64_t ticks, measured;

	cycles = timing_minus(cycles, 1);
	ticks = by_ratio(t, cycles);
	if (t->rate.cycles == 0)
		return ticks;
	measured = timing_scaled(cycles, t->rate.lo, t->rate.cycles + 1);
	return MAX_OF(ticks, timing_minus(measured, uncertain(t, measured)));
}

/* At the lowest speed that the CBR can stand for. */
static uint64_t by_slowest(const struct timing *t, uint64_t cycles)
{
	const struct timing_segment *s = &t->segment;
	uint32_t ratio = t->config.max_nonturbo_ratio;

	if (s->fastest == 0 || ratio == 0 || t->ratio_wrong)
		return UINT64_MAX;
	return timing_scaled(cycles + 1, ratio + UINT64_C(1), s->fastest) + 2;
}

/* And so many at most, in a steady segment. */
static uint64_t at_most(const struct timing *t, uint64_t cycles)
{
	uint64_t measured;

	if (t->rate.cycles == 0)
		return by_slowest(t, cycles);
	measured = timing_scaled(cycles + 1, t->rate.hi, t->rate.cycles - 1) + 1;
	return measured + uncertain(t, measured);
}

/* Between two anchors that have CYCs. */
static void bound_pinned(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;
	uint64_t all = s->hi - s->base_lo;
	uint64_t slack = timing_scaled(MIN_OF(cycles, left), all, s->total) / SPREAD;

	/* A cycle: they are counted as whole ones. */
	slack = MIN_OF(slack, s->sag) + all / s->total + 1;
	*lo = MAX_OF(*lo, timing_minus(s->base_lo + timing_scaled(cycles, s->b_lo - s->base_lo,
								  s->total),
				       slack));
	*hi = MIN_OF(*hi,
		     s->base_hi + timing_scaled(cycles, s->hi - s->base_hi, s->total) + 1 + slack);
}

static void bound_loose(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;

	*lo = MAX_OF(*lo, timing_plus(s->base_lo, at_least(t, cycles)));
	if (s->hi != UINT64_MAX)
		*hi = MIN_OF(*hi, timing_minus(s->hi, at_least(t, left)));
	if (s->steady || s->stopped)
		*hi = MIN_OF(*hi, timing_plus(s->base_hi, at_most(t, cycles)));
	if (s->steady && s->near)
		*lo = MAX_OF(*lo, timing_minus(s->b_lo, at_most(t, left)));
}

void timing_bound(const struct timing *t, uint64_t cycles, uint64_t *ret_lo, uint64_t *ret_hi)
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

void timing_measure(struct timing *t)
{
	const struct timing_segment *s = &t->segment;
	uint64_t cycles = timing_plus(t->measure_cycles, s->total);

	if (!s->steady || cycles > MEASURE_MAX)
		t->measuring = false;
	t->measure_cycles = cycles;
	if (!s->near)
		return;
	if (t->measuring)
		timing_swing_point(t, s->b_lo, cycles, s->end);
	else
		timing_swing_restart(t, s->b_lo);
	if (t->measuring && cycles >= MAX_OF(t->rate.cycles, MEASURE_MIN))
		t->rate = (struct timing_rate){timing_minus(s->b_lo, t->measure_hi),
					       timing_minus(s->hi, t->measure_lo), cycles};
	if (t->measuring)
		return;
	t->measuring = true;
	t->measure_lo = s->b_lo;
	t->measure_hi = s->hi;
	t->measure_cycles = 0;
}

static uint64_t find_sag(const struct timing *t)
{
	uint64_t all = t->segment.hi - t->segment.base_lo, swing;
	uint32_t ratio = t->config.max_nonturbo_ratio;

	if (ratio == 0)
		return UINT64_MAX;
	swing = timing_swing(t);
	return all > UINT32_MAX ? swing : MIN_OF(swing, all * all / SAG(ratio) + 1);
}

void timing_settle(struct timing *t)
{
	struct timing_segment *s = &t->segment;

	if (s->pinned)
		s->sag = find_sag(t);
	/* The first CYC counts from the first anchor or from before: it comes no later than so many
	 * cycles behind that. */
	if (!s->counted && (s->steady || s->stopped))
		s->base_hi = timing_plus(s->first_hi, at_most(t, s->first_count));
}

void timing_check_speed(struct timing *t)
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
	    timing_minus(s->b_lo, s->base_hi) > timing_scaled(s->total, ratio + 1u, s->fastest) + 2)
		s->pinned = s->steady = false;
}
