/*
 * How far the core clock swings about its mean speed, as a trace shows. Part of timing.c's work.
 *
 * A spread spectrum clock runs ahead of one of constant speed and falls behind it again, 30,000 to
 * 33,000 times a second. Anchors that have a CYC directly before them are points of that curve: of
 * three in a row the middle one is off the line between the others. Where the clock is none such
 * each of many points lies on its line, and then the curve is flat in between, too.
 *
 * How many are enough: where a clock swings, 24 triples all stay within an eighth of it in none of
 * 10^6 simulated cases (triangular and sine profiles; distances by chance, or a multiple of the
 * period nearly always). Anchors at regular distances may meet the clock in the same phase each
 * time and show nothing, and a short distance beside a long one shows little. So a triple counts
 * only if its distances differ, but not by much, or if they are well away from half a period and
 * from a whole one, so that a few of them go round it; and no distance is less than a quarter.
 */
#include "decoder/time/timing_private.h"
#include "proto/base.h"

/* In units of the ratio: 25 ns, more than any such clock is off; 8 us, a quarter of a period; 4 us.
 */
#define WIDEST(ratio)	 (UINT64_C(5) * (ratio) / 2)
#define SHORTEST(ratio)	 (UINT64_C(800) * (ratio))
#define IRREGULAR(ratio) (UINT64_C(400) * (ratio))

/* And 14 us, below half a period (15 to 16.7 us); 18 and 23 us, between that and a whole one. */
#define HALF(ratio)  (UINT64_C(1400) * (ratio))
#define ABOVE(ratio) (UINT64_C(1800) * (ratio))
#define WHOLE(ratio) (UINT64_C(2300) * (ratio))

/* Triples, and how many times as far as any of them the clock may be off. */
#define ENOUGH 24u
#define FACTOR 8u

uint64_t timing_swing(const struct timing *t)
{
	uint64_t widest = WIDEST(t->config.max_nonturbo_ratio);

	if (t->swing.seen < ENOUGH || t->swing.worst >= widest)
		return widest;
	/* A tick: times are whole ones. */
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

/* Anchors this far apart each time meet a clock in phases all over its period. */
static bool goes_round(uint64_t distance, uint32_t ratio)
{
	return distance <= HALF(ratio) || (distance >= ABOVE(ratio) && distance <= WHOLE(ratio));
}

static bool says_much(uint64_t first, uint64_t second, uint32_t ratio)
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
	    says_much(first, second, t->config.max_nonturbo_ratio))
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
