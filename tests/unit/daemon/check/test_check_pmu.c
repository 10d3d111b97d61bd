/*
 * Why there is no Intel PT: each cause by itself, with its own words and its own fix.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "tests/unit/daemon/check_fixture.h"

static void check_host_where_all_is_well_has_no_failure(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_run(f);
	assert_int_equal(f->failures, 0);
	/* A Skylake has either Intel PT or LBR, however well it is. */
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].level != FINDING_OK && strcmp(f->all[i].what, "lbr") != 0)
			fail_msg("%s: %s", f->all[i].what, f->all[i].text);
	check_fixture_expect(f, FINDING_OK, "pmu", "intel_pt is here (type 8", NULL);
	check_fixture_expect(f, FINDING_OK, "pt", "can be taken", NULL);
	check_fixture_expect(f, FINDING_OK, "sideband", "has all records", NULL);
	check_fixture_expect(f, FINDING_OK, "clock", "follows the TSC", NULL);
	check_fixture_expect(f, FINDING_OK, "mtc", "kB/s a CPU", NULL);
	check_fixture_expect(f, FINDING_OK, "memlock", "34.1 MiB", NULL);
}

static void check_host_on_another_vendors_cpu_says_so(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "AuthenticAMD", 1, "hypervisor");
	check_fixture_run(f);
	assert_int_equal(f->failures, 1);
	check_fixture_expect(f, FINDING_FAILURE, "pmu",
			     "not an Intel CPU (AuthenticAMD, A CPU of some kind)",
			     "ptsnapd -- COMMAND");
}

static void check_host_on_a_cpu_without_pt_names_those_that_have_it(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "GenuineIntel", 60, "");
	f->machine.n_kinds = 0; /* CPUID cannot be read */
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "has none, or its firmware",
			     "from Broadwell");
}

static void check_host_where_the_kernel_ignores_pt_names_its_command_line(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "GenuineIntel", 94, "");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "told to ignore it", "clearcpuid=");
}

static void hypervisor(struct check_fixture *f, const char *name)
{
	char text[12] = {0};

	memcpy(text, name, strlen(name));
	memcpy(&f->hypervisor.ebx, text, 4);
	memcpy(&f->hypervisor.ecx, text + 4, 4);
	memcpy(&f->hypervisor.edx, text + 8, 4);
}

static void check_host_in_a_virtual_machine_names_the_hypervisor(void **state)
{
	static const struct {
		const char *signature, *text, *fix;
	} cases[] = {
		{"KVMKVMKVM", "(KVM; QEMU Standard PC)", "before Linux 6.12"},
		{"Microsoft Hv", "(Hyper-V;", "Set-VMProcessor NAME -Perfmon"},
		{"VMwareVMware", "(VMware;", "on the host"},
		{"XenVMMXenVMM", "(Xen;", "on the host"},
		{"TCGTCGTCGTCG", "(QEMU without KVM;", "on the host"},
		{"Somebody's", "(Somebody's;", "on the host"},
		{"", "(of an unknown hypervisor;", "on the host"},
	};
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "GenuineIntel", 94, "hypervisor");
	tree_write(f->root, "sys/class/dmi/id/sys_vendor", "QEMU\n");
	tree_write(f->root, "sys/class/dmi/id/product_name", "Standard PC\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		hypervisor(f, cases[i].signature);
		check_fixture_run(f);
		check_fixture_expect(f, FINDING_FAILURE, "pmu", cases[i].text, cases[i].fix);
	}
}

static void check_host_in_a_cloud_names_what_to_rent(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "GenuineIntel", 94, "hypervisor");
	hypervisor(f, "KVMKVMKVM");
	tree_write(f->root, "sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "(KVM; Amazon EC2", ".metal");
}

static void check_host_in_dom0_of_xen_says_so(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "GenuineIntel", 94, "");
	tree_write(f->root, "proc/xen/capabilities", "control_d\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "dom0 of Xen", "without Xen");
}

static void check_host_where_the_firmware_has_pt_names_its_setup(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	tree_write(f->root, "dev/kmsg",
		   "6,1,1,-;Linux version\n4,9,9,-;PT is enabled at boot time, doing nothing\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "the firmware has switched Intel PT on",
			     "firmware's setup");
}

static void check_host_without_topa_says_that_it_is_for_ever(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	tree_write(f->root, "dev/kmsg", "4,9,9,-;ToPA output is not supported on this CPU\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "(ToPA)", "ptsnapd -- COMMAND");
}

static void check_host_with_a_kernel_without_the_driver_names_its_options(void **state)
{
	struct check_fixture *f = *state;
	char path[sizeof(struct utsname) + 16];
	struct utsname u;

	check_fixture_pmu(f, NULL);
	uname(&u);
	snprintf(path, sizeof(path), "boot/config-%s", u.release);
	tree_write(f->root, path, "#\nCONFIG_PERF_EVENTS=y\n# CONFIG_CPU_SUP_INTEL is not set\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "built without its driver",
			     "CONFIG_CPU_SUP_INTEL=y");
}

static void check_host_without_the_kernels_log_says_where_to_look(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	f->paths.dev = "/nowhere";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "which cannot be read here",
			     "dmesg | grep -w PT");
}

static void check_host_with_a_pmu_of_nonsense_does_not_use_it(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/type", "eight\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "not understood", NULL);
}

static void check_host_for_the_emulated_source_takes_no_pt_for_a_note(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "AuthenticAMD", 1, "");
	f->config.source = CONFIG_EMULATED;
	f->config.emu_qemu = "/nowhere/qemu";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "pmu", "not an Intel CPU", "ptsnapd -- COMMAND");
	check_fixture_expect(f, FINDING_FAILURE, "emulator", "", "qemu-user");
	assert_int_equal(f->failures, 1);
	check_fixture_expect_none(f, "memlock");
}

static void check_host_for_auto_with_a_command_needs_no_pt(void **state)
{
	static char *const command[] = {"true", NULL};
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "AuthenticAMD", 1, "");
	f->config.source = CONFIG_AUTO;
	f->config.command = command;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "pmu", "not an Intel CPU", "ptsnapd -- COMMAND");
}

static void check_host_makes_names_of_strangers_printable(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	check_fixture_cpu(f, "\033[31mEvil\377\177", 1, "");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pmu", "(?[31mEvil??,", "ptsnapd -- COMMAND");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_fixture_setup, check_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(check_host_where_all_is_well_has_no_failure),
		TEST(check_host_on_another_vendors_cpu_says_so),
		TEST(check_host_on_a_cpu_without_pt_names_those_that_have_it),
		TEST(check_host_where_the_kernel_ignores_pt_names_its_command_line),
		TEST(check_host_in_a_virtual_machine_names_the_hypervisor),
		TEST(check_host_in_a_cloud_names_what_to_rent),
		TEST(check_host_in_dom0_of_xen_says_so),
		TEST(check_host_where_the_firmware_has_pt_names_its_setup),
		TEST(check_host_without_topa_says_that_it_is_for_ever),
		TEST(check_host_with_a_kernel_without_the_driver_names_its_options),
		TEST(check_host_without_the_kernels_log_says_where_to_look),
		TEST(check_host_with_a_pmu_of_nonsense_does_not_use_it),
		TEST(check_host_for_the_emulated_source_takes_no_pt_for_a_note),
		TEST(check_host_for_auto_with_a_command_needs_no_pt),
		TEST(check_host_makes_names_of_strangers_printable),
	};

	return cmocka_run_group_tests_name("check_pmu", tests, NULL, NULL);
}
