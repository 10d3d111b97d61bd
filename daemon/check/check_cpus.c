/*
 * Finds the CPUs and their kinds, what KVM does to their tracing, and whether times of the trace
 * can be converted to times of the host.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/perf_event.h"
#include "capture/perf/pmu.h"
#include "capture/proc/budget.h"
#include "daemon/check/check_private.h"
#include "proto/perf/perfrecord.h"

/* SDM volume 3, A.6: IA32_VMX_MISC, bit 14: Intel PT works in VMX operation. */
#define MSR_VMX_MISC 0x485
#define VMX_MISC_PT  14

/* The recorder refuses to start with a CPU that is not there (source_perf_choose.c). */
static void check_wanted(struct check *c)
{
	struct cpulist present, wanted;
	char text[CHECK_TEXT_MAX];

	if (!c->config->cpus || cpulist_parse(c->config->cpus, &wanted) < 0)
		return;
	check_read(c->paths->sys, "devices/system/cpu/present", text, sizeof(text));
	if (cpulist_parse(text, &present) < 0 || cpulist_count(&present) == 0)
		return;
	for (uint32_t cpu = 0; cpu < CPULIST_MAX; cpu++)
		if (cpulist_has(&wanted, cpu) && !cpulist_has(&present, cpu)) {
			check_say(c, FINDING_FAILURE, "cpus", "change CPUs= (--cpus=)",
				  "CPUs=%s: this host has no CPU %u, only %s", c->config->cpus, cpu,
				  text);
			return;
		}
}

/* The owner of the host may not want isolated CPUs disturbed. Reading an event interrupts its CPU:
 * kernel/events/core.c, perf_event_read. */
static void check_isolated(struct check *c)
{
	char text[256];

	if (c->config->cpus)
		return;
	if (check_read(c->paths->sys, "devices/system/cpu/isolated", text, sizeof(text)) <= 0)
		check_read(c->paths->sys, "devices/system/cpu/nohz_full", text, sizeof(text));
	if (!*text || strstr(text, "null"))
		return;
	check_say(
		c, FINDING_NOTE, "isolated",
		"CPUs= (--cpus=) with the CPUs to trace, to leave them out",
		"CPUs %s are isolated, and are traced, too: each is interrupted every 10 s to see "
		"that its trace goes on, and stopped for each snapshot",
		text);
}

/* Whether Intel PT works in VMX operation. Where IA32_VMX_MISC cannot be read, the models of
 * Broadwell are those that had Intel PT and lacked this. */
static bool traces_with_vmx(const struct check *c)
{
	static const uint64_t broadwell[] = {0x3d, 0x47, 0x4f, 0x56};
	char path[PATH_MAX];
	uint64_t value;
	CLEANUP_CLOSE int fd = -EBADF;

	snprintf(path, sizeof(path), "%s/cpu/%u/msr", c->paths->dev, check_first_cpu(c));
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && pread(fd, &value, sizeof(value), MSR_VMX_MISC) == sizeof(value))
		return value >> VMX_MISC_PT & 1;
	for (size_t i = 0; i < ARRAY_SIZE(broadwell); i++)
		if (c->family == 6 && c->model == broadwell[i])
			return false;
	return true;
}

/* arch/x86/events/intel/pt.c, intel_pt_handle_vmx; arch/x86/kvm/vmx/vmx.c, pt_guest_enter. */
static void check_kvm(struct check *c)
{
	int64_t pt_mode = 0;

	if (!c->have_pmu || !check_exists(c->paths->sys, "module/kvm_intel"))
		return;
	check_number(c->paths->sys, "module/kvm_intel/parameters/pt_mode", &pt_mode);
	if (!traces_with_vmx(c))
		check_say(
			c, FINDING_WARNING, "kvm", "modprobe -r kvm_intel",
			"this CPU cannot trace while KVM uses it: the trace has gaps (aux-partial) "
			"while a virtual machine runs, and maybe whenever kvm_intel is loaded");
	else if (pt_mode == 1)
		check_say(
			c, FINDING_WARNING, "kvm",
			"modprobe -r kvm_intel && modprobe kvm_intel pt_mode=0",
			"kvm_intel gives Intel PT to its guests (pt_mode=1): the host's trace has "
			"a gap while a guest runs");
	else
		check_say(c, FINDING_OK, "kvm", "", "kvm_intel is loaded; tracing goes on with it");
}

void check_cpus(struct check *c)
{
	struct cpuid_group groups[2];
	char offline[256];
	size_t n = 0;

	if (c->emulated)
		return;
	check_wanted(c);
	check_read(c->paths->sys, "devices/system/cpu/offline", offline, sizeof(offline));
	if (*offline)
		check_say(c, FINDING_NOTE, "offline", "",
			  "CPUs %s are offline; they are traced when they come", offline);
	check_isolated(c);
	/* Hybrid CPUs, or boards with processors of two kinds. */
	if (c->cpuids && c->have_pmu)
		n = cpuid_differences(c->cpuids, c->n_cpuids, groups, ARRAY_SIZE(groups));
	for (size_t i = 0; i < MIN_OF(n, ARRAY_SIZE(groups)); i++)
		check_say(c, FINDING_NOTE, "hybrid", "",
			  "CPUs %s are of another kind than CPU %u (%s); features that only some "
			  "CPUs have are not used",
			  groups[i].cpus, c->cpuids[0].cpu, groups[i].text);
	check_kvm(c);
}

/* Whether the kernel says how its clock follows from the TSC: arch/x86/events/core.c,
 * arch_perf_update_userpage. */
static bool kernel_converts(const struct check *c)
{
	static const uint64_t data = BUDGET_PAGE;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
	struct perf_event_attr attr;
	struct perf_event event;
	uint64_t aux = 0;
	bool ret;

	perf_attr_sideband(0, false, &attr);
	if (perf_event_start(&event, &attr, check_first_cpu(c), data, &aux, scratch) < 0)
		return true; /* check_events() has said so */
	ret = event.ring.page->cap_user_time_zero;
	perf_event_stop(&event);
	return ret;
}

static void check_source_of_time(struct check *c)
{
	char text[64];

	check_read(c->paths->sys, "devices/system/clocksource/clocksource0/current_clocksource",
		   text, sizeof(text));
	if (c->open_error == 0 && !kernel_converts(c))
		check_say(
			c, FINDING_WARNING, "clock",
			"dmesg | grep -i tsc; tsc=reliable on the kernel's command line if the "
			"firmware is to be trusted",
			"the kernel does not say how to convert the TSC to its clock (clocksource "
			"%s): times of the trace and the sideband cannot be compared, so threads "
			"cannot be told apart",
			*text ? text : "unknown");
	else if (*text && strcmp(text, "tsc") != 0)
		check_say(
			c, FINDING_WARNING, "clock",
			"dmesg | grep -i tsc; tsc=reliable on the kernel's command line if the "
			"firmware is to be trusted",
			"the clocksource is %s, not tsc: the kernel found the TSC unstable, times "
			"of the trace may drift from the host's",
			text);
	else
		check_say(c, FINDING_OK, "clock", "", "the kernel's clock follows the TSC");
}

void check_clock(struct check *c)
{
	uint64_t cost;

	if (c->emulated || !c->have_pmu)
		return;
	check_source_of_time(c);
	if (!c->have_config)
		return;
	/* SDM volume 2, CPUID, leaf 15H: EBX / EAX is TSC / crystal. */
	if (pmu_term_value(&c->pmu, c->pt_config, "mtc") != 0 &&
	    !(c->pmu.tsc_art_num && c->pmu.tsc_art_den))
		check_say(c, FINDING_WARNING, "crystal",
			  "Terms= without mtc, or with a smaller psb_period",
			  "the ratio of TSC and crystal is unknown (tsc_art_ratio): MTC packets "
			  "cannot be converted to times");
	cost = preset_mtc_cost(&c->pmu, c->pt_config);
	if (cost > PRESET_MTC_BYTES_PER_SECOND)
		check_say(
			c, FINDING_WARNING, "mtc", "a greater mtc_period= in Terms=, or Preset=std",
			"MTC packets cost %llu kB/s of each ring, also while a CPU is in the kernel",
			(unsigned long long)cost / 1000);
	else if (cost)
		check_say(c, FINDING_OK, "mtc", "", "MTC packets cost at most %llu kB/s a CPU",
			  (unsigned long long)(cost + 999) / 1000);
}
