/*
 * The layouts of a perf.data file: one function a structure, onto a byte buffer; nothing here knows
 * what a bundle is. Called by export_perfdata.c and export_features.c.
 *
 * Layouts: tools/perf/Documentation/perf.data-file-format.txt, tools/perf/util/header.c
 * (write_*), tools/perf/util/intel-pt.h (the words of AUXTRACE_INFO), lib/perf/include/perf/event.h
 * and include/uapi/linux/perf_event.h (perf_event_attr), all of Linux 6.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"
#include "proto/perf/perfdata.h"

/* perf 6.1 refuses attrs that are larger than what it knows and not zero behind that: the size of
 * PERF_ATTR_SIZE_VER7 is understood by all from 5.16 on. */
#define LAYOUT_ATTR_SIZE   128u
#define LAYOUT_HEADER_SIZE 104u
/* perf pads names to this in its own records and features (NAME_ALIGN). */
#define LAYOUT_NAME_ALIGN 64u

/* What proto/perf/perfdata.h, the reader's side, has no need of. */
#define LAYOUT_FINISHED_ROUND 68u /* a record of perf's own */
#define LAYOUT_VERSION	      5u  /* features */
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

/* The PMU's type number in the file. The kernel gives out such numbers at boot, from 6 on; one that
 * no host has cannot be taken for another PMU of the reader's host. */
#define LAYOUT_PT_TYPE 1000u

/* The file's first LAYOUT_HEADER_SIZE bytes; FEATURES: a bit for each that is there. */
void layout_header(struct bytes_out *out, const struct perfdata_section *attrs,
		   const struct perfdata_section *data, uint64_t features);
void layout_section(struct bytes_out *out, const struct perfdata_section *s);

enum layout_event { LAYOUT_PT, LAYOUT_DUMMY, LAYOUT_N_EVENTS };
/* LAYOUT_ATTR_SIZE bytes: the intel_pt event, or the dummy event that the other records are of. */
void layout_attr(struct bytes_out *out, enum layout_event event, const struct manifest *m);
/* attr.config, or what it must have been as far as M tells. */
uint64_t layout_pt_config(const struct manifest *m);
/* As `perf record' would name it: "intel_pt//u". */
const char *layout_event_name(enum layout_event event, const struct manifest *m);

/* LAYOUT_AUXTRACE_INFO_SIZE bytes. PER_CPU: the traces are CPUs' and SWITCH records say whose. */
void layout_auxtrace_info(struct bytes_out *out, const struct manifest *m, bool per_cpu);
/* LAYOUT_AUXTRACE_SIZE bytes, before SIZE bytes of trace (a multiple of 8). INDEX counts the
 * traces; REFERENCE is a TSC of the same boot, for the bits that TSC packets do not carry. */
void layout_auxtrace(struct bytes_out *out, uint32_t index, const struct manifest_cpu *cpu,
		     uint64_t size, uint64_t reference);
void layout_finished_round(struct bytes_out *out);

/* Texts are cut to 255 bytes, and control characters become '?': perf prints them as they are. */
void layout_string(struct bytes_out *out, const char *text);
/* One record of the build-id feature; HEX as in the manifest (an odd end is left out). */
void layout_build_id(struct bytes_out *out, const char *hex, const char *path);
