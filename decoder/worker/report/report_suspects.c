/*
 * Writes what stands out, and finds functions that run late, low frequencies and gaps.
 *
 * suspects_slow.c finds slow calls, and suspects_locks.c locks that many calls waited for.
 * suspects_threads.c looks at each process and thread: suspects_crash.c finds crashes,
 * suspects_deadlock.c waits for locks, suspects_stuck.c calls that wait for an answer, and
 * suspects_waits.c threads that waited for a CPU.
 *
 * Each rule compares with what the same recording shows as usual, and has a least number and a
 * least duration, below which it says nothing. ptsnap-report(5), SUSPECTS, states all rules.
 */
#include <stdlib.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_LATE 2u /* suspects of each of these kinds */
#define MAX_GAPS 2u

#define LATE_WINDOW_NS 50000000u /* a shorter window has no late part */
#define LATE_PART      20u	 /* the last of so many parts of the window */
#define LATE_CALLS     10u /* fewer calls are no new habit, unless they are many instructions */
#define LATE_INSNS     10000u
#define LATE_SHARE     5u /* one of so many of the instructions that run in such a time */

#define FREQUENCY_DROP 3u /* from 3 to at most 2 */
#define FREQUENCY_NS   1000000u

#define GAP_MIN_NS  1000000u
#define GAP_NEAR_NS 10000000u /* before the trigger */
#define GAP_PART    10u	      /* or so large a part of the window */

int suspects_add(struct report *r, const struct report_suspect *s)
{
	if (ARRAY_RESERVE(r->suspects, r->max_suspects, r->n_suspects + 1) < 0)
		return -ENOMEM;
	r->suspects[r->n_suspects++] = *s;
	return 0;
}

const struct function *suspects_function(const struct report *r, uint32_t function)
{
	return &r->d->tally.functions.list[function];
}

const struct durations *suspects_durations(const struct report *r, uint32_t function)
{
	const struct function *f = suspects_function(r, function);

	return f->durations ? &r->d->tally.functions.durations.list[f->durations - 1] : NULL;
}

uint64_t suspects_span(const struct report *r, uint64_t ticks)
{
	const uint64_t ns = tscmap_span(&r->d->replay->clock, ticks);

	return ns == MANIFEST_ABSENT ? 0 : ns;
}

uint64_t suspects_time(const struct report *r, uint64_t tsc)
{
	return tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&r->d->replay->clock, tsc);
}

uint64_t suspects_begin(const struct report *r, uint64_t *ret_end)
{
	uint64_t begin = UINT64_MAX, end = 0;

	for (size_t i = 0; i < r->m->n_cpus; i++) {
		const struct report_reach reach = report_reach(r, i);

		if (reach.begin >= reach.end || reach.end == MANIFEST_ABSENT)
			continue;
		begin = MIN_OF(begin, reach.begin);
		end = MAX_OF(end, reach.end);
	}
	*ret_end = r->now == MANIFEST_ABSENT ? end : MIN_OF(end, r->now);
	return MIN_OF(begin, *ret_end);
}

/* --- Functions that run only at the end of the window --- */

/* When code of each image ran first, perf ns; code of no image comes last. NULL: no memory. */
static uint64_t *first_of_images(const struct report *r)
{
	const struct functions *all = &r->d->tally.functions;
	uint64_t *list = calloc(r->m->n_images + 1, sizeof(*list));

	for (size_t i = 0; list && i <= r->m->n_images; i++)
		list[i] = MANIFEST_ABSENT;
	for (size_t i = 1; list && i < all->n; i++) {
		const size_t image = MIN_OF((size_t)all->list[i].image, r->m->n_images);

		list[image] = MIN_OF(list[image], suspects_time(r, all->list[i].first));
	}
	return list;
}

/* FIRSTS: when code of each image ran first; INSNS: of all functions. */
static bool is_late(const struct report *r, uint32_t function, uint64_t begin, uint64_t end,
		    const uint64_t *firsts, uint64_t insns)
{
	const struct function *f = suspects_function(r, function);
	const uint64_t first = suspects_time(r, f->first), window = end - begin;

	if (first == MANIFEST_ABSENT || first > end || first < end - window / LATE_PART ||
	    (f->calls < LATE_CALLS && f->self_insns < LATE_INSNS))
		return false;
	return (double)f->self_insns * (double)window * LATE_SHARE >=
		       (double)insns * (double)(end - first) &&
	       firsts[MIN_OF((size_t)f->image, r->m->n_images)] < begin + window / 2;
}

/* Whether gaps between BEGIN and END are so long that a function may well have run within. */
static bool has_gaps(const struct report *r, uint64_t begin, uint64_t end)
{
	uint64_t missing = 0;

	for (size_t i = 0; i < r->d->gaps.n && missing <= (end - begin) / LATE_PART; i++) {
		const struct gap *g = &r->d->gaps.list[i];

		if (g->time_ns != MANIFEST_ABSENT && g->until_ns != MANIFEST_ABSENT &&
		    g->time_ns < end && g->until_ns > MAX_OF(g->time_ns, begin))
			missing += MIN_OF(g->until_ns, end) - MAX_OF(g->time_ns, begin);
	}
	return missing > (end - begin) / LATE_PART;
}

static int find_late(struct report *r)
{
	const struct functions *f = &r->d->tally.functions;
	/* A trace that begins later than others may lack what ran on its CPU before. */
	const uint64_t begin = report_all_begin_ns(r->d);
	CLEANUP_FREE uint64_t *firsts = first_of_images(r);
	uint64_t insns = 0, end;
	size_t added = 0;

	if (!firsts)
		return -ENOMEM;
	suspects_begin(r, &end);
	if (begin == MANIFEST_ABSENT || end < begin || end - begin < LATE_WINDOW_NS ||
	    has_gaps(r, begin, end))
		return 0;
	for (size_t i = 1; i < f->n; i++)
		insns += f->list[i].self_insns;
	/* In the order of their own instructions. */
	for (size_t i = 0; i < r->lists[REPORT_FUNCTIONS].total && added < MAX_LATE; i++) {
		const struct report_suspect s = {
			.kind = SUSPECT_LATE_FUNCTION,
			.function = r->functions[i],
			.since = suspects_time(r, suspects_function(r, r->functions[i])->first),
			.calls = suspects_function(r, r->functions[i])->calls,
			.count = suspects_function(r, r->functions[i])->self_insns,
		};

		if (!is_late(r, r->functions[i], begin, end, firsts, insns))
			continue;
		if (suspects_add(r, &s) < 0)
			return -ENOMEM;
		added++;
	}
	return 0;
}

/* --- Frequencies and gaps --- */

static int find_frequency(struct report *r, size_t cpu)
{
	const struct marks_list *l = &r->d->marks.lists[MARKS_FREQUENCIES];
	const uint64_t highest = r->d->marks.cpus ? r->d->marks.cpus[cpu].highest : 0;
	uint64_t last = 0, since = MANIFEST_ABSENT;

	/* The newest mark comes first. Since when the ratio has been that low: */
	for (size_t i = 0; i < l->n; i++) {
		const struct mark *m = &l->list[i];

		if (m->cpu != cpu)
			continue;
		if (m->flow.value * FREQUENCY_DROP > highest * (FREQUENCY_DROP - 1))
			break;
		last = last == 0 ? m->flow.value : last;
		/* Certainly since then. */
		since = m->flow.tsc_hi == UINT64_MAX ? MANIFEST_ABSENT
						     : suspects_time(r, m->flow.tsc_hi);
	}
	if (last == 0 || since == MANIFEST_ABSENT || r->now == MANIFEST_ABSENT ||
	    since + FREQUENCY_NS > r->now)
		return 0;
	return suspects_add(r, &(struct report_suspect){.kind = SUSPECT_FREQUENCY,
							.cpu = cpu,
							.since = since,
							.count = last,
							.calls = highest});
}

static bool hides(const struct report *r, const struct gap *g, uint64_t window)
{
	uint64_t length;

	if (g->time_ns == MANIFEST_ABSENT || g->until_ns == MANIFEST_ABSENT ||
	    g->until_ns <= g->time_ns || r->now == MANIFEST_ABSENT || g->time_ns >= r->now ||
	    g->kind == FAULT_HEAD || g->kind == FAULT_EMPTY || g->kind == FAULT_PT_STARTING)
		return false;
	length = MIN_OF(g->until_ns, r->now) - g->time_ns;
	return length >= GAP_MIN_NS &&
	       (g->until_ns + GAP_NEAR_NS >= r->now || length >= window / GAP_PART);
}

static int by_length(const void *a, const void *b)
{
	const struct report_suspect *x = a, *y = b;
	const uint64_t m = x->until - x->since, n = y->until - y->since;

	return m > n ? -1 : m < n;
}

static int find_gaps(struct report *r)
{
	const struct gaps *gaps = &r->d->gaps;
	CLEANUP_FREE struct report_suspect *list = calloc(gaps->n + 1, sizeof(*list));
	uint64_t end;
	const uint64_t begin = suspects_begin(r, &end);
	size_t n = 0;
	int result = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < gaps->n; i++)
		if (hides(r, &gaps->list[i], end - begin))
			list[n++] = (struct report_suspect){.kind = SUSPECT_GAP,
							    .count = i,
							    .since = gaps->list[i].time_ns,
							    .until = gaps->list[i].until_ns};
	qsort(list, n, sizeof(*list), by_length);
	for (size_t i = 0; i < n && i < MAX_GAPS && result == 0; i++)
		result = suspects_add(r, &list[i]);
	return result;
}

/* --- The list --- */

static void write_slow(const struct report *r, struct json_writer *w,
		       const struct report_suspect *s)
{
	json_u64(w, "ended", s->calls);
	json_u64(w, "p50NSec", s->usual_ns);
	json_u64(w, "slow", s->count);
	json_u64(w, "slowNSec", s->limit_ns);
	report_at(r, w, "lastEndNSec", s->until);
	json_u64(w, "maxNSec", s->longest_ns);
	json_u64(w, "untracedNSec", s->off_ns);
	json_begin_array(w, "inside");
	for (size_t i = 0; i < s->n_inside; i++) {
		json_begin_object(w, NULL);
		report_function_place(r, w, "place", s->inside[i]);
		json_u64(w, "maxNSec", s->inside_ns[i]);
		json_end_object(w);
	}
	json_end_array(w);
	json_begin_array(w, "rare");
	for (size_t i = 0; i < s->n_rare; i++) {
		const struct function *f = suspects_function(r, s->rare[i]);

		json_begin_object(w, NULL);
		report_function_place(r, w, "place", s->rare[i]);
		json_u64(w, "ended", f->calls - f->unended);
		json_u64(w, "maxNSec",
			 suspects_span(r, suspects_durations(r, s->rare[i])->slowest.ticks));
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_contention(const struct report *r, struct json_writer *w,
			     const struct report_suspect *s)
{
	json_u64(w, "ended", s->calls);
	json_u64(w, "slow", s->count);
	json_u64(w, "slowNSec", s->limit_ns);
	report_at(r, w, "lastEndNSec", s->until);
	json_u64(w, "maxNSec", s->longest_ns);
	json_u64(w, "waitedNSec", s->off_ns);
	json_u64(w, "executedNSec", s->usual_ns);
	json_begin_array(w, "callers");
	for (size_t i = 0; i < s->n_inside; i++) {
		json_begin_object(w, NULL);
		report_function_place(r, w, "place", s->inside[i]);
		json_u64(w, "maxNSec", s->inside_ns[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_gap(const struct report *r, struct json_writer *w, const struct report_suspect *s)
{
	const struct gap *g = &r->d->gaps.list[s->count];

	json_u64(w, "n", s->count + 1);
	json_string(w, "gap", fault_name(g->kind));
	report_u64(w, "cpu", g->cpu == GAPS_NO_CPU ? MANIFEST_ABSENT : g->cpu);
	report_at(r, w, "untilNSec", s->until);
}

static void write_values(const struct report *r, struct json_writer *w,
			 const struct report_suspect *s)
{
	switch (s->kind) {
	case SUSPECT_SLOW_CALLS: write_slow(r, w, s); break;
	case SUSPECT_CONTENTION: write_contention(r, w, s); break;
	case SUSPECT_LONG_CALL:
		report_u64(w, "cpuNSec", s->off_ns);
		json_u64(w, "ended", s->calls);
		report_u64(w, "maxNSec", s->calls > 0 ? s->longest_ns : MANIFEST_ABSENT);
		break;
	case SUSPECT_STUCK_CALL:
		report_write_call(w, s->count);
		json_u64(w, "ended", s->calls);
		json_u64(w, "maxNSec", s->longest_ns);
		break;
	case SUSPECT_LATE_FUNCTION:
		json_u64(w, "calls", s->calls);
		json_u64(w, "selfInstructions", s->count);
		break;
	case SUSPECT_CRASH:
		report_place(r, w, "place", s->context, s->address);
		if (s->outside)
			json_boolean(w, "fromOutside", true);
		break;
	case SUSPECT_LOCK_WAIT:
		report_place(r, w, "place", s->context, s->address);
		if (s->other)
			json_u64(w, "ownerTid", s->other->tid);
		break;
	case SUSPECT_DEADLOCK:
		json_begin_array(w, "tids");
		for (size_t i = 0; i < s->n_tids; i++)
			json_u64(w, NULL, s->tids[i]);
		json_end_array(w);
		json_u64(w, "waiting", s->count);
		if (s->cycle)
			json_boolean(w, "cycle", true);
		break;
	case SUSPECT_WAIT:
		report_write_call(w, s->count);
		report_place(r, w, "place", s->context, s->address);
		break;
	case SUSPECT_RUNNABLE:
		report_id(w, "cpu", r->m->cpus[s->cpu].cpu);
		report_u64(w, "byPid", s->other ? s->other->pid : MANIFEST_ABSENT);
		report_u64(w, "byTid", s->other ? s->other->tid : MANIFEST_ABSENT);
		break;
	case SUSPECT_CPU_WAIT:
		report_id(w, "cpu", r->m->cpus[s->cpu].cpu);
		json_u64(w, "waitedNSec", s->off_ns);
		json_u64(w, "byPid", s->other->pid);
		json_u64(w, "byTid", s->other->tid);
		json_u64(w, "byNSec", s->longest_ns);
		break;
	case SUSPECT_RAN: report_id(w, "cpu", r->m->cpus[s->cpu].cpu); break;
	case SUSPECT_FREQUENCY:
		report_id(w, "cpu", r->m->cpus[s->cpu].cpu);
		json_u64(w, "ratio", s->count);
		json_u64(w, "highestRatio", s->calls);
		report_mhz(r, w, "mhz", s->count);
		report_mhz(r, w, "highestMhz", s->calls);
		break;
	case SUSPECT_GAP: write_gap(r, w, s); break;
	}
}

static void report_suspect(const struct report *r, struct json_writer *w, size_t i)
{
	static const char *const kinds[] = {
		[SUSPECT_CRASH] = "crash",	     [SUSPECT_DEADLOCK] = "deadlock",
		[SUSPECT_LONG_CALL] = "long-call",   [SUSPECT_STUCK_CALL] = "stuck-call",
		[SUSPECT_SLOW_CALLS] = "slow-calls", [SUSPECT_CONTENTION] = "contention",
		[SUSPECT_LOCK_WAIT] = "lock-wait",   [SUSPECT_WAIT] = "wait",
		[SUSPECT_RUNNABLE] = "runnable",     [SUSPECT_CPU_WAIT] = "cpu-wait",
		[SUSPECT_RAN] = "ran-until-trigger", [SUSPECT_LATE_FUNCTION] = "late-function",
		[SUSPECT_FREQUENCY] = "frequency",   [SUSPECT_GAP] = "gap",
	};
	const struct report_suspect *s = &r->suspects[i];

	json_begin_object(w, NULL);
	json_string(w, "kind", kinds[s->kind]);
	report_at(r, w, "sinceNSec", s->since);
	if (s->thread)
		report_ids(w, s->thread, s->thread);
	if (s->function != 0)
		report_function_place(r, w, "place", s->function);
	write_values(r, w, s);
	json_end_object(w);
}

static int by_kind(const void *a, const void *b)
{
	const struct report_suspect *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int report_prepare_suspects(struct report *r)
{
	int result = 0;

	r->lists[REPORT_SUSPECTS] =
		(struct report_list){.key = "suspects", .element = report_suspect};
	/* Whoever was left out could say otherwise. */
	if (decode_slice_selects(&r->options->slice))
		return 0;
	result = suspects_threads(r);
	if (result == 0)
		result = suspects_slow(r);
	if (result == 0 && r->now != MANIFEST_ABSENT)
		result = find_late(r);
	if (result == 0)
		result = suspects_locks(r);
	/* A user is not told what the machine did for others. */
	for (size_t i = 0; i < r->m->n_cpus && result == 0 && !report_is_limited(r); i++)
		result = find_frequency(r, i);
	if (result == 0 && !report_is_limited(r))
		result = find_gaps(r);
	for (size_t i = 0; i < r->n_suspects; i++)
		r->suspects[i].order = i;
	if (r->n_suspects > 0)
		qsort(r->suspects, r->n_suspects, sizeof(*r->suspects), by_kind);
	r->lists[REPORT_SUSPECTS].total = r->n_suspects;
	return result;
}
