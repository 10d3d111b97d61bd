/*
 * Turns counts of core cycles (CYC packets) into intervals of time.
 *
 * N cycles between two CYCs limit the TSC ticks between them:
 *
 * - At least: the core never runs faster than its ratio to the bus, the CBR, which is a rounded
 *   number. N cycles take at least N * max_nonturbo / (CBR + 1) ticks, and more if the clock
 *   stops.
 * - At most: the core clock has one speed as long as no CBR changes it, and every stop is
 *   followed by a TSC (33.4.2, TSC, "Generation Scenario"). The same TSC comes when TraceEn goes
 *   from 0 to 1; the cycle counter is reset before (33.3.6.1). It may be the TSC of a PSB+ that
 *   was written while tracing was off, or directly behind TIP.PGE (33.3.7, and table "Packet
 *   Generation under Different Enable Conditions"). A segment without a new CBR, a loss or such a
 *   TSC is steady: its speed is constant. The speed is known once two anchors with the
 *   same speed have a CYC directly before them: the N cycles between them take T ticks, as
 *   exactly as the anchors are known. A speed that contradicts the CBR shows a stop without a
 *   TSC, and the segment does not count as steady. Packets before the TSC of a stop tell of
 *   instructions that executed before the stop, as nothing executes while the clock stands, and
 *   the TSC has the time at which the clock runs again (33.4.2, TSC, "Application"). Up to there
 *   the speed is constant. Cycles behind the last of these packets may be of another speed, as
 *   the CBR of a changed speed comes behind the TSC.
 * - The speed of a spread spectrum clock is not quite constant: it varies by 0.5 % in all, at
 *   about 30 kHz, and the clock is never more than about 21 ns ahead of or behind a constant one.
 *   Each use of a speed allows for that, unless the trace shows that its clock does not swing so
 *   far. In a segment whose two anchors both have a CYC (a pinned one), the clock is known at
 *   both ends. How far it leaves the line between them is also bounded by how quickly its speed
 *   changes: PCI Express, whose reference clock this is on most boards, allows 1250 ppm per
 *   microsecond.
 *
 * The base from which a segment's first CYC counts is not always known, for example at the first
 * anchor of a trace or behind a stop. It is the first anchor or before, so the first CYC comes at
 * most its count of cycles behind the first anchor. Until a speed was measured, the CBR, again a
 * rounded number, says how slow the clock is.
 *
 * The remaining uncertainty is no less than what the trace leaves open: a branch that follows
 * others in its TNT, or that no packet tells of, lies anywhere between two CYCs. Thus the mean
 * width of an interval is the mean distance of the CYCs around a branch, and a few ticks, because
 * cycles are whole numbers and the clock may swing. A branch with a CYC directly before it has only
 * these few ticks, which more than makes up for them in the mean. The width is larger before the
 * first anchor that has a CYC; and if an MTC stands between two branches with packets, a branch
 * between them without a packet may be on either side of the MTC.
 */
#include "decoder/time/timing_private.h"
#include "proto/base.h"

/*
 * --- How far the clock swings, as the trace shows ---
 *
 * A spread spectrum clock runs ahead of a clock of constant speed and falls behind again, 30,000 to
 * 33,000 times a second. Anchors with a CYC directly before them are points of that curve: of three
 * points in a row, the middle one is off the line between the others. If the clock does not swing,
 * each of many points lies on its line, and the curve is flat in between, too.
 *
 * How many points are enough: with a clock that swings, 24 triples all stayed within an eighth of
 * the swing in none of 10^6 simulated cases (triangular and sine profiles; random distances, or
 * distances that are nearly always a multiple of the period). Anchors at regular distances may meet
 * the clock in the same phase each time and show nothing, and a short distance beside a long one
 * shows little. Therefore a triple counts only if its distances differ, but not by much; or if they
 * are well away from half a period and from a whole one, so that a few of them go round the period.
 * No distance may be less than a quarter of a period.
 */

/* In units of the ratio: 25 ns, more than any such clock is off; 8 us, a quarter of a period; and
 * 4 us. */
#define WIDEST(ratio)	 (UINT64_C(5) * (ratio) / 2)
#define SHORTEST(ratio)	 (UINT64_C(800) * (ratio))
#define IRREGULAR(ratio) (UINT64_C(400) * (ratio))

/* 14 us, below half a period (15 to 16.7 us); 18 and 23 us, between half a period and a whole one.
 */
#define HALF(ratio)  (UINT64_C(1400) * (ratio))
#define ABOVE(ratio) (UINT64_C(1800) * (ratio))
#define WHOLE(ratio) (UINT64_C(2300) * (ratio))

/* How many triples are enough, and by what factor the clock may be off farther than any of them. */
#define ENOUGH 24u
#define FACTOR 8u

uint64_t timing_swing(const struct timing *t)
{
	uint64_t widest = WIDEST(t->config.max_nonturbo_ratio);

	if (t->swing.seen < ENOUGH || t->swing.worst >= widest)
		return widest;
	/* Adds a tick, as times are whole numbers. */
	return MIN_OF(widest, FACTOR * (t->swing.worst + 1));
}

bool timing_swing_known(const struct timing *t)
{
	return t->swing.seen >= ENOUGH || t->config.max_nonturbo_ratio == 0;
}

void timing_swing_restart(struct timing *t, uint64_t tsc)
{
	t->swing.points[0] = (struct timing_point){tsc, 0};
	t->swing.n = 1;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Whether anchors that are always DISTANCE apart meet the clock in phases all over its period. */
static bool goes_round(uint64_t distance, uint32_t ratio)
{
	return distance <= HALF(ratio) || (distance >= ABOVE(ratio) && distance <= WHOLE(ratio));
}

/* Whether a triple with these distances says enough to count. */
static bool is_conclusive(uint64_t first, uint64_t second, uint32_t ratio)
{
	uint64_t shorter = MIN_OF(first, second), longer = MAX_OF(first, second);

	if (goes_round(shorter, ratio) && goes_round(longer, ratio))
		return true;
	return longer - shorter >= IRREGULAR(ratio) && longer / 3 <= shorter;
}

static void take_triple(struct timing *t, const struct timing_point *c, uint64_t offset)
{
	const struct timing_point *a = &t->swing.points[0], *b = &t->swing.points[1];
	uint64_t first = b->tsc - a->tsc, second = c->tsc - b->tsc;
	uint64_t line =
		timing_scaled(c->tsc - a->tsc, b->cycles - a->cycles, c->cycles - a->cycles);

	t->swing.worst = MAX_OF(t->swing.worst, apart(first, line));
	if (offset > t->swing.until && t->swing.seen < ENOUGH &&
	    is_conclusive(first, second, t->config.max_nonturbo_ratio))
		t->swing.seen++;
}

void timing_swing_point(struct timing *t, uint64_t tsc, uint64_t cycles, uint64_t offset)
{
	struct timing_swing *s = &t->swing;
	const struct timing_point *last = &s->points[s->n - 1], c = {tsc, cycles};

	if (t->config.max_nonturbo_ratio == 0 || tsc < last->tsc || cycles <= last->cycles ||
	    tsc - last->tsc < SHORTEST(t->config.max_nonturbo_ratio))
		return;
	if (s->n == 2) {
		take_triple(t, &c, offset);
		s->points[0] = s->points[1];
		s->n = 1;
	}
	s->points[s->n++] = c;
}

/* --- The time of a CYC --- */

#define SPREAD 200u   /* the speed of a spread spectrum clock varies by 1/SPREAD */
#define DRIFT  16384u /* the mean speed drifts by 1/DRIFT */
/* Between two anchors T ticks apart, a drifting clock is off their line by at most T * T / SAG. */
#define SAG(ratio) (UINT64_C(640000) * (ratio))

/* A speed is measured over so many cycles: fewer hardly show the speed, and more show it no better
 * and make the numbers large. */
#define MEASURE_MIN 64u
#define MEASURE_MAX (UINT64_C(1) << 40)

/* By how much TICKS that follow from a measured speed may be wrong. */
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

/* The ticks of CYCLES cycles at the highest speed that the CBR can stand for. */
static uint64_t by_fastest(const struct timing *t, uint64_t cycles)
{
	const struct timing_segment *s = &t->segment;

	if (s->fastest == 0 || t->ratio_wrong)
		return 0;
	return timing_scaled(cycles, t->config.max_nonturbo_ratio, s->fastest + 1u);
}

/* The ticks between two CYCs that are CYCLES apart, at least. CYCs count whole cycles, so the true
 * distance may be almost one cycle more or less. */
static uint64_t at_least(const struct timing *t, uint64_t cycles)
{
	uint64_t ticks, measured;

	cycles = timing_minus(cycles, 1);
	ticks = by_fastest(t, cycles);
	if (t->rate.cycles == 0)
		return ticks;
	measured = timing_scaled(cycles, t->rate.lo, t->rate.cycles + 1);
	return MAX_OF(ticks, timing_minus(measured, uncertain(t, measured)));
}

/* The ticks of CYCLES cycles at the lowest speed that the CBR can stand for. */
static uint64_t by_slowest(const struct timing *t, uint64_t cycles)
{
	const struct timing_segment *s = &t->segment;
	uint32_t ratio = t->config.max_nonturbo_ratio;
	uint64_t ticks;

	if (s->fastest == 0 || ratio == 0 || t->ratio_wrong)
		return UINT64_MAX;
	ticks = timing_scaled(cycles + 1, ratio + UINT64_C(1), s->fastest);
	return ticks + ticks / SPREAD + 2;
}

/* The ticks between two CYCs of a steady segment, at most. */
static uint64_t at_most(const struct timing *t, uint64_t cycles)
{
	uint64_t measured;

	if (t->rate.cycles == 0)
		return by_slowest(t, cycles);
	measured = timing_scaled(cycles + 1, t->rate.hi, t->rate.cycles - 1) + 1;
	return measured + uncertain(t, measured);
}

/* Narrows the interval of a CYC in a pinned segment. */
static void bound_pinned(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;
	uint64_t all = s->hi - s->base_lo;
	uint64_t slack = timing_scaled(MIN_OF(cycles, left), all, s->total) / SPREAD;

	/* Adds a cycle, as CYCs count whole cycles. */
	slack = MIN_OF(slack, s->sag) + all / s->total + 1;
	*lo = MAX_OF(*lo, timing_minus(s->base_lo + timing_scaled(cycles, s->b_lo - s->base_lo,
								  s->total),
				       slack));
	*hi = MIN_OF(*hi,
		     s->base_hi + timing_scaled(cycles, s->hi - s->base_hi, s->total) + 1 + slack);
}

/* The same in any other segment. */
static void bound_loose(const struct timing *t, uint64_t cycles, uint64_t *lo, uint64_t *hi)
{
	const struct timing_segment *s = &t->segment;
	uint64_t left = s->total - cycles;

	*lo = MAX_OF(*lo, timing_plus(s->base_lo, at_least(t, cycles)));
	if (s->hi != UINT64_MAX && cycles < s->sure)
		*hi = MIN_OF(*hi, timing_minus(s->hi, at_least(t, s->sure - cycles)));
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
	/* If the bounds contradict each other, some number is wrong. */
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
	/* Times are rounded down, so the anchors may be a tick closer together or farther apart. */
	if (t->measuring && cycles >= MAX_OF(t->rate.cycles, MEASURE_MIN))
		t->rate = (struct timing_rate){timing_minus(s->b_lo, t->measure_hi + 1),
					       timing_minus(s->hi + 1, t->measure_lo), cycles};
	if (t->measuring)
		return;
	t->measuring = true;
	t->measure_lo = s->b_lo;
	t->measure_hi = s->hi;
	t->measure_cycles = 0;
}

/* How many ticks at most the clock is off the line between the anchors of a pinned segment. */
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
	/* The first CYC counts from the first anchor or from before, so the CYC comes at most its
	 * count of cycles behind the first anchor. */
	if (!s->counted && (s->steady || s->stopped))
		s->base_hi = timing_plus(s->first_hi, at_most(t, s->first_count));
}

void timing_check_speed(struct timing *t)
{
	struct timing_segment *s = &t->segment;

	s->pinned = s->steady && s->near && s->base_near && s->total > 0 && s->b_lo >= s->base_lo &&
		    s->hi >= s->base_hi;
	if (!s->pinned)
		return;
	if (by_fastest(t, s->total) > s->hi - s->base_lo + 1)
		t->ratio_wrong = true;
	/* More time than these cycles take at any speed: the counter stood still, or wrapped. */
	if (timing_minus(s->b_lo, s->base_hi) > by_slowest(t, s->total))
		s->pinned = s->steady = false;
}
