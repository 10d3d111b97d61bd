/*
 * Makes a small synthetic perf.data byte by byte: the file that `perf record' would have written of
 * the program in make_bundle.h. For tests of the reader, and for its fuzz corpus.
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
/* The sample_type that perf uses for an Intel PT event of a whole CPU. */
#define MAKE_SAMPLE_TYPE                                                         \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_IDENTIFIER)

enum make_compression { MAKE_PLAIN, MAKE_COMPRESSED, MAKE_COMPRESSED2 };

struct make_perfdata {
	struct make_bundle recorded;
	uint64_t sample_type; /* of all records; 0: MAKE_SAMPLE_TYPE */
	/* Two more events, which lay out their records differently; the records belong to the
	 * second one. */
	bool mixed;
	bool no_sample_id; /* attr.sample_id_all is not set */
	bool per_thread;   /* the trace belongs to thread MAKE_TID */
	unsigned pieces;   /* of each trace; 0: 1 */
	size_t overlap;	   /* of each piece with the one before; not 0: snapshot mode */
	size_t hole;	   /* this many bytes are missing between two pieces */
	enum make_compression compression;
	uint32_t kind;		 /* of the trace, enum auxtrace_type; 0: Intel PT */
	unsigned words;		 /* of AUXTRACE_INFO; 0: 17 */
	bool no_tsc;		 /* in attr.config */
	bool no_tnt;		 /* the same, although the trace has TNT packets */
	bool start_paused;	 /* in attr.aux_action */
	const char *filter;	 /* of addresses; NULL: none */
	bool no_info, no_trace;	 /* no AUXTRACE_INFO, no AUXTRACE */
	bool unfinished;	 /* perf record was killed */
	bool task_switches;	 /* SWITCH records, as events of one program have them */
	bool no_switches;	 /* neither SWITCH nor ITRACE_START */
	bool mmap;		 /* MMAP records, as before Linux 3.16 */
	uint8_t build_id;	 /* every byte of the build ids in the list; 0: no list */
	uint8_t record_build_id; /* the same for MMAP2 records */
	bool every_record;	 /* one record of every kind that the kernel or perf may write */
};

/* 0 or -errno. */
int make_perfdata(const struct make_perfdata *how, struct bytes_out *out);
/* The variants that tests and the fuzz corpus use, by name; NULL: unknown name, or an index beyond
 * the last variant. */
const struct make_perfdata *make_perfdata_kind(const char *name);
const char *make_perfdata_name(size_t i);
