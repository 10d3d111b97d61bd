/*
 * Joins gaps until the next call, and leaves out those that touch no call.
 */
#include "ctl/calls/gaps.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"

static bool must_touch(const struct gaps *g, const struct order_call *gap)
{
	return gap->thread ? g->choose_of_threads : g->choose_of_cpus;
}

/* The time between two gaps is in none of them. */
static void join(struct gaps_run *run, const struct order_call *gap)
{
	struct order_call *to = &run->gap;

	if (to->gaps == 0) {
		*to = *gap;
		to->gaps = 1;
		to->covered = gap->end - gap->begin;
		return;
	}
	to->gaps++;
	if (gap->end > to->end)
		to->covered += gap->end - MAX_OF(gap->begin, to->end);
	to->end = MAX_OF(to->end, gap->end);
}

static int by_begin(const void *a, const void *b)
{
	const struct gaps_run *x = a, *y = b;

	return x->gap.begin < y->gap.begin ? -1 : x->gap.begin > y->gap.begin;
}

/* NEXT is the call behind them; NULL: it is not known whether there is one. */
static int tell(struct gaps *g, const struct order_call *next)
{
	size_t n = g->n_runs;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		struct gaps_run *run = &g->runs[i];
		const struct order_call *spare = &run->spare;

		if (!run->has_spare)
			continue;
		if (next && next->begin <= spare->end &&
		    (spare->thread == 0 || spare->thread == next->thread))
			join(run, spare);
		else
			g->left_out++;
	}
	qsort(g->runs, n, sizeof(*g->runs), by_begin);
	g->n_runs = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		if (g->runs[i].gap.gaps > 0)
			r = g->fn(g->userdata, &g->runs[i].gap);
	return r;
}

static struct gaps_run *find(struct gaps *g, const struct order_call *gap)
{
	for (size_t i = 0; i < g->n_runs; i++) {
		struct gaps_run *run = &g->runs[i];
		const struct order_call *c = run->has_spare ? &run->spare : &run->gap;

		if (c->thread == gap->thread && c->function == gap->function &&
		    (c->thread != 0 || c->cpu == gap->cpu))
			return run;
	}
	return NULL;
}

static int take_gap(struct gaps *g, const struct order_call *gap)
{
	struct gaps_run *run = find(g, gap);
	uint64_t end = gap->thread < g->n_ends ? g->ends[gap->thread] : 0;

	g->n++;
	if (!run && g->n_runs == GAPS_MAX) {
		int r = tell(g, NULL);

		if (r != 0)
			return r;
	}
	if (!run) {
		run = &g->runs[g->n_runs++];
		*run = (struct gaps_run){.has_spare = false};
	}
	if (!must_touch(g, gap) || end >= gap->begin) {
		join(run, gap);
		return 0;
	}
	g->left_out += run->has_spare;
	run->spare = *gap;
	run->has_spare = true;
	return 0;
}

static int note_end(struct gaps *g, const struct order_call *call)
{
	uint64_t end = call->end + call->end_width;

	/* It was told while it was running: it may last until the end. */
	if (call->running || end < call->end)
		end = UINT64_MAX;
	if (call->thread >= g->n_ends) {
		size_t n = 2 * ((size_t)call->thread + 1);
		uint64_t *ends = realloc(g->ends, n * sizeof(*ends));

		if (!ends)
			return -ENOMEM;
		for (; g->n_ends < n; g->n_ends++)
			ends[g->n_ends] = 0;
		g->ends = ends;
	}
	g->ends[0] = MAX_OF(g->ends[0], end);
	g->ends[call->thread] = MAX_OF(g->ends[call->thread], end);
	return 0;
}

int gaps_take(struct gaps *g, const struct order_call *call)
{
	int r;

	if (call->gap)
		return take_gap(g, call);
	r = tell(g, call);
	if (r == 0)
		r = note_end(g, call);
	return r == 0 ? g->fn(g->userdata, call) : r;
}

int gaps_finish(struct gaps *g)
{
	return tell(g, NULL);
}

void gaps_done(struct gaps *g)
{
	free(g->ends);
	*g = (struct gaps){0};
}
