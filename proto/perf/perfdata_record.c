/*
 * Parses perf's own records and the feature sections of a perf.data file.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bytes.h"
#include "proto/perf/perfdata.h"

/* enum auxtrace_type, tools/perf/util/auxtrace.h. */
#define AUXTRACE_INTEL_PT 1u
/* The words that every version of perf has written: up to per_cpu_mmaps. */
#define MIN_PT_WORDS 10u
#define MAX_PT_WORDS 17u
/* header.misc of a build id: the size stands behind the build id. Without this bit it is a SHA-1.
 */
#define MISC_BUILD_ID_SIZE (1u << 15)
#define SHA1_SIZE	   20u

static void body_of(const struct perfdata_record *record, struct bytes_in *ret)
{
	static const size_t header = sizeof(struct perf_event_header);

	bytes_in_init(ret, record->bytes + header, record->size - header);
}

int perfdata_parse_pt(const struct perfdata_record *record, struct perfdata_pt *ret,
		      uint32_t *ret_kind)
{
	uint64_t words[MAX_PT_WORDS] = {0};
	struct bytes_in in;
	size_t n;

	assert(record->type == PERFDATA_AUXTRACE_INFO);
	body_of(record, &in);
	*ret_kind = bytes_get_u32(&in);
	bytes_get_u32(&in);
	if (in.bad)
		return -EBADMSG;
	if (*ret_kind != AUXTRACE_INTEL_PT)
		return PERFDATA_FOREIGN;
	n = MIN_OF(bytes_in_left(&in) / sizeof(uint64_t), (size_t)MAX_PT_WORDS);
	if (n < MIN_PT_WORDS)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		words[i] = bytes_get_u64(&in);
	*ret = (struct perfdata_pt){
		.pmu_type = words[0],
		.time_shift = words[1],
		.time_mult = words[2],
		.time_zero = words[3],
		.cap_user_time_zero = words[4],
		.tsc_bit = words[5],
		.noretcomp_bit = words[6],
		.snapshot_mode = words[8],
		.per_cpu_mmaps = words[9],
		.mtc_bit = words[10],
		.mtc_freq_bits = words[11],
		.tsc_ctc_n = words[12],
		.tsc_ctc_d = words[13],
		.cyc_bit = words[14],
		.max_nonturbo_ratio = words[15],
	};
	/* The filter is padded with NULs to whole words. */
	if (words[16] > 0 && words[16] < bytes_in_left(&in))
		ret->filter = bytes_get_string(&in, bytes_in_left(&in));
	return 0;
}

/* tools/perf/util/header.c, write_nrcpus(): the CPUs of the host, then those that are online. An
 * event of CPUs has an id for each CPU, and an event of threads has one for each thread on each CPU
 * (tools/lib/perf/evsel.c, perf_evsel__alloc_id()). */
uint64_t perfdata_unrecorded(const struct perfdata *p)
{
	const struct perfdata_section *s = &p->features[PERFDATA_NRCPUS];
	uint64_t online, recorded = 0;
	struct bytes_in in;

	if (s->size < 2 * sizeof(uint32_t))
		return UINT64_MAX;
	bytes_in_init(&in, p->bytes + s->offset, s->size);
	bytes_get_u32(&in);
	online = bytes_get_u32(&in);
	for (size_t i = 0; i < p->n_attrs; i++)
		if (p->attrs[i].switches)
			recorded = MAX_OF(recorded, (uint64_t)p->attrs[i].n_ids);
	return online - MIN_OF(online, recorded);
}

const struct perfdata_attr *perfdata_pt_attr(const struct perfdata *p, const struct perfdata_pt *pt)
{
	for (size_t i = 0; i < p->n_attrs; i++)
		if (p->attrs[i].type == pt->pmu_type)
			return &p->attrs[i];
	return NULL;
}

uint32_t perfdata_mtc_period(const struct perfdata_pt *pt, uint64_t config)
{
	if (!(config & pt->mtc_bit) || pt->mtc_freq_bits == 0)
		return UINT32_MAX;
	return (uint32_t)((config & pt->mtc_freq_bits) >> __builtin_ctzll(pt->mtc_freq_bits));
}

bool perfdata_is_timeless(const struct perfdata *p, const struct perfdata_pt *pt)
{
	const struct perfdata_attr *attr = perfdata_pt_attr(p, pt);

	if (!attr || !(attr->config & pt->tsc_bit) || !pt->cap_user_time_zero)
		return true;
	for (size_t i = 0; i < p->n_attrs; i++)
		if (!p->attrs[i].layout.sample_id_all ||
		    !(p->attrs[i].layout.sample_type & PERF_SAMPLE_TIME))
			return true;
	return false;
}

int perfdata_parse_auxtrace(const struct perfdata_record *record, struct perfdata_auxtrace *ret)
{
	struct bytes_in in;

	assert(record->type == PERFDATA_AUXTRACE);
	body_of(record, &in);
	ret->size = bytes_get_u64(&in);
	ret->offset = bytes_get_u64(&in);
	ret->reference = bytes_get_u64(&in);
	ret->index = bytes_get_u32(&in);
	ret->tid = bytes_get_u32(&in);
	ret->cpu = bytes_get_u32(&in);
	bytes_get_u32(&in);
	return in.bad ? -EBADMSG : 0;
}

int perfdata_parse_compressed(const struct perfdata_record *record, const uint8_t **ret,
			      size_t *ret_size)
{
	struct bytes_in in;
	uint64_t size;

	assert(record->type == PERFDATA_COMPRESSED || record->type == PERFDATA_COMPRESSED2);
	body_of(record, &in);
	size = bytes_in_left(&in);
	if (record->type == PERFDATA_COMPRESSED2)
		size = bytes_get_u64(&in);
	if (in.bad || size > bytes_in_left(&in))
		return -EBADMSG;
	*ret_size = (size_t)size;
	*ret = bytes_get_block(&in, (size_t)size);
	return 0;
}

/* A length, and the padded string (tools/perf/util/header.c, do_write_string()). */
const char *perfdata_string(const struct perfdata *p, unsigned int feature)
{
	const struct perfdata_section *s = &p->features[feature];
	struct bytes_in in;
	uint32_t length;

	assert(feature < PERFDATA_FEATURES);
	bytes_in_init(&in, p->bytes + s->offset, s->size);
	length = bytes_get_u32(&in);
	return in.bad ? NULL : bytes_get_string(&in, MIN_OF((size_t)length, bytes_in_left(&in)));
}

int perfdata_next_build_id(const struct perfdata *p, uint64_t *at, struct perfdata_build_id *ret)
{
	const struct perfdata_section *s = &p->features[PERFDATA_BUILD_ID];
	struct perfdata_record record;
	const uint8_t *bytes;
	struct bytes_in in;
	uint8_t size;

	if (*at >= s->size || perfdata_frame(p->bytes + s->offset + *at, s->size - *at, &record))
		return PERFDATA_END;
	*at += record.size;
	*ret = (struct perfdata_build_id){.misc = record.misc};
	body_of(&record, &in);
	bytes_get_u32(&in);
	bytes = bytes_get_block(&in, SHA1_SIZE);
	size = bytes_get_u8(&in);
	bytes_get_u8(&in);
	bytes_get_u16(&in);
	ret->size = ret->misc & MISC_BUILD_ID_SIZE ? size : SHA1_SIZE;
	if (!bytes || ret->size > SHA1_SIZE)
		return PERFDATA_END;
	memcpy(ret->id, bytes, ret->size);
	ret->path = bytes_get_string(&in, bytes_in_left(&in));
	return in.bad ? PERFDATA_END : 0;
}
