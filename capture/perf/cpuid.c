/*
 * Reads CPUID on each CPU, for what sysfs does not say about PT, and compares CPUs.
 */
#include "capture/perf/cpuid.h"

#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define SET_SIZE CPU_ALLOC_SIZE(CPULIST_MAX)

static void set_freep(cpu_set_t **set)
{
	CPU_FREE(*set);
}

static int host_read(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n)
{
	CLEANUP(set_freep) cpu_set_t *before = CPU_ALLOC(CPULIST_MAX);
	CLEANUP(set_freep) cpu_set_t *there = CPU_ALLOC(CPULIST_MAX);

	(void)userdata;
	if (!before || !there)
		return -ENOMEM;
	if (cpu >= CPULIST_MAX)
		return -EINVAL;
	CPU_ZERO_S(SET_SIZE, there);
	CPU_SET_S(cpu, SET_SIZE, there);
	if (sched_getaffinity(0, SET_SIZE, before) < 0 || sched_setaffinity(0, SET_SIZE, there) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		struct cpuid_leaf *l = &leaves[i];

		l->eax = l->ebx = l->ecx = l->edx = 0;
		/* __get_cpuid_count() checks the highest leaf, beyond which CPUID returns the data
		 * of another leaf. */
		__get_cpuid_count(l->leaf, l->subleaf, &l->eax, &l->ebx, &l->ecx, &l->edx);
	}
	/* Also if the CPU went offline meanwhile, the thread may run everywhere again. */
	return sched_setaffinity(0, SET_SIZE, before) < 0 ? -errno : 0;
}

const struct cpuid_reader cpuid_host = {.read = host_read};

/* SDM volume 2, CPUID, leaf 1 EAX. */
static void decode_signature(uint32_t eax, struct cpuid *c)
{
	c->stepping = eax & 0xf;
	c->model = eax >> 4 & 0xf;
	c->family = eax >> 8 & 0xf;
	if (c->family == 6 || c->family == 15)
		c->model |= eax >> 12 & 0xf0;
	if (c->family == 15)
		c->family += eax >> 20 & 0xff;
}

static bool bit(uint32_t reg, unsigned n)
{
	return (reg >> n & 1) != 0;
}

/* SDM volume 3, 33.3.1, "Detection of Intel Processor Trace and Capability Enumeration". Subleaf 1
 * is valid only if subleaf 0 says so. */
static void decode_pt(const struct cpuid_leaf *main, const struct cpuid_leaf *more, struct pmu *pt)
{
	pt->max_subleaf = main->eax;
	pt->cr3_filtering = bit(main->ebx, 0);
	pt->psb_cyc = bit(main->ebx, 1);
	pt->ip_filtering = bit(main->ebx, 2);
	pt->mtc = bit(main->ebx, 3);
	pt->ptwrite = bit(main->ebx, 4);
	pt->power_event_trace = bit(main->ebx, 5);
	pt->event_trace = bit(main->ebx, 7);
	pt->tnt_disable = bit(main->ebx, 8);
	pt->topa_output = bit(main->ecx, 0);
	pt->topa_multiple_entries = bit(main->ecx, 1);
	pt->single_range_output = bit(main->ecx, 2);
	pt->output_subsys = bit(main->ecx, 3);
	pt->payloads_lip = bit(main->ecx, 31);
	if (main->eax == 0)
		return;
	pt->num_address_ranges = more->eax & 7;
	pt->mtc_periods = more->eax >> 16;
	pt->cycle_thresholds = more->ebx & 0xffff;
	pt->psb_periods = more->ebx >> 16;
}

bool cpuid_lbr_excludes_pt(uint64_t family, uint64_t model)
{
	/* arch/x86/include/asm/intel-family.h */
	static const uint8_t models[] = {
		0x3d, 0x47, 0x4f, 0x56, /* Broadwell */
		0x4e, 0x5e, 0x55,	/* Skylake; 0x55: also Cascade Lake and Cooper Lake */
		0x8e, 0x9e,		/* Kaby Lake, Coffee Lake */
		0xa5, 0xa6,		/* Comet Lake */
	};

	for (size_t i = 0; family == 6 && i < ARRAY_SIZE(models); i++)
		if (models[i] == model)
			return true;
	return false;
}

int cpuid_read(const struct cpuid_reader *reader, uint32_t cpu, struct cpuid *ret)
{
	enum { VENDOR, SIGNATURE, FEATURES, PT, PT_MORE, TSC, FREQUENCY, CORE, N_LEAVES };
	struct cpuid_leaf l[N_LEAVES] = {
		[VENDOR] = {0x0},
		[SIGNATURE] = {0x1},
		[FEATURES] = {0x7},
		[PT] = {0x14},
		[PT_MORE] = {0x14, .subleaf = 1},
		[TSC] = {0x15},
		[FREQUENCY] = {0x16},
		[CORE] = {0x1a},
	};
	int r = reader->read(reader->userdata, cpu, l, N_LEAVES);

	*ret = (struct cpuid){.cpu = cpu, .known = r == 0};
	if (r < 0)
		return r;
	ret->intel = l[VENDOR].ebx == signature_INTEL_ebx && l[VENDOR].edx == signature_INTEL_edx &&
		     l[VENDOR].ecx == signature_INTEL_ecx;
	if (!ret->intel)
		return 0;
	decode_signature(l[SIGNATURE].eax, ret);
	ret->hypervisor = bit(l[SIGNATURE].ecx, 31);
	ret->has_pt = bit(l[FEATURES].ebx, 25);
	if (ret->has_pt)
		decode_pt(&l[PT], &l[PT_MORE], &ret->pt);
	ret->tsc_den = l[TSC].eax;
	ret->tsc_num = l[TSC].ebx;
	ret->crystal_hz = l[TSC].ecx;
	ret->base_mhz = l[FREQUENCY].eax & 0xffff;
	ret->core_type = l[CORE].eax >> 24;
	return 0;
}

/* The crystal of models whose CPUID leaves it out: SDM volume 3, 20.7.3, "Determining the Processor
 * Base Frequency", and native_calibrate_tsc() for Denverton. Family 6 model 55H is not in the list:
 * its servers have 25 MHz and its workstations 24 MHz, which leaf 16H distinguishes. */
static uint64_t crystal_of_model(const struct cpuid *c)
{
	static const struct {
		uint32_t model;
		uint64_t hz;
	} crystals[] = {
		{0x4e, 24000000},		    /* Skylake */
		{0x5e, 24000000}, {0x8e, 24000000}, /* Kaby Lake and its successors */
		{0x9e, 24000000}, {0xa5, 24000000}, /* Comet Lake */
		{0xa6, 24000000}, {0x5c, 19200000}, /* Goldmont */
		{0x5f, 25000000},		    /* Goldmont in Denverton */
	};

	for (size_t i = 0; i < ARRAY_SIZE(crystals) && c->family == 6; i++)
		if (crystals[i].model == c->model)
			return crystals[i].hz;
	return 0;
}

/* HZ * DEN / NUM; 0 if that is not between 10 and 100 MHz, as all crystals are. */
static uint64_t crystal_by_ratio(uint64_t hz, uint32_t num, uint32_t den)
{
	uint64_t crystal;

	if (num == 0 || den == 0 || __builtin_mul_overflow(hz, (uint64_t)den, &crystal))
		return 0;
	crystal /= num;
	return crystal >= 10000000 && crystal <= 100000000 ? crystal : 0;
}

uint64_t cpuid_crystal_hz(const struct cpuid *c, uint64_t tsc_hz)
{
	uint64_t hz = c->crystal_hz;

	if (!c->known || !c->intel)
		return 0;
	if (hz == 0 && c->tsc_num != 0)
		hz = crystal_of_model(c);
	if (hz == 0)
		hz = crystal_by_ratio(c->base_mhz * 1000000ull, c->tsc_num, c->tsc_den);
	if (hz == 0)
		hz = crystal_by_ratio(tsc_hz, c->tsc_num, c->tsc_den);
	return hz;
}

/* Removes from PMU what PT does not have. Filters and ToPA stay: the kernel set them up for the CPU
 * that it asked. */
static void keep_common(const struct pmu *pt, struct pmu *pmu)
{
	pmu->mtc_periods &= pt->mtc_periods;
	pmu->cycle_thresholds &= pt->cycle_thresholds;
	pmu->psb_periods &= pt->psb_periods;
	pmu->psb_cyc &= pt->psb_cyc;
	pmu->mtc &= pt->mtc;
	pmu->ptwrite &= pt->ptwrite;
	pmu->power_event_trace &= pt->power_event_trace;
	pmu->event_trace &= pt->event_trace;
	pmu->tnt_disable &= pt->tnt_disable;
}

void cpuid_complete_pmu(const struct cpuid *cpus, size_t n, uint64_t tsc_hz, struct pmu *pmu)
{
	for (size_t i = 0; i < n; i++) {
		const struct cpuid *c = &cpus[i];

		if (!c->known || !c->intel)
			continue;
		if (pmu->crystal_hz == 0)
			pmu->crystal_hz = cpuid_crystal_hz(c, tsc_hz);
		/* arch/x86/events/intel/pt.c, pt_pmu_hw_init: Broadwell, BDM106. */
		pmu->branch_always |= c->family == 6 && (c->model == 0x3d || c->model == 0x47 ||
							 c->model == 0x4f || c->model == 0x56);
		if (c->has_pt)
			keep_common(&c->pt, pmu);
	}
	if (pmu->crystal_hz == 0)
		pmu->crystal_hz = crystal_by_ratio(tsc_hz, pmu->tsc_art_num, pmu->tsc_art_den);
}

int cpuid_complete_pmu_of(const struct cpuid_reader *reader, const struct cpulist *list,
			  uint64_t tsc_hz, struct pmu *pmu)
{
	CLEANUP_FREE struct cpuid *cpus = calloc(cpulist_count(list) + 1, sizeof(*cpus));
	size_t n = 0;

	if (!cpus)
		return -ENOMEM;
	/* A CPU that cannot be asked is added with known false. */
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(list, cpu))
			cpuid_read(reader, cpu, &cpus[n++]);
	cpuid_complete_pmu(cpus, n, tsc_hz, pmu);
	return 0;
}

/* --- Which CPUs differ from the first one: core types of a hybrid CPU, or steppings --- */

/* A text that grows in a buffer of fixed size; the rest is cut off. */
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

/* Says in what B differs from A; "" if they are alike. */
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

/* Lists the CPUs from FIRST on that are like the first, "16-19,22", with "..." when too long. */
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

size_t cpuid_differences(const struct cpuid *cpus, size_t n, struct cpuid_group *ret, size_t max)
{
	size_t base = 0, n_groups = 0;

	while (base < n && !cpus[base].known)
		base++;
	for (size_t i = base; i < n; i++) {
		size_t g = 0;

		while (g < n_groups && !alike(&cpus[ret[g].first], &cpus[i]))
			g++;
		if (g < n_groups || !cpus[i].known || alike(&cpus[base], &cpus[i]))
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
