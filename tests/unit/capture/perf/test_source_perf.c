/*
 * capture/perf/source_perf_choose: why a host has no PT, in words for the user.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/ring/source.h"
#include "proto/base.h"
#include "tests/unit/capture/tree.h"

static int explain(const char *root, char *why, size_t size)
{
	char cpuinfo[4096], pmu[4096];

	snprintf(cpuinfo, sizeof(cpuinfo), "%s/cpuinfo", root);
	snprintf(pmu, sizeof(pmu), "%s/intel_pt", root);
	return source_perf_explain(cpuinfo, pmu, why, size);
}

static void source_perf_explain_cpu_without_pmu_says_why_and_what_to_do(void **state)
{
	static const struct {
		const char *cpuinfo, *says;
	} cases[] = {
		{"processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu hypervisor\n",
		 "vendor is AuthenticAMD"},
		{"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon(R) %s\n"
		 "flags\t\t: fpu intel_ptx tsc\n\nprocessor\t: 1\nflags\t\t: intel_pt\n",
		 "this CPU (Xeon(R) %s) does not have it, or its firmware"},
		{"vendor_id\t: GenuineIntel\nflags\t\t: fpu hypervisor tsc\n",
		 "virtual machine that hides it"},
		{"vendor_id\t: GenuineIntel\nflags\t\t: fpu intel_pt\n",
		 "kernel offers no intel_pt PMU"},
		{"vendor_id\t: GenuineIntel\nflags\t\t: hypervisor intel_pt\n",
		 "kernel offers no intel_pt PMU"},
		{"vendor_id\t: GenuineIntel\n\nprocessor\t: 1\nflags\t\t: intel_pt\n",
		 "(unknown model) does not have it"},
		{"vendor_id\t: GenuineIntel\n", "(unknown model) does not have it"},
		{"", "vendor is unknown"},
		{"\n\n\n", "vendor is unknown"},
	};
	char *root = tree_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char why[512];

		tree_write(root, "cpuinfo", cases[i].cpuinfo);
		assert_int_equal(explain(root, why, sizeof(why)), -ENODEV);
		if (strstr(why, cases[i].says) == NULL)
			fail_msg("%s", why);
		assert_non_null(strstr(why, "--source=emulated"));
		assert_null(strchr(why, '\n'));
	}
	tree_free(root);
}

static void source_perf_explain_no_cpuinfo_is_said(void **state)
{
	char *root = tree_new();
	char why[512];

	(void)state;
	assert_int_equal(explain(root, why, sizeof(why)), -ENODEV);
	assert_non_null(strstr(why, "cpuinfo"));
	assert_non_null(strstr(why, "No such file"));
	tree_free(root);
}

static void source_perf_explain_pmu_there_needs_no_words(void **state)
{
	char *root = tree_new();
	char why[512];

	(void)state;
	tree_write(root, "cpuinfo", "vendor_id\t: GenuineIntel\n");
	tree_write(root, "intel_pt/type", "8\n");
	assert_int_equal(explain(root, why, sizeof(why)), -EBADMSG);
	assert_non_null(strstr(why, "not understood"));
	tree_write(root, "intel_pt/format/tsc", "config:10\n");
	assert_int_equal(explain(root, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	tree_free(root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_perf_explain_cpu_without_pmu_says_why_and_what_to_do),
		cmocka_unit_test(source_perf_explain_no_cpuinfo_is_said),
		cmocka_unit_test(source_perf_explain_pmu_there_needs_no_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
