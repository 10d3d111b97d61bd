/*
 * Finds functions of which a few calls took much longer than the others.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_SLOW 3u /* suspects */

#define SLOW_CALLS	100u	 /* fewer calls have no usual duration */
#define SLOW_SHARE	100u	 /* one of so many calls at most is slow */
#define SLOW_TIMES	10u	 /* slow: so many times what nine of ten calls took at most */
#define SLOW_LIMIT_NS	100000u	 /* and no less than this */
#define SLOW_MAX_NS	500000u	 /* the slowest call took at least this, */
#define SLOW_ONE_MAX_NS 5000000u /* or this if it is the only slow one */
#define SLOW_ONE_PART	10u	 /* and it ended in the last of so many parts of the window */
#define WAITING_NS	50000u	 /* a function waits whose usual call takes so long */
#define WAITING_TIMES	4u	 /* and is off its CPU so many times as long as on it */
#define NESTED_PART	8u /* a function calls itself: one of so many of its calls is nested */
#define LEFT_PART	2u /* a function jumps on: more than one of so many of its calls do */
#define RARE_CALLS	2u
#define CLEAR_OCTAVES	3u  /* below the slow calls there are so many octaves */
#define CLEAR_PART	4u  /* with no more than one call for so many slow ones */
#define INSIDE_PERCENT	80u /* a call inside has this share of the slowest call */

unsigned suspects_octave(const struct report *r, uint64_t ns)
{
	unsigned i = 0;

	while (i < DURATIONS_OCTAVES && suspects_span(r, UINT64_C(1) << i) < ns)
		i++;
	return i;
}

/* Whether a usual call of the function is one that waits: its duration says nothing of its work. */
static bool is_waiting(const struct report *r, const struct function *f, const struct durations *d,
		       uint64_t ended)
{
	return suspects_span(r, durations_quantile(d, ended, 500)) >= WAITING_NS &&
	       d->off / WAITING_TIMES >= f->total_ticks;
}

/* Whether calls of the function often lie within others of it. Such a function carries out what
 * others give it, as the evaluation of an expression does: the outer calls take much longer. */
static bool is_recursive(const struct durations *d)
{
	return d->nested >= d->n / NESTED_PART + 1;
}

/* How many calls took 2^*OCTAVE ticks or more, after *OCTAVE has been raised to where these are
 * clear of the others: where durations vary anyway, long ones do not stand out. 0: nowhere. */
static uint64_t clear_octave(const struct durations *d, unsigned *octave)
{
	uint64_t slow, last;

	for (; (slow = durations_slower(d, *octave, &last)) > 0; (*octave)++) {
		const unsigned below = *octave - MIN_OF(*octave, CLEAR_OCTAVES);

		/* The number stays the same with a higher limit, which says more. */
		if (durations_slower(d, *octave + 1, &last) != slow &&
		    durations_slower(d, below, &last) - slow <= slow / CLEAR_PART)
			break;
	}
	return slow;
}

/* Whether a single slow call that ended at LAST (perf ns) is too long ago to matter at the trigger:
 * most programs have had one, such as that which read a file for the first time. */
static bool is_old(const struct report *r, uint64_t last)
{
	uint64_t end;
	const uint64_t begin = suspects_begin(r, &end);

	return last < end && end - last > (end - begin) / SLOW_ONE_PART;
}

static bool is_slow(const struct report *r, uint32_t function, struct report_suspect *ret)
{
	const struct function *f = suspects_function(r, function);
	const struct durations *d = suspects_durations(r, function);
	const uint64_t ended = f->calls - f->unended;
	uint64_t usual, slow, last, longest;
	unsigned octave;

	if (!d || ended < SLOW_CALLS || !d->slowest.thread ||
	    !report_permits(r, d->slowest.thread, suspects_time(r, d->slowest.tsc)))
		return false;
	/* Such a call lasts as long as what it jumped to. */
	if (is_waiting(r, f, d, ended) || is_recursive(d) || f->left > ended / LEFT_PART)
		return false;
	usual = suspects_span(r, durations_quantile(d, ended, 900));
	longest = suspects_span(r, d->slowest.ticks);
	octave = suspects_octave(r, MAX_OF(SLOW_TIMES * usual, (uint64_t)SLOW_LIMIT_NS));
	slow = clear_octave(d, &octave);
	if (slow == 0 || slow > ended / SLOW_SHARE ||
	    longest < (slow == 1 ? SLOW_ONE_MAX_NS : SLOW_MAX_NS))
		return false;
	durations_slower(d, octave, &last);
	if (slow == 1 && is_old(r, suspects_time(r, last)))
		return false;
	*ret = (struct report_suspect){
		.kind = SUSPECT_SLOW_CALLS,
		.thread = d->slowest.thread,
		.function = function,
		.insns = f->total_insns,
		.since = suspects_time(r, d->slowest.tsc),
		.until = suspects_time(r, last),
		.calls = ended,
		.count = slow,
		.usual_ns = suspects_span(r, durations_quantile(d, ended, 500)),
		.limit_ns = suspects_span(r, UINT64_C(1) << octave),
		.longest_ns = longest,
		.cost_ns = suspects_span(r, suspects_least_sum(d, octave)),
		.off_ns = suspects_span(r,
					d->slowest.off - MIN_OF(d->slowest.off, d->slowest.waited)),
	};
	return true;
}

uint64_t suspects_least_sum(const struct durations *d, unsigned octave)
{
	uint64_t ticks = 0;

	for (unsigned i = octave; i < DURATIONS_OCTAVES; i++)
		ticks += d->slow[i].n * (UINT64_C(1) << i);
	return ticks;
}

bool suspects_is_within(const struct durations *a, const struct durations *b)
{
	const struct durations_call *x = &a->slowest, *y = &b->slowest;

	return x->thread == y->thread && y->tsc >= x->tsc &&
	       y->tsc + y->ticks + y->waited <= x->tsc + x->ticks + x->waited;
}

static int by_longest(const void *a, const void *b)
{
	const struct report_suspect *x = a, *y = b;

	if (x->longest_ns != y->longest_ns)
		return x->longest_ns > y->longest_ns ? -1 : 1;
	/* The caller of a call that takes as long has the earlier beginning, or more instructions.
	 */
	if (x->since != y->since)
		return x->since < y->since ? -1 : 1;
	if (x->insns != y->insns)
		return x->insns > y->insns ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Of the slowest call of FUNCTION. */
static struct report_suspect slowest_of(const struct report *r, uint32_t function)
{
	const struct durations *d = suspects_durations(r, function);

	return (struct report_suspect){.function = function,
				       .longest_ns = suspects_span(r, d->slowest.ticks),
				       .insns = suspects_function(r, function)->total_insns,
				       .since = suspects_time(r, d->slowest.tsc)};
}

bool suspects_is_longer(const struct report *r, uint32_t a, uint32_t b)
{
	const struct report_suspect x = slowest_of(r, a), y = slowest_of(r, b);

	return by_longest(&x, &y) < 0;
}

/* The functions whose slowest call is most of that of S, outermost first; of many, the innermost
 * one is the last. */
static void find_inside(const struct report *r, struct report_suspect *s)
{
	const struct durations *d = suspects_durations(r, s->function);
	const struct functions *f = &r->d->tally.functions;
	struct report_suspect list[SUSPECT_INSIDE + 1];
	size_t n = 0;

	for (uint32_t i = 1; i < f->n; i++) {
		const struct durations *e = suspects_durations(r, i);

		if (!e || i == s->function || !suspects_is_within(d, e) ||
		    e->slowest.ticks < d->slowest.ticks / 100 * INSIDE_PERCENT)
			continue;
		list[n] = slowest_of(r, i);
		n++;
		qsort(list, n, sizeof(*list), by_longest);
		if (n > SUSPECT_INSIDE) {
			n--;
			list[n - 1] = list[n];
		}
	}
	s->n_inside = n;
	for (size_t i = 0; i < n; i++) {
		s->inside[i] = list[i].function;
		s->inside_ns[i] = list[i].longest_ns;
	}
}

/* Whether FUNCTION has so few calls, and all of them so slow, that they may be why calls of S were
 * slow: the slowest of both are of one process. */
static bool is_rare(const struct report *r, const struct report_suspect *s, uint32_t function)
{
	const struct function *f = suspects_function(r, function);
	const struct durations *d = suspects_durations(r, function);
	const uint64_t ended = f->calls - f->unended;

	if (!d || ended < RARE_CALLS || ended > s->count || !d->slowest.thread ||
	    d->slowest.thread->pid != s->thread->pid ||
	    suspects_is_within(d, suspects_durations(r, s->function)))
		return false;
	for (size_t i = 0; i < s->n_inside; i++)
		if (s->inside[i] == function)
			return false;
	return suspects_span(r, durations_quantile(d, ended, 1)) >= s->limit_ns / 2 &&
	       suspects_span(r, d->slowest.ticks) >= s->limit_ns &&
	       suspects_span(r, d->slowest.ticks) / 2 <= s->longest_ns;
}

/* Whether function A says more than B: it has more calls, or as many and is further out. */
static bool is_more(const struct report *r, uint32_t a, uint32_t b)
{
	const struct function *f = suspects_function(r, a), *g = suspects_function(r, b);

	return f->calls != g->calls ? f->calls > g->calls : f->total_insns > g->total_insns;
}

static void find_rare(const struct report *r, struct report_suspect *s)
{
	for (uint32_t i = 1; i < r->d->tally.functions.n; i++) {
		size_t at = 0;

		if (!is_rare(r, s, i))
			continue;
		while (at < s->n_rare && is_more(r, s->rare[at], i))
			at++;
		if (at == SUSPECT_RARE)
			continue;
		s->n_rare = MIN_OF(s->n_rare + 1, (size_t)SUSPECT_RARE);
		for (size_t k = s->n_rare - 1; k > at; k--)
			s->rare[k] = s->rare[k - 1];
		s->rare[at] = i;
	}
}

/* Whether most of the slowest call of S was a wait that it began itself: for a child, for events or
 * for a signal; or, if it is the only slow one, for a time. */
static bool is_wait(const struct report *r, const struct report_suspect *s)
{
	static const char *const names[] = {"wait4",	   "waitid", "epoll_wait",
					    "epoll_pwait", "pause",  "sigsuspend"};

	for (size_t i = 0; i < s->n_inside; i++) {
		const char *name = suspects_function(r, s->inside[i])->name;

		if (suspects_is_one_of(name, names, ARRAY_SIZE(names)))
			return true;
		if (s->count == 1 && name && strstr(name, "nanosleep"))
			return true;
	}
	return false;
}

/* What took most time together comes first. */
static int by_cost(const void *a, const void *b)
{
	const struct report_suspect *x = a, *y = b;

	if (x->cost_ns != y->cost_ns)
		return x->cost_ns > y->cost_ns ? -1 : 1;
	return by_longest(a, b);
}

/* Moves those of the N suspects of LIST to its begin that are not told with another one, and
 * returns how many they are. */
static size_t drop_inner(const struct report *r, struct report_suspect *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_longest);
	/* From the shortest on, so that those around it are still there. */
	for (size_t i = n; i-- > 0;)
		for (size_t j = 0; j < i && list[i].function != 0; j++)
			if (suspects_is_within(suspects_durations(r, list[j].function),
					       suspects_durations(r, list[i].function)))
				list[i].function = 0;
	for (size_t i = 0; i < n; i++)
		if (list[i].function != 0)
			list[kept++] = list[i];
	return kept;
}

int suspects_slow(struct report *r)
{
	const struct functions *f = &r->d->tally.functions;
	CLEANUP_FREE struct report_suspect *list = calloc(f->n, sizeof(*list));
	size_t n = 0, added = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 1; i < f->n; i++)
		n += is_slow(r, i, &list[n]);
	n = drop_inner(r, list, n);
	qsort(list, n, sizeof(*list), by_cost);
	for (size_t i = 0; i < n && added < MAX_SLOW; i++) {
		find_inside(r, &list[i]);
		if (is_wait(r, &list[i]))
			continue;
		find_rare(r, &list[i]);
		if (suspects_add(r, &list[i]) < 0)
			return -ENOMEM;
		added++;
	}
	return 0;
}
