/*
 * Finds the shift of the sideband's clock that explains the samples.
 *
 * The shifts that suit a sample are known without trying: for each turn near the sample there is an
 * interval of shifts, and the intervals are added up. A shift that suits most of a few samples is
 * tried on all samples, some of those that contradict it join the few, and so on. The numbers that
 * are reported were counted on all samples.
 *
 * Turns, not samples, decide which of two shifts is better, as the samples of one turn err
 * together: nearly all turns about which the two disagree must be for the better one.
 */
#include "decoder/worker/turns/shift.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"

/* Turns that are looked at for one sample and shift; a sample near more turns contradicts nothing.
 */
#define MAX_LOOKS  32u
#define FEW	   256u /* samples of a search that contradict, and as many others */
#define JOIN	   128u /* samples that join in a round */
#define ROUNDS	   6u	/* of a search */
#define ALL_ROUNDS 64u	/* of all searches of a bundle */
#define MAX_FEW	   (2 * FEW + (ROUNDS + 1) * JOIN)

/* Shifts that explain as much belong together if no more lies between them, ns: the kernel's part
 * of a switch. */
#define APART 20000

/* Turns on either side of a sample that may explain it. */
#define MAX_TURNS 64u

/* Shifts lo to hi. */
struct span {
	int64_t lo, hi;
};

/* From AT on one sample more is suited, or one less. */
struct edge {
	int64_t at;
	int change;
};

struct shift_search {
	const struct shift_question *q;
	const struct shift_sample **few; /* MAX_FEW */
	size_t n_few;
	struct edge *edges;
	size_t n_edges, max_edges;
	struct span open; /* of the sample at hand, not added yet; lo > hi: none */
	unsigned int rounds;
};

/* --- What a shift contradicts --- */

static uint64_t shifted(uint64_t time, int64_t ns)
{
	uint64_t to = time + (uint64_t)ns;

	if (ns < 0)
		return to > time ? 0 : to;
	return to < time ? UINT64_MAX : to;
}

static size_t first_until(const struct turns_cpu *cpu, uint64_t time)
{
	return FIRST_WHERE(i, cpu->n, cpu->list[i].until >= time);
}

size_t shift_turns_since(const struct turns_cpu *cpu, uint64_t time)
{
	/* The time behind the last turn counts like a turn of the idle task. */
	return cpu->n > 0 ? cpu->n - first_until(cpu, time) + 1 : 0;
}

/* The code that is mapped at IP in SPACE (may be NULL) at TIME; NULL: none. */
static const struct space_mapping *code_at(const struct space *space, uint64_t time, uint64_t ip)
{
	const struct space_mapping *m = space ? space_find(space, time, ip) : NULL;

	return m && (m->prot & PROT_EXEC) != 0 ? m : NULL;
}

/* Whether it is known what is mapped for THREAD at TIME. */
static bool is_known(const struct timeline *timeline, const struct timeline_thread *thread,
		     uint64_t time)
{
	return timeline_space(timeline, thread->pid, time) &&
	       !timeline_space_uncertain(timeline, thread->pid, time);
}

/* Whether nothing contradicts that THREAD was at IP at TIME. */
static bool may_be_at(const struct timeline *timeline, const struct timeline_thread *thread,
		      uint64_t time, uint64_t ip)
{
	return !is_known(timeline, thread, time) ||
	       code_at(timeline_space(timeline, thread->pid, time), time, ip);
}

static bool suits(const struct shift_question *q, const struct shift_sample *s,
		  const struct turns_turn *turn, int64_t ns)
{
	uint64_t lo = MAX_OF(shifted(s->enter_lo, ns), turn->since);
	uint64_t hi = MIN_OF(shifted(s->enter_hi, ns), turn->until - 1);

	if (turn->uncertain)
		return true;
	if (!turn->thread || turn->silent)
		return false;
	/* A mapping that was made just before may be replaced just behind. */
	return may_be_at(q->timeline, turn->thread, MAX_OF(hi, turn->since), s->ip) ||
	       (lo < hi && may_be_at(q->timeline, turn->thread, lo, s->ip));
}

/* The turn that sample S contradicts with a shift of NS. False: none. */
static bool find_contradicted(const struct shift_question *q, const struct shift_sample *s,
			      int64_t ns, size_t *ret)
{
	const struct turns_cpu *cpu = &q->turns->cpus[s->cpu];
	uint64_t leave = shifted(s->leave_lo, ns), enter = shifted(s->enter_hi, ns);
	size_t first = first_until(cpu, leave), i;

	if (cpu->n == 0)
		return false;
	for (i = first; i < cpu->n && cpu->list[i].since <= enter; i++)
		if (i - first == MAX_LOOKS || suits(q, s, &cpu->list[i], ns))
			return false;
	*ret = first;
	return true;
}

bool shift_contradicts(const struct shift_question *q, const struct shift_sample *s, int64_t ns)
{
	size_t turn;

	return find_contradicted(q, s, ns, &turn);
}

/* --- Which shifts suit most of a few samples --- */

/* A - B, limited to what a shift can be, and one more. */
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

/* Adds shifts LO to HI. Spans come nearly in order; spans that overlap become one. */
static int add_span(struct shift_search *s, int64_t lo, int64_t hi)
{
	int result;

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

/* Adds the shifts for which SAMPLE lies in TURN and its address in M. */
static int add_mapped(struct shift_search *s, const struct shift_sample *sample,
		      const struct turns_turn *turn, const struct space_mapping *m)
{
	int64_t lo, hi = difference(turn->until, sample->leave_lo);

	if (!m)
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
	if (!turn->thread || turn->silent)
		return 0;
	if (!is_known(timeline, turn->thread, until))
		return add_span(s, difference(turn->since, sample->enter_hi),
				difference(turn->until, sample->leave_lo));
	first = code_at(timeline_space(timeline, turn->thread->pid, turn->since), turn->since,
			sample->ip);
	last = code_at(timeline_space(timeline, turn->thread->pid, until), until, sample->ip);
	result = add_mapped(s, sample, turn, first);
	return result < 0 || first == last ? result : add_mapped(s, sample, turn, last);
}

/* Adds all shifts that suit SAMPLE. */
static int add_sample(struct shift_search *s, const struct shift_sample *sample)
{
	const struct turns_cpu *cpu = &s->q->turns->cpus[sample->cpu];
	size_t at = first_until(cpu, sample->leave_lo);
	size_t i = at - MIN_OF(at, (size_t)MAX_TURNS), end = MIN_OF(cpu->n, at + MAX_TURNS);
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

static int by_shift(const void *a, const void *b)
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

/* The shifts from edge *I to the next, and in *NOW how many samples they suit. False: no edge
 * follows. */
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

/* The shifts that suit most samples (*MOST); of several the ones nearest to no shift. */
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

/* All shifts around BEST that suit MOST samples; BEST becomes the widest span of them. */
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

/* The middle of the shifts that suit most samples and are nearest to no shift, and in *RET_DOUBT
 * how far the others are from there: a turn or two that contradict divide these shifts, and the
 * true shift may be on either side. */
static int64_t add_up(struct shift_search *s, uint64_t *ret_doubt)
{
	struct span best, all;
	int64_t ns;
	int most;

	if (s->n_edges > 0)
		qsort(s->edges, s->n_edges, sizeof(*s->edges), by_shift);
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

/* --- The search --- */

/* Adds to the few MAX samples, evenly out of N_ALL, that contradict a shift of NS, or that do not.
 */
static void join(struct shift_search *s, int64_t ns, bool contradict, size_t n_all, size_t max)
{
	const struct shift_question *q = s->q;
	size_t seen = 0, taken = 0;

	for (size_t i = 0; i < q->n && taken < max && s->n_few < MAX_FEW; i++) {
		if (shift_contradicts(q, &q->samples[i], ns) != contradict)
			continue;
		if (seen++ * max < taken * n_all)
			continue;
		s->few[s->n_few++] = &q->samples[i];
		taken++;
	}
}

/* How two shifts differ. */
struct comparison {
	uint64_t before, after; /* samples that contradict the first shift, the second one */
	uint64_t won, lost;	/* turns that contradict only the first one, only the second one */
};

static struct comparison compare(const struct shift_question *q, int64_t from, int64_t to)
{
	struct comparison c = {0};
	size_t won = SIZE_MAX, lost = SIZE_MAX;
	uint32_t cpu = UINT32_MAX;

	for (size_t i = 0; i < q->n; i++) {
		size_t turn = 0, other = 0;
		bool before = find_contradicted(q, &q->samples[i], from, &turn);
		bool after = from == to ? before : find_contradicted(q, &q->samples[i], to, &other);

		if (q->samples[i].cpu != cpu)
			won = lost = SIZE_MAX;
		cpu = q->samples[i].cpu;
		c.before += before;
		c.after += after;
		if (before && !after && turn != won) {
			c.won++;
			won = turn;
		} else if (after && !before && other != lost) {
			c.lost++;
			lost = other;
		}
	}
	return c;
}

/* The shift that explains most, and in *RET how it compares with FROM. It is FROM itself, with
 * *DOUBT unchanged, where no other shift is better. */
static int improve(struct shift_search *s, int64_t from, int64_t *ret_ns, uint64_t *doubt,
		   struct comparison *ret)
{
	uint64_t n = s->q->n;
	int result = 0;

	*ret = compare(s->q, from, from);
	*ret_ns = from;
	if (ret->before < SHIFT_TURNS)
		return 0;
	s->n_few = 0;
	join(s, from, true, ret->before, FEW);
	join(s, from, false, n - ret->before, FEW);
	for (unsigned int i = 0; i < ROUNDS && s->rounds > 0; i++, s->rounds--) {
		struct comparison c;
		uint64_t off = 0;
		int64_t ns;

		/* NS suits most of the few samples; shifts up to OFF from there suit as many. */
		s->n_edges = 0;
		for (size_t k = 0; k < s->n_few && result == 0; k++)
			result = add_sample(s, s->few[k]);
		if (result < 0)
			break;
		ns = add_up(s, &off);
		if (ns == *ret_ns)
			break;
		c = compare(s->q, from, ns);
		if (c.won >= SHIFT_TURNS && c.won >= SHIFT_TIMES * c.lost && c.after < ret->after) {
			*ret_ns = ns;
			*doubt = off;
			*ret = c;
		}
		join(s, ns, true, c.after, JOIN);
	}
	return result;
}

/* Improves the shift for each CPU by itself. */
static int improve_each(struct shift_search *s, const struct shift_question *q, struct shift *ret)
{
	size_t i = 0;
	int result = 0;

	while (i < q->n && result == 0) {
		uint32_t cpu = q->samples[i].cpu;
		struct shift_cpu *own = &ret->cpus[cpu];
		struct shift_question one = *q;
		struct comparison c;

		one.samples = &q->samples[i];
		for (one.n = 0; i < q->n && q->samples[i].cpu == cpu; i++)
			one.n++;
		s->q = &one;
		own->doubt = ret->doubt;
		result = improve(s, ret->ns, &own->ns, &own->doubt, &c);
		own->samples = one.n;
		own->before = ret->ns != 0 ? compare(&one, 0, 0).before : c.before;
		own->after = c.after;
		ret->differ = ret->differ || own->ns != ret->ns;
	}
	s->q = q;
	return result;
}

int shift_find(const struct shift_question *q, struct shift *ret)
{
	CLEANUP_FREE const struct shift_sample **few = calloc(MAX_FEW, sizeof(*few));
	struct shift_search s = {.q = q, .few = few, .rounds = ALL_ROUNDS};
	struct comparison c;
	int result;

	*ret = (struct shift){.n_cpus = q->turns->n_cpus};
	ret->cpus = calloc(ret->n_cpus + 1, sizeof(*ret->cpus));
	if (!few || !ret->cpus)
		return -ENOMEM;
	result = improve(&s, 0, &ret->ns, &ret->doubt, &c);
	for (size_t i = 0; i < ret->n_cpus; i++) {
		ret->cpus[i].ns = ret->ns;
		ret->cpus[i].doubt = ret->doubt;
	}
	if (result == 0)
		result = improve_each(&s, q, ret);
	free(s.edges);
	ret->samples = q->n;
	ret->before = ret->after = 0;
	for (size_t i = 0; i < ret->n_cpus; i++) {
		ret->before += ret->cpus[i].before;
		ret->after += ret->cpus[i].after;
	}
	ret->found = ret->ns != 0 || ret->differ;
	return result;
}

void shift_done(struct shift *s)
{
	free(s->cpus);
	*s = (struct shift){0};
}
