/*
 * capture/pmu: sysfs-shaped directories, the software PMU, config terms.
 */
#include "capture/pmu.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/tree.h"

#define PT     0x1ull
#define CYC    0x2ull
#define MTC    0x200ull
#define TSC    0x400ull
#define NORET  0x800ull
#define BRANCH 0x2000ull

/* As a Skylake with Linux 6.1 shows it. */
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
	{"caps/topa_multiple_entries", "1\n"},
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
		{"caps/mtc", "yes\n"},
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

/* Every bit of the software PMU stands where the kernel's driver has it. */
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
		{PMU_DEFAULT_TERMS, PT | BRANCH | TSC | MTC | 9 << 14 | 1 << 24},
		{"cyc,cyc_thresh=13", PT | BRANCH | CYC | 13 << 19},
		{"psb_period=0x5,noretcomp", PT | BRANCH | NORET | 5 << 24},
		{"psb_period=5,psb_period=0", PT | BRANCH},
		{"branch=0", PT},
		{"pt=0", BRANCH},
		{"pt=0,branch=0", 0},
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
	/* A kernel that lists no values still takes 0. */
	pmu.psb_periods = pmu.mtc_periods = pmu.cycle_thresholds = 0;
	assert_int_equal(pmu_parse_terms(&pmu, "psb_period=0,mtc_period=0,cyc_thresh=0", &config,
					 why, sizeof(why)),
			 0);
	assert_int_equal(pmu_parse_terms(&pmu, "psb_period=1", &config, why, sizeof(why)), -EINVAL);
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

/* A term as wide as config itself must not shift by 64. */
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
	assert_int_equal(pmu_parse_terms(&pmu, PMU_DEFAULT_TERMS, &config, text, sizeof(text)), 0);
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
		CASE(pmu_read_no_directory_is_enoent),
		cmocka_unit_test(pmu_read_incomplete_directory_is_ebadmsg),
		cmocka_unit_test(pmu_read_unintelligible_file_is_ebadmsg),
		CASE(pmu_read_too_many_terms_is_ebadmsg),
		CASE(pmu_emulated_has_the_kernels_bits),
		cmocka_unit_test(pmu_parse_terms_valid_gives_config),
		CASE(pmu_parse_terms_invalid_says_what_is_valid),
		cmocka_unit_test(pmu_parse_terms_cap_missing_refuses_the_flag),
		cmocka_unit_test(pmu_parse_terms_small_why_is_cut),
		cmocka_unit_test(pmu_term_value_reads_back),
		cmocka_unit_test(pmu_term_value_64_bit_term_is_whole),
		cmocka_unit_test(pmu_format_terms_names_what_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
