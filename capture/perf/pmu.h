/*
 * What a PT PMU offers: format bits, caps, clock ratio; and config terms <-> attr.config. Read from
 * a sysfs directory (/sys/bus/event_source/devices/intel_pt) or, for the software PMU, built in
 * with the same shape: arch/x86/events/intel/pt.c, pt_formats_attr, pt_cap_group. What the kernel
 * does not tell there (crystal, other CPUs) is added by capture/perf/cpuid.h.
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
	/* The caps of pt_caps, arch/x86/events/intel/pt.c, by their names. An older kernel shows
	 * fewer; those are false. First sets, where bit n set = value n is valid, 0-15. */
	uint32_t mtc_periods, cycle_thresholds, psb_periods;
	bool cr3_filtering, psb_cyc, ip_filtering, mtc, ptwrite, power_event_trace, event_trace;
	bool tnt_disable, topa_output, topa_multiple_entries, single_range_output, output_subsys;
	bool payloads_lip;
	uint32_t num_address_ranges; /* 0-7 */
	uint32_t max_subleaf;
	uint32_t nr_addr_filters; /* that perf takes for one event; 0: none */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den; /* TSC = ART * num / den; a 0: not known */
	/* The core crystal's frequency, which counts MTC's time; 0: not known
	 * (capture/perf/cpuid.h) */
	uint64_t crystal_hz;
	bool branch_always; /* erratum BDM106: tracing without branches is not possible */
};

/* Reads DIRECTORY. 0; -ENOENT: no such PMU; -EBADMSG: what is there is not understood. crystal_hz
 * and branch_always are not there: they stay 0. */
int pmu_read(const char *directory, struct pmu *ret);
/* The software PMU's: tsc, mtc, mtc_period, cyc, cyc_thresh, psb_period, noretcomp, branch, pt;
 * ratio, art and crystal are set by the caller from the clock it runs on. */
void pmu_emulated(struct pmu *ret);

/* The term NAME, or NULL. */
const struct pmu_term *pmu_find_term(const struct pmu *pmu, const char *name);
/* The values that term NAME may have: bit n set = n is valid; UINT64_MAX: all; 0: no such term. By
 * itself: some terms also need another one, which pmu_parse_terms knows. */
uint64_t pmu_term_values(const struct pmu *pmu, const char *name);
/* The value of term NAME in CONFIG; 0 when the PMU has no such term. */
uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name);

/* "tsc,mtc_period=9,cyc=0" or "config=0x..." -> attr.config. pt and branch are set unless said
 * otherwise. What the kernel would refuse (arch/x86/events/intel/pt.c, pt_event_valid) is refused.
 * 0; -EINVAL, with what is wrong and the list of valid terms or values in WHY. */
int pmu_parse_terms(const struct pmu *pmu, const char *terms, uint64_t *ret_config, char *why,
		    size_t why_size);
/* CONFIG in words, "tsc,mtc,mtc_period=9,...": terms with a value other than 0. */
void pmu_format_terms(const struct pmu *pmu, uint64_t config, char *ret, size_t size);
/* The set bits of VALUES in words, "0,3,6-9"; "none". */
void pmu_format_values(uint64_t values, char *ret, size_t size);
