/*
 * CPUID per CPU, for what sysfs does not tell of PT. Called by the perf source when it opens, and
 * by the check. Which CPUs are unlike the others: cpuid_differ.c.
 */
#include "capture/perf/cpuid.h"

#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

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
	if (before == NULL || there == NULL)
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
		/* Beyond the highest leaf CPUID gives another leaf's answer; this asks first. */
		__get_cpuid_count(l->leaf, l->subleaf, &l->eax, &l->ebx, &l->ecx, &l->edx);
	}
	/* A CPU that went away meanwhile is no reason to stay where it was. */
	return sched_setaffinity(0, SET_SIZE, before) < 0 ? -errno : 0;
}

const struct cpuid_reader cpuid_host = {.read = host_read};

/* SDM volume 2, CPUID, leaf 1 EAX. */
static void take_signature(uint32_t eax, struct cpuid *c)
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
 * is an answer only where subleaf 0 says that it is there. */
static void take_pt(const struct cpuid_leaf *main, const struct cpuid_leaf *more, struct pmu *pt)
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
	take_signature(l[SIGNATURE].eax, ret);
	ret->hypervisor = bit(l[SIGNATURE].ecx, 31);
	ret->has_pt = bit(l[FEATURES].ebx, 25);
	if (ret->has_pt)
		take_pt(&l[PT], &l[PT_MORE], &ret->pt);
	ret->tsc_den = l[TSC].eax;
	ret->tsc_num = l[TSC].ebx;
	ret->crystal_hz = l[TSC].ecx;
	ret->base_mhz = l[FREQUENCY].eax & 0xffff;
	ret->core_type = l[CORE].eax >> 24;
	return 0;
}

/* The crystal of models that do not tell it: SDM volume 3, 20.7.3, "Determining the Processor Base
 * Frequency", and for Denverton native_calibrate_tsc. Family 6 model 55H is not here: its servers
 * have 25 MHz and its workstations 24, which leaf 16H tells apart. */
static uint64_t crystal_of_model(const struct cpuid *c)
{
	static const struct {
		uint32_t model;
		uint64_t hz;
	} crystals[] = {
		{0x4e, 24000000},		    /* Skylake */
		{0x5e, 24000000}, {0x8e, 24000000}, /* Kaby Lake and what came of it */
		{0x9e, 24000000}, {0xa5, 24000000}, /* Comet Lake */
		{0xa6, 24000000}, {0x5c, 19200000}, /* Goldmont */
		{0x5f, 25000000},		    /* Goldmont in Denverton */
	};

	for (size_t i = 0; i < ARRAY_SIZE(crystals) && c->family == 6; i++)
		if (crystals[i].model == c->model)
			return crystals[i].hz;
	return 0;
}

/* Hz * DEN / NUM; 0 where that is no frequency of a crystal: those lie between 10 and 100 MHz. */
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

/* What both have. Filters and the ToPA are the kernel's business, which it set up for the CPU that
 * it asked. */
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

/* arch/x86/events/intel/pt.c, pt_pmu_hw_init: Broadwell, BDM106. */
static bool always_branches(const struct cpuid *c)
{
	return c->family == 6 &&
	       (c->model == 0x3d || c->model == 0x47 || c->model == 0x4f || c->model == 0x56);
}

void cpuid_complete_pmu(const struct cpuid *cpus, size_t n, uint64_t tsc_hz, struct pmu *pmu)
{
	for (size_t i = 0; i < n; i++) {
		const struct cpuid *c = &cpus[i];

		if (!c->known || !c->intel)
			continue;
		if (pmu->crystal_hz == 0)
			pmu->crystal_hz = cpuid_crystal_hz(c, tsc_hz);
		pmu->branch_always |= always_branches(c);
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

	if (cpus == NULL)
		return -ENOMEM;
	/* One that cannot be asked is there as not known. */
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(list, cpu))
			cpuid_read(reader, cpu, &cpus[n++]);
	cpuid_complete_pmu(cpus, n, tsc_hz, pmu);
	return 0;
}
