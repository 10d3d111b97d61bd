/*
 * Finds out which thread has a CPU from when to when, by the CPU's own switch records.
 *
 * Each record is checked against the records before it. Where they contradict each other, the turn
 * becomes uncertain.
 *
 * Before the first record and after a loss no thread is known. As no record is missing from then
 * on, the first record that names the thread until now names it for all of that time.
 */
#include <errno.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* A turn that PID/TID begins at TIME. A thread that has been reaped has no number any more when it
 * leaves the CPU for the last time (kernel/events/core.c, perf_event_pid_type()). */
static struct turn turn_from(uint64_t time, uint32_t pid, uint32_t tid)
{
	struct turn t = {.time = time};

	if (pid == TIMELINE_UNKNOWN || tid == TIMELINE_UNKNOWN)
		t.pid = t.tid = TIMELINE_UNKNOWN;
	else if (pid != 0 && tid != 0) {
		t.pid = pid;
		t.tid = tid;
	}
	return t;
}

static bool is_same(const struct turn *a, const struct turn *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->uncertain == b->uncertain;
}

static bool contradicts(const struct turn *last, const struct turn *who)
{
	return last && !last->uncertain && last->pid != TIMELINE_UNKNOWN &&
	       who->pid != TIMELINE_UNKNOWN && !is_same(last, who);
}

static void make_uncertain(struct turn *last)
{
	*last = (struct turn){.time = last->time, .uncertain = true};
}

/* Ends the last turn of C and begins NEXT. A turn of no length is removed, and a turn of the same
 * thread goes on. 0, -ENOMEM. */
static int begin(struct state *s, struct cpu *c, struct turn next)
{
	struct turn *last = turns_last(c);
	struct task *t;

	if (last && last->time > next.time)
		return 0;
	if (s->history && last && last->time == next.time) {
		c->turns.n--;
		last = turns_last(c);
	}
	if (last && is_same(last, &next)) {
		last->preempted = false;
		return 0;
	}
	if (s->history && !state_is_nobody(next.pid, next.tid)) {
		t = state_seen_task(s, next.pid, next.tid, next.time);
		if (!t)
			return -ENOMEM;
		next.thread = state_life(t);
	}
	last = state_add_version(s, &c->turns, sizeof(*last));
	if (!last)
		return -ENOMEM;
	*last = next;
	return 0;
}

/* WHO has had the CPU since the time from which no record is missing. */
static int name_first(struct state *s, struct cpu *c, struct turn who)
{
	c->named = true;
	if (who.pid == TIMELINE_UNKNOWN)
		return 0;
	who.time = c->since;
	return begin(s, c, who);
}

/* A switch out: the record's thread leaves, and NEXT comes. */
static int leave(struct state *s, struct cpu *c, const struct perfrecord *r, struct turn next)
{
	struct turn who = turn_from(r->time, r->pid, r->tid);
	struct turn *last;

	if (!c->named && name_first(s, c, who) < 0)
		return -ENOMEM;
	last = turns_last(c);
	if (contradicts(last, &who))
		make_uncertain(last);
	else if (last && !last->uncertain)
		last->preempted = r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	c->entering = r->type == PERF_RECORD_SWITCH_CPU_WIDE;
	return begin(s, c, next);
}

/* A switch in: the record's thread comes after the thread BEFORE. A kernel may omit the switches of
 * some tasks, such as a CPU's idle task; then the records before and after agree on the task. */
static int enter(struct state *s, struct cpu *c, const struct perfrecord *r, struct turn before)
{
	struct turn who = turn_from(r->time, r->pid, r->tid);
	struct turn *last = turns_last(c);
	bool announced = c->entering && !(last && is_same(last, &before));

	if (!c->named) {
		if (name_first(s, c, before) < 0)
			return -ENOMEM;
	} else if (contradicts(last, announced ? &who : &before)) {
		make_uncertain(last);
	}
	c->entering = false;
	return begin(s, c, who);
}

int turns_switch(struct state *s, const struct perfrecord *r)
{
	struct cpu *c = state_cpu(s, r->cpu);
	struct turn other = turn_from(r->time, TIMELINE_UNKNOWN, TIMELINE_UNKNOWN);

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		other = turn_from(r->time, r->u.context_switch.next_prev_pid,
				  r->u.context_switch.next_prev_tid);
	c->n_switches++;
	if (r->misc & PERF_RECORD_MISC_SWITCH_OUT)
		return leave(s, c, r, other);
	return enter(s, c, r, other);
}

/* A switch out and a switch in make a turn. Two such pairs are enough to know since when the last
 * turn lasts, also if one of the records has no thread. */
bool turns_defer(struct state *s, const struct perfrecord_switch *r)
{
	struct cpu *c = state_cpu(s, r->cpu);

	/* When memory is short, records also tell which processes are in use (apply_switch()). */
	if (!c || s->pool.used > s->pool.limit / 2)
		return false;
	c->deferred[c->n_deferred++ % TURNS_DEFERRED] = *r;
	return true;
}

const struct perfrecord_switch *turns_next_deferred(struct cpu *c)
{
	if (c->n_deferred - c->n_settled > TURNS_DEFERRED)
		c->n_settled = c->n_deferred - TURNS_DEFERRED;
	if (c->n_settled == c->n_deferred)
		return NULL;
	return &c->deferred[c->n_settled++ % TURNS_DEFERRED];
}

int turns_apply_deferred(struct state *s, struct cpu *c)
{
	const struct perfrecord_switch *next;
	struct perfrecord r;
	int result = 0;

	while (result == 0 && (next = turns_next_deferred(c))) {
		perfrecord_from_switch(next, &r);
		result = turns_switch(s, &r);
	}
	return result;
}

int turns_start(struct state *s, const struct perfrecord *r)
{
	struct turn who = turn_from(r->time, r->u.itrace_start.pid, r->u.itrace_start.tid);
	struct cpu *c = state_cpu(s, r->cpu);
	struct turn *last;

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	if (turns_apply_deferred(s, c) < 0)
		return -ENOMEM;
	c->n_starts++;
	c->named = true;
	last = turns_last(c);
	if (contradicts(last, &who))
		make_uncertain(last);
	return begin(s, c, who);
}

int turns_lose(struct state *s, const struct perfrecord *r, uint64_t since)
{
	struct turn unknown = {.time = since, .uncertain = true};
	struct cpu *c = state_cpu(s, r->cpu);

	if (!c)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	c->n_settled = c->n_deferred;
	c->named = c->entering = false;
	c->since = c->lost_time = MAX_OF(c->since, r->time);
	if (__builtin_add_overflow(c->lost, r->u.lost.lost, &c->lost))
		c->lost = UINT64_MAX;
	if (!s->history) {
		c->turns.n = 0;
		return 0;
	}
	while (turns_last(c) && turns_last(c)->time > since)
		c->turns.n--;
	return begin(s, c, unknown);
}

/* fs/exec.c, de_thread(): the thread that calls exec takes the number of the leader, which is gone,
 * without a switch and without an EXIT of its own number. */
int turns_exec(struct state *s, const struct perfrecord *r)
{
	struct cpu *c = state_cpu(s, r->cpu);
	struct turn who = turn_from(r->time, r->pid, r->tid);
	struct turn *last;
	struct task *before;

	if (c && turns_apply_deferred(s, c) < 0)
		return -ENOMEM;
	last = c ? turns_last(c) : NULL;
	if (!last || last->time > r->time || last->uncertain || last->pid != r->pid ||
	    r->tid != r->u.comm.tid || last->tid == r->tid)
		return 0;
	before = state_find_task(s, last->tid);
	if (s->history && before && state_life(before) == last->thread)
		state_end_life(s, before, r->time);
	return begin(s, c, who);
}
