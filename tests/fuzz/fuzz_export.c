/*
 * Fuzzes the export of a bundle as perf.data. Invariant: for every accepted bundle, our own reader
 * accepts the exported file to its end, and finds all records and traces that the exporter counted.
 * The file has no user-type records of perf except those of the format.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "ctl/perfdata/export_perfdata.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/perf/perfdata.h"
#include "tests/fuzz/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FINISHED_ROUND 68u

struct found {
	uint64_t records, traces, others;
};

static void walk(const struct perfdata *p, struct found *found)
{
	struct perfdata_record record;
	struct perfdata_error error;
	struct perfrecord parsed;
	uint64_t at = 0;
	int r;

	while ((r = perfdata_next(p, &at, &record, &error)) == 0) {
		if (record.type == PERFDATA_AUXTRACE) {
			found->traces++;
		} else if (record.type < 64) {
			assert(perfdata_parse(p, &record, &parsed) >= 0);
			found->records++;
		} else {
			assert(record.type == PERFDATA_AUXTRACE_INFO ||
			       record.type == FINISHED_ROUND);
			found->others++;
		}
	}
	assert(r == PERFDATA_END);
}

static void check(const uint8_t *bytes, const struct export_told *told, size_t n_cpus)
{
	struct found found = {0};
	struct perfdata_error error;
	struct perfdata p;

	assert(perfdata_open(bytes, told->bytes, &p, &error) == 0);
	assert(!p.unfinished);
	walk(&p, &found);
	assert(found.records == told->records && found.traces == n_cpus && found.others == 2);
	perfdata_done(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int from = -EBADF, to = -EBADF;
	struct export_told told;
	void *map;

	assert(memfd_new("fuzz", 0, &from) == 0 && memfd_write_all(from, data, size) == 0);
	if (bundle_open(from, &b) < 0)
		return FUZZ_REJECTED;
	assert(memfd_new("perf.data", 0, &to) == 0);
	if (export_perfdata(b, to, &told) < 0)
		return 0;
	map = mmap(NULL, told.bytes, PROT_READ, MAP_PRIVATE, to, 0);
	assert(map != MAP_FAILED);
	check(map, &told, bundle_manifest(b)->n_cpus);
	munmap(map, told.bytes);
	return 0;
}
