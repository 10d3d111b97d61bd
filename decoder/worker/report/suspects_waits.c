/*
 * Finds the thread that others kept from CPUs: it could have run, and waited for much of the time
 * until the trigger, as it did not before.
 *
 * Only a thread that was preempted is known to wait. A thread that was woken waits, too, but no
 * record says so.
 */
#include <stdlib.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_OF_KIND 2u
#define MAX_TURNS   100000u  /* of a thread that are looked at */
#define MAX_STEPS   1000000u /* turns of others that are looked at, for all suspects */
#define MAX_OTHERS  64u	     /* processes that had the CPU meanwhile */

#define WAITED_NS     50000000u /* in all */
#define WAITED_PART   4u	/* one of so many parts of the time since the first wait */
#define USUAL_PART    20u /* before, it waited for one of so many parts of what it ran at most */
#define OTHERS_HALVES 2u  /* one process had one of so many parts of the time */

/* A thread was preempted on CPU at SINCE, and ran again at UNTIL. */
struct wait {
	size_t cpu;
	uint64_t since, until; /* perf ns; equal: it did not wait */
	uint64_t ran;	       /* how long it had the CPU before */
};

struct waits {
	struct wait *list; /* newest first */
	size_t n, max;
	size_t steps; /* how many turns of others were looked at */
};

static int add_wait(struct waits *w, const struct wait *wait)
{
	if (ARRAY_RESERVE(w->list, w->max, w->n + 1) < 0)
		return -ENOMEM;
	w->list[w->n++] = *wait;
	return 0;
}

/* Lists the turns of the thread of S from the newest on, as far as they are certain. */
static int collect(const struct report *r, const struct report_state *s, uint64_t begin,
		   struct waits *ret)
{
	const struct turns *turns = &r->d->replay->turns;
	size_t cpu = s->cpu, i = turns_at(&turns->cpus[cpu], s->ran);
	uint64_t next = r->now;

	ret->n = 0;
	for (size_t n = 0; n < MAX_TURNS && i < turns->cpus[cpu].n; n++) {
		const struct turns_turn *turn = &turns->cpus[cpu].list[i];
		struct timeline_turn told;
		struct wait wait = {.cpu = cpu, .until = next};

		timeline_get_turn(r->d->replay->timeline, turns->cpus[cpu].cpu, i, &told);
		if (turn->thread != s->thread || told.until <= begin)
			break;
		wait.since = told.preempted ? MIN_OF(told.until, next) : next;
		next = MAX_OF(turn->since, begin);
		wait.ran = MIN_OF(told.until, wait.until) - MIN_OF(next, told.until);
		if (add_wait(ret, &wait) < 0)
			return -ENOMEM;
		if (turn->before == TURNS_NONE || turn->hidden || turn->since <= begin)
			break;
		cpu = turn->before_cpu;
		i = turn->before;
	}
	return 0;
}

static uint64_t sum(const struct waits *w, size_t first, size_t end, uint64_t *ret_ran)
{
	uint64_t waited = 0;

	*ret_ran = 0;
	for (size_t i = first; i < end; i++) {
		waited += w->list[i].until - w->list[i].since;
		*ret_ran += w->list[i].ran;
	}
	return waited;
}

/* How many of the newest waits are the thread's trouble: as many as take their part of the time. */
static size_t count_waits(const struct waits *w, uint64_t now)
{
	uint64_t waited = 0;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		waited += w->list[i].until - w->list[i].since;
		if (w->list[i].until > w->list[i].since &&
		    waited >= (now - w->list[i].since) / WAITED_PART)
			n = i + 1;
	}
	return n;
}

/* A process that had CPUs while the thread waited. */
struct other {
	const struct timeline_thread *thread; /* that had the longest turn of it */
	uint64_t ns, longest;
};

static void add_other(struct other *others, size_t *n, const struct timeline_thread *thread,
		      uint64_t ns)
{
	size_t i = 0;

	while (i < *n && others[i].thread->pid != thread->pid)
		i++;
	if (i == MAX_OTHERS)
		return;
	if (i == *n)
		others[(*n)++] = (struct other){.thread = thread};
	others[i].ns += ns;
	if (ns > others[i].longest) {
		others[i].longest = ns;
		others[i].thread = thread;
	}
}

/* Adds who had the CPU in WAIT. False: too many turns. */
static bool add_others(const struct report *r, struct waits *w, const struct wait *wait,
		       struct other *others, size_t *n)
{
	const struct turns_cpu *cpu = &r->d->replay->turns.cpus[wait->cpu];

	for (size_t i = turns_at(cpu, wait->since); i < cpu->n; i++) {
		const struct turns_turn *turn = &cpu->list[i];
		const uint64_t since = MAX_OF(turn->since, wait->since);
		const uint64_t until = MIN_OF(turn->until, wait->until);

		if (turn->since >= wait->until)
			break;
		if (++w->steps > MAX_STEPS)
			return false;
		if (turn->thread && !turn->uncertain && until > since)
			add_other(others, n, turn->thread, until - since);
	}
	return true;
}

/* The process that had the CPU for most of the newest COUNT waits, which take WAITED; a NULL thread
 * if there is none. */
static struct other find_other(const struct report *r, struct waits *w, size_t count,
			       uint64_t waited)
{
	struct other others[MAX_OTHERS];
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (!add_others(r, w, &w->list[i], others, &n))
			return (struct other){0};
	for (size_t i = 0; i < n; i++)
		if (others[i].ns >= waited / OTHERS_HALVES)
			return others[i];
	return (struct other){0};
}

static int look_at(struct report *r, const struct report_state *s, uint64_t begin, struct waits *w)
{
	const uint64_t now = r->now;
	struct report_suspect suspect = {
		.kind = SUSPECT_CPU_WAIT, .thread = s->thread, .cpu = s->cpu};
	uint64_t ran, usual;
	struct other other;
	size_t n;

	if (collect(r, s, begin, w) < 0)
		return -ENOMEM;
	n = count_waits(w, now);
	if (n == 0)
		return 0;
	suspect.since = w->list[n - 1].since;
	suspect.off_ns = sum(w, 0, n, &ran);
	/* The last of the turns ended with the first of the waits. */
	usual = sum(w, n, w->n, &ran);
	ran += w->list[n - 1].ran;
	if (suspect.off_ns < WAITED_NS || ran < suspect.off_ns || usual > ran / USUAL_PART)
		return 0;
	other = find_other(r, w, n, suspect.off_ns);
	if (!other.thread || !report_permits(r, other.thread, suspect.since))
		return 0;
	suspect.other = other.thread;
	suspect.longest_ns = other.ns;
	return suspects_add(r, &suspect);
}

int suspects_waits(struct report *r, const struct report_state *const *states, size_t n)
{
	CLEANUP_FREE struct wait *list = NULL;
	const size_t before = r->n_suspects;
	struct waits w = {0};
	uint64_t end, begin = suspects_begin(r, &end);
	int result = 0;

	for (size_t i = 0; i < n && result == 0 && r->n_suspects < before + MAX_OF_KIND; i++)
		if (states[i]->seen && states[i]->certain && states[i]->kind != REPORT_STATE_EXITED)
			result = look_at(r, states[i], begin, &w);
	list = w.list;
	return result;
}
