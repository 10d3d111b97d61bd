/*
 * A decode that has a deadline: newest first, in rounds further and further back. Each one is a
 * decode of its own, of what happened since some moment, so that the last one that was done in time
 * is a whole report; images, names and code that was compiled are kept. Then each thread's last
 * stretch, where that lies before.
 */
#include "decoder/worker/decode_private.h"

#include <stdlib.h>

#include "decoder/worker/replay/rounds.h"
#include "decoder/worker/replay/segment.h"
#include "proto/base.h"

/* Until when there are rounds, then last stretches, then more rounds, in tenths of the time; what
 * is left is for the report. */
#define TENTHS_FIRST 3u
#define TENTHS_LAST  6u
#define TENTHS_MORE  9u

/* The time since the request came, ns. */
static uint64_t decode_elapsed(const struct decode_job *job)
{
	return job->sink->elapsed != NULL ? job->sink->elapsed(job->sink->userdata) : 0;
}

bool decode_go_on(void *userdata)
{
	const struct decode_job *job = userdata;

	return decode_elapsed(job) < job->until;
}

static bool go_on_for_ever(void *userdata)
{
	(void)userdata;
	return true;
}

static uint64_t tenths(uint64_t deadline, unsigned n)
{
	return deadline / 10 * n + deadline % 10 * n / 10;
}

/* What is not of the round. */
static void take_rest(struct decode *from, struct decode *to)
{
	to->window = from->window;
	from->window.begins = NULL;
	to->past = from->past;
	from->past = (struct tally){0};
}

/* In place of what job->d has; which stays where this one is not done in time. */
static int run_round(struct decode_job *job, bool (*go_on)(void *userdata))
{
	struct decode *before = job->d, next;
	int r = decode_init(&next, before->replay);

	job->d = &next;
	if (r == 0)
		r = decode_pass(job, go_on);
	job->d = before;
	if (r != 0) {
		decode_done(&next);
		return r;
	}
	take_rest(before, &next);
	next.window.rounds++;
	decode_done(before);
	*before = next;
	return 0;
}

/* A round of about BYTES, timed. */
static int time_round(struct decode_job *job, const struct rounds *rounds, uint64_t bytes,
		      struct rounds_pace *pace)
{
	struct decode_window *window = &job->d->window;
	const bool all = rounds_parts(rounds, bytes, job->parts);
	const uint64_t began = decode_elapsed(job);
	/* The smallest is done in any case. */
	int r = run_round(job, window->rounds == 0 ? go_on_for_ever : decode_go_on);

	if (r != 0)
		return r;
	window->complete = all;
	pace->bytes = MAX_OF(bytes, decode_total(job->d).bytes);
	pace->took = decode_elapsed(job) - began;
	return 0;
}

/* Larger and larger, up to all, by TENTHS of the deadline. */
static int run_rounds(struct decode_job *job, const struct rounds *rounds, unsigned until,
		      struct rounds_pace *pace)
{
	const struct decode_window *window = &job->d->window;
	uint64_t bytes = 0;
	int r = 0;

	job->until = tenths(window->deadline_ns, until);
	job->d->replay->parts = job->parts;
	while (r == 0 && !window->complete) {
		const uint64_t now = decode_elapsed(job);

		pace->left = job->until - MIN_OF(now, job->until);
		bytes = window->rounds == 0 ? 0 : rounds_next(pace);
		if (window->rounds > 0 && bytes == 0)
			break;
		r = time_round(job, rounds, bytes, pace);
	}
	job->d->replay->parts = NULL;
	/* A round that there is no memory for leaves the one before, which is a whole report. */
	if (r == REPLAY_STOPPED || (r == -ENOMEM && window->rounds > 0))
		return 0;
	return r;
}

/* Of threads that did not run within what was decoded so far. */
static int run_last(struct decode_job *job, unsigned until)
{
	const struct decode_window *window = &job->d->window;

	if (window->complete || job->options->view != WORKER_VIEW_REPORT)
		return 0;
	job->until = tenths(window->deadline_ns, until);
	return decode_last(job);
}

static int run_all(struct decode_job *job, const struct rounds *rounds)
{
	struct rounds_pace pace = {.total = rounds->bytes};
	int r = run_rounds(job, rounds, TENTHS_FIRST, &pace);

	if (r == 0)
		r = run_last(job, TENTHS_LAST);
	if (r == 0)
		r = run_rounds(job, rounds, TENTHS_MORE, &pace);
	/* Those that there was no time for may have come into the window. */
	if (r == 0 && job->d->window.threads_left > 0)
		r = run_last(job, TENTHS_MORE);
	return r;
}

/* Since when CPU's trace tells something, perf ns; MANIFEST_ABSENT: it does not. */
static uint64_t trace_begin(const struct replay *r, size_t cpu)
{
	struct segment_place place = {0};
	size_t size;
	const uint8_t *trace = bundle_cpu(r->bundle, cpu, &size);
	const uint64_t asked = replay_asked_since(r, cpu);
	uint64_t from = 0;

	if (asked != 0 && segment_find(trace, size, asked, &place))
		return tscmap_ns(&r->clocks[cpu], place.tsc);
	while (place.tsc == 0 && segment_next(trace, from, size, &place))
		from = place.offset + 1;
	if (place.tsc == 0)
		return MANIFEST_ABSENT;
	return tscmap_ns(&r->clocks[cpu], place.tsc);
}

static int find_begins(struct decode *d)
{
	size_t i, n = d->replay->manifest->n_cpus;

	d->window.begins = calloc(n + 1, sizeof(*d->window.begins));
	if (d->window.begins == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		d->window.begins[i] = trace_begin(d->replay, i);
	return 0;
}

int decode_rounds(struct decode_job *job)
{
	struct rounds rounds;
	int r = find_begins(job->d);

	if (r == 0)
		r = rounds_init(&rounds, job->d->replay);
	if (r < 0)
		return r;
	job->d->window.limited = true;
	job->d->window.deadline_ns = job->options->deadline_ns;
	job->d->window.bytes = rounds.bytes;
	job->parts = calloc(rounds.n_cpus + 1, sizeof(*job->parts));
	r = job->parts != NULL ? run_all(job, &rounds) : -ENOMEM;
	free(job->parts);
	job->parts = NULL;
	rounds_done(&rounds);
	return r;
}
