/*
 * When threads get and leave the CPU, out of the sideband's turns.
 *
 * The edges of all threads lie in one list in order of time, and those of each thread are chained.
 * A thread's edges are written between its calls, and the edges of others when a turn begins that
 * is no earlier. A thread that blocks and is the next one on its CPU again has no turn that begins
 * there with code of its own; its branches have intervals of time, which may hold the edges. User
 * code executes on a CPU, and a thread leaves its CPU only in the kernel: that puts the edges into
 * the last visit to the kernel in which they can have been.
 */
#include "decoder/worker/calltree/calltree_private.h"

#include <stdlib.h>

static void write_edge(struct calltree *c, struct calltree_edge *e)
{
	struct calltree_thread *t = &c->threads[e->thread];
	const struct callstream_item item = {
		.kind = e->on ? CALLSTREAM_ON : CALLSTREAM_OFF,
		.thread = calltree_define_thread(c, t),
		.time = MAX_OF(e->time, t->time),
		.cpu = e->cpu,
		.why = (enum callstream_why)e->why,
	};

	e->done = true;
	t->edge = e->next;
	/* While the thread has no CPU nothing of it is missing. */
	if (t->gap.open && !e->on && t->on)
		calltree_put_gap(c, t, t->cpu, &t->gap, item.time);
	if (t->gap.open)
		t->gap = (struct calltree_gap){true, t->gap.told || (!e->on && t->on), t->gap.fault,
					       item.time, item.time};
	t->on = e->on;
	t->time = item.time;
	calltree_put(c, &item);
}

void calltree_edges_until(struct calltree *c, struct calltree_thread *t, uint64_t time)
{
	while (t->edge != CALLTREE_NONE && c->edges[t->edge].time <= time)
		write_edge(c, &c->edges[t->edge]);
}

void calltree_edges_on(struct calltree *c, struct calltree_thread *t)
{
	while (!t->on && t->edge != CALLTREE_NONE)
		write_edge(c, &c->edges[t->edge]);
}

void calltree_edges_back(struct calltree *c, struct calltree_thread *t, uint64_t hi, uint64_t next)
{
	while (t->edge != CALLTREE_NONE) {
		struct calltree_edge *e = &c->edges[t->edge];
		const struct calltree_edge *on = e;

		if (t->on && (e->on || e->time >= next || e->next == CALLTREE_NONE))
			return;
		if (t->on)
			on = &c->edges[e->next];
		if (!on->on || on->time > hi)
			return;
		write_edge(c, e);
	}
}

void calltree_edges_all(struct calltree *c, uint64_t time)
{
	for (; c->edges_done < c->n_edges; c->edges_done++) {
		struct calltree_edge *e = &c->edges[c->edges_done];

		if (e->time > time)
			return;
		/* Those before it in the thread's chain are no later. */
		while (!e->done)
			write_edge(c, &c->edges[c->threads[e->thread].edge]);
	}
}

static enum callstream_why why_of(const struct calltree *c, uint32_t cpu, size_t index,
				  const struct timeline_turn *turn)
{
	struct timeline_turn next = {0};

	if (turn->thread->end <= turn->until)
		return CALLSTREAM_EXITED;
	if (turn->preempted)
		return CALLSTREAM_PREEMPTED;
	timeline_get_turn(c->replay->timeline, cpu, index + 1, &next);
	return next.uncertain ? CALLSTREAM_WHY_UNKNOWN : CALLSTREAM_BLOCKED;
}

static bool is_shown(const struct calltree *c, const struct timeline_turn *turn)
{
	return turn->thread && !turn->uncertain && turn->thread->tid != 0 &&
	       permit_thread(c->replay->permit, turn->thread, turn->since) == PERMIT_YES;
}

static int add_turn(struct calltree *c, size_t *capacity, uint32_t cpu, size_t index,
		    const struct timeline_turn *turn)
{
	uint64_t since = MAX_OF(stream_time_ns(&c->time, turn->since), c->time.first);
	uint64_t until =
		turn->until == SPACE_NOW ? UINT64_MAX : stream_time_ns(&c->time, turn->until);
	uint32_t thread;
	int r;

	if (until <= c->time.first || since > c->time.last)
		return 0;
	r = calltree_find(c, turn->thread, &thread);
	if (r < 0 || ARRAY_RESERVE(c->edges, *capacity, c->n_edges + 2) < 0)
		return -ENOMEM;
	c->edges[c->n_edges++] = (struct calltree_edge){
		.time = since, .thread = thread, .cpu = cpu, .next = CALLTREE_NONE, .on = true};
	if (until <= c->time.last)
		c->edges[c->n_edges++] =
			(struct calltree_edge){.time = until,
					       .thread = thread,
					       .cpu = cpu,
					       .next = CALLTREE_NONE,
					       .why = (uint8_t)why_of(c, cpu, index, turn)};
	return 0;
}

/* At one time a thread leaves a CPU before it gets another one. */
static int compare(const void *a, const void *b)
{
	const struct calltree_edge *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->on != y->on)
		return x->on ? 1 : -1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

int calltree_edges_load(struct calltree *c)
{
	const struct manifest *m = c->replay->manifest;
	size_t capacity = 0;
	int r = 0;

	for (size_t i = 0; i < m->n_cpus && m->cpus[i].cpu != MANIFEST_ANY; i++) {
		uint32_t cpu = m->cpus[i].cpu;
		size_t n = timeline_n_turns(c->replay->timeline, cpu);

		for (size_t index = 0; index < n && r == 0; index++) {
			struct timeline_turn turn;

			timeline_get_turn(c->replay->timeline, cpu, index, &turn);
			if (is_shown(c, &turn))
				r = add_turn(c, &capacity, cpu, index, &turn);
		}
	}
	if (r < 0 || c->n_edges >= CALLTREE_NONE)
		return -ENOMEM;
	if (c->n_edges > 0)
		qsort(c->edges, c->n_edges, sizeof(*c->edges), compare);
	for (size_t i = c->n_edges; i-- > 0;) {
		struct calltree_thread *t = &c->threads[c->edges[i].thread];

		c->edges[i].next = t->edge;
		t->edge = (uint32_t)i;
	}
	return 0;
}
