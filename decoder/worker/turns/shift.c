/*
 * Samples -> the shift that explains them.
 *
 * Which shifts suit a sample is known without trying (shift_spans.c). One that suits most of a few
 * samples is tried on all samples, some of those that it contradicts join the few, and so on. What
 * is reported was counted on all.
 *
 * Whether a shift is better than another one is a question of how many turns say so, as the samples
 * of one turn err together: of the turns about which the two disagree nearly all must be for it.
 */
#include "decoder/worker/turns/shift.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/worker/turns/shift_private.h"
#include "proto/base.h"

/* Turns that are looked at for one sample and shift; beyond nothing is contradicted. */
#define MAX_LOOKS 32u
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

size_t shift_first_until(const struct turns_cpu *cpu, uint64_t time)
{
	return FIRST_WHERE(i, cpu->n, cpu->list[i].until >= time);
}

size_t shift_turns_since(const struct turns_cpu *cpu, uint64_t time)
{
	/* Behind the last one is none, which is as good as one of nobody. */
	return cpu->n > 0 ? cpu->n - shift_first_until(cpu, time) + 1 : 0;
}

const struct space_mapping *shift_code(const struct space *space, uint64_t time, uint64_t ip)
{
	const struct space_mapping *m = space == NULL ? NULL : space_find(space, time, ip);

	return m != NULL && (m->prot & PROT_EXEC) != 0 ? m : NULL;
}

bool shift_is_known(const struct timeline *timeline, const struct timeline_thread *thread,
		    uint64_t time)
{
	return timeline_space(timeline, thread->pid, time) != NULL &&
	       !timeline_space_uncertain(timeline, thread->pid, time);
}

/* Nothing contradicts that THREAD was at IP at TIME. */
static bool may_be_at(const struct timeline *timeline, const struct timeline_thread *thread,
		      uint64_t time, uint64_t ip)
{
	return !shift_is_known(timeline, thread, time) ||
	       shift_code(timeline_space(timeline, thread->pid, time), time, ip) != NULL;
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
	size_t first = shift_first_until(cpu, leave), i;

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

/* Samples that contradict a shift of NS, or that do not: MAX of them, evenly out of N_ALL. */
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
		uint64_t off;
		int64_t ns;

		result = shift_best(s, &ns, &off);
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

static int find_of_cpu(struct shift_search *s, const struct shift *all, struct shift_cpu *ret)
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
static int find_each(struct shift_search *s, const struct shift_question *q, struct shift *ret)
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
	struct shift_search s = {.q = q, .few = few, .rounds = ALL_ROUNDS};
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
