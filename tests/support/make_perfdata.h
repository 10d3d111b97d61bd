/*
 * A small synthetic perf.data, made by hand byte by byte: what `perf record' would have written of
 * what make_bundle.h describes. For tests of the reader, and for its fuzz corpus.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bytes.h"
#include "tests/support/make_bundle.h"

#define MAKE_PMU      6u     /* type of PT's PMU */
#define MAKE_CONFIG   0x400u /* attr.config of PT: tsc */
#define MAKE_FIRST_ID 100u
/* What perf gives an event of Intel PT for a whole CPU. */
#define MAKE_SAMPLE_TYPE                                                         \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_IDENTIFIER)

enum make_compression { MAKE_PLAIN, MAKE_COMPRESSED, MAKE_COMPRESSED2 };

struct make_perfdata {
	struct make_bundle recorded;
	uint64_t sample_type; /* of all records; 0: MAKE_SAMPLE_TYPE */
	/* Two more events, which lay out their records differently; of the second are the records.
	 */
	bool mixed;
	bool no_sample_id; /* attr.sample_id_all is not set */
	bool per_thread;   /* the trace is thread MAKE_TID's */
	unsigned pieces;   /* of each trace; 0: 1 */
	size_t overlap;	   /* of each piece with the one before it; then it is a snapshot */
	size_t hole;	   /* so many bytes between two pieces are not there */
	enum make_compression compression;
	uint32_t kind;		/* of the trace, enum auxtrace_type; 0: Intel PT */
	unsigned words;		/* of AUXTRACE_INFO; 0: 17 */
	bool no_tsc;		/* in attr.config */
	bool no_info, no_trace; /* no AUXTRACE_INFO, no AUXTRACE */
	bool unfinished;	/* perf record was killed */
	bool task_switches;	/* SWITCH records, as of events that are a program's */
	bool no_switches;	/* neither SWITCH nor ITRACE_START */
	bool mmap;		/* MMAP records, as before Linux 3.16 */
	uint8_t build_id;	/* in the list of build ids, each byte of it; 0: there is no list */
	uint8_t record_build_id; /* so in MMAP2 */
	bool every_record;	 /* one of every kind that the kernel or perf may write */
};

/* 0 or -errno. */
int make_perfdata(const struct make_perfdata *how, struct bytes_out *out);
/* The variants that tests and the fuzz corpus use, by name; NULL: no such one, or beyond the last.
 */
const struct make_perfdata *make_perfdata_kind(const char *name);
const char *make_perfdata_name(size_t i);
