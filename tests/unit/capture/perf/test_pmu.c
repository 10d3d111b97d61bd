/*
 * capture/perf/pmu: sysfs-shaped directories, the software PMU, config terms.
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
#include "tests/unit/capture/tree.h"

#define PT     RTIT_PT
#define CYC    RTIT_CYC
#define MTC    RTIT_MTC
#define TSC    RTIT_TSC
#define NORET  RTIT_NORETCOMP
#define BRANCH RTIT_BRANCH

/* The files of a Skylake with Linux 6.1. */
static const struct {
	const char *path, *text;
} skylake[] = {
	{"type", "8\n"},
	{"format/pt", "config:0\n"},
	{"format/cyc", "config:1\n"},
	{"format/pwr_evt", "config:4\n"},
	{"format/fup_on_ptw", "config:5\n"},
	{"format/mtc", "config:9\n"},
	{"format/tsc", "config:10\n"},
	{"format/noretcomp", "config:11\n"},
	{"format/ptw", "config:12\n"},
	{"format/branch", "config:13\n"},
	{"format/mtc_period", "config:14-17\n"},
	{"format/cyc_thresh", "config:19-22\n"},
	{"format/psb_period", "config:24-27\n"},
	{"caps/mtc", "1\n"},
	{"caps/psb_cyc", "1\n"},
	{"caps/ptwrite", "0\n"},
	{"caps/power_event_trace", "0\n"},
	{"caps/event_trace", "0\n"},
	{"caps/tnt_disable", "0\n"},
	{"caps/cr3_filtering", "1\n"},
	{"caps/ip_filtering", "1\n"},
	{"caps/topa_output", "1\n"},
	{"caps/topa_multiple_entries", "1\n"},
	{"caps/single_range_output", "1\n"},
	{"caps/output_subsys", "0\n"},
	{"caps/payloads_lip", "0\n"},
	{"caps/num_address_ranges", "2\n"},
	{"caps/max_subleaf", "1\n"},
	{"caps/mtc_periods", "249\n"},
	{"caps/cycle_thresholds", "3fff\n"},
	{"caps/psb_periods", "3f\n"},
	{"caps/something_new", "zzz\n"},
	{"nr_addr_filters", "2\n"},
	{"max_nonturbo_ratio", "28\n"},
	{"tsc_art_ratio", "234:2\n"},
};

static int set_up(void **state)
{
	char *root = tree_new();

	for (size_t i = 0; i < ARRAY_SIZE(skylake); i++)
		tree_write(root, skylake[i].path, skylake[i].text);
	*state = root;
	return 0;
}

static int tear_down(void **state)
{
	tree_free(*state);
	return 0;
}

static void pmu_read_skylake_directory_is_understood(void **state)
{
	struct pmu pmu;

	assert_int_equal(pmu_read(*state, &pmu), 0);
	assert_int_equal(pmu.type, 8);
	assert_int_equal(pmu.n_terms, 12);
	assert_string_equal(pmu.terms[0].name, "pt");
	assert_string_equal(pmu.terms[11].name, "psb_period");
	assert_int_equal(pmu.terms[11].low, 24);
	assert_int_equal(pmu.terms[11].high, 27);
	assert_int_equal(pmu.mtc_periods, 0x249);
	assert_int_equal(pmu.cycle_thresholds, 0x3fff);
	assert_int_equal(pmu.psb_periods, 0x3f);
	assert_true(pmu.mtc);
	assert_true(pmu.psb_cyc);
	assert_true(pmu.topa_multiple_entries);
	assert_false(pmu.ptwrite);
	assert_false(pmu.power_event_trace);
	assert_false(pmu.event_trace);
	assert_false(pmu.tnt_disable);
	assert_true(pmu.cr3_filtering);
	assert_true(pmu.ip_filtering);
	assert_true(pmu.topa_output);
	assert_true(pmu.single_range_output);
	assert_false(pmu.output_subsys);
	assert_false(pmu.payloads_lip);
	assert_int_equal(pmu.num_address_ranges, 2);
	assert_int_equal(pmu.max_subleaf, 1);
	assert_int_equal(pmu.nr_addr_filters, 2);
	assert_int_equal(pmu.crystal_hz, 0);
	assert_false(pmu.branch_always);
	assert_int_equal(pmu.max_nonturbo_ratio, 28);
	assert_int_equal(pmu.tsc_art_num, 234);
	assert_int_equal(pmu.tsc_art_den, 2);
}

static void pmu_read_old_kernel_without_caps_and_timing_is_understood(void **state)
{
	char *root = tree_new();
	struct pmu pmu;

	(void)state;
	tree_write(root, "type", "7");
	tree_write(root, "format/tsc", "config:10");
	tree_write(root, "format/other", "config1:0-31\n");
	assert_int_equal(pmu_read(root, &pmu), 0);
	assert_int_equal(pmu.n_terms, 1);
	assert_int_equal(pmu.mtc_periods, 0);
	assert_int_equal(pmu.max_nonturbo_ratio, 0);
	assert_int_equal(pmu.tsc_art_den, 0);
	tree_free(root);
}

/* Each capability has its own member: one alone is set, the rest are clear. */
static void pmu_read_each_cap_is_its_own(void **state)
{
	struct pmu pmu;
	const struct {
		const char *path;
		const bool *flag;
	} caps[] = {
		{"caps/cr3_filtering", &pmu.cr3_filtering},
		{"caps/psb_cyc", &pmu.psb_cyc},
		{"caps/ip_filtering", &pmu.ip_filtering},
		{"caps/mtc", &pmu.mtc},
		{"caps/ptwrite", &pmu.ptwrite},
		{"caps/power_event_trace", &pmu.power_event_trace},
		{"caps/event_trace", &pmu.event_trace},
		{"caps/tnt_disable", &pmu.tnt_disable},
		{"caps/topa_output", &pmu.topa_output},
		{"caps/topa_multiple_entries", &pmu.topa_multiple_entries},
		{"caps/single_range_output", &pmu.single_range_output},
		{"caps/output_subsys", &pmu.output_subsys},
		{"caps/payloads_lip", &pmu.payloads_lip},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		char *root = tree_new();
		size_t set = 0;

		tree_write(root, "type", "7");
		tree_write(root, "format/tsc", "config:10");
		tree_write(root, caps[i].path, "1\n");
		assert_int_equal(pmu_read(root, &pmu), 0);
		for (size_t k = 0; k < ARRAY_SIZE(caps); k++)
			set += *caps[k].flag;
		assert_int_equal(set, 1);
		assert_true(*caps[i].flag);
		tree_free(root);
	}
}

static void pmu_read_no_directory_is_enoent(void **state)
{
	char path[4096];
	struct pmu pmu;

	snprintf(path, sizeof(path), "%s/nothing", (char *)*state);
	assert_int_equal(pmu_read(path, &pmu), -ENOENT);
	snprintf(path, sizeof(path), "%s/type", (char *)*state);
	assert_int_equal(pmu_read(path, &pmu), -ENOENT);
}

static void pmu_read_incomplete_directory_is_ebadmsg(void **state)
{
	char *root = tree_new();
	struct pmu pmu;

	(void)state;
	assert_int_equal(pmu_read(root, &pmu), -EBADMSG);
	tree_write(root, "type", "7\n");
	assert_int_equal(pmu_read(root, &pmu), -EBADMSG);
	tree_free(root);
}

static void pmu_read_unintelligible_file_is_ebadmsg(void **state)
{
	static const struct {
		const char *path, *text;
	} bad[] = {
		{"type", ""},
		{"type", "-1\n"},
		{"type", " 8\n"},
		{"type", "8x\n"},
		{"type", "4294967296\n"},
		{"format/x", "config:64\n"},
		{"format/x", "config:5-3\n"},
		{"format/x", "config:\n"},
		{"format/x", "config:1-\n"},
		{"format/x", "config:0-3,8\n"},
		{"format/x", "event:0-3\n"},
		{"format/x", "config\n"},
		{"format/x", "config:00000000000000000000000000000000000000000000000000000001\n"},
		{"format/a_term_whose_name_is_too_long_for_us", "config:1\n"},
		{"type", "5\n"},
		{"caps/mtc", "yes\n"},
		{"caps/mtc", "2\n"},
		{"caps/ptwrite", "ffffffff\n"},
		{"caps/mtc_periods", "10000\n"},
		{"caps/cycle_thresholds", "10000\n"},
		{"caps/psb_periods", "10000\n"},
		{"caps/num_address_ranges", "8\n"},
		{"nr_addr_filters", "8\n"},
		{"nr_addr_filters", "-1\n"},
		{"max_nonturbo_ratio", "256\n"},
		{"tsc_art_ratio", "4294967296:2\n"},
		{"caps/mtc_periods", "0x249\n"},
		{"caps/psb_periods", "1ffffffff\n"},
		{"max_nonturbo_ratio", "1c\n"},
		{"tsc_art_ratio", "234\n"},
		{"tsc_art_ratio", "234:\n"},
		{"tsc_art_ratio", "234:2:1\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pmu pmu;
		void *root;

		set_up(&root);
		tree_write(root, bad[i].path, bad[i].text);
		assert_int_equal(pmu_read(root, &pmu), -EBADMSG);
		tear_down(&root);
	}
}

static void pmu_read_too_many_terms_is_ebadmsg(void **state)
{
	struct pmu pmu;
	char path[64];

	for (int i = 0; i < PMU_MAX_TERMS; i++) {
		snprintf(path, sizeof(path), "format/term%d", i);
		tree_write(*state, path, "config:1\n");
	}
	assert_int_equal(pmu_read(*state, &pmu), -EBADMSG);
}

/* Every bit of the software PMU is at the place that the kernel's driver uses. */
static void pmu_emulated_has_the_kernels_bits(void **state)
{
	struct pmu real, emulated;

	assert_int_equal(pmu_read(*state, &real), 0);
	pmu_emulated(&emulated);
	assert_int_equal(emulated.n_terms, 9);
	for (size_t i = 0; i < emulated.n_terms; i++) {
		const struct pmu_term *a = &emulated.terms[i];
		size_t same = 0;

		for (size_t k = 0; k < real.n_terms; k++)
			same += strcmp(real.terms[k].name, a->name) == 0 &&
				real.terms[k].low == a->low && real.terms[k].high == a->high;
		assert_int_equal(same, 1);
	}
}

static void pmu_parse_terms_valid_gives_config(void **state)
{
	static const struct {
		const char *terms;
		uint64_t config;
	} cases[] = {
		{"", PT | BRANCH},
		{"tsc", PT | BRANCH | TSC},
		{"tsc=1", PT | BRANCH | TSC},
		{"tsc=0,mtc", PT | BRANCH | MTC},
		{"tsc,tsc=0", PT | BRANCH},
		{"mtc_period=3", PT | BRANCH | 3 << 14},
		{"tsc,mtc,mtc_period=9,psb_period=1", PT | BRANCH | TSC | MTC | 9 << 14 | 1 << 24},
		{"cyc,cyc_thresh=13", PT | BRANCH | CYC | 13 << 19},
		{"psb_period=0x5,noretcomp", PT | BRANCH | NORET | 5 << 24},
		{"psb_period=5,psb_period=0", PT | BRANCH},
		{"branch=0", PT},
		{"pt=0,branch=0", 0},
		{"branch=0,pt=0", 0},
		{"cyc_thresh=010", PT | BRANCH | 10 << 19}, /* not octal */
		{"config=0x2001", PT | BRANCH},
		{"config=0x401", PT | TSC},
		{"config=1024", PT | BRANCH | TSC},
		{"config=0x0", PT | BRANCH},
		{"tsc,config=0x401,mtc", PT | TSC | MTC},
	};
	struct pmu pmu;

	(void)state;
	pmu_emulated(&pmu);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t config = 99;
		char why[512] = "x";

		assert_int_equal(pmu_parse_terms(&pmu, cases[i].terms, &config, why, sizeof(why)),
				 0);
		assert_int_equal(config, cases[i].config);
		assert_string_equal(why, "");
	}
}

static void pmu_parse_terms_invalid_says_what_is_valid(void **state)
{
	static const char all[] = "valid terms: pt, cyc, pwr_evt, fup_on_ptw, mtc, tsc, noretcomp, "
				  "ptw, branch, mtc_period, cyc_thresh, psb_period, config";
	static const struct {
		const char *terms, *first, *valid;
	} bad[] = {
		{"nonsense", "nonsense: unknown term", all},
		{"tsc,,mtc", "(empty): unknown term", all},
		{",", "(empty): unknown term", all},
		{"tsc,", "(empty): unknown term", all},
		{"=1", "(empty): unknown term", all},
		{" tsc", " tsc: unknown term", all},
		{"TSC", "TSC: unknown term", all},
		{"tsc=2", "tsc=2: not valid", "valid values: 0-1"},
		{"tsc=", "tsc=: not valid", "valid values: 0-1"},
		{"tsc=-1", "tsc=-1: not valid", "valid values: 0-1"},
		{"tsc==1", "tsc==1: not valid", "valid values: 0-1"},
		{"tsc,mtc_period=1", "mtc_period=1: not valid", "valid values: 0,3,6,9"},
		{"mtc_period", "mtc_period=1: not valid", "valid values: 0,3,6,9"},
		{"mtc_period=16", "mtc_period=16: not valid", "valid values: 0,3,6,9"},
		{"psb_period=6", "psb_period=6: not valid", "valid values: 0-5"},
		{"psb_period=64", "psb_period=64: not valid", "valid values: 0-5"},
		{"psb_period=99999999999999999999", "psb_period=99999999999999999999: not valid",
		 "valid values: 0-5"},
		{"cyc_thresh=14", "cyc_thresh=14: not valid", "valid values: 0-13"},
		{"ptw", "ptw=1: not valid", "valid values: 0"},
		{"fup_on_ptw", "fup_on_ptw=1: not valid", "valid values: 0"},
		{"pt=0", "branch=1: not valid without pt=1", "valid values with pt=0: 0"},
		{"pwr_evt=1", "pwr_evt=1: not valid", "valid values: 0"},
		{"config", "config=: not a number", ""},
		{"config=0xzz", "config=0xzz: not a number", ""},
		{"config=0x8000000000000000", "bits 0x8000000000000000 belong to no term", all},
		{"config=0x4001", "mtc_period=1: not valid", "valid values: 0,3,6,9"},
	};
	struct pmu pmu;

	assert_int_equal(pmu_read(*state, &pmu), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		uint64_t config = 99;
		char why[512];

		assert_int_equal(pmu_parse_terms(&pmu, bad[i].terms, &config, why, sizeof(why)),
				 -EINVAL);
		if (strstr(why, bad[i].first) == NULL || strstr(why, bad[i].valid) == NULL)
			fail_msg("%s: %s", bad[i].terms, why);
		assert_int_equal(config, 99);
		assert_null(strchr(why, '\n'));
	}
}

static void pmu_parse_terms_cap_missing_refuses_the_flag(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char why[128];

	(void)state;
	pmu_emulated(&pmu);
	pmu.mtc = false;
	pmu.psb_cyc = false;
	assert_int_equal(pmu_parse_terms(&pmu, "mtc", &config, why, sizeof(why)), -EINVAL);
	assert_int_equal(pmu_parse_terms(&pmu, "cyc", &config, why, sizeof(why)), -EINVAL);
	assert_int_equal(pmu_parse_terms(&pmu, "mtc=0,cyc=0", &config, why, sizeof(why)), 0);
	/* If the kernel lists no values, 0 is still valid. */
	pmu.psb_periods = pmu.mtc_periods = pmu.cycle_thresholds = 0;
	assert_int_equal(pmu_parse_terms(&pmu, "psb_period=0,mtc_period=0,cyc_thresh=0", &config,
					 why, sizeof(why)),
			 0);
	assert_int_equal(pmu_parse_terms(&pmu, "psb_period=1", &config, why, sizeof(why)), -EINVAL);
}

/* The flags for which Skylake has no capabilities. */
static void pmu_parse_terms_later_flags_need_their_caps(void **state)
{
	static const struct {
		const char *terms;
		uint64_t config; /* 0: refused */
		const char *why;
	} cases[] = {
		{"ptw", PT | BRANCH | RTIT_PTW, ""},
		{"ptw,fup_on_ptw", PT | BRANCH | RTIT_PTW | RTIT_FUP_ON_PTW, ""},
		{"fup_on_ptw,ptw", PT | BRANCH | RTIT_PTW | RTIT_FUP_ON_PTW, ""},
		{"fup_on_ptw", 0,
		 "fup_on_ptw=1: not valid without ptw=1; valid values with ptw=0: 0"},
		{"config=0x2021", 0, "fup_on_ptw=1: not valid without ptw=1"},
		{"pwr_evt", PT | BRANCH | RTIT_PWR_EVT, ""},
		{"event,notnt", PT | BRANCH | RTIT_EVENT | RTIT_NOTNT, ""},
		{"event=2", 0, "event=2: not valid here; valid values: 0-1"},
	};
	struct sysfs_machine m;
	struct pmu pmu;

	(void)state;
	sysfs_read("skylake", &m);
	pmu = m.pmu;
	pmu.ptwrite = pmu.power_event_trace = pmu.event_trace = pmu.tnt_disable = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t config = 0;
		char why[256];
		int r = pmu_parse_terms(&pmu, cases[i].terms, &config, why, sizeof(why));

		assert_int_equal(r, cases[i].config != 0 ? 0 : -EINVAL);
		assert_int_equal(config, cases[i].config);
		assert_non_null(strstr(why, cases[i].why));
	}
}

/* A single capability makes its own flag valid, and no other. */
static void pmu_parse_terms_each_flag_has_its_own_cap(void **state)
{
	struct sysfs_machine m;
	struct pmu pmu;
	const struct {
		const char *term;
		bool *cap;
	} flags[] = {
		{"mtc", &pmu.mtc},	     {"cyc", &pmu.psb_cyc},
		{"ptw", &pmu.ptwrite},	     {"pwr_evt", &pmu.power_event_trace},
		{"event", &pmu.event_trace}, {"notnt", &pmu.tnt_disable},
	};

	(void)state;
	sysfs_read("skylake", &m);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pmu = m.pmu;
		for (size_t k = 0; k < ARRAY_SIZE(flags); k++)
			*flags[k].cap = k == i;
		for (size_t k = 0; k < ARRAY_SIZE(flags); k++) {
			uint64_t config;
			char why[256];

			assert_int_equal(
				pmu_parse_terms(&pmu, flags[k].term, &config, why, sizeof(why)),
				k == i ? 0 : -EINVAL);
		}
	}
}

static void pmu_parse_terms_mtc_needs_a_period_that_is_listed(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char why[256];

	(void)state;
	pmu_emulated(&pmu);
	pmu.mtc_periods = 0x248;
	assert_int_equal(pmu_parse_terms(&pmu, "mtc", &config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "mtc_period=0: not valid with mtc=1; valid values: 3,6,9");
	assert_int_equal(pmu_parse_terms(&pmu, "mtc,mtc_period=6", &config, why, sizeof(why)), 0);
	assert_int_equal(pmu_parse_terms(&pmu, "mtc_period=0", &config, why, sizeof(why)), 0);
	pmu.mtc_periods = 0;
	assert_int_equal(pmu_parse_terms(&pmu, "mtc", &config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "mtc=1: not valid here; valid values: 0");
}

static void pmu_parse_terms_broadwell_refuses_no_branches(void **state)
{
	struct sysfs_machine m;
	struct pmu pmu;
	uint64_t config;
	char why[256];

	(void)state;
	sysfs_read("broadwell", &m);
	sysfs_complete(&m, &pmu);
	assert_int_equal(pmu_parse_terms(&pmu, "tsc,branch=0", &config, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "branch=0: not valid on this CPU"));
	assert_non_null(strstr(why, "valid values: 1"));
	/* Without pt, as in older kernels, branches are traced all the same. */
	assert_int_equal(pmu_parse_terms(&pmu, "pt=0,branch=0", &config, why, sizeof(why)), 0);
	assert_true(kernel_valid(&m, config));
}

/* A capability has 16 values, also for a wider field of an unusual kernel. */
static void pmu_parse_terms_wide_field_is_limited_by_its_cap(void **state)
{
	struct pmu pmu = {.n_terms = 2,
			  .terms = {{"mtc_period", 0, 7}, {"mtc", 8, 8}},
			  .mtc = true,
			  .mtc_periods = 0x249};
	uint64_t config;
	char why[256];

	(void)state;
	assert_int_equal(pmu_parse_terms(&pmu, "mtc_period=9", &config, why, sizeof(why)), 0);
	assert_int_equal(pmu_parse_terms(&pmu, "mtc_period=67", &config, why, sizeof(why)),
			 -EINVAL);
	assert_string_equal(why, "mtc_period=67: not valid here; valid values: 0,3,6,9");
	assert_int_equal(pmu_parse_terms(&pmu, "config=0x143", &config, why, sizeof(why)), -EINVAL);
}

/* The bits come from the kernel's format files, wherever the kernel puts a field. */
static void pmu_parse_terms_bits_are_those_of_format(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char why[128];

	(void)state;
	pmu_emulated(&pmu);
	for (size_t i = 0; i < pmu.n_terms; i++) {
		pmu.terms[i].low += 30;
		pmu.terms[i].high += 30;
	}
	assert_int_equal(
		pmu_parse_terms(&pmu, "tsc,mtc,mtc_period=9,cyc", &config, why, sizeof(why)), 0);
	assert_int_equal(config, (PT | BRANCH | TSC | MTC | CYC | 9 << 14) << 30);
}

/* The config with the bits that the kernel implies when pt is not set. */
static uint64_t written_out(uint64_t config)
{
	return (config & PT) != 0 ? config : config | PT | BRANCH;
}

/* Tries each term with each value, on each machine. */
static void pmu_parse_terms_single_values_are_as_the_kernel_takes_them(void **state)
{
	size_t taken = 0, refused = 0;

	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct pmu pmu;

		sysfs_read(sysfs_names[i], &m);
		sysfs_complete(&m, &pmu);
		for (size_t t = 0; t < pmu.n_terms; t++) {
			const struct pmu_term *term = &pmu.terms[t];
			uint64_t n_values = 2ull << (term->high - term->low);

			for (uint64_t v = 0; v <= n_values; v++) {
				uint64_t config = 0, bits = PT | BRANCH;
				char text[64], why[256];
				int r;

				snprintf(text, sizeof(text), "%s=%u", term->name, (unsigned)v);
				r = pmu_parse_terms(&pmu, text, &config, why, sizeof(why));
				bits &= ~((n_values - 1) << term->low);
				bits |= v << term->low;
				assert_int_equal(r == 0, v < n_values && kernel_valid(&m, bits));
				if (r == 0)
					assert_int_equal(config, bits);
				else
					assert_non_null(strstr(why, "valid values"));
				r == 0 ? taken++ : refused++;
			}
		}
	}
	assert_true(taken > 300 && refused > 400);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A few bits and fields of a config, mostly of terms that some kernel knows. */
static uint64_t random_config(uint64_t *seed)
{
	static const uint64_t fields[] = {
		RTIT_PT,	 RTIT_CYC,	  RTIT_PWR_EVT, RTIT_FUP_ON_PTW, RTIT_MTC,
		RTIT_TSC,	 RTIT_NORETCOMP,  RTIT_PTW,	RTIT_BRANCH,	 RTIT_MTC_PERIOD,
		RTIT_CYC_THRESH, RTIT_PSB_PERIOD, RTIT_EVENT,	RTIT_NOTNT,
	};
	uint64_t config = RTIT_PT | RTIT_BRANCH;

	for (uint64_t n = next_random(seed) % 6; n > 0; n--)
		config ^= next_random(seed) & fields[next_random(seed) % ARRAY_SIZE(fields)];
	if (next_random(seed) % 32 == 0)
		config ^= 1ull << next_random(seed) % 64;
	return config;
}

static void pmu_parse_terms_raw_configs_are_as_the_kernel_takes_them(void **state)
{
	uint64_t seed = 0x123456789abcdefull;
	size_t taken = 0, refused = 0;

	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct pmu pmu;

		sysfs_read(sysfs_names[i], &m);
		sysfs_complete(&m, &pmu);
		for (size_t k = 0; k < 20000; k++) {
			uint64_t raw = random_config(&seed), config = 0;
			char text[64], why[512];
			int r;

			snprintf(text, sizeof(text), "config=0x%llx", (unsigned long long)raw);
			r = pmu_parse_terms(&pmu, text, &config, why, sizeof(why));
			if ((r == 0) != kernel_valid(&m, written_out(raw)))
				fail_msg("%s: %s: %d %s", m.name, text, r, why);
			if (r == 0)
				assert_int_equal(config, written_out(raw));
			else
				assert_non_null(strstr(why, "valid "));
			r == 0 ? taken++ : refused++;
		}
	}
	assert_true(taken > 40000 && refused > 40000);
}

/* Every config that is written as terms parses to the same config. */
static void pmu_format_terms_parses_back(void **state)
{
	uint64_t seed = 0xfedcba987654321ull;

	(void)state;
	for (size_t i = 0; i < sysfs_n_names; i++) {
		struct sysfs_machine m;
		struct pmu pmu;

		sysfs_read(sysfs_names[i], &m);
		sysfs_complete(&m, &pmu);
		for (size_t k = 0; k < 2000; k++) {
			uint64_t raw = written_out(random_config(&seed)), config = 0;
			char text[256], with_branch[300], why[512];

			if (!kernel_valid(&m, raw))
				continue;
			pmu_format_terms(&pmu, raw, text, sizeof(text));
			snprintf(with_branch, sizeof(with_branch), "branch=0,%s", text);
			assert_int_equal(
				pmu_parse_terms(&pmu, with_branch, &config, why, sizeof(why)), 0);
			assert_int_equal(config, raw);
		}
	}
}

static void pmu_term_values_tell_what_is_valid(void **state)
{
	struct pmu pmu = {.n_terms = 3,
			  .terms = {{"six", 0, 5}, {"five", 6, 10}, {"flag", 11, 11}}};

	(void)state;
	assert_true(pmu_term_values(&pmu, "six") == UINT64_MAX);
	assert_int_equal(pmu_term_values(&pmu, "five"), UINT32_MAX);
	assert_int_equal(pmu_term_values(&pmu, "flag"), 3);
	assert_int_equal(pmu_term_values(&pmu, "none"), 0);
	pmu_emulated(&pmu);
	assert_int_equal(pmu_term_values(&pmu, "mtc_period"), 0xffff);
	assert_int_equal(pmu_term_values(&pmu, "psb_period"), 0x3f);
	assert_int_equal(pmu_term_values(&pmu, "ptw"), 0);
	pmu.psb_cyc = false;
	assert_int_equal(pmu_term_values(&pmu, "psb_period"), 1);
}

static void pmu_format_values_names_ranges(void **state)
{
	static const struct {
		uint64_t values;
		const char *text;
	} cases[] = {
		{0, "none"},
		{1, "0"},
		{0x249, "0,3,6,9"},
		{0x3fff, "0-13"},
		{0x8000000000000003, "0-1,63"},
		{UINT64_MAX, "0-63"},
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		pmu_format_values(cases[i].values, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
	pmu_format_values(0x249, text, 4);
	assert_string_equal(text, "0,3");
}

static void pmu_parse_terms_small_why_is_cut(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char why[10], big[300];

	(void)state;
	pmu_emulated(&pmu);
	assert_int_equal(pmu_parse_terms(&pmu, "nonsense", &config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "nonsense:");
	assert_int_equal(pmu_parse_terms(&pmu, "nonsense", &config, why, 0), -EINVAL);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(pmu_parse_terms(&pmu, big, &config, why, sizeof(why)), -EINVAL);
}

static void pmu_term_value_reads_back(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char why[128];

	(void)state;
	pmu_emulated(&pmu);
	assert_int_equal(
		pmu_parse_terms(&pmu, "tsc,mtc_period=15,psb_period=5", &config, why, sizeof(why)),
		0);
	assert_int_equal(pmu_term_value(&pmu, config, "mtc_period"), 15);
	assert_int_equal(pmu_term_value(&pmu, config, "psb_period"), 5);
	assert_int_equal(pmu_term_value(&pmu, config, "tsc"), 1);
	assert_int_equal(pmu_term_value(&pmu, config, "mtc"), 0);
	assert_int_equal(pmu_term_value(&pmu, UINT64_MAX, "ptw"), 0);
}

/* A term as wide as config must not cause a shift by 64. */
static void pmu_term_value_64_bit_term_is_whole(void **state)
{
	struct pmu pmu = {.n_terms = 1, .terms = {{"all", 0, 63}}};
	uint64_t config;
	char why[128];

	(void)state;
	assert_int_equal(pmu_parse_terms(&pmu, "all=0xffffffffffffffff", &config, why, sizeof(why)),
			 0);
	assert_int_equal(config, UINT64_MAX);
	assert_int_equal(pmu_term_value(&pmu, config, "all"), UINT64_MAX);
}

static void pmu_format_terms_names_what_is_set(void **state)
{
	struct pmu pmu;
	uint64_t config;
	char text[128];

	(void)state;
	pmu_emulated(&pmu);
	assert_int_equal(pmu_parse_terms(&pmu, "tsc,mtc,mtc_period=9,psb_period=1", &config, text,
					 sizeof(text)),
			 0);
	pmu_format_terms(&pmu, config, text, sizeof(text));
	assert_string_equal(text, "pt,mtc,tsc,branch,mtc_period=9,psb_period=1");
	pmu_format_terms(&pmu, 0, text, sizeof(text));
	assert_string_equal(text, "");
	pmu_format_terms(&pmu, config, text, 7);
	assert_string_equal(text, "pt,mtc");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(pmu_read_skylake_directory_is_understood),
		cmocka_unit_test(pmu_read_old_kernel_without_caps_and_timing_is_understood),
		cmocka_unit_test(pmu_read_each_cap_is_its_own),
		CASE(pmu_read_no_directory_is_enoent),
		cmocka_unit_test(pmu_read_incomplete_directory_is_ebadmsg),
		cmocka_unit_test(pmu_read_unintelligible_file_is_ebadmsg),
		CASE(pmu_read_too_many_terms_is_ebadmsg),
		CASE(pmu_emulated_has_the_kernels_bits),
		cmocka_unit_test(pmu_parse_terms_valid_gives_config),
		CASE(pmu_parse_terms_invalid_says_what_is_valid),
		cmocka_unit_test(pmu_parse_terms_cap_missing_refuses_the_flag),
		cmocka_unit_test(pmu_parse_terms_later_flags_need_their_caps),
		cmocka_unit_test(pmu_parse_terms_each_flag_has_its_own_cap),
		cmocka_unit_test(pmu_parse_terms_mtc_needs_a_period_that_is_listed),
		cmocka_unit_test(pmu_parse_terms_broadwell_refuses_no_branches),
		cmocka_unit_test(pmu_parse_terms_wide_field_is_limited_by_its_cap),
		cmocka_unit_test(pmu_parse_terms_bits_are_those_of_format),
		cmocka_unit_test(pmu_parse_terms_single_values_are_as_the_kernel_takes_them),
		cmocka_unit_test(pmu_parse_terms_raw_configs_are_as_the_kernel_takes_them),
		cmocka_unit_test(pmu_format_terms_parses_back),
		cmocka_unit_test(pmu_term_values_tell_what_is_valid),
		cmocka_unit_test(pmu_format_values_names_ranges),
		cmocka_unit_test(pmu_parse_terms_small_why_is_cut),
		cmocka_unit_test(pmu_term_value_reads_back),
		cmocka_unit_test(pmu_term_value_64_bit_term_is_whole),
		cmocka_unit_test(pmu_format_terms_names_what_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
