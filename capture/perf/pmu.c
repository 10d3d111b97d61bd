/*
 * What a PT PMU's terms are and which values its caps allow them; and the software PMU's offer.
 * Called by the sources when they open. Reading a real PMU: pmu_sysfs.c; what a user writes:
 * pmu_terms.c.
 */
#include "capture/perf/pmu.h"

#include <string.h>

#include "proto/base.h"

/* Bits as arch/x86/events/intel/pt.c gives them (RTIT_CTL, SDM volume 3, IA32_RTIT_CTL MSR).
 * Periods: an MTC carries CTC bits N+7..N and a TMA CTC bits 15..0, so up to N = 15 they share a
 * bit. Thresholds and PSB periods are those of Skylake. */
void pmu_emulated(struct pmu *ret)
{
	static const struct pmu_term terms[] = {
		{"pt", 0, 0},		{"cyc", 1, 1},		{"mtc", 9, 9},
		{"tsc", 10, 10},	{"noretcomp", 11, 11},	{"branch", 13, 13},
		{"mtc_period", 14, 17}, {"cyc_thresh", 19, 22}, {"psb_period", 24, 27},
	};

	*ret = (struct pmu){
		.n_terms = ARRAY_SIZE(terms),
		.mtc_periods = 0xffff,
		.cycle_thresholds = 0x3fff,
		.psb_periods = 0x3f,
		.psb_cyc = true,
		.mtc = true,
		.topa_output = true,
		.topa_multiple_entries = true,
		.max_subleaf = 1,
	};
	memcpy(ret->terms, terms, sizeof(terms));
}

const struct pmu_term *pmu_find_term(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->n_terms; i++)
		if (strcmp(pmu->terms[i].name, name) == 0)
			return &pmu->terms[i];
	return NULL;
}

/* As arch/x86/events/intel/pt.c, pt_event_valid: a flag needs its cap, and what belongs to a flag
 * needs the flag's cap, too; 0 leaves a field alone and is always good by itself. */
static uint64_t capped_values(const struct pmu *pmu, const char *name)
{
	bool mtc = pmu->mtc && pmu->mtc_periods != 0;
	const struct {
		const char *name;
		uint64_t values;
	} limits[] = {
		{"mtc", mtc ? 3 : 1},
		{"mtc_period", mtc ? pmu->mtc_periods | 1 : 1},
		{"cyc", pmu->psb_cyc ? 3 : 1},
		{"cyc_thresh", pmu->psb_cyc ? pmu->cycle_thresholds | 1 : 1},
		{"psb_period", pmu->psb_cyc ? pmu->psb_periods | 1 : 1},
		{"pwr_evt", pmu->power_event_trace ? 3 : 1},
		{"event", pmu->event_trace ? 3 : 1},
		{"notnt", pmu->tnt_disable ? 3 : 1},
		{"ptw", pmu->ptwrite ? 3 : 1},
		{"fup_on_ptw", pmu->ptwrite ? 3 : 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (strcmp(limits[i].name, name) == 0)
			return limits[i].values;
	return UINT64_MAX;
}

uint64_t pmu_term_values(const struct pmu *pmu, const char *name)
{
	const struct pmu_term *term = pmu_find_term(pmu, name);
	unsigned bits;

	if (term == NULL)
		return 0;
	bits = term->high - term->low + 1u;
	/* A field of 6 bits and more has 64 values and more. */
	return capped_values(pmu, name) & (bits >= 6 ? UINT64_MAX : (1ull << (1u << bits)) - 1);
}

uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name)
{
	const struct pmu_term *term = pmu_find_term(pmu, name);

	if (term == NULL)
		return 0;
	return config >> term->low & UINT64_MAX >> (63 - (term->high - term->low));
}
