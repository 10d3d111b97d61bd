/*
 * Writes a bundle as a perf.data file.
 *
 * Order of the file: header, ids of the events, attrs; data: AUXTRACE_INFO, the sideband records, a
 * FINISHED_ROUND, and for each trace an AUXTRACE with the trace's bytes; table of features,
 * features.
 *
 * All sizes are known before the first byte is written, so that the file can go into a pipe: one
 * pass over the sideband measures it, a second one writes it. perf sorts the records between two
 * FINISHED_ROUND by time. Our records are in order of time only on each CPU, and so make one round.
 * perf does not sort records with time 0, which describe the state before the recording.
 */
#include "ctl/perfdata/export_perfdata.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/base.h"
#include "proto/bytes.h"
#include "proto/memfd.h"
#include "proto/perf/perfrecord.h"

#include "ctl/perfdata/export_layout.h"

/* Limit of the header, ids and attrs. */
#define HEAD_MAX (LAYOUT_HEADER_SIZE + 4096u + 16u * MANIFEST_MAX_CPUS)
/* Blocks of fewer bytes are collected, larger blocks are written from where they lie. */
#define COLLECT (64u << 10)

struct exporter {
	const struct bundle *bundle;
	const struct manifest *manifest;

	/* The sideband, and what measure_records() finds in it. */
	const uint8_t *sideband; /* borrowed */
	size_t sideband_size;
	uint32_t trace_of[MANIFEST_MAX_CPUS]; /* index of the CPU's trace, or MANIFEST_ANY */
	uint64_t n_records, skipped;
	uint64_t record_bytes;
	uint32_t n_cpus; /* one more than the highest CPU that a record names */

	/* LAYOUT_PT; LAYOUT_DUMMY if nothing was traced: perf would look for a trace, find no clock
	 * for it, and print no time of any event. */
	enum layout_event first;

	/* The places of everything in the file. */
	struct features features;
	struct perfdata_section ids[LAYOUT_N_EVENTS], attrs, data;
	struct perfdata_section index[MANIFEST_MAX_CPUS]; /* the AUXTRACE of each trace */

	/* The file. */
	int fd;			   /* borrowed */
	struct bytes_out composed; /* structures that layout_*() wrote and send() passes on */
	struct bytes_out pending;  /* collected blocks */
	uint64_t bytes;		   /* written or pending */
	int error;		   /* 0, or the first -errno: tested once, at the end */
};

static void exporter_freep(struct exporter **x)
{
	if (!*x)
		return;
	bytes_out_done(&(*x)->features.content);
	bytes_out_done(&(*x)->pending);
	bytes_out_done(&(*x)->composed);
	free(*x);
}

static void write_out(struct exporter *x, const void *data, size_t size)
{
	if (!x->error)
		x->error = memfd_write_all(x->fd, data, size);
}

static void write_pending(struct exporter *x)
{
	if (!x->error)
		x->error = x->pending.error;
	write_out(x, x->pending.data, x->pending.size);
	bytes_out_reset(&x->pending);
}

static void put(struct exporter *x, const void *data, size_t size)
{
	x->bytes += size;
	if (size < COLLECT)
		bytes_put_block(&x->pending, data, size);
	if (size >= COLLECT || x->pending.size >= COLLECT)
		write_pending(x);
	if (size >= COLLECT)
		write_out(x, data, size);
}

static void send(struct exporter *x)
{
	if (!x->error)
		x->error = x->composed.error;
	put(x, x->composed.data, x->composed.size);
	bytes_out_reset(&x->composed);
}

/*
 * Whether perf may see the record. A bundle may come from anybody: types from 64 on mean perf's own
 * records, and perf reads a SAMPLE by other rules. Only records that our two events can
 * write may pass. Of what the recorder read again after a loss, perf may see names and mappings;
 * the FORK before them would be another process to perf.
 */
static bool passes(const struct perfrecord *record)
{
	if (record->cpu == UINT32_MAX)
		return record->type == PERF_RECORD_COMM || record->type == PERF_RECORD_MMAP2;
	switch (record->type) {
	case PERF_RECORD_LOST:
	case PERF_RECORD_COMM:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_AUX:
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_TEXT_POKE:
		/* perf allocates a table with as many CPUs as a switch names. */
		return record->cpu < MANIFEST_MAX_CPUS;
	default: return false;
	}
}

/* Finds the next record that passes, from *AT on, and moves *AT behind the record. Returns the
 * record's size, or 0 at the end. A record without a valid size ends the sideband. */
static size_t next_record(const struct exporter *x, size_t *at, struct perfrecord *ret,
			  uint64_t *skipped)
{
	while (*at < x->sideband_size) {
		int known = perfrecord_parse(x->sideband + *at, x->sideband_size - *at, ret);

		if (known < 0 && ret->size == 0) {
			*at = x->sideband_size;
			*skipped += 1;
			return 0;
		}
		*at += ret->size;
		if (known >= 0 && passes(ret))
			return ret->size;
		*skipped += 1;
	}
	return 0;
}

static void measure_records(struct exporter *x)
{
	const struct manifest *m = x->manifest;
	struct perfrecord record;
	size_t at = 0, n;

	x->sideband = bundle_sideband(x->bundle, &x->sideband_size);
	for (size_t i = 0; i < ARRAY_SIZE(x->trace_of); i++)
		x->trace_of[i] = MANIFEST_ANY;
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu < ARRAY_SIZE(x->trace_of))
			x->trace_of[m->cpus[i].cpu] = (uint32_t)i;
	while ((n = next_record(x, &at, &record, &x->skipped)) > 0) {
		x->n_records++;
		x->record_bytes += n;
		x->n_cpus = MAX_OF(x->n_cpus, record.cpu + 1);
	}
}

/* The records already have the kernel's layout. Only the id at the end changes: perf finds the
 * record's event by the id. */
static void write_records(struct exporter *x)
{
	struct perfrecord record;
	uint64_t skipped = 0;
	size_t at = 0, n;

	while ((n = next_record(x, &at, &record, &skipped)) > 0) {
		uint32_t trace = x->trace_of[record.cpu];
		bool pt = x->first == LAYOUT_PT && (record.type == PERF_RECORD_AUX ||
						    record.type == PERF_RECORD_ITRACE_START);
		uint64_t id = layout_id(x->manifest, pt ? LAYOUT_PT : LAYOUT_DUMMY,
					trace == MANIFEST_ANY ? 0 : trace);

		/* perf's own records of the state before the recording have id 0, too. */
		id = record.time == 0 ? 0 : htole64(id);
		put(x, x->sideband + at - n, n - sizeof(id));
		put(x, &id, sizeof(id));
	}
}

/* perf wants records at multiples of 8. Zeros behind a trace are PAD packets. */
static uint64_t padded(uint64_t size)
{
	return (size + 7) / 8 * 8;
}

static void place_sections(struct exporter *x)
{
	const struct manifest *m = x->manifest;
	uint64_t at = LAYOUT_HEADER_SIZE;

	for (enum layout_event e = x->first; e < LAYOUT_N_EVENTS; e++) {
		x->ids[e] = (struct perfdata_section){at, m->n_cpus * sizeof(uint64_t)};
		at += x->ids[e].size;
	}
	x->attrs = (struct perfdata_section){
		at, (LAYOUT_N_EVENTS - x->first) *
			    (LAYOUT_ATTR_SIZE + sizeof(struct perfdata_section))};
	at += x->attrs.size;
	x->data.offset = at;
	at += x->record_bytes + LAYOUT_FINISHED_ROUND_SIZE;
	at += x->first == LAYOUT_PT ? LAYOUT_AUXTRACE_INFO_SIZE : 0;
	for (size_t i = 0; i < m->n_cpus && x->first == LAYOUT_PT; i++) {
		x->index[i] = (struct perfdata_section){at, LAYOUT_AUXTRACE_SIZE};
		at += LAYOUT_AUXTRACE_SIZE + padded(m->cpus[i].bytes);
	}
	x->data.size = at - x->data.offset;
}

static bool has_trace(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].bytes > 0)
			return true;
	return false;
}

static bool is_per_cpu(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu == MANIFEST_ANY)
			return false;
	return true;
}

static void write_trace(struct exporter *x, uint32_t i)
{
	static const uint8_t zeros[8];
	const struct manifest *m = x->manifest;
	size_t size;
	const uint8_t *trace = bundle_cpu(x->bundle, i, &size);

	layout_auxtrace(&x->composed, i, &m->cpus[i], padded(size),
			m->tsc != MANIFEST_ABSENT ? m->tsc : 0);
	send(x);
	put(x, trace, size);
	put(x, zeros, (size_t)(padded(size) - size));
}

static void write_file(struct exporter *x)
{
	const struct manifest *m = x->manifest;
	struct bytes_out *out = &x->composed;

	layout_header(out, &x->attrs, &x->data, x->features.bits);
	for (enum layout_event e = x->first; e < LAYOUT_N_EVENTS; e++)
		for (uint32_t i = 0; i < m->n_cpus; i++)
			bytes_put_u64(out, layout_id(m, e, i));
	for (enum layout_event e = x->first; e < LAYOUT_N_EVENTS; e++) {
		layout_attr(out, e, m);
		layout_section(out, &x->ids[e]);
	}
	if (x->first == LAYOUT_PT)
		layout_auxtrace_info(out, m, is_per_cpu(m));
	send(x);
	write_records(x);
	layout_finished_round(out);
	send(x);
	for (uint32_t i = 0; i < m->n_cpus && x->first == LAYOUT_PT && !x->error; i++)
		write_trace(x, i);
	features_table(&x->features, x->data.offset + x->data.size, out);
	send(x);
	put(x, x->features.content.data, x->features.content.size);
	write_pending(x);
}

int export_perfdata(const struct bundle *b, int fd, struct export_told *ret)
{
	CLEANUP(exporter_freep) struct exporter *x = calloc(1, sizeof(*x));
	const struct manifest *m = bundle_manifest(b);

	if (!x)
		return -ENOMEM;
	x->bundle = b;
	x->manifest = m;
	x->fd = fd;
	bytes_out_init(&x->composed, HEAD_MAX);
	bytes_out_init(&x->pending, 2 * COLLECT);
	if (m->n_cpus == 0)
		return -ENODATA;
	x->first = has_trace(m) ? LAYOUT_PT : LAYOUT_DUMMY;
	measure_records(x);
	place_sections(x);
	features_compose(&x->features, m, x->first, x->n_cpus, x->index);
	if (x->features.content.error < 0)
		return x->features.content.error;
	write_file(x);
	*ret = (struct export_told){
		.bytes = x->bytes,
		.records = x->n_records,
		.skipped = x->skipped,
		.untraced = x->first != LAYOUT_PT,
		/* As perf decides whether to decode with time. */
		.nobodys = x->first == LAYOUT_PT && is_per_cpu(m) &&
			   (!m->have_clock || !(layout_pt_config(m) & LAYOUT_CONFIG_TSC)),
	};
	return x->error;
}
