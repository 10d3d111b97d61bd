/*
 * A slice of a decode: which part of each trace has a span of time, and what is counted in it.
 *
 * A part begins with the last PSB that is not after the span's begin and ends with the first one
 * behind its end, so that it has all of the span and some more. What a span's end cuts off the
 * decoder does not know: a report about such a span has no last moment.
 */
#include "decoder/worker/decode_private.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/segment.h"
#include "decoder/worker/view/stream_time.h"
#include "proto/base.h"

/* A time of a slice on perf's clock: OTHERWISE if there is none. */
static uint64_t resolve(const struct stream_time *t, uint32_t where, uint64_t ns,
			uint64_t otherwise)
{
	const uint64_t trigger = t->trigger != 0 ? t->trigger : t->last;
	uint64_t sum;

	switch (where) {
	case WORKER_TIME_BEGIN: return __builtin_add_overflow(t->first, ns, &sum) ? t->last : sum;
	case WORKER_TIME_TRIGGER: return trigger - MIN_OF(trigger, ns);
	default: return otherwise;
	}
}

/* The span that SLICE asks for within the traces. 0; -ENOTSUP: the traces have no times; -ERANGE:
 * the span is empty. */
static int find_span(const struct replay *r, const struct decode_slice *slice, uint64_t *ret_from,
		     uint64_t *ret_to)
{
	const struct stream_time t = stream_time_of(r);
	uint64_t from, to;

	if (t.first == 0 || t.first >= t.last)
		return -ENOTSUP;
	from = MAX_OF(resolve(&t, slice->from, slice->from_ns, t.first), t.first);
	to = MIN_OF(resolve(&t, slice->to, slice->to_ns, t.last), t.last);
	if (from >= to)
		return -ERANGE;
	*ret_from = slice->from == WORKER_TIME_NONE ? MANIFEST_ABSENT : from - (uint64_t)t.offset;
	*ret_to = to == t.last ? MANIFEST_ABSENT : to - (uint64_t)t.offset;
	return 0;
}

/* The first PSB with a time behind TSC; false: there is none. */
static bool first_behind(const uint8_t *trace, size_t size, uint64_t tsc, struct segment_psb *ret)
{
	uint64_t from = segment_find(trace, size, tsc, ret) ? ret->offset + 1 : 0;

	while (segment_next(trace, from, size, ret)) {
		if (ret->tsc > tsc)
			return true;
		from = ret->offset + 1;
	}
	return false;
}

/* Sets the part of CPU number I that has the span. 0 or -ENOTSUP. */
static int set_part(struct decode_job *job, size_t i)
{
	struct decode_window *window = &job->d->window;
	struct replay *r = job->d->replay;
	struct replay_part *part = &job->slice[i];
	struct segment_psb place;
	size_t size;
	const uint8_t *trace = bundle_cpu(r->bundle, i, &size);
	uint64_t tsc;

	window->ends[i] = window->to_ns;
	if (size == 0)
		return 0;
	if (window->from_ns != MANIFEST_ABSENT) {
		tsc = tscmap_tsc(&r->clocks[i], window->from_ns);
		if (tsc == MANIFEST_ABSENT)
			return -ENOTSUP;
		/* Decoding begins no earlier than what the recorder was asked for. */
		if (tsc > replay_asked_since(r, i) && segment_find(trace, size, tsc, &place))
			part->from = place.offset;
	}
	if (window->to_ns != MANIFEST_ABSENT) {
		tsc = tscmap_tsc(&r->clocks[i], window->to_ns);
		if (tsc == MANIFEST_ABSENT)
			return -ENOTSUP;
		if (first_behind(trace, size, tsc, &place)) {
			part->end = place.offset;
			window->ends[i] = tscmap_ns(&r->clocks[i], place.tsc);
		} else {
			window->ends[i] = MANIFEST_ABSENT;
		}
		/* The trace begins behind the span. */
		if (part->end != 0 && !segment_next(trace, 0, part->end, &place))
			part->from = part->end = size;
	}
	return 0;
}

int decode_slice_open(struct decode_job *job)
{
	const struct decode_slice *slice = &job->options->slice;
	struct decode_window *window = &job->d->window;
	const size_t n = job->d->replay->manifest->n_cpus;
	int r;

	window->from_ns = window->to_ns = MANIFEST_ABSENT;
	if (slice->from == WORKER_TIME_NONE && slice->to == WORKER_TIME_NONE)
		return 0;
	r = find_span(job->d->replay, slice, &window->from_ns, &window->to_ns);
	job->slice = calloc(n + 1, sizeof(*job->slice));
	window->ends = calloc(n + 1, sizeof(*window->ends));
	if (!job->slice || !window->ends)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = set_part(job, i);
	job->d->replay->parts = job->slice;
	return r;
}

/* Whether the last name of THREAD, which may be NULL, matches PATTERN: the name that the report
 * has, and that of a call stream. */
static bool has_name(const struct replay *r, const struct timeline_thread *thread,
		     const char *pattern)
{
	const uint64_t now =
		r->manifest->perf_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : r->manifest->perf_ns;
	const char *comm = thread ? timeline_comm(r->timeline, thread->tid, now) : NULL;

	return comm && fnmatch(pattern, comm, 0) == 0;
}

bool decode_slice_has(const struct decode_job *job, const struct replay_stretch *s)
{
	const struct decode_slice *slice = &job->options->slice;
	const struct timeline_thread *of = s->thread ? s->thread : s->process;

	if (!decode_slice_selects(slice))
		return true;
	if (slice->has_cpu && job->d->replay->manifest->cpus[s->cpu].cpu != slice->cpu)
		return false;
	if (slice->has_pid && (!of || of->pid != slice->pid))
		return false;
	if (slice->has_tid && (!s->thread || s->thread->tid != slice->tid))
		return false;
	return !slice->comm[0] || has_name(job->d->replay, s->thread, slice->comm);
}
