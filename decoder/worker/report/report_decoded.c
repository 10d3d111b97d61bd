/*
 * Which part of the traces a decode that had a deadline is of. Called by report.c.
 */
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

/* The latest beginning of all traces that have one; MANIFEST_ABSENT where OF does not know it of
 * one of them. */
static uint64_t latest(const struct decode *d, uint64_t (*of)(const struct decode *, size_t))
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < d->replay->manifest->n_cpus; i++)
		if (d->window.begins[i] != MANIFEST_ABSENT)
			ns = MAX_OF(ns, of(d, i));
	return ns == 0 ? MANIFEST_ABSENT : ns;
}

static uint64_t trace_begin_ns(const struct decode *d, size_t cpu)
{
	return d->window.begins[cpu];
}

uint64_t report_all_begin_ns(const struct decode *d)
{
	return latest(d, report_begin_ns);
}

/* When the last trace ends. */
static uint64_t end_ns(const struct decode *d)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < d->replay->manifest->n_cpus; i++) {
		const uint64_t end = report_end_ns(d, i);

		if (d->window.begins[i] != MANIFEST_ABSENT && end != MANIFEST_ABSENT)
			ns = MAX_OF(ns, end);
	}
	return ns == 0 ? MANIFEST_ABSENT : ns;
}

static uint64_t count_last_stretches(const struct report *r)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < r->lists[REPORT_THREADS].total; i++)
		n += r->threads[i].known == REPORT_LAST_STRETCH;
	return n;
}

void report_decoded(const struct report *r, struct json_writer *w)
{
	const struct decode_window *window = &r->d->window;

	json_begin_object(w, "decoded");
	json_u64(w, "deadlineNSec", window->deadline_ns);
	json_boolean(w, "complete", window->complete);
	report_at(r, w, "sinceNSec", report_all_begin_ns(r->d));
	report_at(r, w, "traceSinceNSec", latest(r->d, trace_begin_ns));
	report_at(r, w, "untilNSec", end_ns(r->d));
	json_u64(w, "bytes", decode_total(r->d).bytes);
	json_u64(w, "traceBytes", window->bytes);
	json_u64(w, "rounds", window->rounds);
	json_u64(w, "lastStretches", count_last_stretches(r));
	json_u64(w, "lastStretchesLeft", window->complete ? 0 : window->threads_left);
	json_end_object(w);
}
