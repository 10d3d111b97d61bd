/*
 * A perf.data file in memory: header, attrs, features, the framing of its records, and those of
 * perf's own that tell of an Intel PT trace. Only files that `perf record -o FILE' wrote on a
 * little-endian machine; nothing is copied, every length is checked.
 *
 * Layouts: tools/perf/util/header.h and header.c (struct perf_file_header, perf_file_attr, feature
 * sections), tools/lib/perf/include/perf/event.h (records from 64 on), tools/perf/util/intel-pt.h
 * (the words of AUXTRACE_INFO).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

/* perf's own records, enum perf_user_event_type. */
#define PERFDATA_HEADER_TRACING_DATA 66u
#define PERFDATA_AUXTRACE_INFO	     70u
#define PERFDATA_AUXTRACE	     71u
#define PERFDATA_COMPRESSED	     81u
#define PERFDATA_COMPRESSED2	     83u

/* Feature sections, tools/perf/util/header.h. */
#define PERFDATA_BUILD_ID  2u
#define PERFDATA_HOSTNAME  3u
#define PERFDATA_OSRELEASE 4u
#define PERFDATA_ARCH	   6u
#define PERFDATA_CPUDESC   8u
#define PERFDATA_CPUID	   9u
#define PERFDATA_FEATURES  256u

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_attr {
	uint32_t type; /* of its PMU */
	uint64_t config;
	struct perfrecord_layout layout;
	bool exclude_user, exclude_kernel;
};

struct perfdata_id {
	uint64_t id;
	uint32_t attr;
};

struct perfdata {
	const uint8_t *bytes; /* borrowed */
	size_t size;
	struct perfdata_attr *attrs; /* owned, at least one */
	size_t n_attrs;
	struct perfdata_id *ids; /* owned, sorted */
	size_t n_ids;
	struct perfdata_section data; /* records */
	/* perf record was killed before it could note how long DATA is: it goes to the file's end,
	 * and there are no features. */
	bool unfinished;
	struct perfdata_section features[PERFDATA_FEATURES]; /* size 0: none */
	bool same_layout;   /* of all attrs; else a record's id tells, */
	size_t id_from_end; /* which lies there in the trailer, bytes; 0: there is none */
};

/* What is wrong with a file, and where. */
struct perfdata_error {
	uint64_t offset;
	const char *what; /* static */
};

/* BYTES are borrowed until perfdata_done(). 0; one of these; -EBADMSG (*error is set) or -ENOMEM.
 */
#define PERFDATA_OTHER	 1 /* no perf.data at all */
#define PERFDATA_PIPE	 2 /* as `perf record -o -' writes it, for a pipe */
#define PERFDATA_SWAPPED 3 /* of a machine of the other byte order */
#define PERFDATA_OLD	 4 /* before Linux 3 */
int perfdata_open(const uint8_t *bytes, size_t size, struct perfdata *ret,
		  struct perfdata_error *error);
void perfdata_done(struct perfdata *p);
/* Whether a file that begins with BYTES is a perf.data of any kind. */
bool perfdata_is(const uint8_t *bytes, size_t size);

struct perfdata_record {
	uint64_t offset; /* in the file, or in what was compressed */
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	const uint8_t *bytes; /* of the whole record */
	/* What follows it and belongs to it: the trace of AUXTRACE. */
	const uint8_t *trace;
	uint64_t trace_size;
};

/* The record at *AT (0 at first, counted from the beginning of the data section), which moves
 * behind it. 0; PERFDATA_END; PERFDATA_CUT: the file ends within it, as one that is unfinished may;
 * -EBADMSG: what follows cannot be read. */
#define PERFDATA_END 1
#define PERFDATA_CUT 2
int perfdata_next(const struct perfdata *p, uint64_t *at, struct perfdata_record *ret,
		  struct perfdata_error *error);
/* The record at BYTES, which may go on beyond SIZE: then PERFDATA_CUT. 0 or -EBADMSG. */
int perfdata_frame(const uint8_t *bytes, size_t size, struct perfdata_record *ret);

/* The kernel's record RECORD, in the layout of the attr that its id names. As
 * perfrecord_parse_as(). */
int perfdata_parse(const struct perfdata *p, const struct perfdata_record *record,
		   struct perfrecord *ret);

/* AUXTRACE_INFO of Intel PT. What older versions of perf did not write is 0. Masks: of attr.config.
 */
struct perfdata_pt {
	uint64_t pmu_type;
	uint64_t time_shift, time_mult, time_zero, cap_user_time_zero;
	uint64_t tsc_bit, noretcomp_bit;
	uint64_t snapshot_mode, per_cpu_mmaps;
	uint64_t mtc_bit, mtc_freq_bits;
	uint64_t tsc_ctc_n, tsc_ctc_d;
	uint64_t cyc_bit, max_nonturbo_ratio;
	const char *filter; /* address filters in perf's words, NULL: none */
};

/* 0; PERFDATA_FOREIGN: of another kind of trace, *ret_kind says which; -EBADMSG. */
#define PERFDATA_FOREIGN 1
int perfdata_parse_pt(const struct perfdata_record *record, struct perfdata_pt *ret,
		      uint32_t *ret_kind);
/* The first attr of PT's PMU, NULL: there is none. */
const struct perfdata_attr *perfdata_pt_attr(const struct perfdata *p,
					     const struct perfdata_pt *pt);
/* log2 of the CTC ticks between MTC packets; UINT32_MAX: none. */
uint32_t perfdata_mtc_period(const struct perfdata_pt *pt, uint64_t config);
/* Whether nothing ties the trace to the times of the records: no TSC packets, no conversion, or
 * records without time. */
bool perfdata_is_timeless(const struct perfdata *p, const struct perfdata_pt *pt);

#define PERFDATA_ANY UINT32_MAX
/* One piece of a trace: of a CPU, or (CPU ANY) of thread TID wherever it ran. */
struct perfdata_auxtrace {
	uint64_t size, offset, reference;
	uint32_t index, tid, cpu;
};
/* 0 or -EBADMSG. */
int perfdata_parse_auxtrace(const struct perfdata_record *record, struct perfdata_auxtrace *ret);
/* What was compressed: the payload of COMPRESSED and COMPRESSED2, where it lies. 0 or -EBADMSG. */
int perfdata_parse_compressed(const struct perfdata_record *record, const uint8_t **ret,
			      size_t *ret_size);

/* The text of a feature that is one string, where it lies; NULL: there is none. */
const char *perfdata_string(const struct perfdata *p, unsigned int feature);
/* A file that was seen by perf record, and its build id. */
struct perfdata_build_id {
	uint16_t misc;
	const char *path;
	uint8_t id[20];
	uint8_t size;
};
/* The one at *AT of the section (0 at first), which moves on. 0; PERFDATA_END, also where the
 * section makes no sense from there on. */
int perfdata_next_build_id(const struct perfdata *p, uint64_t *at, struct perfdata_build_id *ret);
