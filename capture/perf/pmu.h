/*
 * A PT PMU: its format bits, capabilities and clock ratio, its config terms, and presets of terms.
 *
 * A PMU is read from a sysfs directory (/sys/bus/event_source/devices/intel_pt). The software PMU
 * is built in with the same shape. Source: arch/x86/events/intel/pt.c, pt_formats_attr,
 * pt_cap_group. capture/perf/cpuid.h adds what the kernel does not publish there (the crystal,
 * other CPUs).
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
	/* The capabilities by the names of pt_caps (arch/x86/events/intel/pt.c). An older kernel
	 * publishes fewer; the others are false. In the three sets, bit n set means that value n is
	 * valid, 0-15. */
	uint32_t mtc_periods, cycle_thresholds, psb_periods;
	bool cr3_filtering, psb_cyc, ip_filtering, mtc, ptwrite, power_event_trace, event_trace;
	bool tnt_disable, topa_output, topa_multiple_entries, single_range_output, output_subsys;
	bool payloads_lip;
	uint32_t num_address_ranges; /* 0-7 */
	uint32_t max_subleaf;
	uint32_t nr_addr_filters; /* address filters that perf takes for one event; 0: none */
	uint32_t max_nonturbo_ratio;
	uint32_t tsc_art_num, tsc_art_den; /* TSC = ART * num / den; either is 0: unknown */
	/* The frequency of the core crystal, which counts MTC's time; 0: unknown (cpuid.h) */
	uint64_t crystal_hz;
	bool branch_always; /* erratum BDM106: tracing without branches is not possible */
	bool software;	    /* the software PMU */
};

/* Reads DIRECTORY of sysfs, and leaves crystal_hz and branch_always 0. 0; -ENOENT: no such PMU;
 * -EBADMSG: a file has contents that we do not understand; or -errno. */
int pmu_read(const char *directory, struct pmu *ret);
/* Fills in the software PMU: tsc, mtc, mtc_period, cyc, cyc_thresh, psb_period, noretcomp, branch,
 * pt. The caller sets ratio, ART and crystal from the clock that the machine runs on. */
void pmu_emulated(struct pmu *ret);

/* The term NAME, or NULL. */
const struct pmu_term *pmu_find_term(const struct pmu *pmu, const char *name);
/* The values that are valid for term NAME: bit n set means that n is valid; UINT64_MAX: all; 0: no
 * such term. Some terms also need another term, which pmu_parse_terms() checks. */
uint64_t pmu_term_values(const struct pmu *pmu, const char *name);
/* The value of term NAME in CONFIG; 0 when the PMU has no such term. */
uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name);

/* Converts "tsc,mtc_period=9,cyc=0" or "config=0x..." to attr.config. pt and branch are set unless
 * TERMS say otherwise. Refuses what the kernel would refuse (arch/x86/events/intel/pt.c,
 * pt_event_valid). 0; or -EINVAL, with the error and the valid terms or values in WHY. */
int pmu_parse_terms(const struct pmu *pmu, const char *terms, uint64_t *ret_config, char *why,
		    size_t why_size);
/* CONFIG as text, "tsc,mtc,mtc_period=9,...": the terms with a value other than 0. */
void pmu_format_terms(const struct pmu *pmu, uint64_t config, char *ret, size_t size);
/* The set bits of VALUES as text, "0,3,6-9", or "none". */
void pmu_format_values(uint64_t values, char *ret, size_t size);

/* --- preset.c: terms for users who do not want to know terms: light, std, precise --- */

/* A CPU writes MTCs even while it is idle in the kernel (SDM volume 3, 33.4.2, MTC: they depend on
 * MTCEn and TriggerEn, not on ContextEn). All presets but "precise" stay below this rate, about 1 %
 * of what a busy CPU writes. Threads are told apart, and calls are timed, by MTCs: 2 to 3 us apart
 * the thread is nearly always certain, 20 us apart it is not (tests/unit/decoder/worker/turns). A
 * CPU of the software PMU is some fifty times as slow as a real one. */
#define PRESET_MTC_BYTES_PER_SECOND	     1250000u
#define PRESET_MTC_BYTES_PER_SECOND_SOFTWARE 100000u
#define PRESET_DEFAULT			     "std"

/* The terms of PRESET ("light", "std", "precise") that PMU supports, into RET (SIZE bytes; 128 are
 * enough). 0; -EINVAL, with one line in WHY: "custom", which needs terms of the user, or no such
 * preset. */
int preset_terms(const struct pmu *pmu, const char *preset, char *ret, size_t size, char *why,
		 size_t why_size);
/* Converts PRESET's terms, followed by the user's TERMS (NULL: none) as perf adds terms, to
 * attr.config. "custom", or TERMS without a PRESET: TERMS alone. Neither: PRESET_DEFAULT.
 * *ret_preset is the preset used, a static text. 0; or -EINVAL, with one line in WHY. */
int preset_config(const struct pmu *pmu, const char *preset, const char *terms,
		  uint64_t *ret_config, const char **ret_preset, char *why, size_t why_size);
/* PRESET as a static text; "custom" if there is no preset of that name. */
const char *preset_known(const char *preset);
/* The bytes of MTC packets (2 bytes each, SDM volume 3, 33.4.2) that a CPU with CONFIG writes per
 * second while it writes nothing else. 0: no MTC, or the crystal's frequency is unknown. */
uint64_t preset_mtc_cost(const struct pmu *pmu, uint64_t config);
