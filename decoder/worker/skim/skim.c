/*
 * Runs a skim: CPU by CPU, and sample by sample into the view.
 */
#include "decoder/worker/skim/skim.h"

#include <assert.h>
#include <stdlib.h>

#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"
#include "decoder/worker/replay/segment.h"
#include "decoder/worker/skim/skim_private.h"
#include "proto/base.h"

struct skim {
	const struct decode_options *options;
	const struct decode_sink *sink;
	struct replay *replay;
	struct skim_counts *counts; /* of each CPU of the manifest */
	struct skim_map map;	    /* WORKER_VIEW_REPORT */
	struct skim_lines lines;    /* WORKER_VIEW_BRANCHES */
};

/* The offset from which on the trace was asked for. */
static size_t start_of(const struct skim *k, size_t index)
{
	uint64_t since = replay_asked_since(k->replay, index);
	const uint8_t *trace, *begin = NULL;
	size_t size;

	trace = bundle_cpu(k->replay->bundle, index, &size);
	if (since == 0 || size == 0)
		return 0;
	since = segment_window(trace, size, since);
	if (since != 0)
		begin = sync_find_tsc(trace, trace + size, since);
	return !begin ? 0 : (size_t)(begin - trace);
}

/* The TSC at which the trace ends; 0: unknown. */
static uint64_t end_tsc(const struct skim *k, size_t index)
{
	const struct manifest_cpu *cpu = &k->replay->manifest->cpus[index];
	uint64_t tsc = cpu->stop_ns == MANIFEST_ABSENT || cpu->stop_timeout
			       ? MANIFEST_ABSENT
			       : tscmap_tsc(&k->replay->clocks[index], cpu->stop_ns + 1);

	return tsc == MANIFEST_ABSENT ? 0 : tsc + 1;
}

static struct skim_config config_of(const struct skim *k, size_t index)
{
	const struct manifest *m = k->replay->manifest;
	bool known = m->have_cpu && m->cpu_intel;
	struct skim_config config = {
		.start = start_of(k, index),
		.psb_only = k->options->skim == WORKER_SKIM_PSB,
		.errata = errata_for(known ? m->cpu_family : 0, known ? m->cpu_model : 0),
		.timing = {.mtc_period = m->mtc_period,
			   .max_nonturbo_ratio = m->max_nonturbo_ratio,
			   .tsc_art_num = m->tsc_art_num,
			   .tsc_art_den = m->tsc_art_den,
			   .end_tsc = end_tsc(k, index)},
	};

	config.timing.quirks = event_quirks(&config.errata);
	config.timing.skl168 = config.errata.skl168;
	config.trace = bundle_cpu(k->replay->bundle, index, &config.size);
	config.seams = replay_seams(k->replay, index, &config.n_seams);
	return config;
}

/* Writes what was missing since BEFORE was counted, behind the sample LAST. */
static int write_gaps(struct skim *k, size_t index, const struct skim_reader *reader,
		      const struct skim_counts *before, const struct skim_sample *last)
{
	const struct skim_counts *now = &reader->counts;
	int r = 0;

	if (k->options->view != WORKER_VIEW_BRANCHES)
		return 0;
	if (now->head > before->head)
		r = skim_lines_gap(&k->lines, index, last, reader->config.start,
				   now->psbs > 0 ? FAULT_HEAD : FAULT_NO_PSB);
	for (uint64_t n = before->overflows; n < now->overflows && r == 0; n++)
		r = skim_lines_gap(&k->lines, index, last, reader->lost_at, FAULT_OVERFLOW);
	for (uint64_t n = before->bad_packets; n < now->bad_packets && r == 0; n++)
		r = skim_lines_gap(&k->lines, index, last, reader->lost_at, FAULT_BAD_PACKET);
	for (uint64_t n = before->backwards; n < now->backwards && r == 0; n++)
		r = skim_lines_gap(&k->lines, index, last, reader->lost_at, FAULT_TIME_BACKWARDS);
	for (uint64_t n = before->seams; n < now->seams && r == 0; n++)
		r = skim_lines_gap(
			&k->lines, index, last, reader->lost_at,
			reader->config.seams[reader->next_seam - (now->seams - n)].fault);
	return r;
}

static int skim_cpu(struct skim *k, size_t index)
{
	const struct skim_config config = config_of(k, index);
	struct skim_sample s, last = {.tsc_hi = UINT64_MAX};
	struct skim_counts before = {0};
	struct skim_reader reader;
	struct skim_owners owners;
	int r = 0;

	skim_reader_init(&reader, &config);
	skim_owners_init(&owners, k->replay, index);
	while (r == 0 && skim_reader_next(&reader, &s)) {
		const struct skim_owner *owner;

		if (k->options->view == WORKER_VIEW_SUMMARY)
			continue;
		r = write_gaps(k, index, &reader, &before, &last);
		before = reader.counts;
		last = s;
		if (r == 0)
			r = skim_owner_of(&owners, &s, &owner);
		if (r == 0 && k->options->view == WORKER_VIEW_REPORT)
			r = skim_map_add(&k->map, index, &s, owner);
		else if (r == 0)
			r = skim_lines_write(&k->lines, index, &s, owner);
	}
	if (r == 0)
		r = write_gaps(k, index, &reader, &before, &last);
	if (k->options->view == WORKER_VIEW_REPORT)
		skim_map_end(&k->map, config.size);
	k->counts[index] = reader.counts;
	return r;
}

static void tell_progress(const struct skim *k, enum worker_phase phase, unsigned percent)
{
	if (k->sink->progress)
		k->sink->progress(k->sink->userdata, phase, percent);
}

static int skim_all(struct skim *k)
{
	size_t n = k->replay->manifest->n_cpus;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = skim_cpu(k, i);
		tell_progress(k, WORKER_PHASE_DECODE, (unsigned)(100 * (i + 1) / n));
	}
	return r;
}

/* The first and the last TSC of all CPUs together; 0: no packet tells a time. */
static void find_span(const struct skim *k, uint64_t *ret_first, uint64_t *ret_last)
{
	size_t size;

	*ret_first = *ret_last = 0;
	for (size_t i = 0; i < k->replay->manifest->n_cpus; i++) {
		const uint8_t *trace = bundle_cpu(k->replay->bundle, i, &size);
		uint64_t first, last;

		if (!skim_span(trace, size, start_of(k, i), &first, &last) || first == 0)
			continue;
		*ret_first = *ret_first == 0 ? first : MIN_OF(*ret_first, first);
		*ret_last = MAX_OF(*ret_last, MAX_OF(MAX_OF(first, last), end_tsc(k, i)));
	}
}

static int run_lines(struct skim *k)
{
	struct lines lines;
	int r = lines_init(&lines, k->sink->fd);

	if (r == 0)
		r = skim_lines_init(&k->lines, k->replay, k->options->show, &lines);
	if (r == 0)
		r = skim_all(k);
	if (r == 0)
		r = lines_flush(&lines);
	skim_lines_done(&k->lines);
	lines_done(&lines);
	return r;
}

static int write_json(const struct skim *k)
{
	const struct skim_json json = {
		.replay = k->replay,
		.skim = k->options->skim == WORKER_SKIM_PSB ? "psb" : "tip",
		.counts = k->counts,
		.map = k->options->view == WORKER_VIEW_REPORT ? &k->map : NULL,
		.limit = k->options->report_limit,
		.pretty = k->options->pretty,
		.fd = k->sink->fd,
	};

	tell_progress(k, WORKER_PHASE_SYMBOLIZE, 100);
	return skim_json_write(&json);
}

static int run(struct skim *k)
{
	uint64_t first, last;
	int r = 0;

	if (k->options->view == WORKER_VIEW_BRANCHES) {
		r = run_lines(k);
	} else {
		if (k->options->view == WORKER_VIEW_REPORT) {
			find_span(k, &first, &last);
			r = skim_map_init(&k->map, k->replay, first, last);
		}
		if (r == 0)
			r = skim_all(k);
		if (r == 0)
			r = write_json(k);
	}
	tell_progress(k, WORKER_PHASE_WRITE, 100);
	return r;
}

int skim_run(const struct bundle *bundle, const struct decode_options *options,
	     const struct decode_sink *sink, uint64_t *ret_faults)
{
	struct skim k = {.options = options, .sink = sink};
	size_t n_cpus = bundle_manifest(bundle)->n_cpus;
	int r;

	assert(options->skim != WORKER_SKIM_NONE);
	*ret_faults = 0;
	k.counts = calloc(n_cpus + 1, sizeof(*k.counts));
	/* With WORKER_SKIM_TIP the shift is found as in a decode, from more of the trace than its
	 * PSBs: few samples may also suit a wrong shift. */
	if (!k.counts)
		r = -ENOMEM;
	else if (options->skim == WORKER_SKIM_TIP)
		r = replay_new(bundle, sink->loader, &k.replay);
	else
		r = replay_new_with(bundle, sink->loader, skim_clocks, &k.replay);
	if (r == 0) {
		if (options->no_symbols)
			symbols_leave_out(k.replay->symbols);
		else if (options->debug)
			symbols_use_debug_files(k.replay->symbols);
		r = run(&k);
		/* Names are all that a skim needs of images. */
		if (r == 0 && options->keep && sink->keep)
			r = image_set_needed(k.replay->images, !options->no_symbols, sink->keep,
					     sink->userdata);
		for (size_t i = 0; i < n_cpus; i++)
			*ret_faults += k.counts[i].bad_packets + k.counts[i].overflows +
				       k.counts[i].backwards + k.counts[i].seams;
	}
	skim_map_done(&k.map);
	replay_free(k.replay);
	free(k.counts);
	return r;
}
