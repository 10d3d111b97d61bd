/*
 * Turn and code of a sample. Called by skim.c for each; most lie in the same turn as the one
 * before. A decode also asks what the code says (turns_decide.c); here, where switches are closer
 * than the trace's time is exact, it is left open.
 */
#include "decoder/worker/skim/skim_whose.h"

#include <string.h>

#include "decoder/worker/turns/scan.h"
#include "proto/base.h"

/* Of so many turns, at most, one is picked out. */
#define MAX_TURNS 16u
/* A place between packets is known to a tick, times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u

struct span {
	uint64_t lo, hi; /* perf ns; 0 and SPACE_NOW - 1 where nothing is known */
};

void skim_whose_init(struct skim_whose *w, struct replay *r, size_t index)
{
	const char *source = r->manifest->source;

	*w = (struct skim_whose){.replay = r,
				 .index = index,
				 .guests = source != NULL && strcmp(source, "raw") == 0};
}

static struct span span_of(const struct skim_whose *w, const struct skim_sample *s)
{
	const struct tscmap *clock = &w->replay->clocks[w->index];
	uint64_t slack = SLACK_NS + clock->doubt;
	struct span span = {0, SPACE_NOW - 1};
	uint64_t ns;

	ns = tscmap_ns(clock, s->tsc_lo - MIN_OF(s->tsc_lo, (uint64_t)SLACK_TICKS));
	if (s->tsc_lo != 0 && ns != MANIFEST_ABSENT)
		span.lo = ns - MIN_OF(ns, slack);
	if (s->tsc_hi <= UINT64_MAX - SLACK_TICKS) {
		ns = tscmap_ns(clock, s->tsc_hi + SLACK_TICKS);
		span.hi = ns >= SPACE_NOW - 1 - slack ? SPACE_NOW - 1 : ns + slack;
	}
	return span;
}

/* What the turns within a span have in common. */
struct pick {
	const struct turns_turn *turn; /* the last one that it may be; NULL: none */
	bool same_thread, same_process;
};

static const struct timeline_thread *thread_of(const struct turns_turn *turn)
{
	return turn->uncertain ? NULL : turn->thread;
}

static void pick_one(struct pick *p, const struct turns_turn *turn)
{
	const struct timeline_thread *was = p->turn != NULL ? thread_of(p->turn) : NULL;
	const struct timeline_thread *now = thread_of(turn);

	if (p->turn != NULL) {
		p->same_thread = p->same_thread && was == now;
		p->same_process =
			p->same_process && was != NULL && now != NULL && was->pid == now->pid;
	}
	p->turn = turn;
}

/* Which turns of a span an address may be of: a user's is of none that has no user code. */
static struct pick pick_turns(const struct skim_whose *w, const struct span *span, bool kernel)
{
	const struct turns_cpu *cpu = &w->replay->turns.cpus[w->index];
	struct pick p = {NULL, true, true};
	size_t i = turns_at(cpu, span->lo), n = 0;

	for (; i < cpu->n && cpu->list[i].since <= span->hi; i++, n++) {
		if (n == MAX_TURNS) {
			p.same_thread = p.same_process = false;
			break;
		}
		if (kernel || !turns_is_closed(&cpu->list[i]))
			pick_one(&p, &cpu->list[i]);
	}
	return p;
}

/* The code of THREAD's process at TIME. 0: not known; or -ENOMEM. */
static int find_context(const struct skim_whose *w, const struct timeline_thread *thread,
			uint64_t time, uint32_t *ret)
{
	const struct timeline *timeline = w->replay->timeline;
	const struct space *space;

	*ret = 0;
	if (thread == NULL || timeline_space_uncertain(timeline, thread->pid, time))
		return 0;
	space = timeline_space(timeline, thread->pid, time);
	return space != NULL ? contexts_intern(&w->replay->contexts, space, time, ret) : 0;
}

/* Up to when the answer for a span that lies in one turn holds: where the turn's code does not
 * change any more, to its end. */
static int extend(struct skim_whose *w, const struct turns_turn *turn, const struct span *span)
{
	uint32_t last;
	int r = find_context(w, w->owner.thread, turn->until - 1, &last);

	w->known = turn->since <= span->lo && span->hi < turn->until && last == w->owner.context;
	w->since = span->lo;
	w->until = turn->until;
	return r;
}

/* Where nothing is known of turns there may be one process. */
static int answer_without_turns(struct skim_whose *w)
{
	w->owner.process = w->replay->process;
	return find_context(w, w->owner.process, SPACE_NOW - 1, &w->owner.context);
}

static int answer(struct skim_whose *w, const struct span *span, bool kernel)
{
	struct pick p = pick_turns(w, span, kernel);
	const struct timeline_thread *thread;
	uint64_t time;
	int r;

	w->owner = (struct skim_owner){0};
	w->known = false;
	if (w->replay->turns.cpus[w->index].n == 0)
		return answer_without_turns(w);
	if (p.turn == NULL || (!p.same_thread && !p.same_process))
		return 0;
	thread = thread_of(p.turn);
	if (p.same_thread)
		w->owner.thread = thread;
	else
		w->owner.process = thread;
	time = MIN_OF(MAX_OF(span->hi, p.turn->since), p.turn->until - 1);
	r = find_context(w, thread, time, &w->owner.context);
	return r == 0 && p.same_thread ? extend(w, p.turn, span) : r;
}

static int ask(struct skim_whose *w, const struct skim_sample *s, bool kernel)
{
	const struct span span = span_of(w, s);
	int r = 0;

	if (!w->known || kernel != w->kernel || span.lo < w->since || span.hi >= w->until)
		r = answer(w, &span, kernel);
	w->asked = r == 0;
	w->kernel = kernel;
	w->tsc_lo = s->tsc_lo;
	w->tsc_hi = s->tsc_hi;
	return r;
}

int skim_whose(struct skim_whose *w, const struct skim_sample *s, const struct skim_owner **ret)
{
	static const struct skim_owner guest = {.guest = true};
	bool kernel = scan_is_kernel(s->ip);

	*ret = s->guest && !w->guests ? &guest : &w->owner;
	if (w->asked && kernel == w->kernel && s->tsc_lo == w->tsc_lo && s->tsc_hi == w->tsc_hi)
		return 0;
	return ask(w, s, kernel);
}
