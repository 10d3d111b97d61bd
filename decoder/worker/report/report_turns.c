/*
 * Turns: which thread ran on which CPU when, as far as that CPU's window reaches. The switch
 * records say it, to the nanosecond; what they leave open is said to be uncertain.
 *
 * A CPU may switch a hundred thousand times a second. Kept are the newest turns of all CPUs
 * together, so that they all reach equally far back.
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

static bool is_idle(const struct timeline_turn *turn)
{
	return !turn->uncertain && (turn->thread == NULL || turn->thread->tid == 0);
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
	return !is_idle(&turn) && span.begin < span.end;
}

/* Who it was; nobody in particular when that is uncertain. */
static void write_thread(const struct report *r, struct json_writer *w,
			 const struct timeline_turn *turn, const struct report_reach *span)
{
	const struct timeline_thread *thread = turn->uncertain ? NULL : turn->thread;
	const char *comm = NULL;

	/* As it was called in the end: a program that is exec'ed keeps its turn. */
	if (thread != NULL)
		comm = report_comm(r, thread, span->end - 1);
	report_ids(w, thread, thread);
	report_string_cut(w, "comm", comm, REPORT_MAX_STRING);
}

static void report_turn(const struct report *r, struct json_writer *w, size_t i)
{
	const struct report_turn *at = &r->turns[i];
	const struct report_reach window = report_reach(r, at->cpu);
	const struct timeline_turn turn = turn_at(r, at->cpu, at->index);
	const struct report_reach span = within(&turn, &window);

	json_begin_object(w, NULL);
	report_id(w, "cpu", r->m->cpus[at->cpu].cpu);
	write_thread(r, w, &turn, &span);
	report_at(r, w, "atNSec", span.begin);
	report_at(r, w, "untilNSec", span.end);
	json_boolean(w, "certain", !turn.uncertain);
	json_end_object(w);
}

static uint64_t count(const struct report *r, size_t *cursors)
{
	uint64_t n = 0;
	size_t cpu, i;

	for (cpu = 0; cpu < r->m->n_cpus; cpu++) {
		cursors[cpu] = timeline_n_turns(r->d->replay->timeline, r->m->cpus[cpu].cpu);
		for (i = 0; i < cursors[cpu]; i++)
			n += is_shown(r, cpu, i);
	}
	return n;
}

/* Puts CURSOR behind the newest turn of CPU before it that is shown; false: there is none. */
static bool step_back(const struct report *r, size_t cpu, size_t *cursor)
{
	while (*cursor > 0 && !is_shown(r, cpu, *cursor - 1))
		(*cursor)--;
	return *cursor > 0;
}

/* When the turn before CURSOR begins. */
static uint64_t begin_before(const struct report *r, size_t cpu, size_t cursor)
{
	const struct report_reach window = report_reach(r, cpu);
	const struct timeline_turn turn = turn_at(r, cpu, cursor - 1);

	return within(&turn, &window).begin;
}

/* The newest turn before all cursors, which steps over it. */
static struct report_turn take_newest(const struct report *r, size_t *cursors)
{
	struct report_turn best = {0};
	uint64_t newest = 0;
	size_t cpu;

	for (cpu = 0; cpu < r->m->n_cpus; cpu++) {
		uint64_t begin;

		if (!step_back(r, cpu, &cursors[cpu]))
			continue;
		begin = begin_before(r, cpu, cursors[cpu]);
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
	size_t i, n;

	if (cursors == NULL)
		return -ENOMEM;
	r->turns_total = count(r, cursors);
	n = (size_t)MIN_OF(r->turns_total, (uint64_t)REPORT_MAX_TURNS);
	r->turns = calloc(n + 1, sizeof(*r->turns));
	if (r->turns == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		r->turns[i] = take_newest(r, cursors);
	r->lists[REPORT_TURNS] = (struct report_list){"turns", n, 0, report_turn, true};
	return 0;
}
