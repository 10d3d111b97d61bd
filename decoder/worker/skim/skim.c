/*
 * CPU by CPU, sample by sample: whose it is, and into the view. Called by main.c of ptsnap-decode
 * instead of a decode.
 */
#include "decoder/worker/skim/skim.h"

#include <stdlib.h>

#include "decoder/packet/event.h"
#include "decoder/packet/packet.h"
#include "decoder/worker/replay/segment.h"
#include "decoder/worker/skim/skim_json.h"
#include "decoder/worker/skim/skim_lines.h"
#include "decoder/worker/skim/skim_map.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/skim/skim_shift.h"
#include "decoder/worker/skim/skim_whose.h"
#include "proto/base.h"

struct skim {
	const struct decode_options *options;
	const struct decode_sink *sink;
	struct replay *replay;
	struct skim_counts *counts; /* of each CPU of the manifest */
	struct skim_map map;	    /* WORKER_VIEW_REPORT */
	struct skim_lines lines;    /* WORKER_VIEW_BRANCHES */
};

/* What lies before that was not asked for. */
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
	return begin == NULL ? 0 : (size_t)(begin - trace);
}

/* Nothing in the trace happened later, where that is known. */
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
	return config;
}

static int on_sample(struct skim *k, size_t index, const struct skim_sample *s,
		     struct skim_whose *whose)
{
	const struct skim_owner *owner;
	int r;

	if (k->options->view == WORKER_VIEW_SUMMARY)
		return 0;
	r = skim_whose(whose, s, &owner);
	if (r != 0)
		return r;
	if (k->options->view == WORKER_VIEW_REPORT)
		return skim_map_add(&k->map, index, s, owner);
	return skim_lines_write(&k->lines, index, s, owner);
}

static int skim_cpu(struct skim *k, size_t index)
{
	const struct skim_config config = config_of(k, index);
	struct skim_reader reader;
	struct skim_whose whose;
	struct skim_sample s;
	int r = 0;

	skim_reader_init(&reader, &config);
	skim_whose_init(&whose, k->replay, index);
	while (r == 0 && skim_reader_next(&reader, &s))
		r = on_sample(k, index, &s, &whose);
	if (k->options->view == WORKER_VIEW_REPORT)
		skim_map_end(&k->map, config.size);
	k->counts[index] = reader.counts;
	return r;
}

static void tell(const struct skim *k, enum worker_phase phase, unsigned percent)
{
	if (k->sink->progress != NULL)
		k->sink->progress(k->sink->userdata, phase, percent);
}

static int skim_all(struct skim *k)
{
	size_t i, n = k->replay->manifest->n_cpus;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		r = skim_cpu(k, i);
		tell(k, WORKER_PHASE_DECODE, (unsigned)(100 * (i + 1) / n));
	}
	return r;
}

/* Of all CPUs together: 0 where nothing tells a time. */
static void find_span(const struct skim *k, uint64_t *ret_first, uint64_t *ret_last)
{
	size_t i, size;

	*ret_first = *ret_last = 0;
	for (i = 0; i < k->replay->manifest->n_cpus; i++) {
		const uint8_t *trace = bundle_cpu(k->replay->bundle, i, &size);
		uint64_t first, last;

		if (!skim_span(trace, size, start_of(k, i), &first, &last) || first == 0)
			continue;
		*ret_first = *ret_first == 0 ? first : MIN_OF(*ret_first, first);
		*ret_last = MAX_OF(*ret_last, MAX_OF(MAX_OF(first, last), end_tsc(k, i)));
	}
}

static int run_map(struct skim *k)
{
	uint64_t first, last;
	int r;

	find_span(k, &first, &last);
	r = skim_map_init(&k->map, k->replay, first, last);
	return r == 0 ? skim_all(k) : r;
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

	tell(k, WORKER_PHASE_SYMBOLIZE, 100);
	return skim_json_write(&json);
}

static int run(struct skim *k)
{
	int r;

	if (k->options->view == WORKER_VIEW_BRANCHES)
		r = run_lines(k);
	else
		r = k->options->view == WORKER_VIEW_REPORT ? run_map(k) : skim_all(k);
	if (r == 0 && k->options->view != WORKER_VIEW_BRANCHES)
		r = write_json(k);
	tell(k, WORKER_PHASE_WRITE, 100);
	return r;
}

static uint64_t count_faults(const struct skim *k)
{
	uint64_t n = 0;

	for (size_t i = 0; i < k->replay->manifest->n_cpus; i++)
		n += k->counts[i].bad_packets + k->counts[i].overflows;
	return n;
}

/* With TIPs the shift is worth a look at more of the trace than the PSBs: a few samples suit a
 * wrong one, too. */
static int load(struct skim *k, const struct bundle *bundle)
{
	if (k->options->skim == WORKER_SKIM_TIP)
		return replay_new(bundle, k->sink->loader, &k->replay);
	return replay_new_with(bundle, k->sink->loader, skim_clocks, &k->replay);
}

int skim_run(const struct bundle *bundle, const struct decode_options *options,
	     const struct decode_sink *sink, uint64_t *ret_faults)
{
	struct skim k = {.options = options, .sink = sink};
	int r;

	*ret_faults = 0;
	k.counts = calloc(bundle_manifest(bundle)->n_cpus + 1, sizeof(*k.counts));
	r = k.counts == NULL ? -ENOMEM : load(&k, bundle);
	if (r == 0) {
		if (options->no_symbols)
			symbols_leave_out(k.replay->symbols);
		else if (options->debug)
			symbols_use_debug_files(k.replay->symbols);
		r = run(&k);
		*ret_faults = count_faults(&k);
	}
	skim_map_done(&k.map);
	replay_free(k.replay);
	free(k.counts);
	return r;
}
