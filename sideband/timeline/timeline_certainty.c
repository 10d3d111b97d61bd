/*
 * Finds out which processes' mappings are certain although records were lost.
 *
 * A process' mappings are complete at its exec, and as complete as its parent's at its fork: that
 * is a baseline. If the records of a CPU were lost in a span of time after the baseline, a mapping
 * of the process may be among them. A process with one thread that had another CPU for all of the
 * span is exempt.
 *
 * The decoder knows all spans before it applies the first record. Spans that overlap are joined, so
 * both their ends are in order and a process' first span is found by binary search. The recorder
 * keeps only the time of the baseline; the decoder of its records finds out what was lost since.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* After so many looks at a CPU no process is exempt any more: records are untrusted and must not
 * make this slow. */
#define MAX_EXEMPT_CHECKS (4u << 20)

static int by_since(const void *a, const void *b)
{
	const struct lost_span *x = a, *y = b;

	return x->since < y->since ? -1 : x->since > y->since;
}

static struct lost_span *span_at(const struct state *s, size_t i)
{
	return (struct lost_span *)s->lost_spans.items + i;
}

int certainty_prepare(struct state *s, struct lost_span *spans, size_t n)
{
	struct lost_span *last = NULL;

	if (n > 0)
		qsort(spans, n, sizeof(*spans), by_since);
	for (size_t i = 0; i < n; i++) {
		if (last && spans[i].since < last->until) {
			last->until = MAX_OF(last->until, spans[i].until);
			if (last->cpu != spans[i].cpu)
				last->cpu = SPAN_MANY_CPUS;
			continue;
		}
		last = state_add_version(s, &s->lost_spans, sizeof(*last));
		if (!last)
			return -ENOMEM;
		*last = spans[i];
	}
	return 0;
}

/* The index of the first span that ends after TIME. */
static size_t first_span(const struct state *s, uint64_t time)
{
	return FIRST_WHERE(i, s->lost_spans.n, span_at(s, i)->until > time);
}

static struct baseline *last_baseline(const struct certainty *c)
{
	return (struct baseline *)c->baselines.items + c->baselines.n - 1;
}

/* The time before UNTIL since which the newest baseline is in doubt; SPACE_NOW: none. */
static uint64_t find_doubt(const struct state *s, struct certainty *c, uint64_t until)
{
	const size_t *exempt = c->exempt.items;

	for (; c->span_at < s->lost_spans.n; c->span_at++) {
		while (c->exempt_at < c->exempt.n && exempt[c->exempt_at] < c->span_at)
			c->exempt_at++;
		if (c->exempt_at == c->exempt.n || exempt[c->exempt_at] != c->span_at)
			break;
	}
	if (c->span_at == s->lost_spans.n || span_at(s, c->span_at)->since >= until)
		return SPACE_NOW;
	return MAX_OF(span_at(s, c->span_at)->since, last_baseline(c)->time);
}

/* Begins a baseline at TIME. Spans that end at COMPLETE or before do not concern it; 0: all spans
 * do. */
static int begin_baseline(struct state *s, struct certainty *c, uint64_t time, uint64_t complete)
{
	struct baseline *baseline;

	if (c->baselines.n)
		last_baseline(c)->doubt = find_doubt(s, c, time);
	baseline = state_add_version(s, &c->baselines, sizeof(*baseline));
	if (!baseline)
		return -ENOMEM;
	*baseline = (struct baseline){.time = time, .doubt = SPACE_NOW};
	c->span_at = first_span(s, complete);
	return 0;
}

int certainty_init(struct state *s, struct process *p)
{
	if (!s->history)
		return 0;
	p->certainty = pool_get(&s->pool, sizeof(*p->certainty));
	return p->certainty ? begin_baseline(s, p->certainty, 0, 0) : -ENOMEM;
}

int certainty_exec(struct state *s, struct process *p, uint64_t time)
{
	p->baseline = time;
	return s->history ? begin_baseline(s, p->certainty, time, time) : 0;
}

/* A child's mappings are as certain as its parent's at the fork. A state without history does not
 * know yet what was lost before the fork, so the child gets the parent's baseline. */
int certainty_fork(struct state *s, struct process *p, uint32_t ppid, uint64_t time)
{
	const struct process *parent = state_find_process(s, ppid);
	uint64_t complete = 0;

	p->baseline = parent ? parent->baseline : 0;
	if (!s->history)
		return 0;
	if (parent && find_doubt(s, parent->certainty, time) == SPACE_NOW)
		complete = time;
	if (begin_baseline(s, p->certainty, time, complete) < 0)
		return -ENOMEM;
	/* The exempt spans of the pid's last process do not concern this one. */
	p->certainty->exempt.n = p->certainty->exempt_at = 0;
	p->certainty->n_threads = 0;
	p->certainty->known = true;
	return 0;
}

void certainty_scan(struct state *s, struct process *p, uint64_t complete)
{
	if (!s->history)
		return;
	p->certainty->known = true;
	p->certainty->span_at = MAX_OF(p->certainty->span_at, first_span(s, complete));
}

/* The process whose only thread has had the CPU C since before TIME; NULL: none is known. */
static struct process *alone_on(const struct state *s, const struct cpu *c, uint64_t time)
{
	const struct turn *last = turns_last(c);
	const struct certainty *certainty;
	struct process *p;

	/* A turn with time 0 comes from the base and may have begun later. */
	if (!last || !last->thread || last->time == 0 || last->time > time)
		return NULL;
	p = state_find_process(s, last->pid);
	certainty = p ? p->certainty : NULL;
	if (!p || !certainty->known || certainty->n_threads != 1 || certainty->threads_since > time)
		return NULL;
	return p;
}

int certainty_lose(struct state *s, uint64_t until)
{
	/* UNTIL - 1: the span that ends at UNTIL itself. An empty span lost nothing. */
	size_t i = until > 0 ? first_span(s, until - 1) : s->lost_spans.n;
	const struct lost_span *span = i < s->lost_spans.n ? span_at(s, i) : NULL;

	if (!span || span->until != until || span->cpu == SPAN_MANY_CPUS)
		return 0;
	s->n_exempt_checks += s->n_cpus;
	for (size_t cpu = 0; cpu < s->n_cpus && s->n_exempt_checks < MAX_EXEMPT_CHECKS; cpu++) {
		struct process *p = alone_on(s, &s->cpus[cpu], span->since);
		size_t *exempt;

		/* The turns of the CPU that lost records may not be uncertain yet. */
		if (!p || cpu == span->cpu)
			continue;
		exempt = state_add_version(s, &p->certainty->exempt, sizeof(*exempt));
		if (!exempt)
			return -ENOMEM;
		*exempt = i;
	}
	return 0;
}

void certainty_finish(struct state *s)
{
	struct process *p;

	TAILQ_FOREACH(p, &s->live, entry)
	last_baseline(p->certainty)->doubt = find_doubt(s, p->certainty, SPACE_NOW);
}
