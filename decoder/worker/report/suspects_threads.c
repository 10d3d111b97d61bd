/*
 * Finds suspects among threads: where each was at the trigger, and since when.
 */
#include <stdlib.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_LOOKED 4096u /* threads */

#define LONG_NS	    20000000u /* a call that is open this long */
#define LONG_TIMES  10u	      /* and so many times as long as any that ended */
#define RETRY_CALLS 100u      /* so many calls that ended have a usual duration */
#define RETRY_TURNS 10u	      /* a loop that sleeps has had the CPU so often */
#define LOOP_PART   4u /* a loop got its thread back in the last of so many parts of its time */
#define WAIT_NS	    50000000u /* a thread that is in an unusual system call this long */
#define RUNNABLE_NS 20000000u /* a thread that waits for a CPU this long */
#define RAN_NS	    50000000u /* a turn this long, */
#define RAN_PART    2u	      /* and half of the window */
#define MAX_TURNS   100000u   /* of a thread that are looked at */

enum { CALL_WRITE = 1, CALL_WRITEV = 20, CALL_NANOSLEEP = 35, CALL_SEMOP = 65 };
enum { CALL_FLOCK = 73, CALL_SEMTIMEDOP = 220, CALL_CLOCK_NANOSLEEP = 230 };

const struct tally_branch *suspects_last_branch(const struct moment *m)
{
	if (!m->last || m->last->n_last == 0)
		return NULL;
	return &m->last->last[(m->last->n_last - 1) % REPORT_LAST_BRANCHES];
}

static int by_process(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->thread->pid != y->thread->pid)
		return x->thread->pid < y->thread->pid ? -1 : 1;
	return x->thread->tid < y->thread->tid ? -1 : x->thread->tid > y->thread->tid;
}

static int state_by_process(const void *a, const void *b)
{
	const struct report_state *const *x = a, *const *y = b;

	if ((*x)->thread->pid != (*y)->thread->pid)
		return (*x)->thread->pid < (*y)->thread->pid ? -1 : 1;
	return 0;
}

/* LISTED: which states of R are those of the list of ALL. */
static void collect_missing(const struct report *r, struct moments *all, const bool *listed)
{
	for (size_t i = 0; i < r->n_states; i++)
		if (!listed[i])
			all->missing[all->n_missing++] = &r->states[i];
	if (all->n_missing > 0)
		qsort(all->missing, all->n_missing, sizeof(*all->missing), state_by_process);
}

bool suspects_is_missing(const struct moments *all, uint32_t pid, uint64_t since)
{
	for (size_t i = FIRST_WHERE(k, all->n_missing, all->missing[k]->thread->pid >= pid);
	     i < all->n_missing && all->missing[i]->thread->pid == pid; i++)
		if (all->missing[i]->kind != REPORT_STATE_EXITED || all->missing[i]->left >= since)
			return true;
	return false;
}

static int collect(const struct report *r, struct moments *ret)
{
	const size_t total = MIN_OF(r->lists[REPORT_THREADS].total, (size_t)MAX_LOOKED);
	CLEANUP_FREE bool *listed = calloc(r->n_states + 1, sizeof(*listed));

	*ret = (struct moments){.list = calloc(total + 1, sizeof(*ret->list)),
				.missing = calloc(r->n_states + 1, sizeof(*ret->missing)),
				.now = r->now};
	if (!ret->list || !ret->missing || !listed)
		return -ENOMEM;
	for (size_t i = 0; i < total; i++) {
		const struct report_thread *t = &r->threads[i];
		const struct report_state *state = report_state(r, t->thread);
		struct moment *m = &ret->list[ret->n];

		if (!state || (state->seen && !report_permits(r, t->thread, state->ran)))
			continue;
		*m = (struct moment){.thread = t->thread, .state = state, .call = REPORT_NO_CALL};
		if (t->end > t->first)
			m->last = t->tally->threads[t->end - 1];
		/* A part that was decoded alone may not tell whose its last code is. */
		if (!report_code_is_known(r, state, m->last) ||
		    (t->known == REPORT_LAST_STRETCH && r->d->window.limited))
			m->last = NULL;
		m->call = report_system_call(r, t->thread, m->last);
		if (suspects_may_wait_for_lock(m))
			suspects_find_lock(r, m);
		listed[state - r->states] = true;
		ret->n++;
	}
	collect_missing(r, ret, listed);
	qsort(ret->list, ret->n, sizeof(*ret->list), by_process);
	return 0;
}

uint64_t suspects_age(const struct moments *all, const struct moment *m)
{
	const uint64_t since =
		m->state->kind == REPORT_STATE_RUNNING ? m->state->ran : m->state->left;

	return m->state->certain && since > 0 && since < all->now ? all->now - since : 0;
}

struct report_suspect suspects_of(enum report_suspect_kind kind, const struct moment *m)
{
	return (struct report_suspect){
		.kind = kind,
		.thread = m->thread,
		.cpu = m->state->cpu,
		.since = m->state->kind == REPORT_STATE_RUNNING ? m->state->ran : m->state->left,
		.context = m->last ? m->last->context : 0,
	};
}

static int find_in_processes(struct report *r, const struct moments *all)
{
	size_t end;
	int result = 0;

	for (size_t first = 0; first < all->n && result == 0; first = end) {
		for (end = first + 1;
		     end < all->n && all->list[end].thread->pid == all->list[first].thread->pid;)
			end++;
		result = suspects_crash(r, all, first, end);
		if (result == 0)
			result = suspects_deadlocks(r, all, first, end);
	}
	return result;
}

/* --- Single threads --- */

/* An instance that is open at the trigger. */
struct open_call {
	uint32_t function;
	struct calls_begin begin;
};

static struct open_call open_at(const struct tally_counters *c, size_t i)
{
	if (i == 0)
		return (struct open_call){c->function, c->begin};
	return (struct open_call){calls_at(&c->calls, i - 1)->function,
				  calls_at(&c->calls, i - 1)->begin};
}

/* How long of the time since SINCE (perf ns) the thread of M had given its CPU away itself, and how
 * often it got a CPU since then. */
static uint64_t blocked_since(const struct report *r, const struct moment *m, uint64_t since,
			      unsigned *ret_turns)
{
	const struct turns *turns = &r->d->replay->turns;
	size_t cpu = m->state->cpu, i = turns_at(&turns->cpus[cpu], m->state->ran);
	uint64_t blocked = 0;

	*ret_turns = 0;
	/* A turn before may be of a CPU without a trace, which the manifest does not have. */
	for (unsigned n = 0; n < MAX_TURNS && turns->cpus[cpu].n > 0; n++) {
		const struct turns_turn *turn = &turns->cpus[cpu].list[i];
		const uint64_t next = turn->since;
		struct timeline_turn before;

		if (turn->before == TURNS_NONE || next <= since)
			break;
		(*ret_turns)++;
		cpu = turn->before_cpu;
		i = turn->before;
		timeline_get_turn(r->d->replay->timeline, turns->cpus[cpu].cpu, i, &before);
		if (!before.preempted && before.until < next)
			blocked += next - MAX_OF(before.until, since);
	}
	return blocked;
}

/* When the thread of M was certainly still in its calls, TSC, but no later than the trigger: until
 * its CPU was stopped it went on, and its state is that at the trigger. Its last time may be known
 * only roughly. */
static uint64_t last_certain(const struct report *r, const struct moment *m)
{
	const struct tally_branch *last = suspects_last_branch(m);
	/* MANIFEST_ABSENT is the greatest number. */
	const uint64_t trigger = tscmap_tsc(&r->d->replay->clock, r->now);
	const uint64_t end = MIN_OF(m->last->last_tsc, trigger);

	return last ? MIN_OF(last->tsc_lo, end) : end;
}

/* Whether one of the last branches is a return behind TSC. */
static bool has_returned(const struct tally_counters *c, uint64_t tsc)
{
	const uint64_t n = MIN_OF(c->n_last, (uint64_t)REPORT_LAST_BRANCHES);

	for (uint64_t i = 1; i <= n; i++) {
		const struct tally_branch *b = &c->last[(c->n_last - i) % REPORT_LAST_BRANCHES];

		if (b->kind == FLOW_RET && b->tsc_lo > tsc)
			return true;
	}
	return false;
}

/* Whether instance number I goes on calling others that return, 0 being the innermost: it got its
 * thread back not long ago, and calls take most of its time. WITHIN: so does the one within it. */
static bool goes_on(const struct report *r, const struct moment *m, size_t i, bool within)
{
	const struct open_call open = open_at(m->last, i);
	const struct function *f;
	uint64_t late;

	if (open.function == TALLY_NO_FUNCTION || open.function == 0 || open.begin.tsc == 0 ||
	    last_certain(r, m) <= open.begin.tsc)
		return within;
	f = &r->d->tally.functions.list[open.function];
	if (f->self_ticks >= f->total_ticks - f->total_ticks / 2)
		return false;
	late = last_certain(r, m) - (last_certain(r, m) - open.begin.tsc) / LOOP_PART;
	if (i == 0)
		return has_returned(m->last, late);
	return within || (!calls_at(&m->last->calls, i - 1)->signal &&
			  open_at(m->last, i - 1).begin.tsc > late);
}

static bool sleeps(const struct moment *m)
{
	return m->state->kind == REPORT_STATE_BLOCKED &&
	       (m->call == CALL_NANOSLEEP || m->call == CALL_CLOCK_NANOSLEEP);
}

/* Whether a call that is open since SINCE (perf ns), and took TOOK (ns), was executing, or is a
 * loop that tries again and again with a sleep between, where ENDED calls came back at once. */
static bool goes_nowhere(const struct report *r, const struct moment *m, uint64_t since,
			 uint64_t took, uint64_t ended)
{
	unsigned turns;
	const uint64_t blocked = blocked_since(r, m, since, &turns);

	if (sleeps(m))
		return ended >= RETRY_CALLS && turns >= RETRY_TURNS;
	return blocked <= took / 2;
}

/* Whether the instance has been executing for very long: CALLS that ended are the measure, or, if
 * there are none, what the thread did before. LOOP: the instance goes on calling others. SEEN:
 * since when the thread is known, TSC. */
static bool is_long(const struct report *r, const struct moment *m, const struct open_call *open,
		    bool loop, uint64_t seen, struct report_suspect *ret)
{
	const struct tscmap *clock = &r->d->replay->clock;
	const struct tally_counters *c = m->last;
	const struct function *f;
	const struct durations *d;
	uint64_t took, ended, since;

	if (open->function == TALLY_NO_FUNCTION || open->function == 0 || open->begin.tsc == 0 ||
	    last_certain(r, m) <= open->begin.tsc)
		return false;
	f = &r->d->tally.functions.list[open->function];
	d = suspects_durations(r, open->function);
	took = last_certain(r, m) - open->begin.tsc;
	since = tscmap_ns(clock, open->begin.tsc);
	ended = f->calls - f->unended;
	if (tscmap_span(clock, took) < LONG_NS)
		return false;
	if (ended > 0 ? took / LONG_TIMES < (d ? d->max : 0)
		      : loop || seen >= open->begin.tsc || took > open->begin.tsc - seen)
		return false;
	if (!goes_nowhere(r, m, since, tscmap_span(clock, took), ended))
		return false;
	ret->function = open->function;
	ret->since = since;
	ret->calls = ended;
	ret->longest_ns = tscmap_span(clock, d ? d->max : 0);
	ret->off_ns = tscmap_span(clock, MIN_OF(c->ticks - open->begin.ticks, took));
	return true;
}

/* Whether instance number I jumped to the one within it: it has no more to do. An interpreter of
 * byte code jumps from one instruction to the next. */
static bool has_jumped(const struct tally_counters *c, size_t i)
{
	return i > 0 && calls_at(&c->calls, i - 1)->from == CALLS_JUMP;
}

/* The innermost call that does not return. */
static int find_long(struct report *r, const struct moment *m)
{
	struct report_suspect s = suspects_of(SUSPECT_LONG_CALL, m);
	uint64_t end, begin = MAX_OF(suspects_begin(r, &end), m->thread->begin);
	const uint64_t seen = tscmap_tsc(&r->d->replay->clock, begin);
	bool loop = false;

	if (seen == MANIFEST_ABSENT || !m->state->certain)
		return 0;
	for (size_t i = 0; i <= calls_depth(&m->last->calls); i++) {
		const struct open_call open = open_at(m->last, i);

		loop = goes_on(r, m, i, loop);
		if (!has_jumped(m->last, i) && is_long(r, m, &open, loop, seen, &s))
			return suspects_add(r, &s);
	}
	return 0;
}

static bool is_unusual_wait(uint64_t call)
{
	return call == CALL_FLOCK || call == CALL_SEMOP || call == CALL_SEMTIMEDOP ||
	       call == CALL_WRITE || call == CALL_WRITEV;
}

static const struct timeline_thread *running_on(const struct moments *all, size_t cpu)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].state->kind == REPORT_STATE_RUNNING &&
		    all->list[i].state->certain && all->list[i].state->cpu == cpu)
			return all->list[i].thread;
	return NULL;
}

/* Whether M is alone in having run on the CPU that was stopped first, for most of the window. */
static bool ran_throughout(const struct report *r, const struct moments *all,
			   const struct moment *m)
{
	uint64_t end;
	const uint64_t begin = suspects_begin(r, &end);

	return r->m->cpus[m->state->cpu].stop_order == 0 && suspects_age(all, m) >= RAN_NS &&
	       suspects_age(all, m) >= (end - begin) / RAN_PART;
}

static int find_in_thread(struct report *r, const struct moments *all, const struct moment *m)
{
	const size_t before = r->n_suspects;
	struct report_suspect s;
	int result = 0;

	switch (m->state->kind) {
	case REPORT_STATE_RUNNING:
	case REPORT_STATE_RUNNABLE:
		if (m->last)
			result = find_long(r, m);
		if (m->state->kind == REPORT_STATE_RUNNABLE &&
		    suspects_age(all, m) >= RUNNABLE_NS) {
			s = suspects_of(SUSPECT_RUNNABLE, m);
			s.other = running_on(all, m->state->cpu);
		} else if (m->state->kind == REPORT_STATE_RUNNING && r->n_suspects == before &&
			   ran_throughout(r, all, m)) {
			s = suspects_of(SUSPECT_RAN, m);
		} else {
			return result;
		}
		break;
	case REPORT_STATE_BLOCKED:
		if (m->last && sleeps(m))
			return find_long(r, m);
		if (m->last && !is_unusual_wait(m->call))
			return suspects_stuck(r, m->state, m->last, m->call);
		if (!m->last || suspects_age(all, m) < WAIT_NS)
			return 0;
		s = suspects_of(SUSPECT_WAIT, m);
		s.count = m->call;
		s.address = m->last->ip;
		break;
	default: return 0;
	}
	return result == 0 ? suspects_add(r, &s) : result;
}

static bool is_told_runnable(const struct report *r, const struct timeline_thread *thread)
{
	for (size_t i = 0; i < r->n_suspects; i++)
		if (r->suspects[i].kind == SUSPECT_RUNNABLE && r->suspects[i].thread == thread)
			return true;
	return false;
}

static int find_waits(struct report *r, const struct moments *all)
{
	CLEANUP_FREE const struct report_state **states = calloc(all->n + 1, sizeof(*states));
	size_t n = 0;

	if (!states)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		if (!is_told_runnable(r, all->list[i].thread))
			states[n++] = all->list[i].state;
	return suspects_waits(r, states, n);
}

int suspects_threads(struct report *r)
{
	struct moments all;
	int result;

	if (r->now == MANIFEST_ABSENT)
		return 0;
	result = collect(r, &all);
	if (result == 0)
		result = find_in_processes(r, &all);
	for (size_t i = 0; i < all.n && result == 0; i++)
		result = find_in_thread(r, &all, &all.list[i]);
	if (result == 0)
		result = find_waits(r, &all);
	free(all.list);
	free(all.missing);
	return result;
}
