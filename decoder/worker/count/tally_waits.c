/*
 * How long a thread could have run and did not: it was preempted, or an interrupt or the hypervisor
 * had its CPU. Such a wait is no work of the functions that it falls into.
 */
#include "decoder/worker/count/tally_private.h"

/* The turn of THREAD that contains TSC on CPU (index); false: the records do not tell it. */
static bool turn_at(const struct replay *r, const struct timeline_thread *thread, size_t cpu,
		    uint64_t tsc, struct timeline_turn *ret)
{
	const struct turns_cpu *turns = &r->turns.cpus[cpu];
	const uint64_t ns = tscmap_ns(&r->clocks[cpu], tsc);
	size_t i;

	if (ns == MANIFEST_ABSENT || turns->n == 0)
		return false;
	i = turns_at(turns, ns);
	if (turns->list[i].uncertain || turns->list[i].thread != thread)
		return false;
	timeline_get_turn(r->timeline, r->manifest->cpus[cpu].cpu, i, ret);
	return ret->thread == thread;
}

/* How many of the ticks from FROM, on CPU, to TO were a wait. ASYNC: user code was interrupted at
 * FROM, and did not call the kernel. */
static uint64_t wait_between(const struct replay *r, const struct timeline_thread *thread,
			     size_t cpu, uint64_t from, uint64_t to, bool async)
{
	struct timeline_turn turn;
	uint64_t left;

	if (!thread || !turn_at(r, thread, cpu, from, &turn))
		return 0;
	left = turn.until == SPACE_NOW ? to : tscmap_tsc(&r->clocks[cpu], turn.until);
	if (left >= to) /* the thread kept the CPU */
		return async ? to - from : 0;
	if (!turn.preempted)
		return 0;
	return to - (async ? from : MAX_OF(left, from));
}

void tally_waited(struct tally *t, struct tally_counters *counters, uint64_t to, bool async)
{
	struct tally_waits *w = &counters->waits;
	const uint64_t from = counters->last_tsc;
	uint64_t wait;

	if (from == 0 || to <= from || to - from < TALLY_WAIT_MIN)
		return;
	wait = wait_between(t->functions.replay, counters->thread, counters->cpu, from, to, async);
	if (wait == 0)
		return;
	w->list[w->n++ % TALLY_WAITS] = (struct tally_wait){to, w->total};
	w->total += wait;
}

uint64_t tally_waited_since(const struct tally_waits *w, uint64_t tsc)
{
	const uint64_t n = MIN_OF(w->n, (uint64_t)TALLY_WAITS);
	uint64_t before = w->total;

	for (uint64_t i = 1; i <= n; i++) {
		const struct tally_wait *wait = &w->list[(w->n - i) % TALLY_WAITS];

		if (wait->end <= tsc)
			break;
		before = wait->before;
	}
	return w->total - before;
}
