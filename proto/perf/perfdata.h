/*
 * A perf.data file in memory: header, events (attrs), features, records, and perf's own records
 * about an Intel PT trace.
 *
 * Only files that `perf record -o FILE' wrote on a little-endian machine. Nothing is copied, and
 * every length is checked. Sources: tools/perf/util/header.h and header.c (struct perf_file_header,
 * perf_file_attr, feature sections), tools/lib/perf/include/perf/event.h (records from 64 on),
 * tools/perf/util/intel-pt.h (words of AUXTRACE_INFO).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

/* Types of perf's own records (enum perf_user_event_type). */
#define PERFDATA_HEADER_TRACING_DATA 66u
#define PERFDATA_AUXTRACE_INFO	     70u
#define PERFDATA_AUXTRACE	     71u
#define PERFDATA_COMPRESSED	     81u
#define PERFDATA_COMPRESSED2	     83u

/* Feature sections (tools/perf/util/header.h). */
#define PERFDATA_BUILD_ID  2u
#define PERFDATA_HOSTNAME  3u
#define PERFDATA_OSRELEASE 4u
#define PERFDATA_ARCH	   6u
#define PERFDATA_NRCPUS	   7u
#define PERFDATA_CPUDESC   8u
#define PERFDATA_CPUID	   9u
#define PERFDATA_FEATURES  256u

struct perfdata_section {
	uint64_t offset, size;
};

struct perfdata_attr {
	uint32_t type; /* of the PMU */
	uint64_t config;
	struct perfrecord_layout layout;
	bool exclude_user, exclude_kernel, switches;
	size_t n_ids;	   /* of CPUs, or of CPUs times threads */
	bool start_paused; /* aux_start_paused: traces only between aux_resume and aux_pause */
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
	struct perfdata_id *ids; /* owned, sorted by id */
	size_t n_ids;
	struct perfdata_section data; /* records */
	/* perf record was killed before it noted the size of DATA. DATA then ends with the file,
	 * and there are no features. */
	bool unfinished;
	struct perfdata_section features[PERFDATA_FEATURES]; /* size 0: absent */
	bool same_layout;   /* all attrs have one layout; else the id of a record tells its attr */
	size_t id_from_end; /* distance of this id from the record's end, in bytes; 0: none */
};

/* An error in a file, and its place. */
struct perfdata_error {
	uint64_t offset;
	const char *what; /* static */
};

/* Opens the file in BYTES, borrowed until perfdata_done(). 0; a positive result below; -EBADMSG
 * (*error is set); or -ENOMEM. */
#define PERFDATA_OTHER	 1 /* not a perf.data file */
#define PERFDATA_PIPE	 2 /* written for a pipe, as by `perf record -o -' */
#define PERFDATA_SWAPPED 3 /* from a machine with the other byte order */
#define PERFDATA_OLD	 4 /* from before Linux 3 */
int perfdata_open(const uint8_t *bytes, size_t size, struct perfdata *ret,
		  struct perfdata_error *error);
void perfdata_done(struct perfdata *p);
/* Whether a file that begins with BYTES is a perf.data file of any kind. */
bool perfdata_is(const uint8_t *bytes, size_t size);

struct perfdata_record {
	uint64_t offset; /* in the file, or in the uncompressed content */
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	const uint8_t *bytes; /* of the whole record */
	/* Bytes behind the record that belong to it: the trace of AUXTRACE. */
	const uint8_t *trace;
	uint64_t trace_size;
};

/* Returns the record at *AT, and moves *AT behind the record. *AT is 0 at first, and counts from
 * the beginning of the data section. 0; PERFDATA_END; PERFDATA_CUT: the file is unfinished and ends
 * within the record; -EBADMSG: the rest cannot be read. */
#define PERFDATA_END 1
#define PERFDATA_CUT 2
int perfdata_next(const struct perfdata *p, uint64_t *at, struct perfdata_record *ret,
		  struct perfdata_error *error);
/* Returns the record at BYTES. 0; PERFDATA_CUT: the record exceeds SIZE; -EBADMSG. */
int perfdata_frame(const uint8_t *bytes, size_t size, struct perfdata_record *ret);

/* Parses a record of the kernel in the layout of its attr, as perfrecord_parse_as(). */
int perfdata_parse(const struct perfdata *p, const struct perfdata_record *record,
		   struct perfrecord *ret);

/* AUXTRACE_INFO of Intel PT. Values that an older perf did not write are 0. Bits are masks of
 * attr.config. */
struct perfdata_pt {
	uint64_t pmu_type;
	uint64_t time_shift, time_mult, time_zero, cap_user_time_zero;
	uint64_t tsc_bit, noretcomp_bit;
	uint64_t snapshot_mode, per_cpu_mmaps;
	uint64_t mtc_bit, mtc_freq_bits;
	uint64_t tsc_ctc_n, tsc_ctc_d;
	uint64_t cyc_bit, max_nonturbo_ratio;
	const char *filter; /* address filters in perf's syntax, or NULL */
};

/* 0; PERFDATA_FOREIGN: the trace is of the kind *ret_kind and not Intel PT; -EBADMSG. */
#define PERFDATA_FOREIGN 1
int perfdata_parse_pt(const struct perfdata_record *record, struct perfdata_pt *ret,
		      uint32_t *ret_kind);
/* Returns the first attr of PT's PMU, or NULL. */
const struct perfdata_attr *perfdata_pt_attr(const struct perfdata *p,
					     const struct perfdata_pt *pt);
/* Returns log2 of the CTC ticks between MTC packets, or UINT32_MAX without MTC packets. */
uint32_t perfdata_mtc_period(const struct perfdata_pt *pt, uint64_t config);
/* How many CPUs were online whose switches P has not; UINT64_MAX: unknown. */
uint64_t perfdata_unrecorded(const struct perfdata *p);
/* Whether nothing relates the trace to the times of the records: there are no TSC packets, no clock
 * conversion, or records without time. */
bool perfdata_is_timeless(const struct perfdata *p, const struct perfdata_pt *pt);

#define PERFDATA_ANY UINT32_MAX
/* One piece of a trace: of a CPU, or, if CPU is PERFDATA_ANY, of thread TID on all CPUs. */
struct perfdata_auxtrace {
	uint64_t size, offset, reference;
	uint32_t index, tid, cpu;
};
/* 0 or -EBADMSG. */
int perfdata_parse_auxtrace(const struct perfdata_record *record, struct perfdata_auxtrace *ret);
/* Returns the payload of a COMPRESSED or COMPRESSED2 record, in the record. 0 or -EBADMSG. */
int perfdata_parse_compressed(const struct perfdata_record *record, const uint8_t **ret,
			      size_t *ret_size);

/* Returns the text of a feature that is one string, in the file, or NULL. */
const char *perfdata_string(const struct perfdata *p, unsigned int feature);
/* A file that perf record saw, with its build id. */
struct perfdata_build_id {
	uint16_t misc;
	const char *path;
	uint8_t id[20];
	uint8_t size;
};
/* Returns the build id at *AT (0 at first) of the section, and moves *AT. 0; PERFDATA_END, also if
 * the rest of the section is invalid. */
int perfdata_next_build_id(const struct perfdata *p, uint64_t *at, struct perfdata_build_id *ret);
