/*
 * Writes which thread ran on which CPU when, and the threads of which there is no trace.
 *
 * Switch records tell the turns to the nanosecond; a turn that they leave open is uncertain. A CPU
 * may switch a hundred thousand times a second: the report keeps the newest turns of all CPUs
 * together, so that they reach equally far back on each CPU.
 */
#include <stdlib.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

static struct report_reach within(const struct timeline_turn *turn,
				  const struct report_reach *window)
{
	return (struct report_reach){MAX_OF(turn->since, window->begin),
				     MIN_OF(turn->until, window->end)};
}

static struct timeline_turn turn_at(const struct report *r, size_t cpu, size_t index)
{
	struct timeline_turn turn;

	timeline_get_turn(r->d->replay->timeline, r->m->cpus[cpu].cpu, index, &turn);
	return turn;
}

static bool is_shown(const struct report *r, size_t cpu, size_t index)
{
	const struct report_reach window = report_reach(r, cpu);
	const struct timeline_turn turn = turn_at(r, cpu, index);
	const struct report_reach span = within(&turn, &window);

	if (report_is_limited(r) && (turn.uncertain || !report_permits(r, turn.thread, span.begin)))
		return false;
	/* The idle thread is not shown. */
	return (turn.uncertain || (turn.thread && turn.thread->tid != 0)) && span.begin < span.end;
}

static void report_turn(const struct report *r, struct json_writer *w, size_t i)
{
	const struct report_turn *at = &r->turns[i];
	const struct report_reach window = report_reach(r, at->cpu);
	const struct timeline_turn turn = turn_at(r, at->cpu, at->index);
	const struct report_reach span = within(&turn, &window);
	const struct timeline_thread *thread = turn.uncertain ? NULL : turn.thread;
	/* The last name of the turn: a thread that calls exec keeps its turn. */
	const char *comm = thread ? report_comm(r, thread, span.end - 1) : NULL;

	json_begin_object(w, NULL);
	report_id(w, "cpu", r->m->cpus[at->cpu].cpu);
	report_ids(w, thread, thread);
	report_string_cut(w, "comm", comm, REPORT_MAX_STRING);
	report_at(r, w, "atNSec", span.begin);
	report_at(r, w, "untilNSec", span.end);
	json_boolean(w, "certain", !turn.uncertain);
	json_end_object(w);
}

/* The newest shown turn that lies before its CPU's cursor. Puts the cursor before the turn. */
static struct report_turn take_newest(const struct report *r, size_t *cursors)
{
	struct report_turn best = {0};
	uint64_t newest = 0;

	for (size_t cpu = 0; cpu < r->m->n_cpus; cpu++) {
		const struct report_reach window = report_reach(r, cpu);
		struct timeline_turn turn;
		uint64_t begin;

		while (cursors[cpu] > 0 && !is_shown(r, cpu, cursors[cpu] - 1))
			cursors[cpu]--;
		if (cursors[cpu] == 0)
			continue;
		turn = turn_at(r, cpu, cursors[cpu] - 1);
		begin = within(&turn, &window).begin;
		if (begin < newest)
			continue;
		newest = begin;
		best = (struct report_turn){cpu, cursors[cpu] - 1};
	}
	cursors[best.cpu] = best.index;
	return best;
}

int report_prepare_turns(struct report *r)
{
	CLEANUP_FREE size_t *cursors = calloc(r->m->n_cpus + 1, sizeof(*cursors));
	size_t n;

	if (!cursors)
		return -ENOMEM;
	for (size_t cpu = 0; cpu < r->m->n_cpus; cpu++) {
		cursors[cpu] = timeline_n_turns(r->d->replay->timeline, r->m->cpus[cpu].cpu);
		for (size_t i = 0; i < cursors[cpu]; i++)
			r->turns_total += is_shown(r, cpu, i);
	}
	n = (size_t)MIN_OF(r->turns_total, (uint64_t)REPORT_MAX_TURNS);
	r->turns = calloc(n + 1, sizeof(*r->turns));
	if (!r->turns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->turns[i] = take_newest(r, cursors);
	r->lists[REPORT_TURNS] = (struct report_list){
		.key = "turns", .total = n, .element = report_turn, .newest_first = true};
	return 0;
}

/* --- Threads without a trace --- */

static size_t collect_cpu(const struct report *r, size_t cpu, struct report_share *to)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const struct report_reach reach = report_reach(r, cpu);
	const size_t n = timeline_n_turns(timeline, r->m->cpus[cpu].cpu);
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		struct timeline_turn turn;
		uint64_t begin, end;

		timeline_get_turn(timeline, r->m->cpus[cpu].cpu, i, &turn);
		begin = MAX_OF(turn.since, reach.begin);
		end = MIN_OF(turn.until, reach.end);
		/* Not the turns of a thread that is unknown or may not be named. */
		if (begin < end && !turn.uncertain && turn.thread && turn.thread->tid != 0 &&
		    report_permits(r, turn.thread, begin))
			to[found++] = (struct report_share){turn.thread, end - begin};
	}
	return found;
}

static int by_thread(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct report_share *)a)->thread;
	const uintptr_t y = (uintptr_t)((const struct report_share *)b)->thread;

	return x < y ? -1 : x > y;
}

/* Removes the threads that have counters. */
static size_t drop_traced(const struct report *r, struct report_share *shares, size_t n)
{
	const struct tally *t = &r->d->tally;
	size_t kept = 0;

	for (size_t i = 0; i < t->n_threads && n > 0; i++) {
		const struct report_share key = {t->threads[i]->thread, 0};
		struct report_share *found = bsearch(&key, shares, n, sizeof(key), by_thread);

		if (found)
			found->ns = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (shares[i].ns > 0)
			shares[kept++] = shares[i];
	return kept;
}

int report_untraced(const struct report *r, struct report_share **ret, size_t *ret_n)
{
	struct report_share *shares;
	size_t turns = 0, found = 0, n = 0;

	for (size_t i = 0; i < r->m->n_cpus; i++)
		if (report_is_untraced(r, i))
			turns += timeline_n_turns(r->d->replay->timeline, r->m->cpus[i].cpu);
	shares = calloc(turns + 1, sizeof(*shares));
	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < r->m->n_cpus; i++)
		if (report_is_untraced(r, i))
			found += collect_cpu(r, i, shares + found);
	/* Add up, so that each thread has one share. */
	qsort(shares, found, sizeof(*shares), by_thread);
	for (size_t i = 0; i < found; i++) {
		if (n > 0 && shares[n - 1].thread == shares[i].thread)
			shares[n - 1].ns += shares[i].ns;
		else
			shares[n++] = shares[i];
	}
	*ret_n = drop_traced(r, shares, n);
	*ret = shares;
	return 0;
}
