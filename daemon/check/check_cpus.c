/*
 * Which CPUs there are and of what kinds, and what KVM does to their tracing. Called by check.c.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/check/check_private.h"

/* SDM volume 3, A.6: IA32_VMX_MISC, bit 14: tracing goes on in VMX operation. */
#define MSR_VMX_MISC 0x485
#define VMX_MISC_PT  14

static void check_offline(struct check *c)
{
	char text[256];

	check_read(c->paths->sys, "devices/system/cpu/offline", text, sizeof(text));
	if (*text)
		check_say(c, FINDING_NOTE, "offline", "",
			  "CPUs %s are offline; they are traced when they come", text);
}

/* source_perf_choose.c refuses to start then. */
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

/* Somebody has set these apart from the rest of the host; he may not want them disturbed. A read of
 * an event is an interrupt on its CPU: kernel/events/core.c, perf_event_read. */
static void check_isolated(struct check *c)
{
	char text[256], fix[320];

	if (c->config->cpus)
		return;
	if (check_read(c->paths->sys, "devices/system/cpu/isolated", text, sizeof(text)) <= 0)
		check_read(c->paths->sys, "devices/system/cpu/nohz_full", text, sizeof(text));
	if (!*text || strstr(text, "null"))
		return;
	snprintf(fix, sizeof(fix), "CPUs= (--cpus=) with the CPUs to trace, to leave them out");
	check_say(
		c, FINDING_NOTE, "isolated", fix,
		"CPUs %s are isolated; they are traced, too: each is interrupted every 10 s to see "
		"that it still is, and stopped for each snapshot",
		text);
}

/* Hybrid CPUs, or boards with processors of two kinds. What one of them lacks is not asked for. */
static void check_hybrid(struct check *c)
{
	struct cpuid_group groups[2];
	size_t n = cpuid_differences(c->cpuids, c->n_cpuids, groups, ARRAY_SIZE(groups));

	for (size_t i = 0; i < MIN_OF(n, ARRAY_SIZE(groups)); i++)
		check_say(c, FINDING_NOTE, "hybrid", "",
			  "CPUs %s are of another kind than CPU %u (%s); what only some can do is "
			  "left out",
			  groups[i].cpus, c->cpuids[0].cpu, groups[i].text);
}

/* The models that had Intel PT before it could go on in VMX operation: Broadwell's. */
static bool is_broadwell(const struct check *c)
{
	static const uint64_t models[] = {0x3d, 0x47, 0x4f, 0x56};

	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (c->family == 6 && c->model == models[i])
			return true;
	return false;
}

static bool traces_with_vmx(const struct check *c)
{
	char path[PATH_MAX];
	uint64_t value;
	CLEANUP_CLOSE int fd = -EBADF;

	snprintf(path, sizeof(path), "%s/cpu/%u/msr", c->paths->dev, check_first_cpu(c));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && pread(fd, &value, sizeof(value), MSR_VMX_MISC) == sizeof(value))
		return value >> VMX_MISC_PT & 1;
	return !is_broadwell(c);
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
			"this CPU cannot trace while KVM has it: with kvm_intel loaded, and at the "
			"latest while a virtual machine runs, the trace has gaps (aux-partial)");
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
	if (c->emulated)
		return;
	check_wanted(c);
	check_offline(c);
	check_isolated(c);
	if (c->cpuids && c->have_pmu)
		check_hybrid(c);
	check_kvm(c);
}
