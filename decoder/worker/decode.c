/*
 * From a request to its view: opens the replay, decodes, and writes the result.
 */
#include "decoder/worker/decode_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/report/report.h"
#include "decoder/worker/skim/skim.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"

static void tell_progress(const struct decode_job *job, enum worker_phase phase, unsigned percent)
{
	if (job->sink->progress)
		job->sink->progress(job->sink->userdata, phase, percent);
}

static void on_progress(void *userdata, size_t cpu, unsigned percent)
{
	const struct decode_job *job = userdata;
	struct decode *d = job->d;
	size_t n = d->replay->manifest->n_cpus;
	uint64_t before = d->percents / n;

	d->percents += percent - d->cpus[cpu].percent;
	d->cpus[cpu].percent = percent;
	if (d->percents / n > before)
		tell_progress(job, WORKER_PHASE_DECODE, (unsigned)(d->percents / n));
}

static bool is_raw(const struct replay *r)
{
	return r->manifest->source && strcmp(r->manifest->source, "raw") == 0;
}

/* Nothing says whose code a raw trace is of: some of it may be of a virtual machine. */
static struct flow_config flow_of(const struct decode_job *job)
{
	const struct decode_options *options = job->options;
	struct flow_config flow = {
		.steps = options->view == WORKER_VIEW_REPORT ||
			 options->view == WORKER_VIEW_CALLS ||
			 (options->view == WORKER_VIEW_SUMMARY && options->hash == 0),
		.marks = options->view == WORKER_VIEW_REPORT || options->view == WORKER_VIEW_CALLS,
		.guests = is_raw(job->d->replay),
		.no_walk = manifest_contents(job->d->replay->manifest) != MANIFEST_BRANCHES,
		.retstack_libipt = options->retstack == WORKER_RETSTACK_LIBIPT,
		.retstack = options->retstack == WORKER_RETSTACK_SDM ? RETSTACK_ALL : RETSTACK_ASK,
		.threads = options->threads,
		.crew = job->sink->crew,
		.memory = options->memory_limit,
	};

	views_configure(&job->views, &flow);
	return flow;
}

int decode_pass(struct decode_job *job, bool (*go_on)(void *userdata))
{
	struct decode *d = job->d;
	size_t n = d->replay->manifest->n_cpus;
	CLEANUP_FREE struct flow_stats *stats = calloc(n + 1, sizeof(*stats));
	const struct replay_consumer consumer = {
		.stretch = decode_stretch,
		.progress = !go_on ? on_progress : NULL,
		.go_on = go_on,
		.userdata = job,
		.stats = stats,
	};
	int r;

	if (!stats)
		return -ENOMEM;
	d->replay->flow = flow_of(job);
	r = replay_all(d->replay, &consumer);
	if (r == 0)
		r = decode_settle(d);
	for (size_t i = 0; i < n; i++)
		d->cpus[i].stats = stats[i];
	return r;
}

/* Decodes several times, to measure the time: code is compiled in the first replay only. */
static int repeat(struct decode_job *job)
{
	struct decode *d = job->d;
	struct replay *replay = d->replay;
	uint32_t n = job->options->repeat;
	int r = 0;

	job->passes = calloc(n, sizeof(*job->passes));
	if (!job->passes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && r == 0; i++) {
		if (i > 0) {
			decode_done(d);
			r = decode_init(d, replay);
		}
		replay->watch = &job->passes[i];
		if (r == 0)
			r = decode_pass(job, NULL);
	}
	replay->watch = NULL;
	d->passes = job->passes;
	d->n_passes = n;
	return r;
}

/* Writes the packets before a gap of the report. -ENODATA: the report has no gap of that number. */
static int write_before_gap(struct decode_job *job)
{
	const struct decode_options *options = job->options;
	const struct gaps *gaps = &job->d->gaps;
	const struct gap *gap;

	if (options->gap > gaps->n)
		return -ENODATA;
	gap = &gaps->list[options->gap - 1];
	if (gap->trace != SIZE_MAX && gap->offset != MANIFEST_ABSENT)
		return views_packets_before(job->d->replay->bundle, options, gap->trace,
					    gap->offset, gap->kind, &job->views.lines);
	/* A gap that no place in a trace shows. */
	lines_print(&job->views.lines, "# gap %s\n", fault_name(gap->kind));
	return lines_flush(&job->views.lines);
}

static int write_result(struct decode_job *job)
{
	const struct decode_options *options = job->options;

	if (job->listing)
		return listing_end(job->listing);
	switch (options->view) {
	case WORKER_VIEW_REPORT:
		tally_end(&job->d->tally);
		marks_end(&job->d->marks);
		tell_progress(job, WORKER_PHASE_SYMBOLIZE, 100);
		return report_write(job->d, options, job->sink->version, job->sink->fd);
	case WORKER_VIEW_SUMMARY: return report_summary(job->d, options, job->sink->fd);
	case WORKER_VIEW_PACKETS: return write_before_gap(job);
	case WORKER_VIEW_CALLS: return calltree_end(job->calls, &job->d->gaps, job->recording);
	default: return views_end(&job->views);
	}
}

static void write_recording(struct decode_job *job, enum fault fault, uint64_t count)
{
	if (job->listing)
		listing_recording(job->listing, fault, count);
	else
		views_recording(&job->views, fault, count);
}

/* Adds what is missing without a place in a trace. BEGIN as in gaps_add_recording(). */
static int add_recording(struct decode_job *job, const uint64_t *begin)
{
	const struct gap not_permitted = gaps_blank(FAULT_NOT_PERMITTED);
	struct decode *d = job->d;
	const struct gaps before = d->gaps;
	int r;

	job->recording = before.n;
	/* For a limited report there is one gap, whether much or nothing was left out. */
	if (permit_is_limited(d->replay->permit))
		r = gaps_add(&d->gaps, &not_permitted, NULL);
	else
		r = gaps_add_recording(&d->gaps, d->replay, begin, d->window.ends,
				       (d->window.limited && !d->window.complete) || job->slice);
	for (int i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (d->gaps.counts[i] > before.counts[i])
			write_recording(job, (enum fault)i, d->gaps.counts[i] - before.counts[i]);
	return r;
}

static int run(struct decode_job *job)
{
	struct decode *d = job->d;
	const struct decode_sink *sink = job->sink;
	size_t n = d->replay->manifest->n_cpus;
	CLEANUP_FREE uint64_t *begin = calloc(n + 1, sizeof(*begin));
	int r;

	if (!begin)
		return -ENOMEM;
	if (job->options->has_deadline)
		r = decode_rounds(job);
	else
		r = job->options->repeat > 0 ? repeat(job) : decode_pass(job, NULL);
	if (r == 0 && !job->options->has_deadline)
		r = decode_before(job);
	for (size_t i = 0; i < n && r == 0; i++) {
		uint64_t tsc = d->cpus[i].stats.tsc_first;

		begin[i] = tsc == 0 ? d->window.from_ns : tscmap_ns(&d->replay->clock, tsc);
	}
	if (r == 0)
		r = add_recording(job, begin);
	tell_progress(job, WORKER_PHASE_DECODE, 100);
	if (r == 0)
		r = write_result(job);
	/* Names that were needed for the result are kept, too, unless names are to be left out. */
	if (r == 0 && job->options->keep && sink->keep)
		r = image_set_needed(d->replay->images, !job->options->no_symbols, sink->keep,
				     sink->userdata);
	tell_progress(job, WORKER_PHASE_WRITE, 100);
	return r;
}

/* Opens the replay. If the deadline leaves no time for shift_clocks(), which reads about 64 MiB of
 * the newest part of the traces at 10 ns a byte, the clocks are compared by PSBs alone. */
static int open_replay(const struct bundle *bundle, const struct decode_job *job,
		       struct replay **ret)
{
	const struct decode_options *options = job->options;
	uint64_t bytes = 0;

	for (size_t i = 0; i < bundle_manifest(bundle)->n_cpus; i++) {
		size_t size;

		bundle_cpu(bundle, i, &size);
		bytes += size;
	}
	if (options->has_deadline &&
	    options->deadline_ns / 10 < MIN_OF(bytes, UINT64_C(64) << 20) * 10)
		return replay_new_with(bundle, job->sink->loader, skim_clocks_newest, ret);
	return replay_new(bundle, job->sink->loader, ret);
}

static int decode_flow(const struct bundle *bundle, struct decode_job *job, uint64_t *ret_faults)
{
	CLEANUP(replay_freep) struct replay *replay = NULL;
	CLEANUP(permit_done) struct permit permit = {0};
	struct decode d;
	bool plain;
	int r = open_replay(bundle, job, &replay);

	if (r == 0)
		r = permit_init(&permit, bundle_manifest(bundle), job->options);
	if (r != 0)
		return r;
	replay->permit = &permit;
	/* Without its text the kernel's code is a gap. */
	if (permit_is_limited(&permit))
		replay_kernel_forget(replay);
	if (job->options->no_symbols)
		symbols_leave_out(replay->symbols);
	else if (job->options->debug)
		symbols_use_debug_files(replay->symbols);
	/* A raw trace knows no threads. */
	plain = is_raw(replay) ||
		(replay->manifest->n_cpus <= 1 && timeline_n_threads(replay->timeline) <= 1);
	r = decode_init(&d, replay);
	job->d = &d;
	if (r == 0)
		r = decode_slice_open(job);
	if (r == 0)
		r = views_begin(&job->views, replay, plain);
	if (r == 0 && job->options->view == WORKER_VIEW_CALLS)
		r = calltree_new(job->options, replay, &d.tally, &job->views.lines, &job->calls);
	if (r == 0 && decode_is_listing(job->options))
		r = listing_new(job->options, replay, &d.tally.functions, &job->views.lines,
				&job->listing);
	if (r == 0)
		r = run(job);
	calltree_freep(&job->calls);
	listing_freep(&job->listing);
	*ret_faults = d.gaps.total;
	decode_done(&d);
	free(job->passes);
	free(job->slice);
	return r;
}

/* Without TNT packets, the report is what the addresses in packets tell. A skim is not made for one
 * user, whose report has events only. */
static bool skims_instead(const struct bundle *bundle, const struct decode_options *options)
{
	return options->view == WORKER_VIEW_REPORT && options->skim == WORKER_SKIM_NONE &&
	       !options->has_only_uid &&
	       manifest_contents(bundle_manifest(bundle)) == MANIFEST_TARGETS;
}

int decode_run(const struct bundle *bundle, const struct decode_options *options,
	       const struct decode_sink *sink, uint64_t *ret_faults)
{
	struct decode_options skim = *options;
	struct decode_job job = {.options = options, .sink = sink};
	int r;

	*ret_faults = 0;
	assert(decode_options_are_sound(options));
	if (skims_instead(bundle, options))
		skim.skim = WORKER_SKIM_TIP;
	if (skim.skim != WORKER_SKIM_NONE)
		return skim_run(bundle, &skim, sink, ret_faults);
	r = views_init(&job.views, options, sink->fd);
	if (r == 0 && options->view == WORKER_VIEW_PACKETS && options->gap == 0)
		r = views_packets(bundle, options, &job.views.lines);
	else if (r == 0)
		r = decode_flow(bundle, &job, ret_faults);
	views_done(&job.views);
	return r;
}
