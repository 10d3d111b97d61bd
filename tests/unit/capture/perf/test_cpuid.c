/*
 * capture/perf/cpuid: the machines of tests/sysfs, made-up CPUs, and this host.
 */
#include "capture/perf/cpuid.h"

#include <cpuid.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/sysfs.h"

/* The kernel made its capabilities from the same leaves of the first CPU. */
static void cpuid_read_recorded_machine_agrees_with_sysfs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct cpuid c;

		sysfs_read(sysfs_names[i], &m);
		assert_int_equal(cpuid_read(&m.reader, 0, &c), 0);
		assert_true(c.known && c.intel && c.has_pt);
		assert_int_equal(c.pt.mtc_periods, m.pmu.mtc_periods);
		assert_int_equal(c.pt.cycle_thresholds, m.pmu.cycle_thresholds);
		assert_int_equal(c.pt.psb_periods, m.pmu.psb_periods);
		assert_int_equal(c.pt.cr3_filtering, m.pmu.cr3_filtering);
		assert_int_equal(c.pt.psb_cyc, m.pmu.psb_cyc);
		assert_int_equal(c.pt.ip_filtering, m.pmu.ip_filtering);
		assert_int_equal(c.pt.mtc, m.pmu.mtc);
		assert_int_equal(c.pt.ptwrite, m.pmu.ptwrite);
		assert_int_equal(c.pt.power_event_trace, m.pmu.power_event_trace);
		assert_int_equal(c.pt.event_trace, m.pmu.event_trace);
		assert_int_equal(c.pt.tnt_disable, m.pmu.tnt_disable);
		assert_int_equal(c.pt.topa_output, m.pmu.topa_output);
		assert_int_equal(c.pt.topa_multiple_entries, m.pmu.topa_multiple_entries);
		assert_int_equal(c.pt.single_range_output, m.pmu.single_range_output);
		assert_int_equal(c.pt.output_subsys, m.pmu.output_subsys);
		assert_int_equal(c.pt.payloads_lip, m.pmu.payloads_lip);
		assert_int_equal(c.pt.num_address_ranges, m.pmu.num_address_ranges);
		assert_int_equal(c.pt.max_subleaf, m.pmu.max_subleaf);
		assert_int_equal(c.tsc_num, m.pmu.tsc_art_num);
		assert_int_equal(c.tsc_den, m.pmu.tsc_art_den);
	}
}

static void cpuid_crystal_hz_of_recorded_machines_is_right(void **state)
{
	static const struct {
		const char *name;
		uint32_t model, stepping, core_type;
		uint64_t hz;
	} cases[] = {
		{"broadwell", 0x3d, 4, 0, 0},
		{"broadwell-x", 0x4f, 1, 0, 0},
		{"skylake", 0x5e, 3, 0, 24000000},
		{"cascadelake-x", 0x55, 7, 0, 25000000},
		{"icelake", 0x7e, 5, 0, 38400000},
		{"icelake-d", 0x6c, 1, 0, 25000000},
		{"sapphirerapids", 0x8f, 8, 0, 24000000},
		{"alderlake", 0x97, 2, CPUID_CORE_CORE, 38400000},
		{"arrowlake", 0xc5, 2, CPUID_CORE_CORE, 38400000},
		{"goldmont", 0x5c, 9, 0, 19200000},
		{"denverton", 0x5f, 1, 0, 25000000},
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(cases), sysfs_n_names);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sysfs_machine m;
		struct cpuid c;

		sysfs_read(cases[i].name, &m);
		assert_int_equal(cpuid_read(&m.reader, 0, &c), 0);
		assert_int_equal(c.family, 6);
		assert_int_equal(c.model, cases[i].model);
		assert_int_equal(c.stepping, cases[i].stepping);
		assert_int_equal(c.core_type, cases[i].core_type);
		assert_int_equal(cpuid_crystal_hz(&c, 0), cases[i].hz);
	}
}

static void cpuid_crystal_hz_falls_back_in_order(void **state)
{
	struct cpuid c = {.known = true,
			  .intel = true,
			  .family = 6,
			  .model = 0x5e,
			  .tsc_num = 200,
			  .tsc_den = 2,
			  .crystal_hz = 38400000,
			  .base_mhz = 2500};

	(void)state;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 38400000);
	c.crystal_hz = 0;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 24000000);
	c.model = 0x55; /* leaf 16H shows a server */
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 25000000);
	c.base_mhz = 0;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 30000000);
	assert_int_equal(cpuid_crystal_hz(&c, 0), 0);
	/* No valid crystal: too slow; too fast; the product overflows; no ratio. */
	assert_int_equal(cpuid_crystal_hz(&c, 999999900), 0);
	assert_int_equal(cpuid_crystal_hz(&c, 10000000200), 0);
	assert_int_equal(cpuid_crystal_hz(&c, UINT64_MAX), 0);
	c.tsc_den = 0;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 0);
	c.tsc_den = 2;
	c.tsc_num = 0; /* without the ratio, the model's crystal is not used */
	c.model = 0x5e;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 0);
	c.crystal_hz = 38400000;
	c.known = false;
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 0);
}

static int amd_read(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n)
{
	(void)userdata;
	(void)cpu;
	for (size_t i = 0; i < n; i++)
		leaves[i].eax = leaves[i].ebx = leaves[i].ecx = leaves[i].edx = UINT32_MAX;
	leaves[0].ebx = signature_AMD_ebx;
	leaves[0].ecx = signature_AMD_ecx;
	leaves[0].edx = signature_AMD_edx;
	return 0;
}

static void cpuid_read_other_vendor_has_nothing(void **state)
{
	static const struct cpuid_reader amd = {.read = amd_read};
	struct cpuid c;

	(void)state;
	assert_int_equal(cpuid_read(&amd, 3, &c), 0);
	assert_true(c.known);
	assert_false(c.intel || c.has_pt || c.hypervisor);
	assert_int_equal(c.cpu, 3);
	assert_int_equal(c.family, 0);
	assert_int_equal(cpuid_crystal_hz(&c, 3000000000), 0);
}

static void cpuid_read_cpu_that_is_not_there_is_not_known(void **state)
{
	struct sysfs_machine m;
	struct cpuid c;

	(void)state;
	sysfs_read("skylake", &m);
	assert_int_equal(cpuid_read(&m.reader, 8, &c), -EINVAL);
	assert_false(c.known);
	assert_int_equal(c.cpu, 8);
}

static int old_family_read(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n)
{
	int r = amd_read(NULL, cpu, leaves, n);

	leaves[0].ebx = signature_INTEL_ebx;
	leaves[0].ecx = signature_INTEL_ecx;
	leaves[0].edx = signature_INTEL_edx;
	leaves[1].eax = *(uint32_t *)userdata;
	leaves[2].ebx = 0;
	return r;
}

/* SDM volume 2, CPUID, leaf 1: the extended fields are used for families 6 and 15. */
static void cpuid_read_signature_is_taken_apart(void **state)
{
	static const struct {
		uint32_t signature, family, model, stepping;
	} cases[] = {
		{0x000906ea, 6, 0x9e, 10}, {0x00000f43, 15, 4, 3}, {0x10100f43, 16, 4, 3},
		{0x00010f43, 15, 0x14, 3}, {0x00050590, 5, 9, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t signature = cases[i].signature;
		const struct cpuid_reader reader = {old_family_read, &signature};
		struct cpuid c;

		assert_int_equal(cpuid_read(&reader, 0, &c), 0);
		assert_int_equal(c.family, cases[i].family);
		assert_int_equal(c.model, cases[i].model);
		assert_int_equal(c.stepping, cases[i].stepping);
		assert_true(c.hypervisor);
		/* Without PT, leaf 14H is ignored. */
		assert_false(c.has_pt || c.pt.mtc);
		assert_int_equal(c.pt.psb_periods, 0);
	}
}

/* Processors differ in what they return for a subleaf that they do not have. */
static void cpuid_read_pt_without_subleaf_has_no_sets(void **state)
{
	struct sysfs_machine m;
	struct cpuid c;

	(void)state;
	sysfs_read("skylake", &m);
	for (size_t i = 0; i < m.cpus[0].n_leaves; i++)
		if (m.cpus[0].leaves[i].leaf == 0x14 && m.cpus[0].leaves[i].subleaf == 0)
			m.cpus[0].leaves[i].eax = 0;
	assert_int_equal(cpuid_read(&m.reader, 0, &c), 0);
	assert_true(c.has_pt && c.pt.mtc);
	assert_int_equal(c.pt.mtc_periods, 0);
	assert_int_equal(c.pt.cycle_thresholds, 0);
	assert_int_equal(c.pt.num_address_ranges, 0);
}

static void cpuid_complete_pmu_hybrid_keeps_what_all_have(void **state)
{
	struct cpuid cpus[SYSFS_MAX_CPUS];
	struct sysfs_machine m;
	struct pmu pmu;
	size_t n;

	(void)state;
	sysfs_read("alderlake", &m);
	n = sysfs_cpus(&m, cpus);
	assert_int_equal(n, 24);
	pmu = m.pmu;
	/* The kernel was started on an E-core. */
	pmu.cycle_thresholds = 0x1fff;
	pmu.event_trace = pmu.tnt_disable = true;
	cpuid_complete_pmu(cpus, n, 0, &pmu);
	assert_int_equal(pmu.cycle_thresholds, 0x3f);
	assert_int_equal(pmu.mtc_periods, 0x249);
	assert_int_equal(pmu.psb_periods, 0x3f);
	assert_true(pmu.mtc && pmu.psb_cyc && pmu.ptwrite);
	assert_false(pmu.event_trace || pmu.tnt_disable);
	assert_int_equal(pmu.crystal_hz, 38400000);
	assert_false(pmu.branch_always);
}

/* A virtual machine or an offline CPU says nothing about PT, and removes nothing. */
static void cpuid_complete_pmu_silent_cpus_take_nothing(void **state)
{
	struct cpuid cpus[3] = {{.cpu = 0, .known = true, .intel = true, .family = 6},
				{.cpu = 1},
				{.cpu = 2, .known = true}};
	struct sysfs_machine m;
	struct pmu pmu;

	(void)state;
	sysfs_read("skylake", &m);
	pmu = m.pmu;
	cpuid_complete_pmu(cpus, 3, 4008000000, &pmu);
	assert_int_equal(pmu.cycle_thresholds, 0x3fff);
	assert_true(pmu.mtc);
	/* Computed with the kernel's ratio, 334:2. */
	assert_int_equal(pmu.crystal_hz, 24000000);
	pmu = m.pmu;
	cpuid_complete_pmu(NULL, 0, 0, &pmu);
	assert_int_equal(pmu.crystal_hz, 0);
	assert_int_equal(pmu.cycle_thresholds, 0x3fff);
}

static void cpuid_complete_pmu_broadwell_always_branches(void **state)
{
	struct sysfs_machine m;
	struct pmu pmu;

	(void)state;
	sysfs_read("broadwell", &m);
	sysfs_complete(&m, &pmu);
	assert_true(pmu.branch_always);
	sysfs_read("broadwell-x", &m);
	sysfs_complete(&m, &pmu);
	assert_true(pmu.branch_always);
	assert_int_equal(pmu.crystal_hz, 0);
}

static void cpuid_differences_alike_cpus_have_none(void **state)
{
	struct cpuid cpus[SYSFS_MAX_CPUS];
	struct cpuid_group groups[2];
	struct sysfs_machine m;
	size_t n;

	(void)state;
	sysfs_read("sapphirerapids", &m);
	n = sysfs_cpus(&m, cpus);
	cpus[0].known = cpus[7].known = false;
	assert_int_equal(cpuid_differences(cpus, n, groups, 2), 0);
	assert_int_equal(cpuid_differences(cpus, 0, groups, 2), 0);
	assert_int_equal(cpuid_differences(cpus, 1, groups, 2), 0);
}

static void cpuid_differences_hybrid_names_the_cores(void **state)
{
	struct cpuid cpus[SYSFS_MAX_CPUS];
	struct cpuid_group groups[2];
	struct sysfs_machine m;
	size_t n;

	(void)state;
	sysfs_read("alderlake", &m);
	n = sysfs_cpus(&m, cpus);
	assert_int_equal(cpuid_differences(cpus, n, groups, 2), 1);
	assert_int_equal(groups[0].first, 16);
	assert_int_equal(groups[0].n_cpus, 8);
	assert_string_equal(groups[0].cpus, "16-23");
	assert_string_equal(groups[0].text, "core type atom, not core; payloads_lip 1, not 0; "
					    "cycle_thresholds 0-12, not 0-5");
	cpus[18].known = false;
	cpus[20].cpu = 99;
	assert_int_equal(cpuid_differences(cpus, n, groups, 2), 1);
	assert_string_equal(groups[0].cpus, "16-17,19,99,21-23");
	assert_int_equal(groups[0].n_cpus, 7);
}

static void cpuid_differences_each_kind_is_a_group(void **state)
{
	struct cpuid cpus[6];
	struct cpuid_group groups[3];

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		cpus[i] = (struct cpuid){.cpu = i,
					 .known = true,
					 .intel = true,
					 .has_pt = true,
					 .family = 6,
					 .model = 0x55,
					 .stepping = 4};
	cpus[1].stepping = cpus[4].stepping = 7;
	cpus[2].model = 0x6a;
	cpus[3].has_pt = false;
	assert_int_equal(cpuid_differences(cpus, 6, groups, 3), 3);
	assert_string_equal(groups[0].cpus, "1,4");
	assert_string_equal(groups[0].text, "stepping 7, not 4");
	assert_string_equal(groups[1].cpus, "2");
	assert_string_equal(groups[1].text, "model 6/0x6a, not 6/0x55");
	assert_string_equal(groups[2].text, "intel_pt 0, not 1");
	assert_int_equal(cpuid_differences(cpus, 6, groups, 2), 3);
	assert_int_equal(cpuid_differences(cpus, 6, groups, 0), 1);
}

static void cpuid_differences_long_list_ends_in_dots(void **state)
{
	static struct cpuid cpus[400];
	struct cpuid_group group;

	(void)state;
	for (uint32_t i = 0; i < 400; i++)
		cpus[i] = (struct cpuid){.cpu = i, .known = true, .stepping = i % 2};
	assert_int_equal(cpuid_differences(cpus, 400, &group, 1), 1);
	assert_int_equal(group.n_cpus, 200);
	assert_true(strlen(group.cpus) < sizeof(group.cpus));
	assert_string_equal(group.cpus + strlen(group.cpus) - 4, ",...");
	assert_null(strstr(group.cpus, "......"));
}

static void cpuid_host_reads_a_cpu_and_comes_back(void **state)
{
	cpu_set_t before, after;
	struct cpuid c;
	uint32_t cpu = 0, eax, ebx, ecx, edx;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	while (!CPU_ISSET(cpu, &before))
		cpu++;
	assert_int_equal(cpuid_read(&cpuid_host, cpu, &c), 0);
	assert_true(c.known);
	assert_true(__get_cpuid(0, &eax, &ebx, &ecx, &edx));
	assert_int_equal(c.intel, ebx == signature_INTEL_ebx);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void cpuid_host_offline_cpu_is_einval(void **state)
{
	cpu_set_t before, after;
	struct cpuid c;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	assert_int_equal(cpuid_read(&cpuid_host, 4095, &c), -EINVAL);
	assert_int_equal(cpuid_read(&cpuid_host, 4096, &c), -EINVAL);
	assert_int_equal(cpuid_read(&cpuid_host, UINT32_MAX, &c), -EINVAL);
	assert_false(c.known);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpuid_read_recorded_machine_agrees_with_sysfs),
		cmocka_unit_test(cpuid_crystal_hz_of_recorded_machines_is_right),
		cmocka_unit_test(cpuid_crystal_hz_falls_back_in_order),
		cmocka_unit_test(cpuid_read_other_vendor_has_nothing),
		cmocka_unit_test(cpuid_read_cpu_that_is_not_there_is_not_known),
		cmocka_unit_test(cpuid_read_signature_is_taken_apart),
		cmocka_unit_test(cpuid_read_pt_without_subleaf_has_no_sets),
		cmocka_unit_test(cpuid_complete_pmu_hybrid_keeps_what_all_have),
		cmocka_unit_test(cpuid_complete_pmu_silent_cpus_take_nothing),
		cmocka_unit_test(cpuid_complete_pmu_broadwell_always_branches),
		cmocka_unit_test(cpuid_differences_alike_cpus_have_none),
		cmocka_unit_test(cpuid_differences_hybrid_names_the_cores),
		cmocka_unit_test(cpuid_differences_each_kind_is_a_group),
		cmocka_unit_test(cpuid_differences_long_list_ends_in_dots),
		cmocka_unit_test(cpuid_host_reads_a_cpu_and_comes_back),
		cmocka_unit_test(cpuid_host_offline_cpu_is_einval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
