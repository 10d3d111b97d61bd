/*
 * Who has a CPU from when to when. A CPU's own switch records say it; each is checked against what
 * those before it said, and what cannot be true is doubted, not believed.
 *
 * After a loss, and before the first record, nobody is known to run; but as no record is missing
 * from then on, the first one that says who ran until now says it for all that time.
 *
 * Part of the state: in the daemon without, in the worker with history.
 */
#include <errno.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* A thread that has been reaped has no number any more when it leaves the CPU for the last time
 * (kernel/events/core.c, perf_event_pid_type()). */
static struct stretch from(uint64_t time, uint32_t pid, uint32_t tid)
{
	struct stretch s = {.time = time};

	if (pid == TIMELINE_UNKNOWN || tid == TIMELINE_UNKNOWN)
		s.pid = s.tid = TIMELINE_UNKNOWN;
	else if (pid != 0 && tid != 0) {
		s.pid = pid;
		s.tid = tid;
	}
	return s;
}

static bool is_same(const struct stretch *a, const struct stretch *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->uncertain == b->uncertain;
}

static bool contradicts(const struct stretch *last, const struct stretch *who)
{
	return last && !last->uncertain && last->pid != TIMELINE_UNKNOWN &&
	       who->pid != TIMELINE_UNKNOWN && !is_same(last, who);
}

static void doubt(struct stretch *last)
{
	*last = (struct stretch){.time = last->time, .uncertain = true};
}

/* NEXT goes on where the last one ends. One that would have lasted no time is left out. */
static int begin(struct state *s, struct cpu *c, struct stretch next)
{
	struct stretch *last = turns_last(c);
	struct task *t;

	if (last && last->time > next.time)
		return 0;
	if (s->history && last && last->time == next.time) {
		c->stretches.n--;
		last = turns_last(c);
	}
	if (last && is_same(last, &next)) {
		last->preempted = false;
		return 0;
	}
	if (s->history && !state_is_nobody(next.pid, next.tid)) {
		t = state_see(s, next.pid, next.tid, next.time);
		if (!t)
			return -ENOMEM;
		next.thread = state_life(t);
	}
	last = state_add_version(s, &c->stretches, sizeof(*last));
	if (!last)
		return -ENOMEM;
	*last = next;
	return 0;
}

/* WHO has run since nothing was missing any more. */
static int name(struct state *s, struct cpu *c, struct stretch who)
{
	c->named = true;
	if (who.pid == TIMELINE_UNKNOWN)
		return 0;
	who.time = c->since;
	return begin(s, c, who);
}

static int leave(struct state *s, struct cpu *c, const struct perfrecord *r, struct stretch next)
{
	struct stretch who = from(r->time, r->pid, r->tid);
	struct stretch *last;

	if (!c->named && name(s, c, who) < 0)
		return -ENOMEM;
	last = turns_last(c);
	if (contradicts(last, &who))
		doubt(last);
	else if (last && !last->uncertain)
		last->preempted = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	c->entering = r->type == PERF_RECORD_SWITCH_CPU_WIDE;
	return begin(s, c, next);
}

/* Of some tasks, such as a CPU's idle task, a kernel may tell no switches: those before and behind
 * agree who it was. */
static int enter(struct state *s, struct cpu *c, const struct perfrecord *r, struct stretch before)
{
	struct stretch who = from(r->time, r->pid, r->tid);
	struct stretch *last = turns_last(c);
	bool announced = c->entering && !(last && is_same(last, &before));

	if (!c->named) {
		if (name(s, c, before) < 0)
			return -ENOMEM;
	} else if (contradicts(last, announced ? &who : &before)) {
		doubt(last);
	}
	c->entering = false;
	return begin(s, c, who);
}

int turns_switch(struct state *s, const struct perfrecord *r)
{
	struct cpu *c = state_cpu(s, r->cpu);
	struct stretch other = from(r->time, TIMELINE_UNKNOWN, TIMELINE_UNKNOWN);

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		other = from(r->time, r->u.context_switch.next_prev_pid,
			     r->u.context_switch.next_prev_tid);
	c->n_switches++;
	if (r->misc & PERF_RECORD_MISC_SWITCH_OUT)
		return leave(s, c, r, other);
	return enter(s, c, r, other);
}

/* One that leaves and one that enters make a turn; two such pairs are enough to know since when it
 * is, also where one of the records has nobody. */
bool turns_wait(struct state *s, const struct perfrecord_switch *r)
{
	struct cpu *c = state_cpu(s, r->cpu);

	/* While memory is short it matters whom records speak of. */
	if (!c || s->pool.used > s->pool.limit / 2)
		return false;
	c->waiting[c->n_waiting++ % TURNS_WAITING] = *r;
	return true;
}

const struct perfrecord_switch *turns_next_waiting(struct cpu *c)
{
	if (c->n_waiting - c->n_settled > TURNS_WAITING)
		c->n_settled = c->n_waiting - TURNS_WAITING;
	return c->n_settled < c->n_waiting ? &c->waiting[c->n_settled++ % TURNS_WAITING] : NULL;
}

int turns_settle(struct state *s, struct cpu *c)
{
	const struct perfrecord_switch *next;
	struct perfrecord r;
	int result = 0;

	while (result == 0 && (next = turns_next_waiting(c))) {
		perfrecord_from_switch(next, &r);
		result = turns_switch(s, &r);
	}
	return result;
}

int turns_start(struct state *s, const struct perfrecord *r)
{
	struct stretch who = from(r->time, r->u.itrace_start.pid, r->u.itrace_start.tid);
	struct cpu *c = state_cpu(s, r->cpu);
	struct stretch *last;

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	if (turns_settle(s, c) < 0)
		return -ENOMEM;
	c->n_starts++;
	c->named = true;
	last = turns_last(c);
	if (contradicts(last, &who))
		doubt(last);
	return begin(s, c, who);
}

int turns_lose(struct state *s, const struct perfrecord *r, uint64_t since)
{
	struct stretch nobody = {.time = since, .uncertain = true};
	struct cpu *c = state_cpu(s, r->cpu);

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	c->n_settled = c->n_waiting;
	c->named = c->entering = false;
	c->since = c->lost_time = MAX_OF(c->since, r->time);
	if (__builtin_add_overflow(c->lost, r->u.lost.lost, &c->lost))
		c->lost = UINT64_MAX;
	if (!s->history) {
		c->stretches.n = 0;
		return 0;
	}
	while (turns_last(c) && turns_last(c)->time > since)
		c->stretches.n--;
	return begin(s, c, nobody);
}

/* fs/exec.c, de_thread(): the leader is gone, and the thread that called exec takes its number,
 * without a switch or an EXIT of its own. */
int turns_exec(struct state *s, const struct perfrecord *r)
{
	struct cpu *c = state_cpu(s, r->cpu);
	struct stretch who = from(r->time, r->pid, r->tid);
	struct stretch *last;
	struct task *before;

	if (c && turns_settle(s, c) < 0)
		return -ENOMEM;
	last = c ? turns_last(c) : NULL;
	if (!last || last->time > r->time || last->uncertain || last->pid != r->pid ||
	    r->tid != r->u.comm.tid || last->tid == r->tid)
		return 0;
	before = (struct task *)idmap_find(&s->tasks, last->tid);
	if (s->history && before && state_life(before) == last->thread)
		state_end_life(s, before, r->time);
	return begin(s, c, who);
}
