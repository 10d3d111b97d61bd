/*
 * A decode within a deadline: the newest part first, in rounds that begin further and further back.
 *
 * Each round is a decode of its own, of what happened since some moment, so that the last round
 * that was done in time is a whole report. Images, names and compiled code are kept. Between the
 * rounds, the last stretch of each thread that did not run within the decoded part is looked for:
 * turns say when the thread had a CPU last, the PSB segments there are decoded, and only that
 * thread's stretches in them are counted, apart from all else. A decode of a window of time without
 * a deadline does the latter, too, with all CPUs together.
 */
#include "decoder/worker/decode_private.h"

#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/rounds.h"
#include "decoder/worker/replay/segment.h"
#include "proto/base.h"

/* Until when there are rounds, last stretches, and more rounds, in tenths of the time; the rest is
 * for the report. */
#define TENTHS_FIRST 3u
#define TENTHS_LAST  6u
#define TENTHS_MORE  9u
/* At most this many threads are looked for, those that ran last. */
#define MAX_THREADS 4096u
/* A thread may have spent a turn in the kernel: the turns before are tried, too. */
#define MAX_TRIES 3u
/* Bytes; where PSBs are further apart, nothing is decoded. */
#define MAX_PIECE UINT64_C(4194304)
/* If a thread's last user code is not at the end of its turn, so many times as much is decoded. */
#define PIECE_TIMES 4u
/* Without a deadline, a thread is followed from so many turns before its last one. */
#define TURNS_BEFORE 4u
/* Without a deadline, so many bytes are decoded at most to find last stretches. */
#define MAX_BYTES UINT64_C(16777216)
/* The clocks of trace and sideband may differ this much, ns. */
#define SLACK_NS 20000u

/* The time since the request came, ns. */
static uint64_t elapsed(const struct decode_job *job)
{
	return job->sink->elapsed ? job->sink->elapsed(job->sink->userdata) : 0;
}

/* Whether it is not yet job->until. */
static bool go_on(void *userdata)
{
	const struct decode_job *job = userdata;

	return elapsed(job) < job->until;
}

/* --- Last stretches --- */

/* A thread, and the turn in which it is looked for. */
struct wanted {
	const struct timeline_thread *thread; /* NULL: a free slot */
	uint32_t cpu, turn;
	uint64_t since, until; /* perf ns; of the part of the turn that was not decoded */
	bool found;
	uint32_t piece; /* number of the piece in which it was found; 0: before the search */
};

/* The threads that are looked for, and the piece of a trace that is being decoded. */
struct search {
	struct decode_job *job;
	struct replay *replay;
	uint64_t *begins, *ends; /* of each CPU's part that was not decoded; perf ns */
	struct replay_part *parts;
	struct wanted *slots; /* by thread */
	size_t n_slots;
	uint32_t cpu;
	uint64_t since, until; /* perf ns */
	uint32_t piece;	       /* number of the piece, from 1 on */
	bool whole_turn;       /* the piece has all of the turn that is looked at */
	uint64_t bytes;	       /* that may still be decoded */
	bool together;	       /* all CPUs are decoded at once, and each stretch counts */
};

static struct wanted *slot_of(const struct search *s, const struct timeline_thread *thread)
{
	size_t mask = s->n_slots - 1;
	size_t i = (size_t)hash_u64(HASH_BASIS, (uint64_t)(uintptr_t)thread) & mask;

	while (s->slots[i].thread && s->slots[i].thread != thread)
		i = (i + 1) & mask;
	return &s->slots[i];
}

/* Threads in the tally T need not be looked for. */
static void note_decoded(struct search *s, const struct tally *t)
{
	for (size_t i = 0; i < t->n_threads; i++) {
		const struct tally_counters *counters = t->threads[i];

		if (counters->thread && (counters->n_last > 0 || counters->insns > 0))
			*slot_of(s, counters->thread) =
				(struct wanted){counters->thread, .found = true};
	}
}

/* A turn as far as it was not decoded. False: no thread's user code can be found in it. */
static bool take_turn(const struct search *s, uint32_t cpu, uint32_t turn, struct wanted *ret)
{
	const struct turns_turn *t = &s->replay->turns.cpus[cpu].list[turn];
	uint64_t until;

	/* Turns of CPUs without a trace come behind those of the manifest. */
	if (cpu >= s->replay->manifest->n_cpus)
		return false;
	until = MIN_OF(t->until, s->ends[cpu]);
	if (!t->thread || t->uncertain || t->silent || t->thread->tid == 0 ||
	    until <= s->begins[cpu] || t->since >= until)
		return false;
	*ret = (struct wanted){t->thread, cpu, turn, t->since, until, false, 0};
	return true;
}

static int by_age(const void *a, const void *b)
{
	const struct wanted *x = *(struct wanted *const *)a, *y = *(struct wanted *const *)b;

	return x->until > y->until ? -1 : x->until < y->until;
}

static int on_stretch(void *userdata, const struct replay_stretch *stretch)
{
	struct search *s = userdata;
	struct wanted *w = stretch->thread ? slot_of(s, stretch->thread) : NULL;

	/* What was found in an earlier piece may be in this one again. Turns of other threads count
	 * if they lie wholly within the piece. */
	if (!w || !w->thread || (w->found && w->piece != s->piece))
		return 0;
	if (!s->together && (w->cpu != s->cpu || w->since < s->since || w->until > s->until))
		return 0;
	/* The report may tell only that the thread ran there. */
	w->piece = s->piece;
	if (permit_thread(s->job->d->replay->permit, stretch->thread, MANIFEST_ABSENT) !=
	    PERMIT_YES) {
		w->found = true;
		return 0;
	}
	for (size_t i = 0; i < stretch->n_items && !w->found; i++)
		w->found = stretch->items[i].kind != FLOW_GAP &&
			   stretch->items[i].kind != FLOW_END &&
			   stretch->items[i].kind != FLOW_MARK;
	return w->found ? tally_stretch(&s->job->d->past, stretch) : 0;
}

static bool search_goes_on(void *userdata)
{
	const struct search *s = userdata;

	return go_on(s->job);
}

/* The first PSB behind FROM whose time is behind TSC, or the end of the trace. False: neither is
 * within MAX_PIECE. */
static bool find_end(const uint8_t *trace, uint64_t size, uint64_t from, uint64_t tsc,
		     struct segment_psb *ret)
{
	const uint64_t most = MIN_OF(size, from + MAX_PIECE);

	while (segment_next(trace, from + 1, most, ret)) {
		if (ret->tsc > tsc)
			return true;
		from = ret->offset;
	}
	*ret = (struct segment_psb){size, UINT64_MAX};
	return most == size;
}

/* Finds the PSB segments in which W's turn ends, two of them and no fewer than BYTES, if the turn
 * is that long. False: there are none, or they are too large. */
static bool find_piece(struct search *s, const struct wanted *w, uint64_t bytes)
{
	const struct tscmap *clock = &s->replay->clocks[w->cpu];
	/* MANIFEST_ABSENT: unknown; UINT64_MAX: the end of all time. */
	const uint64_t late = w->until >= UINT64_MAX - SLACK_NS
				      ? UINT64_MAX
				      : tscmap_tsc(clock, w->until + SLACK_NS);
	struct segment_psb first, before, end;
	size_t size;
	const uint8_t *trace = bundle_cpu(s->replay->bundle, w->cpu, &size);

	if (late == MANIFEST_ABSENT && w->until < UINT64_MAX - SLACK_NS)
		return false;
	if (!segment_find(trace, size, late, &first) ||
	    !find_end(trace, size, first.offset, late, &end))
		return false;
	for (size_t n = 1; n < 2 || end.offset - first.offset < bytes; n++) {
		if (tscmap_ns(clock, first.tsc) <= w->since ||
		    !segment_before(trace, first.offset, MAX_PIECE, &before) || before.tsc == 0)
			break;
		first = before;
	}
	s->parts[w->cpu] = (struct replay_part){first.offset, end.offset, true};
	s->bytes -= MIN_OF(s->bytes, end.offset - first.offset);
	s->piece++;
	s->cpu = w->cpu;
	s->whole_turn = tscmap_ns(clock, first.tsc) <= w->since;
	s->since = MIN_OF(tscmap_ns(clock, first.tsc), w->since);
	s->until = end.offset == size ? UINT64_MAX : tscmap_ns(clock, end.tsc);
	return true;
}

/* Decodes W's turn from its end back, until it is found. *RET: all of the turn was decoded.
 * 0; REPLAY_STOPPED; -errno. */
static int look_in_turn(struct search *s, struct wanted *w, bool *ret)
{
	const struct replay_consumer consumer = {
		.stretch = on_stretch, .go_on = search_goes_on, .userdata = s};
	const struct replay_part *part = &s->parts[w->cpu];
	uint64_t bytes = 0, before;
	int r = 0;

	*ret = false;
	do {
		struct flow_stats stats;

		before = bytes;
		if (!find_piece(s, w, PIECE_TIMES * bytes))
			return 0;
		bytes = part->end - part->from;
		r = replay_cpu(s->replay, w->cpu, &consumer, &stats);
		*ret = s->whole_turn;
	} while (r == 0 && !w->found && !*ret && bytes > before && bytes < MAX_PIECE);
	return r;
}

/* 0; REPLAY_STOPPED; -errno. */
static int look_for(struct search *s, struct wanted *w)
{
	bool all = true;
	int r = 0;

	for (unsigned int tries = 0; r == 0 && all && !w->found && tries < MAX_TRIES; tries++) {
		if (tries > 0) {
			const struct turns_turn *t = &s->replay->turns.cpus[w->cpu].list[w->turn];

			if (t->before == TURNS_NONE || !take_turn(s, t->before_cpu, t->before, w))
				break;
		}
		/* Where a part of a turn was not decoded, the last stretch may be there. */
		r = look_in_turn(s, w, &all);
	}
	return r;
}

/* When the thread of W began a turn that is some turns before W's: how it left user code there
 * tells where it went on. */
static uint64_t some_turns_before(const struct search *s, const struct wanted *w)
{
	uint32_t cpu = w->cpu;
	const struct turns_turn *t = &s->replay->turns.cpus[cpu].list[w->turn];

	for (unsigned n = 0; n < TURNS_BEFORE && t->before != TURNS_NONE; n++) {
		cpu = t->before_cpu;
		t = &s->replay->turns.cpus[cpu].list[t->before];
	}
	return MIN_OF(t->since, w->since);
}

/* The parts of all CPUs from before the turn of each of the first N of LIST on. Returns how long
 * they are together, in bytes. */
static uint64_t parts_since(struct search *s, struct wanted *const *list, size_t n)
{
	uint64_t since = UINT64_MAX, bytes = 0;

	for (size_t i = 0; i < n; i++)
		since = MIN_OF(since, some_turns_before(s, list[i]));
	since -= MIN_OF(since, (uint64_t)SLACK_NS);
	for (uint32_t cpu = 0; cpu < s->replay->manifest->n_cpus; cpu++) {
		struct segment_psb place = {0};
		size_t size;
		const uint8_t *trace = bundle_cpu(s->replay->bundle, cpu, &size);
		const uint64_t tsc = tscmap_tsc(&s->replay->clocks[cpu], since);

		if (tsc == MANIFEST_ABSENT || !segment_find(trace, size, tsc, &place))
			place.offset = 0;
		s->parts[cpu] = (struct replay_part){.from = place.offset, .whole = true};
		bytes += size - place.offset;
	}
	return bytes;
}

/* Decodes all CPUs from before the last turns of as many of LIST, newest first, as s->bytes allow.
 * Together, the CPUs tell more of each other than one alone. */
static int look_together(struct search *s, struct wanted *const *list, size_t n)
{
	const struct replay_consumer consumer = {
		.stretch = on_stretch, .go_on = search_goes_on, .userdata = s};
	uint64_t bytes = 0;
	int r;

	while (n > 0 && (bytes = parts_since(s, list, n)) > s->bytes)
		n /= 2;
	if (n == 0)
		return 0;
	s->bytes -= bytes;
	s->piece++;
	s->together = true;
	r = replay_all(s->replay, &consumer);
	s->together = false;
	return r;
}

static int look_for_all(struct search *s)
{
	CLEANUP_FREE struct wanted **list = calloc(s->n_slots, sizeof(struct wanted *));
	struct decode_window *window = &s->job->d->window;
	size_t i, n = 0;
	int r = 0;

	if (!list)
		return -ENOMEM;
	for (i = 0; i < s->n_slots; i++)
		if (s->slots[i].thread && !s->slots[i].found)
			list[n++] = &s->slots[i];
	qsort(list, n, sizeof(struct wanted *), by_age);
	if (!s->job->options->has_deadline)
		r = look_together(s, list, MIN_OF(n, (size_t)MAX_THREADS));
	for (i = 0; i < MIN_OF(n, (size_t)MAX_THREADS) && r == 0; i++)
		r = list[i]->found		    ? 0
		    : go_on(s->job) && s->bytes > 0 ? look_for(s, list[i])
						    : REPLAY_STOPPED;
	window->threads_left = n - i + (r == REPLAY_STOPPED);
	return r == REPLAY_STOPPED ? 0 : r;
}

/* Since when CPU's trace tells something from TSC ASKED on (0: from its beginning on), perf ns;
 * MANIFEST_ABSENT: the trace tells no time. */
static uint64_t trace_begin(const struct replay *r, size_t cpu, uint64_t asked)
{
	struct segment_psb place = {0};
	size_t size;
	const uint8_t *trace = bundle_cpu(r->bundle, cpu, &size);
	uint64_t from = 0;

	if (asked != 0 && segment_find(trace, size, asked, &place))
		return tscmap_ns(&r->clocks[cpu], place.tsc);
	while (place.tsc == 0 && segment_next(trace, from, size, &place))
		from = place.offset + 1;
	if (place.tsc == 0)
		return MANIFEST_ABSENT;
	return tscmap_ns(&r->clocks[cpu], place.tsc);
}

static int search_init(struct search *s, struct decode_job *job)
{
	struct replay *r = job->d->replay;
	size_t n = r->manifest->n_cpus;

	*s = (struct search){.job = job, .replay = r, .n_slots = 2};
	s->bytes = job->options->has_deadline ? UINT64_MAX : MAX_BYTES;
	while (s->n_slots < 2 * (timeline_n_threads(r->timeline) + 1))
		s->n_slots *= 2;
	s->slots = calloc(s->n_slots, sizeof(*s->slots));
	s->begins = calloc(n + 1, sizeof(*s->begins));
	s->ends = calloc(n + 1, sizeof(*s->ends));
	s->parts = calloc(n + 1, sizeof(*s->parts));
	if (!s->slots || !s->begins || !s->ends || !s->parts)
		return -ENOMEM;
	note_decoded(s, &job->d->tally);
	note_decoded(s, &job->d->past);
	for (size_t i = 0; i < n; i++) {
		const uint64_t tsc = job->d->cpus[i].stats.tsc_first;
		const uint64_t ns = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&r->clocks[i], tsc);

		s->begins[i] = trace_begin(r, i, 0);
		s->ends[i] = ns == MANIFEST_ABSENT ? UINT64_MAX : ns;
	}
	/* The newest turn of each thread. */
	for (uint32_t cpu = 0; cpu < n; cpu++) {
		const struct turns_cpu *turns = &r->turns.cpus[cpu];

		for (size_t i = turns->n; i-- > 0 && turns->list[i].until > s->begins[cpu];) {
			struct wanted turn, *w;

			if (!take_turn(s, cpu, (uint32_t)i, &turn))
				continue;
			w = slot_of(s, turn.thread);
			if (!w->thread || (!w->found && w->until < turn.until))
				*w = turn;
		}
	}
	return job->d->past.n_threads > 0 ? 0 : tally_init(&job->d->past, r);
}

static void note_begin(const struct search *s)
{
	struct decode_window *window = &s->job->d->window;

	window->searched = true;
	window->whole_since = 0;
	for (size_t i = 0; i < s->replay->manifest->n_cpus; i++)
		if (s->begins[i] != MANIFEST_ABSENT)
			window->whole_since = MAX_OF(window->whole_since, s->begins[i]);
}

/* Finds the last stretches of threads that have none in job->d, into job->d->past, until
 * job->until; threads that are there already are not looked for again. 0 or -errno. */
static int find_last_stretches(struct decode_job *job)
{
	struct search s;
	int r = search_init(&s, job);

	s.replay->parts = s.parts;
	if (r == 0)
		note_begin(&s);
	if (r == 0)
		r = look_for_all(&s);
	s.replay->parts = NULL;
	free(s.slots);
	free(s.begins);
	free(s.ends);
	free(s.parts);
	return r;
}

/* --- Rounds --- */

static uint64_t tenths(uint64_t deadline, unsigned n)
{
	return deadline / 10 * n + deadline % 10 * n / 10;
}

static bool never_stop(void *userdata)
{
	(void)userdata;
	return true;
}

/* Decodes a round in place of what job->d has, which stays if the round is not done in time. */
static int run_round(struct decode_job *job, bool may_stop)
{
	struct decode *before = job->d, next;
	int r = decode_init(&next, before->replay);

	job->d = &next;
	if (r == 0)
		r = decode_pass(job, may_stop ? go_on : never_stop);
	job->d = before;
	if (r != 0) {
		decode_done(&next);
		return r;
	}
	/* The window and the past belong to all rounds. */
	next.window = before->window;
	before->window.begins = NULL;
	next.past = before->past;
	before->past = (struct tally){0};
	next.window.rounds++;
	decode_done(before);
	*before = next;
	return 0;
}

/* Runs and times a round of about BYTES. */
static int time_round(struct decode_job *job, const struct rounds *rounds, uint64_t bytes,
		      struct rounds_pace *pace)
{
	struct decode_window *window = &job->d->window;
	const bool all = rounds_parts(rounds, bytes, job->parts);
	const uint64_t began = elapsed(job);
	/* The first and smallest round is done in any case. */
	int r = run_round(job, window->rounds > 0);

	if (r != 0)
		return r;
	window->complete = all;
	pace->bytes = MAX_OF(bytes, decode_total(job->d).bytes);
	pace->took = elapsed(job) - began;
	return 0;
}

/* Runs larger and larger rounds, up to all of the trace, until UNTIL tenths of the deadline. */
static int run_rounds(struct decode_job *job, const struct rounds *rounds, unsigned until,
		      struct rounds_pace *pace)
{
	const struct decode_window *window = &job->d->window;
	uint64_t bytes = 0;
	int r = 0;

	job->until = tenths(window->deadline_ns, until);
	job->d->replay->parts = job->parts;
	while (r == 0 && !window->complete) {
		const uint64_t now = elapsed(job);

		pace->left = job->until - MIN_OF(now, job->until);
		bytes = window->rounds == 0 ? 0 : rounds_next(pace);
		if (window->rounds > 0 && bytes == 0)
			break;
		r = time_round(job, rounds, bytes, pace);
	}
	job->d->replay->parts = NULL;
	/* Without memory for a round, the round before it is the report. */
	if (r == REPLAY_STOPPED || (r == -ENOMEM && window->rounds > 0))
		return 0;
	return r;
}

/* Whether only the newest part of the trace, by time, was asked for. */
static bool is_window(const struct decode *d)
{
	if (d->window.to_ns != MANIFEST_ABSENT)
		return false;
	return d->replay->manifest->last_ns != MANIFEST_ABSENT ||
	       d->window.from_ns != MANIFEST_ABSENT;
}

/* Looks for the last stretches of threads that did not run within the window so far. */
static int run_last(struct decode_job *job, unsigned until)
{
	const struct decode_window *window = &job->d->window;

	if (job->options->view != WORKER_VIEW_REPORT || (window->complete && !is_window(job->d)))
		return 0;
	job->until = tenths(window->deadline_ns, until);
	return find_last_stretches(job);
}

int decode_before(struct decode_job *job)
{
	if (job->options->view != WORKER_VIEW_REPORT || !is_window(job->d) ||
	    decode_slice_selects(&job->options->slice))
		return 0;
	job->until = UINT64_MAX;
	return find_last_stretches(job);
}

int decode_rounds(struct decode_job *job)
{
	struct decode_window *window = &job->d->window;
	size_t n = job->d->replay->manifest->n_cpus;
	struct rounds rounds;
	struct rounds_pace pace = {0};
	int r;

	window->begins = calloc(n + 1, sizeof(*window->begins));
	if (!window->begins)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		window->begins[i] =
			trace_begin(job->d->replay, i, replay_asked_since(job->d->replay, i));
	r = rounds_init(&rounds, job->d->replay);
	if (r < 0)
		return r;
	window->limited = true;
	window->deadline_ns = job->options->deadline_ns;
	window->bytes = pace.total = rounds.bytes;
	job->parts = calloc(rounds.n_cpus + 1, sizeof(*job->parts));
	r = job->parts ? run_rounds(job, &rounds, TENTHS_FIRST, &pace) : -ENOMEM;
	if (r == 0)
		r = run_last(job, TENTHS_LAST);
	if (r == 0)
		r = run_rounds(job, &rounds, TENTHS_MORE, &pace);
	/* Threads for which there was no time may have come into the window. */
	if (r == 0 && window->threads_left > 0)
		r = run_last(job, TENTHS_MORE);
	free(job->parts);
	job->parts = NULL;
	rounds_done(&rounds);
	return r;
}
