/*
 * Samples -> the shifts that suit most of them. For each turn near a sample there is an interval of
 * shifts, from its being there and from when the address was mapped in its thread's process; they
 * are added up. Called by shift.c.
 */
#include <stdlib.h>

#include "decoder/worker/turns/shift_private.h"
#include "proto/base.h"

/* Shifts that explain as much belong together if no more is between them, ns: the kernel's part of
 * a switch. */
#define APART 20000

/* A - B within what a shift can be, and one more. */
static int64_t difference(uint64_t a, uint64_t b)
{
	const uint64_t most = SHIFT_MAX + 1;

	return a >= b ? (int64_t)MIN_OF(a - b, most) : -(int64_t)MIN_OF(b - a, most);
}

static int close_span(struct shift_search *s)
{
	if (s->open.lo > s->open.hi)
		return 0;
	if (ARRAY_RESERVE(s->edges, s->max_edges, s->n_edges + 2) < 0)
		return -ENOMEM;
	s->edges[s->n_edges++] = (struct edge){s->open.lo, 1};
	s->edges[s->n_edges++] = (struct edge){s->open.hi + 1, -1};
	s->open = (struct span){1, 0};
	return 0;
}

/* Spans come in order, nearly: what overlaps is one. */
static int add_span(struct shift_search *s, int64_t lo, int64_t hi)
{
	int result = 0;

	lo = MAX_OF(lo, -(int64_t)SHIFT_MAX);
	hi = MIN_OF(hi, (int64_t)SHIFT_MAX);
	if (lo > hi)
		return 0;
	if (s->open.lo <= s->open.hi && lo <= s->open.hi + 1 && hi + 1 >= s->open.lo) {
		s->open.lo = MIN_OF(s->open.lo, lo);
		s->open.hi = MAX_OF(s->open.hi, hi);
		return 0;
	}
	result = close_span(s);
	s->open = (struct span){lo, hi};
	return result;
}

/* The shifts for which SAMPLE lies in TURN and its address in M. */
static int add_mapped(struct shift_search *s, const struct shift_sample *sample,
		      const struct turns_turn *turn, const struct space_mapping *m)
{
	int64_t lo, hi = difference(turn->until, sample->leave_lo);

	if (m == NULL)
		return 0;
	lo = difference(MAX_OF(turn->since, m->begin), sample->enter_hi);
	if (m->end != SPACE_NOW)
		hi = MIN_OF(hi, difference(m->end, sample->enter_lo) - 1);
	return add_span(s, lo, hi);
}

static int add_turn(struct shift_search *s, const struct shift_sample *sample,
		    const struct turns_turn *turn)
{
	const struct timeline *timeline = s->q->timeline;
	const struct space_mapping *first, *last;
	uint64_t until = turn->until - 1;
	int result;

	if (turn->uncertain)
		return add_span(s, difference(turn->since, sample->enter_hi),
				difference(turn->until, sample->leave_lo));
	if (turn->thread == NULL || turn->silent)
		return 0;
	if (!shift_is_known(timeline, turn->thread, until))
		return add_span(s, difference(turn->since, sample->enter_hi),
				difference(turn->until, sample->leave_lo));
	first = shift_code(timeline_space(timeline, turn->thread->pid, turn->since), turn->since,
			   sample->ip);
	last = shift_code(timeline_space(timeline, turn->thread->pid, until), until, sample->ip);
	result = add_mapped(s, sample, turn, first);
	return result < 0 || first == last ? result : add_mapped(s, sample, turn, last);
}

/* All shifts that suit SAMPLE. */
static int add_sample(struct shift_search *s, const struct shift_sample *sample)
{
	const struct turns_cpu *cpu = &s->q->turns->cpus[sample->cpu];
	size_t at = shift_first_until(cpu, sample->leave_lo);
	size_t i = at - MIN_OF(at, (size_t)SHIFT_MAX_TURNS),
	       end = MIN_OF(cpu->n, at + SHIFT_MAX_TURNS);
	int result = 0;

	s->open = (struct span){1, 0};
	for (; i < end && result == 0; i++) {
		const struct turns_turn *turn = &cpu->list[i];

		if (difference(turn->until, sample->leave_lo) < -(int64_t)SHIFT_MAX)
			continue;
		if (difference(turn->since, sample->enter_hi) > (int64_t)SHIFT_MAX)
			break;
		result = add_turn(s, sample, turn);
	}
	return result < 0 ? result : close_span(s);
}

static int by_place(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->change - y->change;
}

static int64_t distance(const struct span *span)
{
	if (span->lo <= 0 && span->hi >= 0)
		return 0;
	return span->lo > 0 ? span->lo : -span->hi;
}

/* The shifts from edge *I to the next: how many samples they suit, *now, and which they are. False:
 * no edge follows. */
static bool next_span(const struct shift_search *s, size_t *i, int *now, struct span *ret)
{
	for (; *i + 1 < s->n_edges; ++*i) {
		*now += s->edges[*i].change;
		*ret = (struct span){s->edges[*i].at, s->edges[*i + 1].at - 1};
		if (ret->lo <= ret->hi) {
			++*i;
			return true;
		}
	}
	return false;
}

/* The shifts that suit most samples, *most; of several those nearest to none. */
static struct span find_nearest(const struct shift_search *s, int *most)
{
	struct span best = {0, 0}, span;
	size_t i = 0;
	int now = 0;

	*most = 0;
	while (next_span(s, &i, &now, &span)) {
		if (now < *most || (now == *most && distance(&span) >= distance(&best)))
			continue;
		*most = now;
		best = span;
	}
	return best;
}

static int64_t width(const struct span *span)
{
	return span->hi - span->lo;
}

/* All that suit MOST around BEST, which becomes the widest of them. */
static struct span find_all_near(const struct shift_search *s, int most, struct span *best)
{
	struct span all = {1, 0}, widest = {0}, span;
	const struct span nearest = *best;
	size_t i = 0;
	int now = 0;

	while (next_span(s, &i, &now, &span)) {
		if (now != most)
			continue;
		if (all.lo > all.hi || span.lo - all.hi > APART) {
			if (span.lo > nearest.hi)
				break;
			all = widest = span;
		}
		all.hi = span.hi;
		if (width(&span) > width(&widest))
			widest = span;
	}
	*best = widest;
	return all;
}

/* The middle of the shifts that suit most samples, of those that are nearest to none; and how far
 * it is from there to the others. What one turn or another says against it divides these shifts,
 * and the true one may be on either side. */
static int64_t add_up(struct shift_search *s, uint64_t *ret_doubt)
{
	struct span best, all;
	int64_t ns;
	int most;

	if (s->n_edges > 0)
		qsort(s->edges, s->n_edges, sizeof(*s->edges), by_place);
	best = find_nearest(s, &most);
	*ret_doubt = 0;
	if (distance(&best) == 0)
		return 0;
	all = find_all_near(s, most, &best);
	if (distance(&best) == 0)
		return 0;
	ns = best.lo + width(&best) / 2;
	*ret_doubt = (uint64_t)MAX_OF(ns - all.lo, all.hi - ns + 1);
	return ns;
}

int shift_best(struct shift_search *s, int64_t *ret, uint64_t *ret_doubt)
{
	int result = 0;

	s->n_edges = 0;
	for (size_t i = 0; i < s->n_few && result == 0; i++)
		result = add_sample(s, s->few[i]);
	*ret = 0;
	*ret_doubt = 0;
	if (result == 0)
		*ret = add_up(s, ret_doubt);
	return result;
}
