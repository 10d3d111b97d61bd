/*
 * Everything else that tracing depends on: rights, perf events, memory, CPUs, clock, storage.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "tests/unit/daemon/check_fixture.h"

#define NO_CAPABILITIES	       "0000000000000000"
#define ONLY_PERFMON	       "0000004000000000"
#define ALL		       "000001ffffffffff"
#define ONLY_PERFMON_AND_ADMIN "0000004000200000"
#define ALL_BUT_IPC	       "000001ffffdfbfff" /* neither CAP_SYS_ADMIN nor CAP_IPC_LOCK */

static void paranoid(struct check_fixture *f, const char *value)
{
	tree_write(f->root, "proc/sys/kernel/perf_event_paranoid", value);
}

static void refuse(int error)
{
	fake_perf.open_sideband = error;
	for (size_t i = 0; i < FAKE_PERF_CPUS; i++)
		fake_perf.open_pt[i] = error;
}

static void check_host_without_rights_says_to_be_root(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, NO_CAPABILITIES, 0);
	refuse(-EACCES);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "paranoid", "is 2 and this process has neither",
			     "as root");
	check_fixture_expect(f, FINDING_FAILURE, "sideband", "Permission denied", "see above");
	check_fixture_expect_none(f, "seccomp");
	check_fixture_expect_none(f, "pt");
}

static void check_host_without_rights_where_all_may_trace_is_fine(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, NO_CAPABILITIES, 0);
	paranoid(f, "-1\n");
	check_fixture_run(f);
	assert_int_equal(f->failures, 0);
	check_fixture_expect(f, FINDING_OK, "paranoid", "is -1", NULL);
	check_fixture_expect(f, FINDING_OK, "memlock", "can be locked", NULL);
}

static void check_host_with_perfmon_at_2_is_fine(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ALL_BUT_IPC, 0);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "paranoid", "CAP_PERFMON overrides it", NULL);
}

static void check_host_with_perfmon_at_debians_3_names_the_sysctl(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ONLY_PERFMON, 0);
	paranoid(f, "3\n");
	refuse(-EACCES);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "paranoid", "is 3: from 3 on",
			     "sysctl kernel.perf_event_paranoid=2 (price: every user");
	check_fixture_expect(f, FINDING_FAILURE, "paranoid", "",
			     "CAP_SYS_ADMIN for the unit (price: the recorder is nearly root)");
	check_fixture_expect(f, FINDING_FAILURE, "paranoid", "", "drop-ins/paranoid3.conf");
	check_fixture_expect_none(f, "seccomp");
}

static void check_host_with_perfmon_at_a_4_that_lets_it_pass_notes_it(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ONLY_PERFMON, 0);
	paranoid(f, "4\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "paranoid", "not always enough", "CAP_SYS_ADMIN");
}

static void check_host_of_root_at_3_tells_what_the_unit_will_need(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ALL, 0);
	paranoid(f, "3\n");
	check_fixture_run(f);
	assert_int_equal(f->failures, 0);
	check_fixture_expect(f, FINDING_NOTE, "paranoid", "ptsnapd.service does not have",
			     "60-ptsnap-paranoid.conf, drop-ins/paranoid3.conf");
	/* The service with the drop-in paranoid3.conf. */
	check_fixture_status(f, ONLY_PERFMON_AND_ADMIN, 0);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "paranoid", "CAP_SYS_ADMIN overrides it", NULL);
}

static void check_host_without_perf_events_says_what_kernel_to_run(void **state)
{
	struct check_fixture *f = *state;

	paranoid(f, "");
	refuse(-ENOSYS);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "paranoid", "no perf events",
			     "CONFIG_PERF_EVENTS=y");
}

static void check_host_names_what_missing_capabilities_cost(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ONLY_PERFMON, 0);
	f->config.trace = SOURCE_TRACE_BOTH;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "capabilities", "CAP_SYSLOG (names of",
			     "AmbientCapabilities=");
	check_fixture_expect(f, FINDING_WARNING, "capabilities", "CAP_SYS_PTRACE", "");
	check_fixture_expect(f, FINDING_WARNING, "capabilities", "CAP_CHECKPOINT_RESTORE", "");
	check_fixture_expect(f, FINDING_WARNING, "capabilities", "CAP_SYS_RAWIO", "");
}

static void check_host_in_a_container_names_its_profile(void **state)
{
	static const int errors[] = {-EPERM, -EACCES, -ENOSYS};
	struct check_fixture *f = *state;

	check_fixture_status(f, "000001ffffffffff", 2);
	for (size_t i = 0; i < 3; i++) {
		refuse(errors[i]);
		check_fixture_run(f);
		check_fixture_expect(f, FINDING_FAILURE, "seccomp", "a seccomp filter",
				     "--cap-add PERFMON");
	}
}

static void check_host_refused_without_a_filter_names_security_modules(void **state)
{
	struct check_fixture *f = *state;

	refuse(-EACCES);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "seccomp", "a security module", "ausearch");
}

static void check_host_in_a_user_namespace_says_so(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/self/uid_map", "         0       1000          1\n");
	check_fixture_run(f);
	check_fixture_expect_none(f, "namespace");
	refuse(-EACCES);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "namespace", "in a user namespace", "outside");
	check_fixture_expect_none(f, "seccomp");
}

static void check_host_under_lockdown_matters_for_the_kernels_trace(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "lockdown", "all the same", NULL);
	f->config.trace = SOURCE_TRACE_KERNEL;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "lockdown", "/proc/kcore is closed",
			     "lockdown=integrity");
	tree_write(f->root, "sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	check_fixture_run(f);
	check_fixture_expect_none(f, "lockdown");
}

static void check_host_of_user_code_says_nothing_of_the_kernels(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_run(f);
	check_fixture_expect_none(f, "kallsyms");
	check_fixture_expect_none(f, "kernel-text");
}

static void check_host_with_hidden_symbols_names_what_shows_them(void **state)
{
	struct check_fixture *f = *state;

	f->config.trace = SOURCE_TRACE_BOTH;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kallsyms", "cannot be read", "CONFIG_KALLSYMS");
	tree_write(f->root, "proc/kallsyms",
		   "0000000000000000 A fixed_percpu_data\n0000000000000000 T _text\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kallsyms", "hides its addresses", "CAP_SYSLOG");
	tree_write(f->root, "proc/kallsyms",
		   "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "kallsyms", "can be read", NULL);
}

static void check_host_without_kcore_says_what_the_files_give(void **state)
{
	struct check_fixture *f = *state;
	struct utsname u;
	char path[256];

	uname(&u);
	f->config.trace = SOURCE_TRACE_KERNEL;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kernel-text", "no vmlinux", "CAP_SYS_RAWIO");
	check_fixture_expect(f, FINDING_WARNING, "kernel-text", "",
			     "drop-ins/kernel-text.conf; price: ");
	snprintf(path, sizeof(path), "boot/vmlinuz-%s", u.release);
	tree_write(f->root, path, "MZ");
	tree_write(f->root, "proc/modules", "a 1 0 - Live 0x1000\nb 1 0 - Live 0x2000\n");
	snprintf(path, sizeof(path), "lib/modules/%s/modules.dep", u.release);
	tree_write(f->root, path, "kernel/a.ko:\nkernel/b.ko.xz:\n");
	snprintf(path, sizeof(path), "lib/modules/%s/kernel/a.ko", u.release);
	tree_write(f->root, path, "ELF");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kernel-text", "1 of 2 modules", "CAP_SYS_RAWIO");
}

static void check_host_on_an_old_kernel_names_what_it_does_not_tell(void **state)
{
	struct check_fixture *f = *state;

	fake_perf.unknown_bits = PERF_ATTR_TEXT_POKE | PERF_ATTR_CGROUP;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "sideband", "text_poke,cgroup", "newer kernel");
	assert_int_equal(f->failures, 0);
}

static void check_host_where_pt_is_busy_names_who_holds_events(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/4711/comm", "perf\n");
	tree_symlink(f->root, "proc/4711/fd/7", "anon_inode:[perf_event]");
	fake_perf.open_pt[0] = -EBUSY;
	fake_perf.open_lbr = -EBUSY;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "perf (pid 4711)", "as soon as it is free");
}

/* The host of the fixture is a Skylake. */
static void check_host_names_branch_records_that_exclude_pt(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "lbr", "perf record -b", "ptsnapctl yield");
	assert_int_equal(f->failures, 0);
	fake_perf.open_pt[0] = -EBUSY;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "branch records (LBR) are in use",
			     "end what records branches");
	/* LBR cannot be had either: Intel PT is in use. */
	fake_perf.open_lbr = -EBUSY;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "in use by somebody else",
			     "end the program that traces");
	/* Ice Lake has both at once. */
	fake_perf.open_lbr = 0;
	check_fixture_cpu(f, "GenuineIntel", 0x6a, "intel_pt");
	check_fixture_run(f);
	check_fixture_expect_none(f, "lbr");
	check_fixture_expect(f, FINDING_FAILURE, "pt", "in use by somebody else",
			     "end the program that traces");
}

static void check_host_where_a_recorder_has_pt_is_fine(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/4711/comm", "ptsnapd\n");
	tree_symlink(f->root, "proc/4711/fd/7", "anon_inode:[perf_event]");
	fake_perf.open_pt[0] = -EBUSY;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "pt", "ptsnapd (pid 4711)", NULL);
	assert_int_equal(f->failures, 0);
}

static void check_host_leaves_pt_alone_when_told_so(void **state)
{
	struct check_fixture *f = *state;

	fake_perf.open_pt[0] = -EBUSY;
	f->paths.leave_pt = true;
	check_fixture_run(f);
	check_fixture_expect_none(f, "pt");
	assert_int_equal(f->failures, 0);
}

static void check_host_traces_itself_to_see_that_the_unit_writes(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "silent", "writes while code runs there", NULL);
	fake_perf.mute = true;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "silent", "wrote nothing while code ran there",
			     "grep -w PT");
	assert_int_equal(f->failures, 0);
	fake_perf.refuse[0] = PERF_EVENT_RESTARTS;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "silent", "and does not run it", "grep -w PT");
	assert_int_equal(fake_perf_open_events(), 0);
}

static void check_host_says_what_refuses_the_pt_event(void **state)
{
	struct check_fixture *f = *state;

	fake_perf.open_pt[0] = -EINVAL;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "with this configuration", "Terms=");
	fake_perf.open_pt[0] = -EACCES;
	f->config.trace = SOURCE_TRACE_BOTH;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "refused", "Trace=user");
	fake_perf.open_pt[0] = -ENOMEM;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "pt", "Cannot allocate memory", "dmesg");
}

static void check_host_with_terms_of_another_cpu_lists_the_valid_ones(void **state)
{
	struct check_fixture *f = *state;

	f->config.pt_terms = "tsc,mtc,mtc_period=17";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "terms", "mtc_period", "Terms=");
}

static void check_host_with_costly_mtcs_says_how_much(void **state)
{
	struct check_fixture *f = *state;

	f->config.pt_terms = "tsc,mtc,mtc_period=0";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "mtc", "kB/s", "mtc_period=");
}

static void check_host_on_broadwell_knows_no_mtc_and_small_rings(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, "broadwell");
	check_fixture_cpu(f, "GenuineIntel", 61, "intel_pt");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "timing", "no MTC packets", NULL);
	check_fixture_expect(f, FINDING_WARNING, "budget", "one block only", "--aux-size=");
	assert_int_equal(f->failures, 0);
}

static void check_host_with_kvm_where_vmx_stops_pt_says_so(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, "broadwell");
	check_fixture_cpu(f, "GenuineIntel", 61, "intel_pt");
	tree_write(f->root, "sys/module/kvm_intel/parameters/pt_mode", "0\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kvm", "cannot trace while KVM uses it",
			     "modprobe -r kvm_intel");
}

static void check_host_with_kvm_believes_the_msr(void **state)
{
	static const uint8_t misc[0x485 + 8] = {[0x485 + 1] = 0x40};
	struct check_fixture *f = *state;

	tree_write(f->root, "sys/module/kvm_intel/parameters/pt_mode", "0\n");
	tree_write_bytes(f->root, "dev/cpu/0/msr", misc, sizeof(misc));
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "kvm", "goes on with it", NULL);
	tree_write_bytes(f->root, "dev/cpu/0/msr", (const uint8_t[0x485 + 8]){0}, 0x485 + 8);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kvm", "cannot trace", "modprobe -r");
}

static void check_host_with_kvm_that_gives_pt_to_guests_says_so(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "sys/module/kvm_intel/parameters/pt_mode", "1\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "kvm", "pt_mode=1", "pt_mode=0");
}

static void check_host_without_locked_memory_does_the_sum(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ALL_BUT_IPC, 0);
	check_fixture_run(f);
	/* 4 x (8 MiB + 512 KiB + 16 KiB + 2 pages) against 8 MiB + 4 x 516 KiB. */
	check_fixture_expect(f, FINDING_WARNING, "memlock", "need 34.1 MiB", "--aux-size=1024K");
	check_fixture_expect(f, FINDING_WARNING, "memlock", "10.0 MiB are allowed",
			     "LimitMEMLOCK=infinity");
	tree_write(f->root, "proc/self/limits",
		   "Max locked memory         9000000      0     bytes\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "memlock", "smaller", "LimitMEMLOCK");
	tree_write(f->root, "proc/self/limits",
		   "Max locked memory         unlimited            unlimited            bytes\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "memlock", "can be locked", NULL);
	tree_write(f->root, "proc/self/limits", "Max locked memory         0      0     bytes\n");
	tree_write(f->root, "proc/sys/kernel/perf_event_mlock_kb", "0\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_FAILURE, "memlock", "0 bytes are allowed",
			     "LimitMEMLOCK=infinity");
	check_fixture_expect(f, FINDING_FAILURE, "memlock", "no CPU can be traced", "LimitMEMLOCK");
}

static void check_host_without_real_time_priority_says_so(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/self/limits", "Max realtime priority     1            1\n");
	check_fixture_status(f, "0000000000000000", 0);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "priority", "may have real-time priority", NULL);
	tree_write(f->root, "proc/self/limits", "Max realtime priority     0            0\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "priority", "dark for longer", "LimitRTPRIO=1");
	check_fixture_status(f, "0000000000800000", 0);
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "priority", "may have real-time priority", NULL);
}

static void check_host_for_some_cpus_may_lock_what_all_give(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_status(f, ALL_BUT_IPC, 0);
	tree_write(f->root, "proc/self/limits", "Max locked memory         0      0     bytes\n");
	tree_write(f->root, "proc/sys/kernel/perf_event_mlock_kb", "2260\n");
	f->config.cpus = "0";
	check_fixture_run(f);
	/* 8 MiB + 512 KiB + 16 KiB + 2 pages against 4 x 2260 KiB. */
	check_fixture_expect(f, FINDING_OK, "memlock", "8.5 MiB of rings can be locked", NULL);
	tree_write(f->root, "proc/sys/kernel/perf_event_mlock_kb", "1024\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "memlock", "for each of 4 CPUs", "LimitMEMLOCK");
}

static void check_host_with_little_memory_says_what_fits(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/meminfo", "MemTotal:        1000000 kB\n");
	f->config.aux_size = 64u << 20;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "budget", "instead of 64M", "RingBudget=");
	f->config.ring_budget = 4ull << 30;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "budget", "of 977 MiB of memory", "RingBudget=");
}

static void check_host_with_few_descriptors_says_how_many(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "proc/self/limits",
		   "Max locked memory         8388608              8388608              bytes\n"
		   "Max open files            16                   32                   files\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "files", "32 open files", "LimitNOFILE=");
}

static void check_host_notes_cpus_that_are_away_or_apart(void **state)
{
	struct check_fixture *f = *state;

	tree_write(f->root, "sys/devices/system/cpu/offline", "4-7\n");
	tree_write(f->root, "sys/devices/system/cpu/isolated", "2-3\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "offline", "CPUs 4-7", NULL);
	check_fixture_expect(f, FINDING_NOTE, "isolated", "CPUs 2-3", "CPUs=");
	f->config.cpus = "0-1";
	check_fixture_run(f);
	check_fixture_expect_none(f, "isolated");
	check_fixture_expect(f, FINDING_OK, "budget", "on 2 CPUs", NULL);
}

static void check_host_on_a_hybrid_names_the_other_kind(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, "alderlake");
	tree_write(f->root, "sys/devices/system/cpu/online", "0-23\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "hybrid", "CPUs 16-23", NULL);
	assert_int_equal(f->failures, 0);
}

static void check_host_without_a_good_tsc_says_so(void **state)
{
	struct check_fixture *f = *state;

	fake_perf.time_zero = false;
	tree_write(f->root, "sys/devices/system/clocksource/clocksource0/current_clocksource",
		   "hpet\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "clock", "(clocksource hpet)", "tsc=reliable");
	fake_perf.time_zero = true;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "clock", "hpet, not tsc", "tsc=reliable");
}

static void check_host_without_the_crystals_ratio_says_so(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_pmu(f, NULL);
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/type", "8\n");
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/caps/mtc", "1\n");
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/caps/mtc_periods", "249\n");
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/format/mtc", "config:9\n");
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/format/tsc", "config:10\n");
	tree_write(f->root, "sys/bus/event_source/devices/intel_pt/format/mtc_period",
		   "config:14-17\n");
	f->machine.n_kinds = 0;
	f->config.pt_terms = "tsc,mtc,mtc_period=3";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "crystal", "tsc_art_ratio", "without mtc");
}

static void check_host_with_a_full_disk_says_what_a_snapshot_takes(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_free = 50u << 20;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "state-dir", "50.0 MiB free", "make room");
	check_fixture_free = UINT64_MAX;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "state-dir", "Input/output error", "--state-dir");
}

static void check_host_without_a_decoder_names_the_option(void **state)
{
	struct check_fixture *f = *state;

	f->config.worker = "/nowhere/ptsnap-decode";
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "decoder", "cannot be decoded", "--worker=");
}

static void check_host_where_openat2_is_denied_says_what_it_costs(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_run(f);
	check_fixture_expect(f, FINDING_OK, "lookup", "can be looked up", NULL);
	check_fixture_look_up = -ENOSYS;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "lookup", "programs that exit at once",
			     "RestrictSUIDSGID=");
}

static void check_host_judges_the_decoders_sandbox(void **state)
{
	struct check_fixture *f = *state;

	check_fixture_landlock = -ENOSYS;
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_NOTE, "sandbox", "no Landlock", "lsm=landlock");
	tree_write(f->root, "proc/sys/kernel/seccomp/actions_avail", "kill_thread\n");
	check_fixture_run(f);
	check_fixture_expect(f, FINDING_WARNING, "sandbox", "no seccomp", "CONFIG_SECCOMP_FILTER");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, check_fixture_setup, check_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(check_host_without_rights_says_to_be_root),
		TEST(check_host_without_rights_where_all_may_trace_is_fine),
		TEST(check_host_with_perfmon_at_2_is_fine),
		TEST(check_host_with_perfmon_at_debians_3_names_the_sysctl),
		TEST(check_host_with_perfmon_at_a_4_that_lets_it_pass_notes_it),
		TEST(check_host_of_root_at_3_tells_what_the_unit_will_need),
		TEST(check_host_without_perf_events_says_what_kernel_to_run),
		TEST(check_host_names_what_missing_capabilities_cost),
		TEST(check_host_in_a_container_names_its_profile),
		TEST(check_host_refused_without_a_filter_names_security_modules),
		TEST(check_host_in_a_user_namespace_says_so),
		TEST(check_host_under_lockdown_matters_for_the_kernels_trace),
		TEST(check_host_of_user_code_says_nothing_of_the_kernels),
		TEST(check_host_with_hidden_symbols_names_what_shows_them),
		TEST(check_host_without_kcore_says_what_the_files_give),
		TEST(check_host_on_an_old_kernel_names_what_it_does_not_tell),
		TEST(check_host_where_pt_is_busy_names_who_holds_events),
		TEST(check_host_names_branch_records_that_exclude_pt),
		TEST(check_host_where_a_recorder_has_pt_is_fine),
		TEST(check_host_leaves_pt_alone_when_told_so),
		TEST(check_host_traces_itself_to_see_that_the_unit_writes),
		TEST(check_host_says_what_refuses_the_pt_event),
		TEST(check_host_with_terms_of_another_cpu_lists_the_valid_ones),
		TEST(check_host_with_costly_mtcs_says_how_much),
		TEST(check_host_on_broadwell_knows_no_mtc_and_small_rings),
		TEST(check_host_with_kvm_where_vmx_stops_pt_says_so),
		TEST(check_host_with_kvm_believes_the_msr),
		TEST(check_host_with_kvm_that_gives_pt_to_guests_says_so),
		TEST(check_host_without_locked_memory_does_the_sum),
		TEST(check_host_without_real_time_priority_says_so),
		TEST(check_host_for_some_cpus_may_lock_what_all_give),
		TEST(check_host_with_little_memory_says_what_fits),
		TEST(check_host_with_few_descriptors_says_how_many),
		TEST(check_host_notes_cpus_that_are_away_or_apart),
		TEST(check_host_on_a_hybrid_names_the_other_kind),
		TEST(check_host_without_a_good_tsc_says_so),
		TEST(check_host_without_the_crystals_ratio_says_so),
		TEST(check_host_with_a_full_disk_says_what_a_snapshot_takes),
		TEST(check_host_without_a_decoder_names_the_option),
		TEST(check_host_where_openat2_is_denied_says_what_it_costs),
		TEST(check_host_judges_the_decoders_sandbox),
	};

	return cmocka_run_group_tests_name("check_host", tests, NULL, NULL);
}
