/*
 * The last stretch of each thread that did not run within the decoded part of the traces. The turns
 * say when it had a CPU last; the PSB segments there are decoded, and of what is in them only that
 * thread's stretches are kept, apart from what else is counted. Called by decode_rounds.c, within
 * the deadline.
 */
#include "decoder/worker/decode_private.h"

#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/segment.h"
#include "proto/base.h"

/* Threads that are looked for; those that ran last. */
#define MAX_THREADS 4096u
/* A turn may have been spent in the kernel; then in the turn before that, and so on. */
#define MAX_TRIES 3u
/* Where PSBs are further apart, nothing is decoded. */
#define MAX_PIECE UINT64_C(4194304)
/* The clocks may differ by so much, ns. */
#define SLACK_NS 20000u

/* A thread, and the turn that it is looked for in. */
struct wanted {
	const struct timeline_thread *thread; /* NULL: a free slot */
	uint32_t cpu, turn;
	uint64_t since, until; /* perf ns; of the part of the turn that was not decoded */
	bool found;
};

/* What is looked for, and the piece of a trace that is being decoded. */
struct search {
	struct decode_job *job;
	struct replay *replay;
	uint64_t *begins, *ends; /* of each CPU: its trace begins, was decoded; perf ns */
	struct replay_part *parts;
	struct wanted *slots; /* by thread */
	size_t n_slots;
	uint32_t cpu;
	uint64_t since, until; /* perf ns */
};

static struct wanted *slot_of(const struct search *s, const struct timeline_thread *thread)
{
	size_t mask = s->n_slots - 1;
	size_t i = (size_t)hash_u64(HASH_BASIS, (uint64_t)(uintptr_t)thread) & mask;

	while (s->slots[i].thread != NULL && s->slots[i].thread != thread)
		i = (i + 1) & mask;
	return &s->slots[i];
}

/* Those that the report has something of need not be looked for. */
static void note_decoded(struct search *s, const struct tally *t)
{
	size_t i;

	for (i = 0; i < t->n_threads; i++) {
		const struct tally_counters *counters = t->threads[i];

		if (counters->thread != NULL && (counters->n_last > 0 || counters->insns > 0))
			*slot_of(s, counters->thread) =
				(struct wanted){.thread = counters->thread, .found = true};
	}
}

/* What was not decoded of CPU's trace. */
static void find_span(struct search *s, size_t cpu)
{
	const uint64_t tsc = s->job->d->cpus[cpu].stats.tsc_first;
	const uint64_t ns = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&s->replay->clocks[cpu], tsc);

	s->begins[cpu] = s->job->d->window.begins[cpu];
	s->ends[cpu] = ns == MANIFEST_ABSENT ? UINT64_MAX : ns;
}

/* A turn, as far as it lies before what was decoded; false: nobody's user code is to be found. */
static bool take_turn(const struct search *s, uint32_t cpu, uint32_t turn, struct wanted *ret)
{
	const struct turns_turn *t = &s->replay->turns.cpus[cpu].list[turn];
	const uint64_t until = MIN_OF(t->until, s->ends[cpu]);

	if (t->thread == NULL || t->uncertain || t->silent || t->thread->tid == 0 ||
	    until <= s->begins[cpu] || t->since >= until)
		return false;
	*ret = (struct wanted){t->thread, cpu, turn, t->since, until, false};
	return true;
}

/* The newest turn of each thread. */
static void collect_cpu(struct search *s, uint32_t cpu)
{
	const struct turns_cpu *turns = &s->replay->turns.cpus[cpu];
	size_t i;

	for (i = turns->n; i-- > 0 && turns->list[i].until > s->begins[cpu];) {
		struct wanted turn, *w;

		if (!take_turn(s, cpu, (uint32_t)i, &turn))
			continue;
		w = slot_of(s, turn.thread);
		if (w->thread == NULL || (!w->found && w->until < turn.until))
			*w = turn;
	}
}

static int by_age(const void *a, const void *b)
{
	const struct wanted *x = *(struct wanted *const *)a, *y = *(struct wanted *const *)b;

	return x->until > y->until ? -1 : x->until < y->until;
}

/* Those that are to be looked for, the one that ran last first: their number. */
static size_t put_in_order(const struct search *s, struct wanted **list)
{
	size_t i, n = 0;

	for (i = 0; i < s->n_slots; i++)
		if (s->slots[i].thread != NULL && !s->slots[i].found)
			list[n++] = &s->slots[i];
	qsort(list, n, sizeof(struct wanted *), by_age);
	return n;
}

/* Of somebody else only what lies wholly within the piece is taken on the way. */
static bool is_wanted(const struct search *s, const struct wanted *w)
{
	return w->thread != NULL && w->cpu == s->cpu && w->since >= s->since &&
	       w->until <= s->until;
}

static bool shows_something(const struct flow_item *item)
{
	return item->kind != FLOW_GAP && item->kind != FLOW_END && item->kind != FLOW_MARK;
}

static int on_stretch(void *userdata, const struct replay_stretch *stretch)
{
	struct search *s = userdata;
	struct wanted *w = stretch->thread != NULL ? slot_of(s, stretch->thread) : NULL;
	size_t i;

	if (w == NULL || !is_wanted(s, w))
		return 0;
	/* It ran there: that is all there is to be told. */
	if (permit_thread(s->job->d->replay->permit, stretch->thread, MANIFEST_ABSENT) !=
	    PERMIT_YES) {
		w->found = true;
		return 0;
	}
	for (i = 0; i < stretch->n_items && !w->found; i++)
		w->found = shows_something(&stretch->items[i]);
	return tally_stretch(&s->job->d->past, stretch);
}

static bool go_on(void *userdata)
{
	const struct search *s = userdata;

	return decode_go_on(s->job);
}

/* The TSC SLACK_NS behind NS; UINT64_MAX where that is the end of all time, MANIFEST_ABSENT: not
 * known. */
static uint64_t tsc_behind(const struct tscmap *clock, uint64_t ns)
{
	return ns >= UINT64_MAX - SLACK_NS ? UINT64_MAX : tscmap_tsc(clock, ns + SLACK_NS);
}

/* The first PSB behind FROM whose time is behind TSC, or the end of the trace; false: neither is
 * near. */
static bool find_end(const uint8_t *trace, uint64_t size, uint64_t from, uint64_t tsc,
		     struct segment_place *ret)
{
	const uint64_t most = MIN_OF(size, from + MAX_PIECE);

	while (segment_next(trace, from + 1, most, ret)) {
		if (ret->tsc > tsc)
			return true;
		from = ret->offset;
	}
	*ret = (struct segment_place){size, UINT64_MAX};
	return most == size;
}

/* The PSB segments in which W's turn ends. False: there are none, or they are too large. */
static bool find_piece(struct search *s, const struct wanted *w)
{
	const struct tscmap *clock = &s->replay->clocks[w->cpu];
	const uint64_t late = tsc_behind(clock, w->until);
	struct segment_place first, before, end;
	size_t size;
	const uint8_t *trace = bundle_cpu(s->replay->bundle, w->cpu, &size);

	if (late == MANIFEST_ABSENT && w->until < UINT64_MAX - SLACK_NS)
		return false;
	if (!segment_find(trace, size, late, &first) ||
	    !find_end(trace, size, first.offset, late, &end))
		return false;
	/* The segment may have begun just before. */
	if (tscmap_ns(clock, first.tsc) > w->since &&
	    segment_before(trace, first.offset, MAX_PIECE, &before) && before.tsc != 0)
		first = before;
	s->parts[w->cpu] = (struct replay_part){first.offset, end.offset};
	s->cpu = w->cpu;
	s->since = MIN_OF(tscmap_ns(clock, first.tsc), w->since);
	s->until = end.offset == size ? UINT64_MAX : tscmap_ns(clock, end.tsc);
	return true;
}

/* 0; REPLAY_STOPPED; -errno. */
static int decode_piece(struct search *s, const struct wanted *w)
{
	const struct replay_consumer consumer = {
		.stretch = on_stretch, .go_on = go_on, .userdata = s};
	struct flow_stats stats;

	return find_piece(s, w) ? replay_cpu(s->replay, w->cpu, &consumer, &stats) : 0;
}

/* The thread's turn before; false: there is none in the trace. */
static bool step_back(const struct search *s, struct wanted *w)
{
	const struct turns_turn *t = &s->replay->turns.cpus[w->cpu].list[w->turn];

	return t->before != TURNS_NONE && take_turn(s, t->before_cpu, t->before, w);
}

static int look_for(struct search *s, struct wanted *w)
{
	unsigned int tries;
	int r = 0;

	for (tries = 0; r == 0 && !w->found && tries < MAX_TRIES; tries++) {
		if (tries > 0 && !step_back(s, w))
			break;
		r = decode_piece(s, w);
	}
	return r;
}

static int look_for_all(struct search *s)
{
	CLEANUP_FREE struct wanted **list = calloc(s->n_slots, sizeof(struct wanted *));
	struct decode_window *window = &s->job->d->window;
	size_t i, n;
	int r = 0;

	if (list == NULL)
		return -ENOMEM;
	n = put_in_order(s, list);
	for (i = 0; i < MIN_OF(n, (size_t)MAX_THREADS) && r == 0; i++)
		r = decode_go_on(s->job) ? look_for(s, list[i]) : REPLAY_STOPPED;
	window->threads_left = n - i + (r == REPLAY_STOPPED);
	return r == REPLAY_STOPPED ? 0 : r;
}

static int search_init(struct search *s, struct decode_job *job)
{
	struct replay *r = job->d->replay;
	size_t i, n = r->manifest->n_cpus;

	*s = (struct search){.job = job, .replay = r, .n_slots = 2};
	while (s->n_slots < 2 * (timeline_n_threads(r->timeline) + 1))
		s->n_slots *= 2;
	s->slots = calloc(s->n_slots, sizeof(*s->slots));
	s->begins = calloc(n + 1, sizeof(*s->begins));
	s->ends = calloc(n + 1, sizeof(*s->ends));
	s->parts = calloc(n + 1, sizeof(*s->parts));
	if (s->slots == NULL || s->begins == NULL || s->ends == NULL || s->parts == NULL)
		return -ENOMEM;
	note_decoded(s, &job->d->tally);
	note_decoded(s, &job->d->past);
	for (i = 0; i < n; i++)
		find_span(s, i);
	for (i = 0; i < n; i++)
		collect_cpu(s, (uint32_t)i);
	return job->d->past.n_threads > 0 ? 0 : tally_init(&job->d->past, r);
}

int decode_last(struct decode_job *job)
{
	struct search s;
	int r = search_init(&s, job);

	s.replay->parts = s.parts;
	if (r == 0)
		r = look_for_all(&s);
	s.replay->parts = NULL;
	free(s.slots);
	free(s.begins);
	free(s.ends);
	free(s.parts);
	return r;
}
