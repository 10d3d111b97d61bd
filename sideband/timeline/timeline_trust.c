/*
 * Whose mappings are to be believed although records were lost. A process' mappings are told from
 * the first on at its exec, and copied at its fork; a silence after that, in which it may have run
 * on the silent CPU, may have swallowed one. It certainly did not when all of it, one thread, had
 * another CPU all the time.
 *
 * In the worker all silences are known before the first record is applied. Those that overlap are
 * one, so that they are in order of both ends and a process' first one is found by searching. In
 * the daemon no more is kept than when the mappings were told; what was lost since, the reader of
 * its records finds out.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* Beyond so many looks at a CPU nobody is exempt any more: a stranger's records must not make this
 * take long. */
#define MAX_EXEMPT_CHECKS (4u << 20)

static int by_since(const void *a, const void *b)
{
	const struct silence *x = a, *y = b;

	return x->since < y->since ? -1 : x->since > y->since;
}

static struct silence *silence_at(const struct state *s, size_t i)
{
	return (struct silence *)s->silences.items + i;
}

static void join(struct silence *to, const struct silence *more)
{
	to->until = MAX_OF(to->until, more->until);
	if (to->cpu != more->cpu)
		to->cpu = SILENCE_MANY;
}

int trust_prepare(struct state *s, struct silence *silences, size_t n)
{
	struct silence *last = NULL;

	if (n > 0)
		qsort(silences, n, sizeof(*silences), by_since);
	for (size_t i = 0; i < n; i++) {
		if (last && silences[i].since < last->until) {
			join(last, &silences[i]);
			continue;
		}
		last = state_add_version(s, &s->silences, sizeof(*last));
		if (!last)
			return -ENOMEM;
		*last = silences[i];
	}
	return 0;
}

/* The first silence that is not over at TIME. */
static size_t first_silence(const struct state *s, uint64_t time)
{
	return FIRST_WHERE(i, s->silences.n, silence_at(s, i)->until > time);
}

static struct telling *last_telling(const struct trust *t)
{
	return (struct telling *)t->tellings.items + t->tellings.n - 1;
}

static bool is_exempt(struct trust *t, size_t silence)
{
	const size_t *exempt = t->exempt.items;

	while (t->exempt_at < t->exempt.n && exempt[t->exempt_at] < silence)
		t->exempt_at++;
	return t->exempt_at < t->exempt.n && exempt[t->exempt_at] == silence;
}

/* Since when, before UNTIL, the newest telling is not to be believed; SPACE_NOW: it is. */
static uint64_t find_doubt(const struct state *s, struct trust *t, uint64_t until)
{
	while (t->silence_at < s->silences.n && is_exempt(t, t->silence_at))
		t->silence_at++;
	if (t->silence_at == s->silences.n || silence_at(s, t->silence_at)->since >= until)
		return SPACE_NOW;
	return MAX_OF(silence_at(s, t->silence_at)->since, last_telling(t)->time);
}

/* From TIME on counts what was told at TOLD: 0 when that is already in doubt. */
static int tell(struct state *s, struct trust *t, uint64_t time, uint64_t told)
{
	struct telling *telling;

	if (t->tellings.n)
		last_telling(t)->doubt = find_doubt(s, t, time);
	telling = state_add_version(s, &t->tellings, sizeof(*telling));
	if (!telling)
		return -ENOMEM;
	*telling = (struct telling){.time = time, .doubt = SPACE_NOW};
	t->silence_at = first_silence(s, told);
	return 0;
}

int trust_init(struct state *s, struct process *p)
{
	if (!s->history)
		return 0;
	p->trust = pool_get(&s->pool, sizeof(*p->trust));
	return p->trust ? tell(s, p->trust, 0, 0) : -ENOMEM;
}

int trust_exec(struct state *s, struct process *p, uint64_t time)
{
	p->told = time;
	return s->history ? tell(s, p->trust, time, time) : 0;
}

/* A child's mappings are as good as its parent's at that time. Without history nobody knows what
 * may yet turn out to have been lost before: the child counts as told when its parent was. */
int trust_fork(struct state *s, struct process *p, uint32_t ppid, uint64_t time)
{
	const struct process *parent = (struct process *)idmap_find(&s->processes, ppid);
	uint64_t told = 0;

	p->told = parent ? parent->told : 0;
	if (!s->history)
		return 0;
	if (parent && find_doubt(s, parent->trust, time) == SPACE_NOW)
		told = time;
	if (tell(s, p->trust, time, told) < 0)
		return -ENOMEM;
	/* What the pid's last process was exempt from is nothing to this one. */
	p->trust->exempt.n = p->trust->exempt_at = 0;
	p->trust->n_threads = 0;
	p->trust->known = true;
	return 0;
}

void trust_scan(struct state *s, struct process *p, uint64_t told)
{
	if (!s->history)
		return;
	p->trust->known = true;
	p->trust->silence_at = MAX_OF(p->trust->silence_at, first_silence(s, told));
}

/* The process that, as one thread, has had CPU since before TIME. */
static struct process *alone_on(const struct state *s, const struct cpu *c, uint64_t time)
{
	const struct stretch *last = turns_last(c);
	struct process *p;

	/* One at 0 is known from the base: it may have come later. */
	if (!last || !last->thread || last->time == 0 || last->time > time)
		return NULL;
	p = (struct process *)idmap_find(&s->processes, last->pid);
	if (!p || !p->trust->known || p->trust->n_threads != 1 || p->trust->threads_since > time)
		return NULL;
	return p;
}

static int exempt(struct state *s, struct process *p, size_t silence)
{
	size_t *to = state_add_version(s, &p->trust->exempt, sizeof(*to));

	if (!to)
		return -ENOMEM;
	*to = silence;
	return 0;
}

int trust_lose(struct state *s, uint64_t until)
{
	/* One that ends now is not over before now; an empty one swallowed nothing. */
	size_t i = until > 0 ? first_silence(s, until - 1) : s->silences.n;
	const struct silence *silence = i < s->silences.n ? silence_at(s, i) : NULL;

	if (!silence || silence->until != until || silence->cpu == SILENCE_MANY)
		return 0;
	s->n_exempt_checks += s->n_cpus;
	for (size_t cpu = 0; cpu < s->n_cpus && s->n_exempt_checks < MAX_EXEMPT_CHECKS; cpu++) {
		struct process *p = alone_on(s, &s->cpus[cpu], silence->since);

		/* The silent one's own turns may not be cut yet. */
		if (p && cpu != silence->cpu && exempt(s, p, i) < 0)
			return -ENOMEM;
	}
	return 0;
}

void trust_settle(struct state *s)
{
	struct process *p;

	TAILQ_FOREACH(p, &s->live, entry)
	last_telling(p->trust)->doubt = find_doubt(s, p->trust, SPACE_NOW);
}
