/*
 * From a request to its view. The order of the work is the order of the calls. Called by main.c of
 * ptsnap-decode inside the sandbox, and by the fuzz target.
 */
#include "decoder/worker/decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/hash.h"
#include "decoder/worker/lanes.h"
#include "decoder/worker/report.h"
#include "decoder/worker/views.h"
#include "decoder/worker/views_events.h"
#include "decoder/worker/views_packets.h"
#include "decoder/worker/views_ptxed.h"
#include "proto/base.h"

/* One replay on its way. */
struct job {
	struct decode *d;
	const struct worker_request *request;
	const struct decode_sink *sink;
	struct lines lines; /* for the views that are lines */
	bool plain;	    /* there is but one thread on one CPU, which need not be said */
	struct views_whose whose;
	struct views_ptxed *ptxed; /* of each CPU of the manifest; NULL: another view */
};

/* Decoded as code of a process, of which thread is not known: a gap, with what it executed. */
static int count_nobodys(struct decode *d, const struct replay_stretch *s)
{
	struct flow_gap none = {.fault = FAULT_THREAD_UNCERTAIN, .tsc_hi = UINT64_MAX};
	uint64_t insns = 0;
	size_t i;

	for (i = 0; i < s->n_items; i++)
		insns += s->items[i].insns;
	if (s->process == NULL || insns == 0)
		return 0;
	none.offset = s->items[0].offset;
	none.address = s->items[0].to != 0 ? s->items[0].to : s->items[0].from;
	none.tsc_lo = s->items[0].tsc_lo;
	return gaps_add_nobodys(&d->gaps, d->replay, d->replay->manifest->cpus[s->cpu].cpu, &none,
				insns);
}

/* Of a CPU that did not trace the recording's own gap says why there is nothing. */
static bool is_told(const struct manifest_cpu *cpu, const struct flow_gap *gap)
{
	return gap->fault == FAULT_EMPTY && cpu->state != NULL &&
	       strcmp(cpu->state, "tracing") != 0;
}

static int count_gaps(struct job *job, const struct replay_stretch *s)
{
	struct decode *d = job->d;
	const struct manifest_cpu *cpu = &d->replay->manifest->cpus[s->cpu];
	uint64_t head = d->gaps.head_bytes;
	size_t i, first = d->gaps.n;
	int r = 0;

	for (i = 0; i < s->n_gaps && r == 0; i++)
		if (!is_told(cpu, &s->gaps[i]))
			r = gaps_add_flow(&d->gaps, d->replay, cpu->cpu, &s->gaps[i]);
	d->cpus[s->cpu].head_bytes += d->gaps.head_bytes - head;
	if (r == 0)
		r = count_nobodys(d, s);
	for (i = first; i < d->gaps.n; i++)
		d->gaps.list[i].trace = s->cpu;
	return r;
}

static int tally(struct decode *d, const struct replay_stretch *s)
{
	int r = tally_stretch(&d->tally, s);

	return r == 0 ? marks_stretch(&d->marks, s, &d->tally.lane->transactions) : r;
}

static int hash_stretch(struct decode *d, const struct replay_stretch *s)
{
	struct tally_lane *lane;
	size_t i;
	int r = lanes_find(&d->tally, s->thread, &lane);

	if (r < 0)
		return r;
	views_hash_two(&d->cpus[s->cpu].hash, &lane->hash, s);
	for (i = 0; i < s->n_items; i++)
		lane->insns += s->items[i].insns;
	return 0;
}

static int write_ptxed(struct job *job, const struct replay_stretch *s)
{
	int r = views_ptxed_stretch(&job->ptxed[s->cpu], s);

	/* The next lines may be another thread's. */
	if (!job->plain)
		views_ptxed_settle(&job->ptxed[s->cpu]);
	return r;
}

static int write_lines(struct job *job, const struct replay_stretch *s)
{
	const struct worker_request *request = job->request;

	if (!job->plain)
		views_whose(&job->whose, &job->lines, s, job->d->replay->manifest);
	if (request->view == WORKER_VIEW_BRANCHES)
		return views_branches(&job->lines, s, !job->plain, request->show);
	if (request->view == WORKER_VIEW_EVENTS)
		return views_events(&job->lines, s);
	if (job->ptxed != NULL)
		return write_ptxed(job, s);
	return views_insns(&job->lines, s, !job->plain);
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct job *job = userdata;
	int r = count_gaps(job, s);

	if (r != 0)
		return r;
	switch (job->request->view) {
	case WORKER_VIEW_REPORT: return tally(job->d, s);
	case WORKER_VIEW_BRANCHES:
	case WORKER_VIEW_INSNS:
	case WORKER_VIEW_EVENTS: return write_lines(job, s);
	default: return job->request->hash ? hash_stretch(job->d, s) : 0;
	}
}

static void tell(const struct job *job, enum worker_phase phase, unsigned percent)
{
	if (job->sink->progress != NULL)
		job->sink->progress(job->sink->userdata, phase, percent);
}

static void on_progress(void *userdata, size_t cpu, unsigned percent)
{
	const struct job *job = userdata;
	struct decode *d = job->d;
	size_t n = d->replay->manifest->n_cpus;
	uint64_t before = d->percents / n;

	d->percents += percent - d->cpus[cpu].percent;
	d->cpus[cpu].percent = percent;
	if (d->percents / n > before)
		tell(job, WORKER_PHASE_DECODE, (unsigned)(d->percents / n));
}

static bool is_raw(const struct replay *r)
{
	return r->manifest->source != NULL && strcmp(r->manifest->source, "raw") == 0;
}

/* A raw trace knows no threads; of the others only what has nothing to tell apart is plain. */
static bool is_plain(const struct replay *r)
{
	if (is_raw(r))
		return true;
	return r->manifest->n_cpus <= 1 && timeline_n_threads(r->timeline) <= 1;
}

/* Whose code a raw trace is nobody says: a virtual machine's may well be among it. */
static struct replay_options options_of(const struct job *job)
{
	const struct worker_request *request = job->request;
	bool ptxed = job->ptxed != NULL;

	return (struct replay_options){
		.marks = ptxed || request->view == WORKER_VIEW_EVENTS ||
			 request->view == WORKER_VIEW_REPORT,
		.ticks = ptxed && (request->show & WORKER_SHOW_EVENT_TICK) != 0,
		.guests = is_raw(job->d->replay),
		.resume_at_psb = ptxed && (request->show & WORKER_SHOW_RESYNC_ON_ERROR) == 0,
		.resume_at_tip = ptxed && (request->show & WORKER_SHOW_RESYNC_ON_ERROR) != 0,
		.retstack_libipt = request->retstack_libipt != 0,
		/* libipt's newest decoders look no further. */
		.cut = ptxed,
	};
}

static int replay(struct job *job)
{
	struct decode *d = job->d;
	size_t i, n = d->replay->manifest->n_cpus;
	CLEANUP_FREE struct flow_stats *stats = calloc(n + 1, sizeof(*stats));
	const struct replay_consumer consumer = {on_stretch, on_progress, job, stats};
	int r;

	if (stats == NULL)
		return -ENOMEM;
	job->plain = is_plain(d->replay) && !(job->request->show & WORKER_SHOW_PLACES);
	d->replay->options = options_of(job);
	r = replay_all(d->replay, &consumer);
	for (i = 0; i < n; i++)
		d->cpus[i].stats = stats[i];
	return r;
}

static int add_recording_gaps(struct decode *d)
{
	size_t i, n = d->replay->manifest->n_cpus;
	CLEANUP_FREE uint64_t *begin = calloc(n + 1, sizeof(*begin));

	if (begin == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		uint64_t tsc = d->cpus[i].stats.tsc_first;

		begin[i] = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&d->replay->clock, tsc);
	}
	return gaps_add_recording(&d->gaps, d->replay, begin);
}

static int begin_ptxed(struct job *job)
{
	const struct replay *r = job->d->replay;
	size_t i, n = r->manifest->n_cpus;
	int result = 0;

	job->ptxed = calloc(n + 1, sizeof(*job->ptxed));
	if (job->ptxed == NULL)
		return -ENOMEM;
	for (i = 0; i < n && result == 0; i++)
		result = views_ptxed_init(&job->ptxed[i], r, i, job->request, &job->lines);
	if (result == 0 && n > 0)
		views_ptxed_begin(&job->ptxed[0]);
	return result;
}

static void end_ptxed(struct job *job)
{
	size_t i;

	if (job->ptxed == NULL)
		return;
	for (i = 0; i < job->d->replay->manifest->n_cpus; i++)
		views_ptxed_done(&job->ptxed[i]);
	free(job->ptxed);
	job->ptxed = NULL;
}

/* The statistics stand behind all lines. */
static void finish_ptxed(struct job *job)
{
	size_t i, n = job->d->replay->manifest->n_cpus;

	for (i = 0; i < n && job->ptxed != NULL; i++)
		views_ptxed_end(&job->ptxed[i]);
}

/* The packets before a gap of the report; -ENODATA: it has none of that number. */
static int write_before_gap(struct job *job)
{
	const struct worker_request *request = job->request;
	const struct gaps *gaps = &job->d->gaps;
	const struct gap *gap;

	if (request->gap > gaps->n)
		return -ENODATA;
	gap = &gaps->list[request->gap - 1];
	if (gap->trace != SIZE_MAX && gap->offset != MANIFEST_ABSENT)
		return views_packets_before(job->d->replay->bundle, request, gap->trace,
					    gap->offset, gap->kind, &job->lines);
	/* Something that the trace knows nothing of. */
	lines_print(&job->lines, "# gap %s\n", fault_name(gap->kind));
	return lines_flush(&job->lines);
}

static int write_result(struct job *job)
{
	const struct worker_request *request = job->request;
	const struct report_options options = {
		.limit = request->report_limit,
		.pretty = request->pretty,
		.version = job->sink->version,
	};

	switch (request->view) {
	case WORKER_VIEW_REPORT:
		tally_end(&job->d->tally);
		marks_end(&job->d->marks);
		tell(job, WORKER_PHASE_SYMBOLIZE, 100);
		return report_write(job->d, &options, job->sink->fd);
	case WORKER_VIEW_SUMMARY:
		return views_summary(job->d, request->hash, request->pretty, job->sink->fd);
	case WORKER_VIEW_PACKETS: return write_before_gap(job);
	default: finish_ptxed(job); return lines_flush(&job->lines);
	}
}

/* When all is written: names were needed for that, too. */
static int keep_images(const struct job *job)
{
	const struct decode_sink *sink = job->sink;

	if (!job->request->keep || sink->keep == NULL)
		return 0;
	return image_set_needed(job->d->replay->images, sink->keep, sink->userdata);
}

static int run(struct job *job)
{
	int r = replay(job);

	if (r == 0)
		r = add_recording_gaps(job->d);
	tell(job, WORKER_PHASE_DECODE, 100);
	if (r == 0)
		r = write_result(job);
	if (r == 0)
		r = keep_images(job);
	tell(job, WORKER_PHASE_WRITE, 100);
	return r;
}

static int decode_init(struct decode *d, const struct bundle *bundle,
		       const struct image_loader *loader)
{
	size_t i, n = bundle_manifest(bundle)->n_cpus;
	int r;

	*d = (struct decode){0};
	gaps_init(&d->gaps);
	if (marks_init(&d->marks, n) < 0)
		return -ENOMEM;
	d->cpus = calloc(n + 1, sizeof(*d->cpus));
	if (d->cpus == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		d->cpus[i].hash = HASH_BASIS;
	r = replay_new(bundle, loader, &d->replay);
	return r == 0 ? tally_init(&d->tally, d->replay) : r;
}

static void decode_done(struct decode *d)
{
	if (d->replay != NULL)
		tally_done(&d->tally);
	replay_free(d->replay);
	gaps_done(&d->gaps);
	marks_done(&d->marks);
	free(d->cpus);
}

static int decode_flow(const struct bundle *bundle, struct job *job, uint64_t *ret_faults)
{
	struct decode d;
	int r = decode_init(&d, bundle, job->sink->loader);

	job->d = &d;
	if (r == 0 && job->request->view == WORKER_VIEW_INSNS &&
	    (job->request->show & WORKER_SHOW_PTXED) != 0)
		r = begin_ptxed(job);
	if (r == 0)
		r = run(job);
	end_ptxed(job);
	*ret_faults = d.gaps.total;
	decode_done(&d);
	return r;
}

int decode_run(const struct bundle *bundle, const struct worker_request *request,
	       const struct decode_sink *sink, uint64_t *ret_faults)
{
	struct job job = {.request = request, .sink = sink};
	int r;

	*ret_faults = 0;
	if (request->view > WORKER_VIEW_EVENTS)
		return -EINVAL;
	r = lines_init(&job.lines, sink->fd);
	if (r == 0 && request->view == WORKER_VIEW_PACKETS && request->gap == 0)
		r = views_packets(bundle, request, &job.lines);
	else if (r == 0)
		r = decode_flow(bundle, &job, ret_faults);
	lines_done(&job.lines);
	return r;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

struct flow_stats decode_total(const struct decode *d)
{
	struct flow_stats sum = {0};
	size_t i;

	for (i = 0; i < d->replay->manifest->n_cpus; i++) {
		const struct flow_stats *s = &d->cpus[i].stats;

		sum.bytes += s->bytes;
		sum.bytes_decoded += s->bytes_decoded;
		sum.instructions += s->instructions;
		sum.kernel_instructions += s->kernel_instructions;
		sum.branches += s->branches;
		sum.psbs += s->psbs;
		sum.packets += s->packets;
		sum.returns += s->returns;
		sum.compressed_returns += s->compressed_returns;
		sum.tsc_first = earlier(sum.tsc_first, s->tsc_first);
		sum.tsc_last = MAX_OF(sum.tsc_last, s->tsc_last);
	}
	return sum;
}

double decode_percent(uint64_t decoded, uint64_t bytes)
{
	if (bytes == 0)
		return -1;
	if (decoded >= bytes)
		return 100;
	return floor((double)decoded / (double)bytes * 10000) / 100;
}
