/*
 * Follows which thread has the CPU in a trace that has the kernel's code: the switch itself is seen
 * there, as a branch to the kernel's function that changes the stack. The sideband has one turn for
 * each switch, so the next switch begins the next turn, unless the times contradict. Behind gaps,
 * where switches may have been missed, time finds the turn again.
 *
 * The record of a switch is written a little before the switch (kernel/sched/core.c,
 * prepare_task_switch) or behind it (finish_task_switch), both with interrupts off. User code
 * therefore never runs outside of its thread's turn.
 */
#include "decoder/worker/replay/whose.h"
#include "proto/base.h"

/* How far a switch and its record may be apart. FAR: a virtual machine may lose its CPU between the
 * two. */
#define FAR_NS	1000000u
#define NEAR_NS 20000u

static const struct turns_cpu *turns_of(const struct whose *w)
{
	return &w->replay->turns.cpus[w->index];
}

/* The turn of TIME. */
static uint32_t turn_at(const struct whose *w, uint64_t time)
{
	return (uint32_t)turns_at(turns_of(w), time);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a - MIN_OF(a, b);
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Whether the turn that is known may be the turn of a time within [LO, HI]. Where switches are not
 * seen only time tells, so no turn counts as known. */
static bool may_be(const struct whose *w, uint64_t lo, uint64_t hi)
{
	const struct turns_turn *turn = &turns_of(w)->list[w->turn];

	if (w->replay->switch_ip == 0 || !w->turn_known)
		return false;
	return more(turn->until, FAR_NS) >= lo && less(turn->since, FAR_NS) <= hi;
}

/* Finds the turn by time alone: it is known where all of [LO, HI] lies in one turn. */
static void place(struct whose *w, uint64_t lo, uint64_t hi)
{
	w->turn = turn_at(w, lo);
	w->turn_known = w->turn == turn_at(w, hi);
}

/* The turn that begins within [LO, HI], if there is one and no other. */
static bool find_begin(const struct whose *w, uint64_t lo, uint64_t hi, uint32_t *ret)
{
	const struct turns_cpu *cpu = turns_of(w);
	size_t found = 0;

	for (uint32_t i = turn_at(w, lo); i < cpu->n && cpu->list[i].since <= hi && found < 2;
	     i++) {
		if (cpu->list[i].since < lo || cpu->list[i].since == 0)
			continue;
		found++;
		*ret = i;
	}
	return found == 1;
}

/* A switch was seen within [LO, HI]. */
static void next_turn(struct whose *w, uint64_t lo, uint64_t hi)
{
	const struct turns_cpu *cpu = turns_of(w);
	uint32_t next = w->turn + 1;
	/* In an uncertain turn there may have been any number of switches. */
	bool known = w->turn_known && !cpu->list[w->turn].uncertain;

	if (known && next < cpu->n && cpu->list[next].since >= less(lo, FAR_NS) &&
	    cpu->list[next].since <= more(hi, FAR_NS)) {
		w->turn = next;
		return;
	}
	w->turn_known = find_begin(w, less(lo, NEAR_NS), more(hi, NEAR_NS), &w->turn);
	/* Perhaps to a task whose switches are not recorded, and back. */
	if (!w->turn_known && known)
		place(w, lo, hi);
}

/* Answers that the turn's thread has the CPU, in the kernel, from LO up to HI (perf ns). */
static void answer_turn(struct whose *w, uint64_t lo, uint64_t hi, bool at_batch)
{
	const struct turns_turn *turn = &turns_of(w)->list[w->turn];
	const struct whose_answer *last = &w->answers[w->n_answers - 1];
	struct whose_answer answer = {.offset = flow_asked_at(w->flow), .at_batch = at_batch};
	const struct space *space = NULL;
	uint32_t context = 0;
	uint64_t time;

	if (w->turn_known && !turn->uncertain)
		answer.thread = turn->thread;
	answer.since = w->turn_known ? MAX_OF(turn->since, last->since) : last->since;
	time = MIN_OF(MAX_OF(hi, turn->since), turn->until - 1);
	if (answer.thread)
		space = timeline_space(w->replay->timeline, answer.thread->pid, time);
	if (space && replay_context(w->replay, space, time, lo, UINT64_MAX, &context) < 0)
		w->error = -ENOMEM;
	w->context = context;
	w->late.until = w->turn_known ? turn->until - 1 : 0;
	/* The thread stays: no new answer. */
	if (at_batch && answer.thread == last->thread && !last->process)
		return;
	if (at_batch && !flow_asked_switch(w->flow))
		flow_split(w->flow);
	if (whose_add_answer(w, &answer) < 0)
		w->error = -ENOMEM;
}

void whose_switched(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi)
{
	next_turn(w, tscmap_not_before(w->clock, tsc_lo), tscmap_not_after(w->clock, tsc_hi));
	answer_turn(w, tscmap_not_before(w->clock, tsc_lo), whose_ns(w, tsc_hi), true);
}

void whose_in_kernel(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi)
{
	uint64_t lo = tscmap_not_before(w->clock, tsc_lo);
	uint64_t hi = tscmap_not_after(w->clock, tsc_hi);
	bool known = may_be(w, lo, hi);
	/* The walk goes on in code that it was in before. */
	bool on = flow_asked_again(w->flow) && !flow_asked_behind_gap(w->flow);

	if (known && on)
		return;
	if (!known || flow_asked_behind_gap(w->flow))
		place(w, lo, hi);
	/* Where the walk only goes on, at a PSB or as time passes, no item marks the beginning. */
	answer_turn(w, lo, whose_ns(w, tsc_hi), on);
}

bool whose_knows_turn(struct whose *w, uint64_t tsc_lo, uint64_t tsc_hi)
{
	uint64_t lo = tscmap_not_before(w->clock, tsc_lo);
	uint64_t hi = tscmap_not_after(w->clock, tsc_hi);
	const struct turns_turn *turn;

	turn = &turns_of(w)->list[w->turn];
	if (!may_be(w, lo, hi) || turn->until < lo || turn->since > hi ||
	    flow_asked_behind_gap(w->flow))
		place(w, lo, hi);
	turn = &turns_of(w)->list[w->turn];
	/* The idle task has no user code. */
	w->turn_known = w->turn_known && !turn->uncertain && turn->thread;
	return w->turn_known;
}
