/*
 * Which CPUs are unlike the first one, and in what: a hybrid CPU's core types, or CPUs of different
 * steppings in one machine. Called by the check.
 */
#include "capture/perf/cpuid.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

/* Text that grows in a fixed place; what does not fit is cut off. */
struct text {
	char *to;
	size_t size;
};

static void PRINTF_LIKE(2, 3) add(struct text *t, const char *format, ...)
{
	size_t used = strlen(t->to);
	va_list args;

	va_start(args, format);
	vsnprintf(t->to + used, t->size - used, format, args);
	va_end(args);
}

static void begin(struct text *t)
{
	if (t->to[0] != '\0')
		add(t, "; ");
}

static void add_number(struct text *t, const char *name, uint32_t a, uint32_t b)
{
	if (a == b)
		return;
	begin(t);
	add(t, "%s %u, not %u", name, b, a);
}

static void add_set(struct text *t, const char *name, uint32_t a, uint32_t b)
{
	char was[64], is[64];

	if (a == b)
		return;
	pmu_format_values(a, was, sizeof(was));
	pmu_format_values(b, is, sizeof(is));
	begin(t);
	add(t, "%s %s, not %s", name, is, was);
}

static const char *core_name(uint32_t type)
{
	switch (type) {
	case 0: return "unknown";
	case CPUID_CORE_ATOM: return "atom";
	case CPUID_CORE_CORE: return "core";
	default: return "new";
	}
}

static void add_model(struct text *t, const struct cpuid *a, const struct cpuid *b)
{
	if (a->family != b->family || a->model != b->model) {
		begin(t);
		add(t, "model %u/%#x, not %u/%#x", b->family, b->model, a->family, a->model);
	}
	add_number(t, "stepping", a->stepping, b->stepping);
	if (a->core_type == b->core_type)
		return;
	begin(t);
	add(t, "core type %s, not %s", core_name(b->core_type), core_name(a->core_type));
}

static void add_pt(struct text *t, const struct pmu *a, const struct pmu *b)
{
	const struct {
		const char *name;
		bool a, b;
	} flags[] = {
		{"cr3_filtering", a->cr3_filtering, b->cr3_filtering},
		{"psb_cyc", a->psb_cyc, b->psb_cyc},
		{"ip_filtering", a->ip_filtering, b->ip_filtering},
		{"mtc", a->mtc, b->mtc},
		{"ptwrite", a->ptwrite, b->ptwrite},
		{"power_event_trace", a->power_event_trace, b->power_event_trace},
		{"event_trace", a->event_trace, b->event_trace},
		{"tnt_disable", a->tnt_disable, b->tnt_disable},
		{"topa_output", a->topa_output, b->topa_output},
		{"topa_multiple_entries", a->topa_multiple_entries, b->topa_multiple_entries},
		{"single_range_output", a->single_range_output, b->single_range_output},
		{"output_subsys", a->output_subsys, b->output_subsys},
		{"payloads_lip", a->payloads_lip, b->payloads_lip},
	};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		add_number(t, flags[i].name, flags[i].a, flags[i].b);
	add_number(t, "num_address_ranges", a->num_address_ranges, b->num_address_ranges);
	add_set(t, "mtc_periods", a->mtc_periods, b->mtc_periods);
	add_set(t, "cycle_thresholds", a->cycle_thresholds, b->cycle_thresholds);
	add_set(t, "psb_periods", a->psb_periods, b->psb_periods);
}

/* In what B differs from A; "" when they are alike. */
static void describe(const struct cpuid *a, const struct cpuid *b, char *ret, size_t size)
{
	struct text t = {ret, size};

	ret[0] = '\0';
	add_model(&t, a, b);
	if (a->has_pt != b->has_pt)
		add_number(&t, "intel_pt", a->has_pt, b->has_pt);
	else
		add_pt(&t, &a->pt, &b->pt);
}

static bool alike(const struct cpuid *a, const struct cpuid *b)
{
	char text[320];

	if (!a->known || !b->known)
		return false;
	describe(a, b, text, sizeof(text));
	return text[0] == '\0';
}

/* The CPUs from FIRST on that are like it, "16-19,22"; "..." where it gets too long. */
static void fill_cpus(const struct cpuid *cpus, size_t n, struct cpuid_group *g)
{
	struct text t = {g->cpus, sizeof(g->cpus)};
	size_t i = g->first, last;

	for (; i < n; i = last + 1) {
		last = i;
		if (!alike(&cpus[g->first], &cpus[i]))
			continue;
		while (last + 1 < n && cpus[last + 1].cpu == cpus[last].cpu + 1 &&
		       alike(&cpus[g->first], &cpus[last + 1]))
			last++;
		g->n_cpus += last + 1 - i;
		if (strlen(g->cpus) + 32 > sizeof(g->cpus)) {
			if (g->cpus[strlen(g->cpus) - 1] != '.')
				add(&t, ",...");
			continue;
		}
		add(&t, g->cpus[0] ? ",%u" : "%u", cpus[i].cpu);
		if (last > i)
			add(&t, "-%u", cpus[last].cpu);
	}
}

static bool is_grouped(const struct cpuid *cpus, size_t i, const struct cpuid_group *groups,
		       size_t n_groups)
{
	for (size_t g = 0; g < n_groups; g++)
		if (alike(&cpus[groups[g].first], &cpus[i]))
			return true;
	return false;
}

size_t cpuid_differences(const struct cpuid *cpus, size_t n, struct cpuid_group *ret, size_t max)
{
	size_t base = 0, n_groups = 0;

	while (base < n && !cpus[base].known)
		base++;
	for (size_t i = base; i < n; i++) {
		if (!cpus[i].known || alike(&cpus[base], &cpus[i]) ||
		    is_grouped(cpus, i, ret, n_groups))
			continue;
		if (n_groups == max)
			return max + 1;
		ret[n_groups] = (struct cpuid_group){.first = i};
		fill_cpus(cpus, n, &ret[n_groups]);
		describe(&cpus[base], &cpus[i], ret[n_groups].text, sizeof(ret->text));
		n_groups++;
	}
	return n_groups;
}
