/*
 * Fuzzes the reader of untrusted perf.data files as ptsnapctl decode uses it, up to the point where
 * files would be opened. Invariants: records and traces lie within the file; translated records
 * parse in our layout.
 *
 * Bounds on time and memory: each record is visited once; the file's size bounds the number of ids
 * (perfdata.c). Compressed records are unpacked to one buffer of at most 2 GiB, which a small file
 * can reach; the fuzzer limits the buffer to 1 MiB. A translated record is at most one trailer
 * larger than the original. The search for an overlap compares at most eight times the bytes of
 * both pieces.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/perfdata/import_private.h"
#include "proto/base.h"
#include "proto/perf/perfdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_RECORDS (1u << 20)

struct reader {
	struct import_images images;
	struct import_records records;
	struct import_traces traces;
	struct import_zstd *zstd;
};

static int on_record(void *userdata, const struct perfdata_record *record)
{
	struct import_records *r = userdata;

	return r->out.size < MAX_RECORDS ? import_records_add(r, record) : -E2BIG;
}

static void read_compressed(struct reader *r, const struct perfdata_record *record)
{
	const uint8_t *bytes;
	size_t size;

	if (perfdata_parse_compressed(record, &bytes, &size) < 0)
		return;
	if (!r->zstd)
		assert(import_zstd_new(on_record, &r->records, &r->zstd) == 0);
	if (import_zstd_feed(r->zstd, bytes, size) == 0)
		return;
	import_zstd_free(r->zstd);
	r->zstd = NULL;
}

static void read_record(struct reader *r, const struct perfdata_record *record)
{
	struct perfdata_pt pt;
	uint32_t kind;

	switch (record->type) {
	case PERFDATA_AUXTRACE: (void)import_traces_add(&r->traces, record); break;
	case PERFDATA_AUXTRACE_INFO:
		if (perfdata_parse_pt(record, &pt, &kind) == 0)
			(void)perfdata_is_timeless(r->records.data, &pt);
		break;
	case PERFDATA_COMPRESSED:
	case PERFDATA_COMPRESSED2: read_compressed(r, record); break;
	default: (void)import_records_add(&r->records, record);
	}
}

static void read_features(const struct perfdata *p, struct import_images *images)
{
	struct perfdata_build_id id;
	uint64_t at = 0;

	for (unsigned i = 0; i < PERFDATA_FEATURES; i++)
		(void)perfdata_string(p, i);
	while (perfdata_next_build_id(p, &at, &id) == 0)
		assert(import_images_add_build_id(images, id.path, id.id, id.size) == 0);
}

static void check(const struct reader *r, const uint8_t *data, size_t size)
{
	const struct bytes_out *out = &r->records.out;
	struct perfrecord parsed;

	for (size_t at = 0; at < out->size; at += parsed.size)
		assert(perfrecord_parse(out->data + at, out->size - at, &parsed) >= 0);
	for (size_t i = 0; i < r->traces.n; i++) {
		const struct import_piece *piece = &r->traces.pieces[i];

		assert(piece->bytes >= data && piece->size <= size &&
		       piece->bytes + piece->size <= data + size);
		if (i > 0)
			assert(import_traces_overlap(piece[-1].bytes, piece[-1].size, piece->bytes,
						     piece->size) <= piece->size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfdata_record record;
	struct perfdata_error error;
	struct reader r = {0};
	struct perfdata p;
	uint64_t at = 0;

	if (perfdata_open(data, size, &p, &error) != 0)
		return 0;
	import_images_init(&r.images);
	assert(import_records_init(&r.records, &p, size % 2, &r.images) == 0);
	while (perfdata_next(&p, &at, &record, &error) == 0) {
		assert(record.bytes >= data && record.bytes + record.size <= data + size);
		read_record(&r, &record);
	}
	read_features(&p, &r.images);
	check(&r, data, size);
	import_zstd_free(r.zstd);
	import_traces_done(&r.traces);
	import_records_done(&r.records);
	import_images_done(&r.images);
	perfdata_done(&p);
	return 0;
}
