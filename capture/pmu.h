/*
 * What a PT PMU offers: format bits, caps, clock ratio; and config terms <-> attr.config. Read from
 * a sysfs directory (/sys/bus/event_source/devices/intel_pt) or, for the software PMU, built in
 * with the same shape: arch/x86/events/intel/pt.c, pt_formats_attr, pt_cap_group.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PMU_MAX_TERMS 32

struct pmu_term {
	char name[32];
	uint8_t low, high; /* bits of attr.config, inclusive */
};

struct pmu {
	uint32_t type;
	struct pmu_term terms[PMU_MAX_TERMS];
	size_t n_terms;
	/* caps: bit n set = value n is valid */
	uint32_t mtc_periods, cycle_thresholds, psb_periods;
	bool psb_cyc, mtc, topa_multiple_entries, ptwrite, power_event_trace;
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den;
};

/* Reads DIRECTORY. 0; -ENOENT: no such PMU; -EBADMSG: what is there is not understood. */
int pmu_read(const char *directory, struct pmu *ret);
/* The software PMU's: tsc, mtc, mtc_period, cyc, cyc_thresh, psb_period, noretcomp, branch, pt;
 * ratio and art are set by the caller from the clock it runs on. */
void pmu_emulated(struct pmu *ret);

#define PMU_DEFAULT_TERMS "tsc,mtc,mtc_period=9,psb_period=1"

/* "tsc,mtc_period=9,cyc=0" or "config=0x..." -> attr.config. pt and branch are set unless said
 * otherwise. 0; -EINVAL, with what is wrong and the list of valid terms or values in WHY. */
int pmu_parse_terms(const struct pmu *pmu, const char *terms, uint64_t *ret_config, char *why,
		    size_t why_size);
/* The value of term NAME in CONFIG; 0 when the PMU has no such term. */
uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name);
/* CONFIG in words, "tsc,mtc,mtc_period=9,...": terms with a value other than 0. */
void pmu_format_terms(const struct pmu *pmu, uint64_t config, char *ret, size_t size);
