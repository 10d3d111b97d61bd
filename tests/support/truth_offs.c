/*
 * Compares the times at which threads had no CPU.
 */
#include "tests/support/truth_offs.h"

#include <stdlib.h>

#include "proto/base.h"

/* A thread's times without a CPU. */
struct offs {
	const struct call_thread *thread;
	size_t at;     /* the first one that is not before the stretches at hand */
	size_t *steps; /* of the stream, before each of the truth's stretches */
	size_t n;
};

/* Between two stretches, in ns of the stream. */
struct between {
	uint64_t from, until;
	uint64_t left, came; /* off the CPU at the latest, and at least until then */
	bool certain;	     /* the thread was off the CPU */
	bool cut;	     /* and may have run, unseen */
	size_t steps;	     /* of the stream, before it */
};

static int by_place(const void *a, const void *b)
{
	const struct truth_turn *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

void truth_offs_init(struct truth_offs *o, const struct truth_stack *s,
		     const struct truth_clock *clock)
{
	size_t room = 0;

	*o = (struct truth_offs){.clock = clock};
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->threads[i].n_stretches; k++) {
			const struct truth_stretch *x = &s->threads[i].stretches[k];

			if (ARRAY_RESERVE(o->turns, room, o->n + 1) < 0)
				abort();
			o->turns[o->n++] =
				(struct truth_turn){x->cpu, x->begin, x->end, &s->threads[i]};
		}
	if (o->n > 0)
		qsort(o->turns, o->n, sizeof(*o->turns), by_place);
}

void truth_offs_done(struct truth_offs *o)
{
	free(o->turns);
}

static const struct truth_turn *find(const struct truth_offs *o, const struct truth_stretch *s)
{
	const struct truth_turn key = {.cpu = s->cpu, .begin = s->begin};

	return bsearch(&key, o->turns, o->n, sizeof(key), by_place);
}

/* Stretches number I - 1 and I of L. */
static struct between between_of(const struct truth_offs *o, const struct truth_life *l, size_t i)
{
	const struct truth_stretch *a = &l->stretches[i - 1], *z = &l->stretches[i];
	const struct truth_turn *next = find(o, a) + 1, *before = find(o, z) - 1;
	uint64_t left = z->begin, came = a->end;
	struct between b = {.certain = a->cpu != z->cpu, .cut = z->cut};

	if (next < o->turns + o->n && next->cpu == a->cpu && next->life != l && next->begin <= left)
		left = next->begin;
	if (before >= o->turns && before->cpu == z->cpu && before->life != l && before->end >= came)
		came = before->end;
	b.certain = b.certain || left != z->begin || came != a->end;
	b.from = truth_clock_ns(o->clock, a->end);
	b.until = truth_clock_ns(o->clock, z->begin);
	b.left = truth_clock_ns(o->clock, left);
	b.came = truth_clock_ns(o->clock, came);
	return b;
}

/* Whether OFF may stand where it does, STEPS being where it belongs. */
static bool may_stand(const struct offs *o, const struct call_off *off, size_t steps)
{
	size_t begin = MIN_OF(off->steps, steps), end = MAX_OF(off->steps, steps), i = 0;

	for (size_t k = begin; k < end; k++)
		if (o->thread->steps[k].lo > off->leave || o->thread->steps[k].hi < off->back)
			return false;
	while (i < o->n && o->steps[i] != off->steps)
		i++;
	return i < o->n;
}

static const char *check_one(const struct between *b, struct offs *o,
			     struct truth_offs_counts *counts)
{
	const struct call_off *list = o->thread->offs;
	size_t first = o->at;

	for (; o->at < o->thread->n_offs && list[o->at].leave <= b->until; o->at++) {
		const struct call_off *off = &list[o->at];

		if (off->leave < b->from || off->back == 0 || off->back > b->until)
			return "off the CPU while it executed";
		if (off->steps != off->steps_back)
			return "calls while it is off the CPU";
		if (!b->cut && !may_stand(o, off, b->steps))
			return "off the CPU between other calls";
		counts->moved += !b->cut && off->steps != b->steps;
		counts->checked++;
		counts->ns += off->back - off->leave;
	}
	if (!b->certain || b->cut)
		return NULL;
	counts->certain++;
	if (first == o->at)
		return "never off the CPU";
	if (list[first].leave > b->left)
		return "off the CPU too late";
	return list[o->at - 1].back < b->came ? "back on the CPU too early" : NULL;
}

static void find_steps(struct offs *o, const struct truth_life *l, const uint32_t *pairs)
{
	size_t done = 0, steps = 0;

	o->steps = calloc(l->n_stretches + 1, sizeof(*o->steps));
	if (!o->steps)
		abort();
	for (; o->n < l->n_stretches; o->n++) {
		for (; done < l->stretches[o->n].steps; done++)
			if (pairs[done] != CALL_LINES_NONE)
				steps = pairs[done] + 1u;
		o->steps[o->n] = steps;
	}
}

const char *truth_offs_check(const struct truth_offs *o, const struct truth_life *l,
			     const struct call_thread *t, const uint32_t *pairs,
			     struct truth_offs_counts *counts, size_t *ret_stretch)
{
	struct offs offs = {.thread = t};
	const char *wrong = NULL;

	find_steps(&offs, l, pairs);
	while (offs.at < t->n_offs && t->offs[offs.at].back != 0 && l->n_stretches > 0 &&
	       t->offs[offs.at].back <= truth_clock_ns(o->clock, l->stretches[0].begin))
		offs.at++;
	for (size_t i = 1; i < l->n_stretches && !wrong; i++) {
		struct between b = between_of(o, l, i);

		b.steps = offs.steps[i];
		wrong = check_one(&b, &offs, counts);
		*ret_stretch = i;
	}
	free(offs.steps);
	return wrong;
}
