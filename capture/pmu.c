/*
 * The software PMU's offer, and the config terms that a user writes for any PT PMU. Called by the
 * sources when they open. Reading a real PMU: pmu_sysfs.c.
 */
#include "capture/pmu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/number.h"
#include "proto/base.h"

#define TERM_MAX_TEXT 128

/* Bits as arch/x86/events/intel/pt.c gives them (RTIT_CTL, SDM volume 3, IA32_RTIT_CTL MSR).
 * Periods: an MTC carries CTC bits N+7..N and a TMA CTC bits 15..0, so up to N = 15 they share a
 * bit. Thresholds and PSB periods are those of Skylake and later. */
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
		.topa_multiple_entries = true,
	};
	memcpy(ret->terms, terms, sizeof(terms));
}

static const struct pmu_term *find_term(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->n_terms; i++)
		if (strcmp(pmu->terms[i].name, name) == 0)
			return &pmu->terms[i];
	return NULL;
}

static uint64_t term_max(const struct pmu_term *term)
{
	return UINT64_MAX >> (63 - (term->high - term->low));
}

static void set_term(const struct pmu_term *term, uint64_t value, uint64_t *config)
{
	*config &= ~(term_max(term) << term->low);
	*config |= value << term->low;
}

static uint64_t get_term(const struct pmu_term *term, uint64_t config)
{
	return (config >> term->low) & term_max(term);
}

uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name)
{
	const struct pmu_term *term = find_term(pmu, name);

	return term != NULL ? get_term(term, config) : 0;
}

/* Text that grows in a fixed place; what does not fit is cut off. */
struct text {
	char *to;
	size_t size, used;
};

static void PRINTF_LIKE(2, 3) text_add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	if (t->used >= t->size)
		return;
	va_start(args, format);
	n = vsnprintf(t->to + t->used, t->size - t->used, format, args);
	va_end(args);
	if (n > 0)
		t->used += (size_t)n;
}

/* The set bits of MASK below LIMIT as "0-3,6,9". */
static void add_values(struct text *t, uint64_t mask, unsigned limit)
{
	const char *comma = "";

	for (unsigned low = 0; low < limit; low++) {
		unsigned high = low;

		if ((mask >> low & 1) == 0)
			continue;
		while (high + 1 < limit && (mask >> (high + 1) & 1) != 0)
			high++;
		text_add(t, high > low ? "%s%u-%u" : "%s%u", comma, low, high);
		comma = ",";
		low = high;
	}
}

static void add_terms(struct text *t, const struct pmu *pmu)
{
	for (size_t i = 0; i < pmu->n_terms; i++)
		text_add(t, "%s, ", pmu->terms[i].name);
	text_add(t, "config");
}

/* Values of NAME that the caps allow, or all. As arch/x86/events/intel/pt.c, pt_event_valid, and
 * perf's intel_pt_val_config_term: period 0 and threshold 0 are always good, flags need their
 * cap. */
static uint64_t allowed_values(const struct pmu *pmu, const char *name)
{
	const struct {
		const char *name;
		uint64_t values;
	} limits[] = {
		{"mtc_period", pmu->mtc_periods | 1u},
		{"cyc_thresh", pmu->cycle_thresholds | 1u},
		{"psb_period", pmu->psb_periods | 1u},
		{"mtc", pmu->mtc ? 3 : 1},
		{"cyc", pmu->psb_cyc ? 3 : 1},
		{"ptw", pmu->ptwrite ? 3 : 1},
		{"pwr_evt", pmu->power_event_trace ? 3 : 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (strcmp(limits[i].name, name) == 0)
			return limits[i].values;
	return UINT64_MAX;
}

/* Is VALUE good for TERM? Values of 64 and more are not limited by caps. */
static bool value_ok(const struct pmu *pmu, const struct pmu_term *term, uint64_t value)
{
	if (value > term_max(term))
		return false;
	return value >= 64 || (allowed_values(pmu, term->name) >> value & 1) != 0;
}

static int refuse_value(const struct pmu *pmu, const struct pmu_term *term, const char *value,
			struct text *why)
{
	uint64_t max = term_max(term);

	text_add(why, "%s=%s: not valid here; valid values: ", term->name, value);
	if (max >= 64)
		text_add(why, "0-%llu", (unsigned long long)max);
	else
		add_values(why, allowed_values(pmu, term->name), (unsigned)max + 1);
	return -EINVAL;
}

/* Every term of a whole config must be as good as if it had been written as a term. */
static int check_config(const struct pmu *pmu, uint64_t config, struct text *why)
{
	uint64_t known = 0;
	char value[24];

	for (size_t i = 0; i < pmu->n_terms; i++) {
		const struct pmu_term *term = &pmu->terms[i];

		known |= term_max(term) << term->low;
		if (value_ok(pmu, term, get_term(term, config)))
			continue;
		snprintf(value, sizeof(value), "%llu", (unsigned long long)get_term(term, config));
		return refuse_value(pmu, term, value, why);
	}
	if ((config & ~known) == 0)
		return 0;
	text_add(why, "config=0x%llx: bits 0x%llx belong to no term; valid terms: ",
		 (unsigned long long)config, (unsigned long long)(config & ~known));
	add_terms(why, pmu);
	return -EINVAL;
}

/* pt set: the kernel takes the config as it stands; not set: it traces branches whatever the config
 * says (arch/x86/events/intel/pt.c, pt_config). Written out, both mean the same to everybody. */
static void set_defaults(const struct pmu *pmu, uint64_t *config)
{
	const struct pmu_term *pt = find_term(pmu, "pt"), *branch = find_term(pmu, "branch");

	if (pt != NULL && get_term(pt, *config) != 0)
		return;
	if (pt != NULL)
		set_term(pt, 1, config);
	if (branch != NULL)
		set_term(branch, 1, config);
}

static int apply_config(const struct pmu *pmu, const char *value, uint64_t *config,
			struct text *why)
{
	if (value == NULL || !number_parse(value, 0, UINT64_MAX, "", NULL, config)) {
		text_add(why, "config=%s: not a number", value != NULL ? value : "");
		return -EINVAL;
	}
	set_defaults(pmu, config);
	return check_config(pmu, *config, why);
}

/* One "name" or "name=value". TEXT is cut at its '='. */
static int apply_term(const struct pmu *pmu, char *text, uint64_t *config, struct text *why)
{
	char *value = strchr(text, '=');
	const struct pmu_term *term;
	uint64_t number = 1;

	if (value != NULL)
		*value++ = '\0';
	if (strcmp(text, "config") == 0)
		return apply_config(pmu, value, config, why);
	term = find_term(pmu, text);
	if (term == NULL) {
		text_add(why, "%s: unknown term; valid terms: ", text[0] ? text : "(empty)");
		add_terms(why, pmu);
		return -EINVAL;
	}
	if (value != NULL && !number_parse(value, 0, UINT64_MAX, "", NULL, &number))
		return refuse_value(pmu, term, value, why);
	if (!value_ok(pmu, term, number))
		return refuse_value(pmu, term, value != NULL ? value : "1", why);
	set_term(term, number, config);
	return 0;
}

int pmu_parse_terms(const struct pmu *pmu, const char *terms, uint64_t *ret_config, char *why,
		    size_t why_size)
{
	struct text out = {.to = why, .size = why_size};
	uint64_t config = 0;
	int r = 0;

	if (why_size > 0)
		why[0] = '\0';
	set_defaults(pmu, &config);
	while (r == 0 && *terms != '\0') {
		char text[TERM_MAX_TEXT];
		size_t length = strcspn(terms, ",");

		if (length >= sizeof(text)) {
			text_add(&out, "%.32s...: too long for a term", terms);
			return -EINVAL;
		}
		memcpy(text, terms, length);
		text[length] = '\0';
		r = apply_term(pmu, text, &config, &out);
		terms += length;
		/* A comma at the end leaves an empty term, which is refused. */
		if (*terms == ',' && *++terms == '\0' && r == 0)
			r = apply_term(pmu, (char[]){""}, &config, &out);
	}
	if (r == 0)
		*ret_config = config;
	return r;
}

void pmu_format_terms(const struct pmu *pmu, uint64_t config, char *ret, size_t size)
{
	struct text out = {.to = ret, .size = size};
	const char *comma = "";

	if (size > 0)
		ret[0] = '\0';
	for (size_t i = 0; i < pmu->n_terms; i++) {
		const struct pmu_term *term = &pmu->terms[i];
		uint64_t value = get_term(term, config);

		if (value == 0)
			continue;
		if (term->low == term->high)
			text_add(&out, "%s%s", comma, term->name);
		else
			text_add(&out, "%s%s=%llu", comma, term->name, (unsigned long long)value);
		comma = ",";
	}
}
