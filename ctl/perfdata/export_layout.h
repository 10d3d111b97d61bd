/*
 * The structures of a perf.data file, and its features (what the file says about its host).
 *
 * One function writes one structure into a byte buffer. Sources, all of Linux 6.1:
 * tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.c (write_*),
 * tools/perf/util/intel-pt.h (words of AUXTRACE_INFO), lib/perf/include/perf/event.h and
 * include/uapi/linux/perf_event.h (perf_event_attr).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"
#include "proto/perf/perfdata.h"

/* perf 6.1 refuses an attr that is larger than perf's own unless the excess is zero. Every perf
 * from Linux 5.16 on reads the size PERF_ATTR_SIZE_VER7. */
#define LAYOUT_ATTR_SIZE   128u
#define LAYOUT_HEADER_SIZE 104u
/* perf pads names to this size in its own records and features (NAME_ALIGN). */
#define LAYOUT_NAME_ALIGN 64u

/* Numbers that the reader's side, proto/perf/perfdata.h, does not need. */
#define LAYOUT_FINISHED_ROUND 68u /* a type of record */
#define LAYOUT_VERSION	      5u  /* the others: features */
#define LAYOUT_NRCPUS	      7u
#define LAYOUT_CMDLINE	      11u
#define LAYOUT_EVENT_DESC     12u
#define LAYOUT_PMU_MAPPINGS   16u
#define LAYOUT_AUXTRACE_INDEX 18u
#define LAYOUT_MAX_FEATURES   32u

#define LAYOUT_FINISHED_ROUND_SIZE 8u
#define LAYOUT_AUXTRACE_INFO_SIZE  152u
#define LAYOUT_AUXTRACE_SIZE	   48u

/* attr.config of intel_pt: TSC packets. */
#define LAYOUT_CONFIG_TSC (1ull << 10)

/* The PMU's type in the file. The kernel numbers PMUs from 6 on at boot. No host has this number,
 * so perf cannot take it for another PMU of its own host. */
#define LAYOUT_PT_TYPE 1000u

/* Writes LAYOUT_HEADER_SIZE bytes. FEATURES has a bit for each feature that is present. */
void layout_header(struct bytes_out *out, const struct perfdata_section *attrs,
		   const struct perfdata_section *data, uint64_t features);
void layout_section(struct bytes_out *out, const struct perfdata_section *s);

/* The file's events: intel_pt, and a dummy for all records except AUX and ITRACE_START. */
enum layout_event { LAYOUT_PT, LAYOUT_DUMMY, LAYOUT_N_EVENTS };
/* The id of EVENT for trace number TRACE of M: from 1 on, those of intel_pt first. */
static inline uint64_t layout_id(const struct manifest *m, enum layout_event event, uint32_t trace)
{
	return 1 + (uint64_t)event * m->n_cpus + trace;
}
/* Writes LAYOUT_ATTR_SIZE bytes. */
void layout_attr(struct bytes_out *out, enum layout_event event, const struct manifest *m);
/* attr.config of intel_pt: as recorded, or, for a bundle without it, as far as M tells. */
uint64_t layout_pt_config(const struct manifest *m);

/* Writes LAYOUT_AUXTRACE_INFO_SIZE bytes. PER_CPU: each trace is of a CPU, and SWITCH records say
 * which thread ran. */
void layout_auxtrace_info(struct bytes_out *out, const struct manifest *m, bool per_cpu);
/* Writes LAYOUT_AUXTRACE_SIZE bytes, which stand before SIZE bytes of trace (a multiple of 8).
 * INDEX counts the traces. REFERENCE is a TSC of the same boot: TSC packets lack the highest bits.
 */
void layout_auxtrace(struct bytes_out *out, uint32_t index, const struct manifest_cpu *cpu,
		     uint64_t size, uint64_t reference);
void layout_finished_round(struct bytes_out *out);

/* Writes at most 255 bytes of TEXT. Control characters become '?', because perf prints texts
 * unchanged. */
void layout_string(struct bytes_out *out, const char *text);
/* Writes one record of the build-id feature. HEX is as in the manifest; an odd digit is ignored. */
void layout_build_id(struct bytes_out *out, const char *hex, const char *path);

struct features {
	uint64_t bits; /* for the header */
	size_t n;
	struct perfdata_section sections[LAYOUT_MAX_FEATURES]; /* offsets within CONTENT */
	struct bytes_out content; /* the caller's to free; content.error is 0 or -errno */
};

/* Composes the features. FIRST: LAYOUT_PT, or LAYOUT_DUMMY for a file without traces. N_CPUS: one
 * more than the highest CPU of a record. INDEX: where the AUXTRACE records of M's traces lie in the
 * file, m->n_cpus of them. */
void features_compose(struct features *f, const struct manifest *m, enum layout_event first,
		      uint32_t n_cpus, const struct perfdata_section *index);
/* Writes the table of sections, for the place AT in the file; the content follows the table. */
void features_table(const struct features *f, uint64_t at, struct bytes_out *out);
