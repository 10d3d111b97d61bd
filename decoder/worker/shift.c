/*
 * Samples -> the shift that explains them.
 *
 * Which shifts suit a sample is known without trying: for each turn near it an interval, from its
 * being there and from when the address was mapped in its thread's process. A shift that suits most
 * of a few samples is found by adding up their intervals; it is then tried on all samples, some of
 * those that it contradicts join the few, and so on. What is reported was counted on all.
 *
 * Whether a shift is better than another one is a question of how many turns say so, as the samples
 * of one turn err together: of the turns about which the two disagree nearly all must be for it.
 */
#include "decoder/worker/shift.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"

/* Turns that are looked at for one sample and shift; beyond nothing is contradicted. */
#define MAX_LOOKS 32u
/* Turns on either side of a sample that may explain it. */
#define MAX_TURNS 64u
/* Of a search: samples that contradict, others, those that join in a round, rounds. */
#define FEW    256u
#define JOIN   128u
#define ROUNDS 6u
/* Of all searches of a bundle. */
#define ALL_ROUNDS 64u
#define MAX_FEW	   (2 * FEW + (ROUNDS + 1) * JOIN)

static uint64_t shifted(uint64_t time, int64_t ns)
{
	uint64_t to = time + (uint64_t)ns;

	if (ns < 0)
		return to > time ? 0 : to;
	return to < time ? UINT64_MAX : to;
}

/* A - B within what a shift can be, and one more. */
static int64_t difference(uint64_t a, uint64_t b)
{
	const uint64_t most = SHIFT_MAX + 1;

	return a >= b ? (int64_t)MIN_OF(a - b, most) : -(int64_t)MIN_OF(b - a, most);
}

/* The first turn of CPU that ends at TIME or later. */
static size_t first_until(const struct turns_cpu *cpu, uint64_t time)
{
	size_t lo = 0, hi = cpu->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cpu->list[mid].until >= time)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

size_t shift_turns_since(const struct turns_cpu *cpu, uint64_t time)
{
	/* Behind the last one is none, which is as good as one of nobody. */
	return cpu->n > 0 ? cpu->n - first_until(cpu, time) + 1 : 0;
}

static const struct space_mapping *find_code(const struct space *space, uint64_t time, uint64_t ip)
{
	const struct space_mapping *m = space == NULL ? NULL : space_find(space, time, ip);

	return m != NULL && (m->prot & PROT_EXEC) != 0 ? m : NULL;
}

/* What is mapped for THREAD at TIME. */
static bool is_known(const struct timeline *timeline, const struct timeline_thread *thread,
		     uint64_t time)
{
	return timeline_space(timeline, thread->pid, time) != NULL &&
	       !timeline_space_uncertain(timeline, thread->pid, time);
}

/* Nothing contradicts that THREAD was at IP at TIME. */
static bool may_be_at(const struct timeline *timeline, const struct timeline_thread *thread,
		      uint64_t time, uint64_t ip)
{
	return !is_known(timeline, thread, time) ||
	       find_code(timeline_space(timeline, thread->pid, time), time, ip) != NULL;
}

static bool suits(const struct shift_question *q, const struct shift_sample *s,
		  const struct turns_turn *turn, int64_t ns)
{
	uint64_t lo = MAX_OF(shifted(s->enter_lo, ns), turn->since);
	uint64_t hi = MIN_OF(shifted(s->enter_hi, ns), turn->until - 1);

	if (turn->uncertain)
		return true;
	if (turn->thread == NULL || turn->silent)
		return false;
	/* A mapping made just before may be overlaid just behind. */
	return may_be_at(q->timeline, turn->thread, MAX_OF(hi, turn->since), s->ip) ||
	       (lo < hi && may_be_at(q->timeline, turn->thread, lo, s->ip));
}

/* The turn of sample S with a shift of NS that it contradicts. False: none. */
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

/* Shifts lo to hi. */
struct span {
	int64_t lo, hi;
};

/* One more sample is suited from AT on, or one less. */
struct edge {
	int64_t at;
	int change;
};

struct search {
	const struct shift_question *q;
	const struct shift_sample **few;
	size_t n_few;
	struct edge *edges;
	size_t n_edges, max_edges;
	struct span open; /* of the sample at hand, not added yet; lo > hi: none */
	unsigned int rounds;
};

static int close_span(struct search *s)
{
	if (s->open.lo > s->open.hi)
		return 0;
	if (s->n_edges + 2 > s->max_edges) {
		size_t max = s->max_edges ? 2 * s->max_edges : 4096;
		struct edge *edges = reallocarray(s->edges, max, sizeof(*edges));

		if (edges == NULL)
			return -ENOMEM;
		s->edges = edges;
		s->max_edges = max;
	}
	s->edges[s->n_edges++] = (struct edge){s->open.lo, 1};
	s->edges[s->n_edges++] = (struct edge){s->open.hi + 1, -1};
	s->open = (struct span){1, 0};
	return 0;
}

/* Spans come in order, nearly: what overlaps is one. */
static int add_span(struct search *s, int64_t lo, int64_t hi)
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
static int add_mapped(struct search *s, const struct shift_sample *sample,
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

static int add_turn(struct search *s, const struct shift_sample *sample,
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
	if (!is_known(timeline, turn->thread, until))
		return add_span(s, difference(turn->since, sample->enter_hi),
				difference(turn->until, sample->leave_lo));
	first = find_code(timeline_space(timeline, turn->thread->pid, turn->since), turn->since,
			  sample->ip);
	last = find_code(timeline_space(timeline, turn->thread->pid, until), until, sample->ip);
	result = add_mapped(s, sample, turn, first);
	return result < 0 || first == last ? result : add_mapped(s, sample, turn, last);
}

/* All shifts that suit SAMPLE. */
static int add_sample(struct search *s, const struct shift_sample *sample)
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

/* The middle of the shifts that suit most samples, of those that are nearest to none; and how far
 * it is from there to the others. */
static int64_t add_up(struct search *s, uint64_t *ret_doubt)
{
	struct span best = {0, 0};
	int most = 0, now = 0;

	if (s->n_edges > 0)
		qsort(s->edges, s->n_edges, sizeof(*s->edges), by_place);
	for (size_t i = 0; i + 1 < s->n_edges; i++) {
		struct span span = {s->edges[i].at, s->edges[i + 1].at - 1};

		now += s->edges[i].change;
		if (span.lo > span.hi || now < most ||
		    (now == most && distance(&span) >= distance(&best)))
			continue;
		most = now;
		best = span;
	}
	*ret_doubt = distance(&best) == 0 ? 0 : (uint64_t)(best.hi - best.lo + 1) / 2;
	return distance(&best) == 0 ? 0 : best.lo + (best.hi - best.lo) / 2;
}

static int find_best(struct search *s, int64_t *ret, uint64_t *ret_doubt)
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

/* Samples that contradict a shift of NS, or that do not: MAX of them, evenly out of N_ALL. */
static void join(struct search *s, int64_t ns, bool contradict, size_t n_all, size_t max)
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
	uint64_t before, after; /* samples that contradict the one, the other */
	uint64_t won, lost;	/* turns that contradict only the one, only the other */
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

static bool is_better(const struct comparison *c)
{
	return c->won >= SHIFT_TURNS && c->won >= SHIFT_TIMES * c->lost;
}

/* The shift that explains most, in *ret with what FROM explains less; that is FROM itself, with its
 * doubt, where no other is better. */
static int improve(struct search *s, int64_t from, int64_t *ret_ns, uint64_t *doubt,
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
		uint64_t off;
		int64_t ns;

		result = find_best(s, &ns, &off);
		if (result < 0 || ns == *ret_ns)
			break;
		c = compare(s->q, from, ns);
		if (is_better(&c) && c.after < ret->after) {
			*ret_ns = ns;
			*doubt = off;
			*ret = c;
		}
		join(s, ns, true, c.after, JOIN);
	}
	return result;
}

static int find_of_cpu(struct search *s, const struct shift *all, struct shift_cpu *ret)
{
	struct comparison c;
	int result;

	ret->doubt = all->doubt;
	result = improve(s, all->ns, &ret->ns, &ret->doubt, &c);

	ret->samples = s->q->n;
	ret->before = all->ns != 0 ? compare(s->q, 0, 0).before : c.before;
	ret->after = c.after;
	return result;
}

/* Each CPU for itself, where one of all leaves contradictions. */
static int find_each(struct search *s, const struct shift_question *q, struct shift *ret)
{
	size_t i = 0;
	int result = 0;

	while (i < q->n && result == 0) {
		uint32_t cpu = q->samples[i].cpu;
		struct shift_question one = *q;

		one.samples = &q->samples[i];
		for (one.n = 0; i < q->n && q->samples[i].cpu == cpu; i++)
			one.n++;
		s->q = &one;
		result = find_of_cpu(s, ret, &ret->cpus[cpu]);
		ret->differ = ret->differ || ret->cpus[cpu].ns != ret->ns;
	}
	s->q = q;
	return result;
}

static void sum_up(const struct shift_question *q, struct shift *ret)
{
	ret->samples = q->n;
	ret->before = ret->after = 0;
	for (size_t i = 0; i < ret->n_cpus; i++) {
		ret->before += ret->cpus[i].before;
		ret->after += ret->cpus[i].after;
	}
	ret->found = ret->ns != 0 || ret->differ;
}

int shift_find(const struct shift_question *q, struct shift *ret)
{
	CLEANUP_FREE const struct shift_sample **few = calloc(MAX_FEW, sizeof(*few));
	struct search s = {.q = q, .few = few, .rounds = ALL_ROUNDS};
	struct comparison c;
	int result;

	*ret = (struct shift){.n_cpus = q->turns->n_cpus};
	ret->cpus = calloc(ret->n_cpus + 1, sizeof(*ret->cpus));
	if (few == NULL || ret->cpus == NULL)
		return -ENOMEM;
	result = improve(&s, 0, &ret->ns, &ret->doubt, &c);
	for (size_t i = 0; i < ret->n_cpus; i++) {
		ret->cpus[i].ns = ret->ns;
		ret->cpus[i].doubt = ret->doubt;
	}
	if (result == 0)
		result = find_each(&s, q, ret);
	free(s.edges);
	sum_up(q, ret);
	return result;
}

void shift_done(struct shift *s)
{
	free(s->cpus);
	*s = (struct shift){0};
}
