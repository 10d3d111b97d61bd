/*
 * Presets: terms that give good traces at low cost, chosen from the values that the PMU supports.
 */
#include "capture/perf/pmu.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

/* SDM volume 3, 33.4.2 (MTC packet): a header byte and a byte of the clock. */
#define MTC_SIZE 2
/* An unknown crystal may be the fastest, 38.4 MHz. */
#define UNKNOWN_CRYSTAL_MIN_PERIOD 9
/* SDM volume 3, IA32_RTIT_CTL: a PSB every 2^(value + 11) bytes, here 64 KiB. The oldest part of a
 * ring, which cannot be decoded before its first PSB, is then at most 1/128 of 8 MiB. */
#define LONGEST_USEFUL_PSB_PERIOD 5
#define STD_PSB_PERIOD		  1
#define PRECISE_MTC_PERIOD	  3
#define PRECISE_CYC_THRESHOLD	  1
#define NO_VALUE		  64u
#define TERMS_MAX		  1024

/* A list of terms that grows, after a first term that every PMU has. */
struct choice {
	const struct pmu *pmu;
	char *to;
	size_t size;
};

static void add(struct choice *c, const char *name, unsigned value)
{
	size_t used = strlen(c->to);

	snprintf(c->to + used, c->size - used, ",%s=%u", name, value);
}

static void add_flag(struct choice *c, const char *name)
{
	size_t used = strlen(c->to);

	snprintf(c->to + used, c->size - used, ",%s", name);
}

static bool has_flag(const struct choice *c, const char *name)
{
	return (pmu_term_values(c->pmu, name) & 2) != 0;
}

static bool has_value(uint64_t values, unsigned value)
{
	return (values >> value & 1) != 0;
}

/* The member of VALUES from LOW to HIGH that is nearest to WANTED, the lower one of two, or
 * NO_VALUE. */
static unsigned nearest(uint64_t values, unsigned low, unsigned high, unsigned wanted)
{
	unsigned best = NO_VALUE, best_distance = NO_VALUE;

	for (unsigned v = low; v <= high; v++) {
		unsigned distance = v > wanted ? v - wanted : wanted - v;

		if (!has_value(values, v) || distance >= best_distance)
			continue;
		best = v;
		best_distance = distance;
	}
	return best;
}

/* The periods that are valid with mtc=1. 0 is valid only if the PMU lists it. */
static uint64_t mtc_periods(const struct choice *c)
{
	return has_flag(c, "mtc") ? pmu_term_values(c->pmu, "mtc_period") & c->pmu->mtc_periods : 0;
}

static uint64_t mtc_cost(const struct pmu *pmu, uint64_t period)
{
	return period < 64 ? MTC_SIZE * pmu->crystal_hz >> period : 0;
}

/* The shortest period that costs little enough, or the longest if the cost is unknown. */
static unsigned cheap_mtc_period(const struct choice *c)
{
	uint64_t periods = mtc_periods(c);
	uint64_t limit = c->pmu->software ? PRESET_MTC_BYTES_PER_SECOND_SOFTWARE
					  : PRESET_MTC_BYTES_PER_SECOND;

	if (c->pmu->crystal_hz == 0)
		return nearest(periods, UNKNOWN_CRYSTAL_MIN_PERIOD, 15, 15);
	for (unsigned p = 0; p < 16; p++)
		if (has_value(periods, p) && mtc_cost(c->pmu, p) < limit)
			return p;
	return NO_VALUE;
}

static void add_psb_period(struct choice *c, unsigned low, unsigned high, unsigned wanted)
{
	unsigned period = nearest(pmu_term_values(c->pmu, "psb_period"), low, high, wanted);

	if (period != NO_VALUE && pmu_term_values(c->pmu, "psb_period") != 1)
		add(c, "psb_period", period);
}

static void add_mtc(struct choice *c, unsigned period)
{
	add_flag(c, "mtc");
	add(c, "mtc_period", period);
}

static void add_cyc(struct choice *c, unsigned wanted)
{
	add_flag(c, "cyc");
	add(c, "cyc_thresh", nearest(pmu_term_values(c->pmu, "cyc_thresh"), 0, 15, wanted));
}

/* Time comes from PSBs alone. */
static void choose_light(struct choice *c)
{
	add_psb_period(c, 0, LONGEST_USEFUL_PSB_PERIOD, LONGEST_USEFUL_PSB_PERIOD);
}

/* If MTC is too expensive, CYC gives the time: CYC comes only with other packets, so it costs
 * nothing while nothing is traced, and the highest threshold makes it rarest. */
static void choose_std(struct choice *c)
{
	unsigned period = cheap_mtc_period(c);

	if (period != NO_VALUE)
		add_mtc(c, period);
	else if (has_flag(c, "cyc"))
		add_cyc(c, 15);
	add_psb_period(c, STD_PSB_PERIOD, STD_PSB_PERIOD, STD_PSB_PERIOD);
}

static void choose_precise(struct choice *c)
{
	unsigned period = nearest(mtc_periods(c), 0, 15, PRECISE_MTC_PERIOD);

	if (period != NO_VALUE)
		add_mtc(c, period);
	if (has_flag(c, "cyc"))
		add_cyc(c, PRECISE_CYC_THRESHOLD);
	add_psb_period(c, 0, STD_PSB_PERIOD, 0);
}

static const struct {
	const char *name;
	void (*choose)(struct choice *c);
} presets[] = {
	{"light", choose_light},
	{"std", choose_std},
	{"precise", choose_precise},
};

int preset_terms(const struct pmu *pmu, const char *preset, char *ret, size_t size, char *why,
		 size_t why_size)
{
	struct choice c = {pmu, ret, size};

	if (strcmp(preset, "custom") == 0) {
		snprintf(why, why_size, "preset custom needs terms, such as tsc,mtc,mtc_period=9");
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
		if (strcmp(presets[i].name, preset) != 0)
			continue;
		snprintf(ret, size, "tsc");
		presets[i].choose(&c);
		return 0;
	}
	snprintf(why, why_size, "%.32s: no such preset; valid presets: light, std, precise, custom",
		 preset);
	return -EINVAL;
}

const char *preset_known(const char *preset)
{
	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (strcmp(presets[i].name, preset) == 0)
			return presets[i].name;
	return "custom";
}

int preset_config(const struct pmu *pmu, const char *preset, const char *terms,
		  uint64_t *ret_config, const char **ret_preset, char *why, size_t why_size)
{
	char all[TERMS_MAX] = "";
	size_t used;
	int r = 0;

	if (!preset)
		preset = terms ? "custom" : PRESET_DEFAULT;
	if (!terms || strcmp(preset, "custom") != 0)
		r = preset_terms(pmu, preset, all, sizeof(all), why, why_size);
	if (r < 0)
		return r;
	used = strlen(all);
	if (terms && strlen(terms) >= sizeof(all) - used - 1) {
		snprintf(why, why_size, "%.32s...: too many terms", terms);
		return -EINVAL;
	}
	if (terms && *terms != '\0')
		snprintf(all + used, sizeof(all) - used, "%s%s", used > 0 ? "," : "", terms);
	r = pmu_parse_terms(pmu, all, ret_config, why, why_size);
	if (r == 0)
		*ret_preset = preset_known(preset);
	return r;
}

uint64_t preset_mtc_cost(const struct pmu *pmu, uint64_t config)
{
	if (pmu_term_value(pmu, config, "mtc") == 0)
		return 0;
	return mtc_cost(pmu, pmu_term_value(pmu, config, "mtc_period"));
}
