/*
 * Finds the owner of a sample by time alone: the turn of its CPU that the sample lies in.
 *
 * Most samples lie in the same turn as the sample before. A decode also asks what the code says
 * (turns_decide.c). A skim does not: where switches are closer together than the trace's time is
 * exact, the thread stays unknown.
 */
#include "decoder/worker/skim/skim_private.h"

#include <string.h>

#include "decoder/worker/turns/scan.h"
#include "proto/base.h"

/* With more turns than this in its span, the thread of a sample stays unknown. */
#define MAX_TURNS 16u
/* A place between packets is known to a tick; times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u

struct span {
	uint64_t lo, hi; /* perf ns; 0 and SPACE_NOW - 1 where unknown */
};

void skim_owners_init(struct skim_owners *w, struct replay *r, size_t index)
{
	const char *source = r->manifest->source;

	*w = (struct skim_owners){
		.replay = r, .index = index, .guests = source && strcmp(source, "raw") == 0};
}

static struct span span_of(const struct skim_owners *w, const struct skim_sample *s)
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

/* The last of the turns within a span, and what all of them have in common. */
struct pick {
	const struct turns_turn *turn; /* the last possible turn; NULL: none */
	bool same_thread, same_process;
};

static const struct timeline_thread *thread_of(const struct turns_turn *turn)
{
	return turn->uncertain ? NULL : turn->thread;
}

/* The turns of a span that an address can be of. User code is of no turn without user code. */
static struct pick pick_turns(const struct skim_owners *w, const struct span *span, bool kernel)
{
	const struct turns_cpu *cpu = &w->replay->turns.cpus[w->index];
	struct pick p = {NULL, true, true};
	size_t i = turns_at(cpu, span->lo), n = 0;

	for (; i < cpu->n && cpu->list[i].since <= span->hi; i++, n++) {
		if (n == MAX_TURNS) {
			p.same_thread = p.same_process = false;
			break;
		}
		if (!kernel && turns_is_closed(&cpu->list[i]))
			continue;
		if (p.turn) {
			const struct timeline_thread *was = thread_of(p.turn);
			const struct timeline_thread *now = thread_of(&cpu->list[i]);

			p.same_thread = p.same_thread && was == now;
			p.same_process = p.same_process && was && now && was->pid == now->pid;
		}
		p.turn = &cpu->list[i];
	}
	return p;
}

/* The context of THREAD's process at TIME: *ret, 0 if unknown. 0 or -ENOMEM. */
static int find_context(const struct skim_owners *w, const struct timeline_thread *thread,
			uint64_t time, uint32_t *ret)
{
	const struct timeline *timeline = w->replay->timeline;
	const struct space *space;

	*ret = 0;
	if (!thread || timeline_space_uncertain(timeline, thread->pid, time))
		return 0;
	space = timeline_space(timeline, thread->pid, time);
	return space ? replay_context(w->replay, space, time, 0, UINT64_MAX, ret) : 0;
}

static int answer(struct skim_owners *w, const struct span *span, bool kernel)
{
	struct pick p = pick_turns(w, span, kernel);
	const struct timeline_thread *thread;
	uint64_t time;
	uint32_t last;
	int r;

	w->owner = (struct skim_owner){0};
	w->known = false;
	/* Without turns, a trace can still be of a known process. */
	if (w->replay->turns.cpus[w->index].n == 0) {
		w->owner.process = w->replay->process;
		return find_context(w, w->owner.process, SPACE_NOW - 1, &w->owner.context);
	}
	if (!p.turn || (!p.same_thread && !p.same_process))
		return 0;
	thread = thread_of(p.turn);
	if (p.same_thread)
		w->owner.thread = thread;
	else
		w->owner.process = thread;
	time = MIN_OF(MAX_OF(span->hi, p.turn->since), p.turn->until - 1);
	r = find_context(w, thread, time, &w->owner.context);
	if (r < 0 || !p.same_thread)
		return r;
	/* If the span lies in one turn, the answer holds to the turn's end, unless the mappings
	 * change before. */
	r = find_context(w, thread, p.turn->until - 1, &last);
	w->known =
		p.turn->since <= span->lo && span->hi < p.turn->until && last == w->owner.context;
	w->since = span->lo;
	w->until = p.turn->until;
	return r;
}

int skim_owner_of(struct skim_owners *w, const struct skim_sample *s, const struct skim_owner **ret)
{
	static const struct skim_owner guest = {.guest = true};
	bool kernel = scan_is_kernel(s->ip);
	struct span span;
	int r = 0;

	*ret = s->guest && !w->guests ? &guest : &w->owner;
	if (w->asked && kernel == w->kernel && s->tsc_lo == w->tsc_lo && s->tsc_hi == w->tsc_hi)
		return 0;
	span = span_of(w, s);
	if (!w->known || kernel != w->kernel || span.lo < w->since || span.hi >= w->until)
		r = answer(w, &span, kernel);
	w->asked = r == 0;
	w->kernel = kernel;
	w->tsc_lo = s->tsc_lo;
	w->tsc_hi = s->tsc_hi;
	return r;
}
