/*
 * Sideband -> the records of a perf.data file. They are the kernel's already, in its layout; what
 * changes is the id in the trailer, by which perf finds the event that a record is of. A bundle may
 * come from anybody: numbers from 64 on mean perf's own records, and a SAMPLE is read by other
 * rules, so that only what a dummy event writes goes through. Called by export_perfdata.c.
 */
#include "ctl/perfdata/export_records.h"

#include <endian.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

uint64_t records_pt_id(const struct records *r, uint32_t trace)
{
	(void)r;
	return 1 + (uint64_t)trace;
}

uint64_t records_dummy_id(const struct records *r, uint32_t trace)
{
	return 1 + (uint64_t)r->n_traces + trace;
}

static bool of_pt_event(const struct perfrecord *record)
{
	return record->type == PERF_RECORD_AUX || record->type == PERF_RECORD_ITRACE_START;
}

/* What both events may write. */
static bool passes(const struct perfrecord *record)
{
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
		/* perf makes itself a table of as many CPUs as a switch names. */
		return record->cpu < MANIFEST_MAX_CPUS;
	default: return false;
	}
}

/* The next record that goes through, from *AT on, which moves behind it; 0 at the end. What cannot
 * even be skipped ends the walk. */
static size_t next(const struct records *r, size_t *at, struct perfrecord *ret, uint64_t *skipped)
{
	while (*at < r->size) {
		int known = perfrecord_parse(r->bytes + *at, r->size - *at, ret);

		if (known < 0 && ret->size == 0) {
			*at = r->size;
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

void records_measure(struct records *r, const struct manifest *m, const uint8_t *bytes, size_t size)
{
	struct perfrecord record;
	size_t at = 0, n;

	*r = (struct records){.bytes = bytes, .size = size, .n_traces = (uint32_t)m->n_cpus};
	for (size_t i = 0; i < ARRAY_SIZE(r->slot); i++)
		r->slot[i] = MANIFEST_ANY;
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].cpu < ARRAY_SIZE(r->slot))
			r->slot[m->cpus[i].cpu] = (uint32_t)i;
	while ((n = next(r, &at, &record, &r->skipped)) > 0) {
		r->n++;
		r->bytes_out += n;
		r->n_cpus = MAX_OF(r->n_cpus, record.cpu + 1);
	}
}

/* perf's own records of what was there before have none, as ours. */
static uint64_t id_of(const struct records *r, const struct perfrecord *record)
{
	uint32_t slot = r->slot[record->cpu];

	if (record->time == 0)
		return 0;
	if (slot == MANIFEST_ANY)
		slot = 0;
	return of_pt_event(record) ? records_pt_id(r, slot) : records_dummy_id(r, slot);
}

void records_write(const struct records *r, struct sink *to)
{
	struct perfrecord record;
	uint64_t skipped = 0;
	size_t at = 0, n;

	while ((n = next(r, &at, &record, &skipped)) > 0) {
		uint64_t id = htole64(id_of(r, &record));

		sink_block(to, r->bytes + at - n, n - sizeof(id));
		sink_block(to, &id, sizeof(id));
	}
}
