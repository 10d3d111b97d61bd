/*
 * Threads of which there is no trace: who they were and how long they had CPUs, by the switch
 * records of the CPUs that were not traced. Called by report_threads.c.
 */
#include <stdlib.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

/* How long TURN had CPU within its reach; 0: it is nobody's in particular. */
static uint64_t share_of(const struct report *r, const struct timeline_turn *turn,
			 const struct report_reach *reach)
{
	uint64_t begin = MAX_OF(turn->since, reach->begin), end = MIN_OF(turn->until, reach->end);

	if (turn->uncertain || turn->thread == NULL || turn->thread->tid == 0 ||
	    !report_permits(r, turn->thread, begin))
		return 0;
	return begin < end ? end - begin : 0;
}

static size_t collect_cpu(const struct report *r, size_t cpu, struct report_share *to)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const struct report_reach reach = report_reach(r, cpu);
	const size_t n = timeline_n_turns(timeline, r->m->cpus[cpu].cpu);
	size_t i, found = 0;

	for (i = 0; i < n; i++) {
		struct timeline_turn turn;
		uint64_t ns;

		timeline_get_turn(timeline, r->m->cpus[cpu].cpu, i, &turn);
		ns = share_of(r, &turn, &reach);
		if (ns > 0)
			to[found++] = (struct report_share){turn.thread, ns};
	}
	return found;
}

static size_t count_turns(const struct report *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->m->n_cpus; i++)
		if (report_is_untraced(r, i))
			n += timeline_n_turns(r->d->replay->timeline, r->m->cpus[i].cpu);
	return n;
}

static int by_thread(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct report_share *)a)->thread;
	const uintptr_t y = (uintptr_t)((const struct report_share *)b)->thread;

	return x < y ? -1 : x > y;
}

/* One for each thread. */
static size_t add_up(struct report_share *shares, size_t n)
{
	size_t i, kept = 0;

	qsort(shares, n, sizeof(*shares), by_thread);
	for (i = 0; i < n; i++) {
		if (kept > 0 && shares[kept - 1].thread == shares[i].thread)
			shares[kept - 1].ns += shares[i].ns;
		else
			shares[kept++] = shares[i];
	}
	return kept;
}

/* Takes those out that have counters. */
static size_t drop_traced(const struct report *r, struct report_share *shares, size_t n)
{
	const struct tally *t = &r->d->tally;
	size_t i, kept = 0;

	for (i = 0; i < t->n_threads && n > 0; i++) {
		const struct report_share key = {t->threads[i]->thread, 0};
		struct report_share *found = bsearch(&key, shares, n, sizeof(key), by_thread);

		if (found != NULL)
			found->ns = 0;
	}
	for (i = 0; i < n; i++)
		if (shares[i].ns > 0)
			shares[kept++] = shares[i];
	return kept;
}

int report_untraced(const struct report *r, struct report_share **ret, size_t *ret_n)
{
	struct report_share *shares = calloc(count_turns(r) + 1, sizeof(*shares));
	size_t i, n = 0;

	if (shares == NULL)
		return -ENOMEM;
	for (i = 0; i < r->m->n_cpus; i++)
		if (report_is_untraced(r, i))
			n += collect_cpu(r, i, shares + n);
	n = add_up(shares, n);
	*ret_n = drop_traced(r, shares, n);
	*ret = shares;
	return 0;
}
