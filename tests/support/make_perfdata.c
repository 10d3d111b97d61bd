/*
 * Makes a synthetic perf.data from the trace and records of the synthetic bundle. Records are laid
 * out again as events of another program would have them. Layouts as in proto/perf/perfdata.h.
 */
#include "tests/support/make_perfdata.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "proto/base.h"
#include "proto/perf/perfdata.h"
#include "proto/perf/perfrecord.h"
#include "proto/perf/ptpacket.h"

#define HEADER_SIZE    104u
#define ATTR_SIZE      128u
#define ENTRY_SIZE     (ATTR_SIZE + 16u)
#define FINISHED_ROUND 68u
/* Small, so that piece borders cut records. */
#define COMPRESSED_PIECE 100u

static const struct perfrecord_layout own = {PERFRECORD_SAMPLE_TYPE, true};

static size_t n_attrs(const struct make_perfdata *how)
{
	return how->mixed ? 3 : 1;
}

static uint64_t sample_type(const struct make_perfdata *how, size_t attr)
{
	uint64_t type = how->sample_type ? how->sample_type : (uint64_t)MAKE_SAMPLE_TYPE;

	switch (attr) {
	case 1: return type & ~(uint64_t)PERF_SAMPLE_CPU;
	case 2: return type | PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID;
	default: return type;
	}
}

/* Appends the trailer of a record of the last event. */
static void put_trailer(const struct make_perfdata *how, const struct perfrecord *r,
			struct bytes_out *out)
{
	uint64_t type = sample_type(how, n_attrs(how) - 1);
	uint64_t id = r->time ? MAKE_FIRST_ID + n_attrs(how) - 1 : 0;

	if (how->no_sample_id)
		return;
	if (type & PERF_SAMPLE_TID) {
		bytes_put_u32(out, r->pid);
		bytes_put_u32(out, r->tid);
	}
	if (type & PERF_SAMPLE_TIME)
		bytes_put_u64(out, r->time);
	if (type & PERF_SAMPLE_ID)
		bytes_put_u64(out, id);
	if (type & PERF_SAMPLE_STREAM_ID)
		bytes_put_u64(out, id);
	if (type & PERF_SAMPLE_CPU) {
		bytes_put_u32(out, r->cpu);
		bytes_put_u32(out, 0);
	}
	if (type & PERF_SAMPLE_IDENTIFIER)
		bytes_put_u64(out, id);
}

/* perf makes up the records of time 0 and lays them out as the first event does. */
static void put_made_up_trailer(const struct make_perfdata *how, struct bytes_out *out)
{
	struct perfrecord_layout first = {sample_type(how, 0), !how->no_sample_id};
	size_t size = perfrecord_sample_id_size(&first);
	uint8_t *at = bytes_put_space(out, size);

	if (at && size > 0)
		memset(at, 0, size);
}

static void put_header(struct bytes_out *out, uint32_t type, uint16_t misc)
{
	bytes_put_u32(out, type);
	bytes_put_u16(out, misc);
	bytes_put_u16(out, 0);
}

/* Sets the size of the record that began at START. */
static void end_record(struct bytes_out *out, size_t start)
{
	uint16_t size = (uint16_t)(out->size - start);

	if (!out->error)
		memcpy(out->data + start + 6, &size, sizeof(size));
}

/* Appends the fields that MMAP and MMAP2 share, and the name, from a MMAP2 record. */
static void put_mmap(const struct perfrecord *r, struct bytes_out *out)
{
	size_t size = strlen(r->u.mmap2.filename) + 1;

	bytes_put_u32(out, r->u.mmap2.pid);
	bytes_put_u32(out, r->u.mmap2.tid);
	bytes_put_u64(out, r->u.mmap2.addr);
	bytes_put_u64(out, r->u.mmap2.len);
	bytes_put_u64(out, r->u.mmap2.pgoff);
	bytes_put_block(out, r->u.mmap2.filename, size);
	bytes_put_block(out, (const uint8_t[8]){0}, -size & 7);
}

static void put_record(const struct make_perfdata *how, struct perfrecord *r, struct bytes_out *out)
{
	bool map = r->type == PERF_RECORD_MMAP2;
	uint8_t buffer[8192];
	size_t start = out->size, size = 0;

	if (how->no_switches &&
	    (r->type == PERF_RECORD_SWITCH_CPU_WIDE || r->type == PERF_RECORD_ITRACE_START))
		return;
	if (how->task_switches && r->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		/* Switches of its own tasks only. */
		if (r->tid == 0)
			return;
		r->type = PERF_RECORD_SWITCH;
	}
	if (map && how->record_build_id) {
		r->misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		r->u.mmap2.build_id_size = 20;
		memset(r->u.mmap2.build_id, how->record_build_id, 20);
	}
	put_header(out, map && how->mmap ? PERF_RECORD_MMAP : r->type, r->misc);
	if (map && how->mmap) {
		put_mmap(r, out);
	} else {
		if (perfrecord_compose(r, buffer, sizeof(buffer), &size) != 0)
			abort();
		bytes_put_block(out, buffer + 8, size - 8 - perfrecord_sample_id_size(&own));
	}
	if (r->time == 0)
		put_made_up_trailer(how, out);
	else
		put_trailer(how, r, out);
	end_record(out, start);
}

static void put_perfs(struct bytes_out *out, uint32_t type, const void *body, size_t size)
{
	size_t start = out->size;

	put_header(out, type, 0);
	bytes_put_block(out, body, size);
	end_record(out, start);
}

/* Appends records that a reader must skip. */
static void put_others(const struct make_perfdata *how, struct bytes_out *out)
{
	static const uint32_t kernels[] = {PERF_RECORD_THROTTLE,
					   PERF_RECORD_UNTHROTTLE,
					   PERF_RECORD_READ,
					   PERF_RECORD_LOST_SAMPLES,
					   PERF_RECORD_NAMESPACES,
					   PERF_RECORD_KSYMBOL,
					   PERF_RECORD_BPF_EVENT,
					   PERF_RECORD_CGROUP,
					   PERF_RECORD_TEXT_POKE,
					   PERF_RECORD_AUX_OUTPUT_HW_ID,
					   60};
	static const uint8_t body[32] = {1};

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		struct perfrecord r = {.type = kernels[i],
				       .time = MAKE_TSC,
				       .pid = MAKE_PID,
				       .tid = MAKE_TID,
				       .u.raw = {body, sizeof(body)}};

		put_record(how, &r, out);
	}
	/* A sample, ids, threads, CPUs, times, a feature, the end of the initial records. */
	put_perfs(out, PERF_RECORD_SAMPLE, body, sizeof(body));
	for (uint32_t type = 69; type <= 82; type++)
		if (type < PERFDATA_AUXTRACE_INFO || type > PERFDATA_AUXTRACE)
			if (type != PERFDATA_COMPRESSED)
				put_perfs(out, type, body, sizeof(body));
}

static void put_tasks(const struct make_perfdata *how, struct bytes_out *out)
{
	struct perfrecord fork = {.type = PERF_RECORD_FORK,
				  .time = MAKE_TSC + 1,
				  .pid = MAKE_PID,
				  .tid = MAKE_TID,
				  .u.task = {MAKE_PID + 7, MAKE_PID, MAKE_PID + 7, MAKE_TID, 0}};
	struct perfrecord aux = {.type = PERF_RECORD_AUX,
				 .time = MAKE_TSC + 3,
				 .u.aux = {0, 8, PERF_AUX_FLAG_TRUNCATED}};
	struct perfrecord exited = fork;

	put_record(how, &fork, out);
	exited.type = PERF_RECORD_EXIT;
	exited.time++;
	put_record(how, &exited, out);
	put_record(how, &aux, out);
}

static void put_records(const struct make_perfdata *how, struct bytes_out *out)
{
	CLEANUP(bytes_out_done) struct bytes_out records;
	struct perfrecord r;

	bytes_out_init(&records, 64 << 20);
	make_sideband(&how->recorded, &records);
	for (size_t at = 0; at < records.size; at += r.size) {
		if (perfrecord_parse(records.data + at, records.size - at, &r) != 0)
			abort();
		put_record(how, &r, out);
	}
	if (how->every_record) {
		put_tasks(how, out);
		put_others(how, out);
	}
	put_perfs(out, FINISHED_ROUND, NULL, 0);
}

static void put_info(const struct make_perfdata *how, struct bytes_out *out)
{
	const uint64_t words[17] = {MAKE_PMU,
				    0,
				    1,
				    0,
				    1, /* type, shift, mult, zero, cap */
				    0x400,
				    0x800,
				    0,
				    how->overlap || how->hole,
				    !how->per_thread,
				    0x200,
				    0x3c000,
				    100,
				    2,
				    2,
				    30,
				    0};
	char filter[64] = ""; /* padded to whole words */
	unsigned n = how->words ? how->words : 17;
	size_t start = out->size;

	put_header(out, PERFDATA_AUXTRACE_INFO, 0);
	bytes_put_u32(out, how->kind ? how->kind : 1);
	bytes_put_u32(out, 0);
	for (unsigned i = 0; i < n && i < ARRAY_SIZE(words); i++)
		bytes_put_u64(out, i == 16 && how->filter ? strlen(how->filter) : words[i]);
	if (how->filter) {
		snprintf(filter, sizeof(filter), "%s", how->filter);
		bytes_put_block(out, filter, sizeof(filter));
	}
	end_record(out, start);
}

static void put_piece(const struct make_perfdata *how, uint32_t cpu, const uint8_t *bytes,
		      size_t offset, size_t size, struct bytes_out *out)
{
	size_t start = out->size;

	put_header(out, PERFDATA_AUXTRACE, 0);
	bytes_put_u64(out, size);
	bytes_put_u64(out, offset);
	bytes_put_u64(out, 0);
	bytes_put_u32(out, cpu);
	bytes_put_u32(out, MAKE_TID);
	bytes_put_u32(out, how->per_thread ? UINT32_MAX : cpu);
	bytes_put_u32(out, 0);
	end_record(out, start);
	bytes_put_block(out, bytes + offset, size);
}

static void put_traces(const struct make_perfdata *how, struct bytes_out *out)
{
	CLEANUP(bytes_out_done) struct bytes_out trace;
	unsigned pieces = MAX_OF(how->pieces, 1u);

	bytes_out_init(&trace, 64 << 20);
	make_trace(&how->recorded, &trace);
	for (unsigned i = 0; i < pieces; i++)
		for (uint32_t cpu = 0; cpu < MAX_OF(how->recorded.n_cpus, 1u); cpu++) {
			size_t from = trace.size * i / pieces, to = trace.size * (i + 1) / pieces;

			if (i > 0)
				from = from - how->overlap + how->hole;
			put_piece(how, cpu, trace.data, from, to - from, out);
		}
}

/* One zstd stream for the whole file, flushed after each compressed record. */
static int compress(const struct make_perfdata *how, const struct bytes_out *in,
		    struct bytes_out *out)
{
	bool padded = how->compression == MAKE_COMPRESSED2;
	ZSTD_CStream *stream = ZSTD_createCStream();
	uint8_t buffer[4096];
	ZSTD_inBuffer from = {in->data, 0, 0};

	while (stream && from.pos < in->size) {
		ZSTD_outBuffer to = {buffer, sizeof(buffer), 0};
		size_t start = out->size;

		from.size = MIN_OF(in->size, from.size + COMPRESSED_PIECE);
		if (ZSTD_isError(ZSTD_compressStream2(stream, &to, &from, ZSTD_e_flush)))
			break;
		put_header(out, padded ? PERFDATA_COMPRESSED2 : PERFDATA_COMPRESSED, 0);
		if (padded)
			bytes_put_u64(out, to.pos);
		bytes_put_block(out, buffer, to.pos);
		if (padded)
			bytes_put_block(out, (const uint8_t[8]){0}, -to.pos & 7);
		end_record(out, start);
	}
	ZSTD_freeCStream(stream);
	return from.pos == in->size ? 0 : -ENOMEM;
}

static int put_data(const struct make_perfdata *how, struct bytes_out *out)
{
	CLEANUP(bytes_out_done) struct bytes_out records;
	int r = 0;

	bytes_out_init(&records, 64 << 20);
	put_records(how, &records);
	if (!how->no_info)
		put_info(how, out);
	if (how->compression == MAKE_PLAIN)
		bytes_put_block(out, records.data, records.size);
	else
		r = compress(how, &records, out);
	if (!how->no_trace)
		put_traces(how, out);
	return r;
}

static uint64_t pt_config(const struct make_perfdata *how)
{
	return (how->no_tsc ? 0 : MAKE_CONFIG) | (how->no_tnt ? PT_CONFIG_NOTNT : 0);
}

static void put_attr(const struct make_perfdata *how, size_t i, struct bytes_out *out)
{
	static const uint64_t exclude_kernel = 1 << 5, sample_id_all = 1 << 18;
	uint8_t rest[ATTR_SIZE - 48] = {0};
	bool pt = i == 0;

	bytes_put_u32(out, pt ? MAKE_PMU : PERF_TYPE_SOFTWARE);
	bytes_put_u32(out, ATTR_SIZE);
	bytes_put_u64(out, pt ? pt_config(how) : PERF_COUNT_SW_DUMMY);
	bytes_put_u64(out, 1);
	bytes_put_u64(out, sample_type(how, i));
	bytes_put_u64(out, 0);
	bytes_put_u64(out, (how->recorded.kernel ? 0 : exclude_kernel) |
				   (how->no_sample_id ? 0 : sample_id_all));
	rest[116 - 48] = pt && how->start_paused; /* attr.aux_action */
	bytes_put_block(out, rest, sizeof(rest));
	/* Behind all ids: the offset of this event's ids. */
	bytes_put_u64(out, HEADER_SIZE + n_attrs(how) * ENTRY_SIZE + i * 8);
	bytes_put_u64(out, 8);
}

static void put_file_header(const struct make_perfdata *how, size_t data, size_t data_size,
			    struct bytes_out *out)
{
	uint64_t features = (how->build_id ? 1u << PERFDATA_BUILD_ID : 0) |
			    1u << PERFDATA_HOSTNAME | 1u << PERFDATA_CPUID;

	bytes_put_block(out, "PERFILE2", 8);
	bytes_put_u64(out, HEADER_SIZE);
	bytes_put_u64(out, ENTRY_SIZE);
	bytes_put_u64(out, HEADER_SIZE);
	bytes_put_u64(out, n_attrs(how) * ENTRY_SIZE);
	bytes_put_u64(out, data);
	bytes_put_u64(out, how->unfinished ? 0 : data_size);
	bytes_put_u64(out, 0);
	bytes_put_u64(out, 0);
	bytes_put_u64(out, how->unfinished ? 0 : features);
	for (unsigned i = 0; i < 3; i++)
		bytes_put_u64(out, 0);
}

static void put_string(struct bytes_out *out, const char *text)
{
	uint8_t padded[64] = {0};

	memcpy(padded, text, strlen(text));
	bytes_put_u32(out, sizeof(padded));
	bytes_put_block(out, padded, sizeof(padded));
}

static void put_build_ids(const struct make_perfdata *how, struct bytes_out *out)
{
	uint8_t id[24] = {0};
	size_t start = out->size, size = strlen(MAKE_PATH) + 1;

	memset(id, how->build_id, 20);
	put_header(out, 0, PERF_RECORD_MISC_USER);
	bytes_put_u32(out, UINT32_MAX);
	bytes_put_block(out, id, sizeof(id));
	bytes_put_block(out, MAKE_PATH, size);
	bytes_put_block(out, (const uint8_t[64]){0}, -size & 63);
	end_record(out, start);
}

static void put_feature(const struct make_perfdata *how, unsigned i, struct bytes_out *out)
{
	switch (i) {
	case 0: put_build_ids(how, out); break;
	case 1: put_string(out, "synthetic"); break;
	default: put_string(out, "GenuineIntel,6,94,3");
	}
}

static void put_features(const struct make_perfdata *how, struct bytes_out *out)
{
	CLEANUP(bytes_out_done) struct bytes_out all;
	unsigned first = how->build_id ? 0 : 1, n = 3;
	size_t begin = out->size + (n - first) * 16;

	bytes_out_init(&all, 4096);
	for (unsigned i = first; i < n; i++) {
		size_t at = all.size;

		put_feature(how, i, &all);
		bytes_put_u64(out, begin + at);
		bytes_put_u64(out, all.size - at);
	}
	bytes_put_block(out, all.data, all.size);
}

int make_perfdata(const struct make_perfdata *how, struct bytes_out *out)
{
	CLEANUP(bytes_out_done) struct bytes_out data;
	size_t before = HEADER_SIZE + n_attrs(how) * (ENTRY_SIZE + 8);
	int r;

	bytes_out_init(&data, 64 << 20);
	r = put_data(how, &data);
	if (r < 0)
		return r;
	put_file_header(how, before, data.size, out);
	for (size_t i = 0; i < n_attrs(how); i++)
		put_attr(how, i, out);
	for (size_t i = 0; i < n_attrs(how); i++)
		bytes_put_u64(out, MAKE_FIRST_ID + i);
	bytes_put_block(out, data.data, data.size);
	if (!how->unfinished)
		put_features(how, out);
	return out->error ? out->error : data.error;
}

static const struct {
	const char *name;
	struct make_perfdata how;
} kinds[] = {
	{"plain", {.recorded = {.rounds = 20}}},
	{"cpus", {.recorded = {.rounds = 20, .n_cpus = 3, .rounds_per_turn = 2}}},
	{"tasks",
	 {.recorded = {.rounds = 20, .n_cpus = 2, .rounds_per_turn = 2}, .task_switches = true}},
	{"kernel", {.recorded = {.rounds = 20, .n_cpus = 2, .rounds_per_turn = 2, .kernel = true}}},
	{"mixed", {.recorded = {.rounds = 5}, .mixed = true}},
	{"ids",
	 {.recorded = {.rounds = 5},
	  .mixed = true,
	  .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
			 PERF_SAMPLE_IDENTIFIER}},
	{"nocpu", {.recorded = {.rounds = 5}, .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME}},
	{"notime", {.recorded = {.rounds = 5}, .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_CPU}},
	{"nosampleid", {.recorded = {.rounds = 5}, .no_sample_id = true}},
	{"notsc", {.recorded = {.rounds = 5}, .no_tsc = true}},
	{"notsctasks", {.recorded = {.rounds = 20, .rounds_per_turn = 2}, .no_tsc = true}},
	{"noswitches", {.recorded = {.rounds = 20, .rounds_per_turn = 2}, .no_switches = true}},
	{"thread",
	 {.recorded = {.rounds = 20},
	  .per_thread = true,
	  .pieces = 3,
	  .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER}},
	{"pieces", {.recorded = {.rounds = 20, .n_cpus = 2}, .pieces = 5}},
	{"overlap", {.recorded = {.rounds = 40, .rounds_per_psb = 4}, .pieces = 2, .overlap = 150}},
	{"hole", {.recorded = {.rounds = 40, .rounds_per_psb = 4}, .pieces = 2, .hole = 40}},
	{"notnt", {.recorded = {.rounds = 5}, .no_tnt = true}},
	{"filter", {.recorded = {.rounds = 5}, .filter = "filter main @ /usr/bin/loop"}},
	{"paused", {.recorded = {.rounds = 5}, .start_paused = true}},
	{"compressed", {.recorded = {.rounds = 5}, .compression = MAKE_COMPRESSED}},
	{"compressed2",
	 {.recorded = {.rounds = 5}, .compression = MAKE_COMPRESSED2, .every_record = true}},
	{"every", {.recorded = {.rounds = 5, .lost_after = 3}, .every_record = true}},
	{"old", {.recorded = {.rounds = 5}, .words = 10, .mmap = true}},
	{"bts", {.recorded = {.rounds = 5}, .kind = 2}},
	{"short", {.recorded = {.rounds = 5}, .words = 9}},
	{"noinfo", {.recorded = {.rounds = 5}, .no_info = true}},
	{"notrace", {.recorded = {.rounds = 5}, .no_trace = true}},
	{"unfinished", {.recorded = {.rounds = 5}, .unfinished = true}},
	{"buildid", {.recorded = {.rounds = 5}, .build_id = 0xab}},
	{"mismatch", {.recorded = {.rounds = 5}, .build_id = 0xcd}},
	{"mapbuildid", {.recorded = {.rounds = 5}, .record_build_id = 0xab}},
	{"mapmismatch", {.recorded = {.rounds = 5}, .record_build_id = 0xcd}},
};

const struct make_perfdata *make_perfdata_kind(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i].how;
	return NULL;
}

const char *make_perfdata_name(size_t i)
{
	return i < ARRAY_SIZE(kinds) ? kinds[i].name : NULL;
}
