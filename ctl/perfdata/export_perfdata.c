/*
 * Bundle -> perf.data. Called by cmd_export.c.
 *
 *   header, ids of the events, attrs;
 *   data: AUXTRACE_INFO, the sideband's records, a FINISHED_ROUND, for each trace an AUXTRACE with
 *   its bytes;
 *   table of features, features.
 *
 * All sizes are known before the first byte is written, so that it can go into a pipe. The records
 * are one round: they are in order of time on each CPU only, and perf sorts what lies between two
 * FINISHED_ROUND. Those with time 0, what was there before, it takes at once, as they stand.
 */
#include "ctl/perfdata/export_perfdata.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"

#include "ctl/perfdata/export_features.h"
#include "ctl/perfdata/export_layout.h"
#include "ctl/perfdata/export_records.h"
#include "ctl/perfdata/export_sink.h"

/* The head: ids and attrs. */
#define HEAD_MAX (LAYOUT_HEADER_SIZE + 4096u + 16u * MANIFEST_MAX_CPUS)

struct exporter {
	const struct bundle *bundle;
	const struct manifest *manifest;
	struct records records;
	struct features features;
	struct perfdata_section ids[LAYOUT_N_EVENTS], attrs, data;
	struct perfdata_section index[MANIFEST_MAX_CPUS]; /* the AUXTRACE of each trace */
	struct sink sink;
	struct bytes_out head;
};

static void exporter_freep(struct exporter **x)
{
	if (!*x)
		return;
	features_done(&(*x)->features);
	sink_done(&(*x)->sink);
	bytes_out_done(&(*x)->head);
	free(*x);
}

/* perf wants records at multiples of 8; zeros are PAD packets. */
static uint64_t padded(uint64_t size)
{
	return (size + 7) / 8 * 8;
}

/* Where everything will lie, from AT on. */
static uint64_t place_head(struct exporter *x, uint64_t at)
{
	for (enum layout_event e = LAYOUT_PT; e < LAYOUT_N_EVENTS; e++) {
		x->ids[e] = (struct perfdata_section){at, x->records.n_traces * sizeof(uint64_t)};
		at += x->ids[e].size;
	}
	x->attrs = (struct perfdata_section){
		at, LAYOUT_N_EVENTS * (LAYOUT_ATTR_SIZE + sizeof(struct perfdata_section))};
	return at + x->attrs.size;
}

static void place_data(struct exporter *x, uint64_t at)
{
	x->data.offset = at;
	at += LAYOUT_AUXTRACE_INFO_SIZE + x->records.bytes_out + LAYOUT_FINISHED_ROUND_SIZE;
	for (size_t i = 0; i < x->manifest->n_cpus; i++) {
		x->index[i] = (struct perfdata_section){at, LAYOUT_AUXTRACE_SIZE};
		at += LAYOUT_AUXTRACE_SIZE + padded(x->manifest->cpus[i].bytes);
	}
	x->data.size = at - x->data.offset;
}

static void write_head(struct exporter *x)
{
	struct bytes_out *out = &x->head;

	layout_header(out, &x->attrs, &x->data, x->features.bits);
	for (uint32_t i = 0; i < x->records.n_traces; i++)
		bytes_put_u64(out, records_pt_id(&x->records, i));
	for (uint32_t i = 0; i < x->records.n_traces; i++)
		bytes_put_u64(out, records_dummy_id(&x->records, i));
	for (enum layout_event e = LAYOUT_PT; e < LAYOUT_N_EVENTS; e++) {
		layout_attr(out, e, x->manifest);
		layout_section(out, &x->ids[e]);
	}
}

static bool per_cpu(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu == MANIFEST_ANY)
			return false;
	return true;
}

/* The collected small bytes go out. */
static void send(struct exporter *x)
{
	if (!x->sink.error)
		x->sink.error = x->head.error;
	sink_block(&x->sink, x->head.data, x->head.size);
	bytes_out_reset(&x->head);
}

static void write_trace(struct exporter *x, uint32_t i)
{
	static const uint8_t zeros[8];
	const struct manifest *m = x->manifest;
	uint64_t reference = m->tsc != MANIFEST_ABSENT ? m->tsc : 0;
	size_t size;
	const uint8_t *trace = bundle_cpu(x->bundle, i, &size);

	layout_auxtrace(&x->head, i, &m->cpus[i], padded(size), reference);
	send(x);
	sink_block(&x->sink, trace, size);
	sink_block(&x->sink, zeros, (size_t)(padded(size) - size));
}

static void write_data(struct exporter *x)
{
	layout_auxtrace_info(&x->head, x->manifest, per_cpu(x->manifest));
	send(x);
	records_write(&x->records, &x->sink);
	layout_finished_round(&x->head);
	send(x);
	for (uint32_t i = 0; i < x->records.n_traces && !x->sink.error; i++)
		write_trace(x, i);
}

static void write_features(struct exporter *x)
{
	features_table(&x->features, x->data.offset + x->data.size, &x->head);
	send(x);
	sink_block(&x->sink, x->features.content.data, x->features.content.size);
}

static int compose(struct exporter *x)
{
	size_t size;
	const uint8_t *sideband = bundle_sideband(x->bundle, &size);

	records_measure(&x->records, x->manifest, sideband, size);
	place_data(x, place_head(x, LAYOUT_HEADER_SIZE));
	features_compose(&x->features, x->manifest, &x->records, x->index);
	return x->features.content.error;
}

/* As perf decides whether it decodes with time. */
static bool is_timeless(const struct manifest *m)
{
	return !m->have_clock || !(layout_pt_config(m) & LAYOUT_CONFIG_TSC);
}

int export_perfdata(const struct bundle *b, int fd, struct export_told *ret)
{
	CLEANUP(exporter_freep) struct exporter *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return -ENOMEM;
	x->bundle = b;
	x->manifest = bundle_manifest(b);
	sink_init(&x->sink, fd);
	bytes_out_init(&x->head, HEAD_MAX);
	if (x->manifest->n_cpus == 0)
		return -ENODATA;
	r = compose(x);
	if (r < 0)
		return r;
	write_head(x);
	send(x);
	write_data(x);
	write_features(x);
	r = sink_flush(&x->sink);
	*ret = (struct export_told){x->sink.bytes, x->records.n, x->records.skipped,
				    per_cpu(x->manifest) && is_timeless(x->manifest)};
	return r;
}
