/*
 * Converts config terms as perf names them, and raw configs, to attr.config and back.
 *
 * Refuses with an explanation what the kernel would refuse with a bare EINVAL.
 */
#include "capture/perf/pmu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "proto/base.h"

#define TERM_MAX_TEXT 128

/* A text that grows in a buffer of fixed size; the rest is cut off. */
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

static void add_values(struct text *t, uint64_t values)
{
	const char *comma = "";

	if (values == 0)
		text_add(t, "none");
	for (unsigned low = 0; low < 64; low++) {
		unsigned high = low;

		if ((values >> low & 1) == 0)
			continue;
		while (high < 63 && (values >> (high + 1) & 1) != 0)
			high++;
		text_add(t, high > low ? "%s%u-%u" : "%s%u", comma, low, high);
		comma = ",";
		low = high;
	}
}

void pmu_format_values(uint64_t values, char *ret, size_t size)
{
	struct text out = {.to = ret, .size = size};

	if (size > 0)
		ret[0] = '\0';
	add_values(&out, values);
}

static void add_terms(struct text *t, const struct pmu *pmu)
{
	for (size_t i = 0; i < pmu->n_terms; i++)
		text_add(t, "%s, ", pmu->terms[i].name);
	text_add(t, "config");
}

/* Only a term without a capability can have values of 64 and more: the capabilities' sets have 16
 * bits. */
static bool value_ok(const struct pmu *pmu, const struct pmu_term *term, uint64_t value)
{
	uint64_t values = pmu_term_values(pmu, term->name);

	if (value > term_max(term))
		return false;
	return value < 64 ? (values >> value & 1) != 0 : values == UINT64_MAX;
}

static int refuse_value(const struct pmu *pmu, const struct pmu_term *term, const char *value,
			struct text *why)
{
	uint64_t values = pmu_term_values(pmu, term->name);

	text_add(why, "%s=%s: not valid here; valid values: ", term->name, value);
	if (values == UINT64_MAX)
		text_add(why, "0-%llu", (unsigned long long)term_max(term));
	else
		add_values(why, values);
	return -EINVAL;
}

/* Whether every term of a raw config would be valid if it had been written as a term. */
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

/* With pt, the kernel takes the config as it is; without pt, it traces branches whatever the config
 * says (arch/x86/events/intel/pt.c, pt_config). Setting both bits makes the meaning explicit. */
static void set_defaults(const struct pmu *pmu, uint64_t *config)
{
	const struct pmu_term *pt = pmu_find_term(pmu, "pt"),
			      *branch = pmu_find_term(pmu, "branch");

	if (pt && get_term(pt, *config) != 0)
		return;
	if (pt)
		set_term(pt, 1, config);
	if (branch)
		set_term(branch, 1, config);
}

/* Checks the terms that need another term: arch/x86/events/intel/pt.c, pt_event_valid. */
static int check_together(const struct pmu *pmu, uint64_t config, struct text *why)
{
	bool pt = pmu_term_value(pmu, config, "pt") != 0;
	bool branch = pmu_term_value(pmu, config, "branch") != 0;
	uint64_t period = pmu_term_value(pmu, config, "mtc_period");

	if (branch && !pt && pmu_find_term(pmu, "pt"))
		text_add(why, "branch=1: not valid without pt=1; valid values with pt=0: 0");
	else if (pt && !branch && pmu->branch_always)
		text_add(why, "branch=0: not valid on this CPU, which always traces branches "
			      "(erratum BDM106); valid values: 1");
	else if (pmu_term_value(pmu, config, "fup_on_ptw") != 0 &&
		 pmu_term_value(pmu, config, "ptw") == 0)
		text_add(why, "fup_on_ptw=1: not valid without ptw=1; valid values with ptw=0: 0");
	else if (pmu_term_value(pmu, config, "mtc") != 0 &&
		 (period >= 32 || (pmu->mtc_periods >> period & 1) == 0)) {
		text_add(why, "mtc_period=%llu: not valid with mtc=1; valid values: ",
			 (unsigned long long)period);
		add_values(why, pmu->mtc_periods);
	} else
		return 0;
	return -EINVAL;
}

/* Applies one "name" or "name=value". TEXT is cut at its '='. */
static int apply_term(const struct pmu *pmu, char *text, uint64_t *config, struct text *why)
{
	char *value = strchr(text, '=');
	const struct pmu_term *term;
	uint64_t number = 1;

	if (value)
		*value++ = '\0';
	if (strcmp(text, "config") == 0) {
		if (!value || !number_parse(value, 0, UINT64_MAX, "", NULL, config)) {
			text_add(why, "config=%s: not a number", value ? value : "");
			return -EINVAL;
		}
		set_defaults(pmu, config);
		return check_config(pmu, *config, why);
	}
	term = pmu_find_term(pmu, text);
	if (!term) {
		text_add(why, "%s: unknown term; valid terms: ", text[0] ? text : "(empty)");
		add_terms(why, pmu);
		return -EINVAL;
	}
	if (value && !number_parse(value, 0, UINT64_MAX, "", NULL, &number))
		return refuse_value(pmu, term, value, why);
	if (!value_ok(pmu, term, number))
		return refuse_value(pmu, term, value ? value : "1", why);
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
		/* A comma at the end is followed by an empty term, which is invalid. */
		if (*terms == ',' && *++terms == '\0' && r == 0)
			r = apply_term(pmu, (char[]){""}, &config, &out);
	}
	if (r == 0)
		r = check_together(pmu, config, &out);
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
