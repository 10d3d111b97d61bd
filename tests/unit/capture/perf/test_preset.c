/*
 * capture/perf/preset: every preset on every machine of tests/sysfs and on the software PMU. The
 * kernel must accept all choices.
 */
#include "capture/perf/pmu.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/kernel_valid.h"
#include "tests/unit/capture/sysfs.h"

static const char *const presets[] = {"light", "std", "precise"};

static void terms_of(const struct pmu *pmu, const char *preset, const char *expected)
{
	char terms[128], why[256] = "";

	assert_int_equal(preset_terms(pmu, preset, terms, sizeof(terms), why, sizeof(why)), 0);
	assert_string_equal(terms, expected);
}

static uint64_t config_of(const struct pmu *pmu, const char *preset)
{
	const char *name = NULL;
	uint64_t config = 0;
	char why[256] = "";

	if (preset_config(pmu, preset, NULL, &config, &name, why, sizeof(why)) != 0)
		fail_msg("%s: %s", preset, why);
	assert_string_equal(name, preset);
	return config;
}

static void preset_terms_on_recorded_machines_are_what_they_can_do(void **state)
{
	static const struct {
		const char *name, *light, *std, *precise;
	} cases[] = {
		{"broadwell", "tsc", "tsc", "tsc"},
		{"broadwell-x", "tsc", "tsc", "tsc"},
		{"skylake", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"cascadelake-x", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"icelake", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"icelake-d", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"sapphirerapids", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"alderlake", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"arrowlake", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"goldmont", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
		{"denverton", "tsc,psb_period=5", "tsc,mtc,mtc_period=6,psb_period=1",
		 "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0"},
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(cases), sysfs_n_names);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sysfs_machine m;
		struct pmu pmu;

		sysfs_read(cases[i].name, &m);
		sysfs_complete(&m, &pmu);
		terms_of(&pmu, "light", cases[i].light);
		terms_of(&pmu, "std", cases[i].std);
		terms_of(&pmu, "precise", cases[i].precise);
	}
}

static void preset_config_on_recorded_machines_is_taken_by_the_kernel(void **state)
{
	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct pmu pmu;

		sysfs_read(sysfs_names[i], &m);
		sysfs_complete(&m, &pmu);
		for (size_t k = 0; k < ARRAY_SIZE(presets); k++)
			assert_true(kernel_valid(&m, config_of(&pmu, presets[k])));
		/* The same with the PMU as sysfs alone shows it, without the crystal. */
		for (size_t k = 0; k < ARRAY_SIZE(presets); k++)
			assert_true(kernel_valid(&m, config_of(&m.pmu, presets[k])));
	}
}

/* Uses the frequencies that Intel publishes, not those that we find. */
static void preset_std_costs_an_idle_cpu_about_a_megabyte(void **state)
{
	static const uint64_t crystals[] = {19200000, 24000000, 25000000, 38400000};

	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct pmu pmu;
		uint64_t light, std;

		sysfs_read(sysfs_names[i], &m);
		sysfs_complete(&m, &pmu);
		std = config_of(&pmu, "std");
		light = config_of(&pmu, "light");
		assert_true(preset_mtc_cost(&pmu, std) < 1250000);
		assert_int_equal(preset_mtc_cost(&pmu, light), 0);
		for (size_t k = 0; k < ARRAY_SIZE(crystals); k++) {
			uint64_t config;

			pmu.crystal_hz = crystals[k];
			config = config_of(&pmu, "std");
			if ((config & RTIT_MTC) == 0)
				continue;
			assert_true(2 * crystals[k] >> (config >> 14 & 0xf) < 1250000);
		}
	}
}

static void preset_std_of_the_software_pmu_stays(void **state)
{
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	pmu.crystal_hz = 24000000;
	terms_of(&pmu, PRESET_DEFAULT, "tsc,mtc,mtc_period=9,psb_period=1");
	assert_int_equal(preset_mtc_cost(&pmu, config_of(&pmu, "std")), 93750);
	terms_of(&pmu, "light", "tsc,psb_period=5");
	terms_of(&pmu, "precise", "tsc,mtc,mtc_period=3,cyc,cyc_thresh=1,psb_period=0");
	assert_int_equal(preset_mtc_cost(&pmu, config_of(&pmu, "precise")), 6000000);
}

static void preset_std_unknown_crystal_takes_the_longest_period(void **state)
{
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	terms_of(&pmu, "std", "tsc,mtc,mtc_period=15,psb_period=1");
	assert_int_equal(preset_mtc_cost(&pmu, config_of(&pmu, "std")), 0);
	pmu.mtc_periods = 0x249;
	terms_of(&pmu, "std", "tsc,mtc,mtc_period=9,psb_period=1");
	pmu.mtc_periods = 0x1ff;
	terms_of(&pmu, "std", "tsc,cyc,cyc_thresh=13,psb_period=1");
	pmu.psb_cyc = false;
	terms_of(&pmu, "std", "tsc");
}

static void preset_terms_odd_caps_take_what_is_near(void **state)
{
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	pmu.crystal_hz = 24000000;
	pmu.mtc_periods = 1 << 1 | 1 << 5 | 1 << 10;
	pmu.cycle_thresholds = 1 << 4 | 1 << 7;
	pmu.psb_periods = 1 << 3 | 1 << 7;
	terms_of(&pmu, "light", "tsc,psb_period=3");
	terms_of(&pmu, "std", "tsc,mtc,mtc_period=10");
	terms_of(&pmu, "precise", "tsc,mtc,mtc_period=1,cyc,cyc_thresh=0,psb_period=0");
	/* 0 is nearer, but not listed. */
	pmu.mtc_periods = 1 << 9;
	terms_of(&pmu, "precise", "tsc,mtc,mtc_period=9,cyc,cyc_thresh=0,psb_period=0");
	/* mtc is not valid without a valid period. */
	pmu.mtc_periods = 0;
	terms_of(&pmu, "std", "tsc,cyc,cyc_thresh=7");
	pmu.mtc_periods = 0x249;
	pmu.mtc = false;
	terms_of(&pmu, "precise", "tsc,cyc,cyc_thresh=0,psb_period=0");
	/* The PMU has psb_cyc, and no thresholds. */
	pmu.cycle_thresholds = pmu.psb_periods = 0;
	terms_of(&pmu, "std", "tsc,cyc,cyc_thresh=0");
	terms_of(&pmu, "light", "tsc");
}

static void preset_terms_unknown_preset_lists_the_valid_ones(void **state)
{
	struct pmu pmu;
	char terms[128], why[256];

	(void)state;
	pmu_emulated(&pmu);
	assert_int_equal(preset_terms(&pmu, "fast", terms, sizeof(terms), why, sizeof(why)),
			 -EINVAL);
	assert_string_equal(why,
			    "fast: no such preset; valid presets: light, std, precise, custom");
	assert_int_equal(preset_terms(&pmu, "", terms, sizeof(terms), why, sizeof(why)), -EINVAL);
	assert_int_equal(preset_terms(&pmu, "custom", terms, sizeof(terms), why, sizeof(why)),
			 -EINVAL);
	assert_non_null(strstr(why, "needs terms"));
}

static void preset_config_adds_terms_behind_the_presets(void **state)
{
	static const struct {
		const char *preset, *terms, *name;
		uint64_t config;
	} cases[] = {
		{NULL, NULL, "std",
		 RTIT_PT | RTIT_BRANCH | RTIT_TSC | RTIT_MTC | 9 << 14 | 1 << 24},
		{NULL, "tsc", "custom", RTIT_PT | RTIT_BRANCH | RTIT_TSC},
		{NULL, "", "custom", RTIT_PT | RTIT_BRANCH},
		{"custom", "mtc,mtc_period=3", "custom",
		 RTIT_PT | RTIT_BRANCH | RTIT_MTC | 3 << 14},
		{"std", "noretcomp", "std",
		 RTIT_PT | RTIT_BRANCH | RTIT_TSC | RTIT_MTC | 9 << 14 | 1 << 24 | RTIT_NORETCOMP},
		{"std", "", "std", RTIT_PT | RTIT_BRANCH | RTIT_TSC | RTIT_MTC | 9 << 14 | 1 << 24},
		{"std", "mtc_period=3,psb_period=0", "std",
		 RTIT_PT | RTIT_BRANCH | RTIT_TSC | RTIT_MTC | 3 << 14},
		{"light", "mtc=0,cyc", "light",
		 RTIT_PT | RTIT_BRANCH | RTIT_TSC | RTIT_CYC | 5 << 24},
	};
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	pmu.crystal_hz = 24000000;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = NULL;
		uint64_t config = 0;
		char why[256];

		assert_int_equal(preset_config(&pmu, cases[i].preset, cases[i].terms, &config,
					       &name, why, sizeof(why)),
				 0);
		assert_string_equal(name, cases[i].name);
		assert_int_equal(config, cases[i].config);
	}
}

static void preset_config_refused_says_why(void **state)
{
	static char long_terms[2000];
	const struct {
		const char *preset, *terms, *why;
	} cases[] = {
		{"custom", NULL, "needs terms"},
		{"fast", "tsc", "valid presets: light"},
		{"fast", NULL, "valid presets: light"},
		{"std", "mtc_period=99", "valid values: 0-15"},
		{"std", "ptw", "valid terms: pt, "},
		{"std", long_terms, "too many terms"},
		{NULL, long_terms, "too many terms"},
	};
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	for (size_t i = 0; i + 4 < sizeof(long_terms); i += 4)
		memcpy(long_terms + i, "tsc,", 4);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *name = "untouched";
		uint64_t config = 99;
		char why[256] = "";

		assert_int_equal(preset_config(&pmu, cases[i].preset, cases[i].terms, &config,
					       &name, why, sizeof(why)),
				 -EINVAL);
		assert_non_null(strstr(why, cases[i].why));
		assert_string_equal(name, "untouched");
		assert_int_equal(config, 99);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(preset_terms_on_recorded_machines_are_what_they_can_do),
		cmocka_unit_test(preset_config_on_recorded_machines_is_taken_by_the_kernel),
		cmocka_unit_test(preset_std_costs_an_idle_cpu_about_a_megabyte),
		cmocka_unit_test(preset_std_of_the_software_pmu_stays),
		cmocka_unit_test(preset_std_unknown_crystal_takes_the_longest_period),
		cmocka_unit_test(preset_terms_odd_caps_take_what_is_near),
		cmocka_unit_test(preset_terms_unknown_preset_lists_the_valid_ones),
		cmocka_unit_test(preset_config_adds_terms_behind_the_presets),
		cmocka_unit_test(preset_config_refused_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
