/*
 * Why this host has no PT to record from, from what the kernel says of its CPU. Called by
 * source_perf.c where there is no PMU.
 */
#include "capture/perf/source_perf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/perf/pmu.h"
#include "capture/proc/procfile.h"

/* The first CPU's part, of which the flags are the longest line, is about 2 KiB. */
#define CPUINFO_MAX (16 * 1024)
#define ADVICE	    "; without it: --source=emulated -- COMMAND"

/* The value of KEY ("flags\t\t: a b c") for the first CPU, at most SIZE - 1 bytes; "" when it is
 * not there. */
static void find_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t length = strlen(key);

	ret[0] = '\0';
	for (const char *line = text; *line != '\0';) {
		size_t end = strcspn(line, "\n"), name = strcspn(line, "\t:\n");

		if (end == 0)
			return;
		if (name == length && memcmp(line, key, length) == 0) {
			const char *value = line + name + strspn(line + name, "\t: ");

			snprintf(ret, size, "%.*s", (int)strcspn(value, "\n"), value);
			return;
		}
		line += end + (line[end] == '\n');
	}
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	while (*text != '\0') {
		size_t end = strcspn(text, " ");

		if (end == length && memcmp(text, word, length) == 0)
			return true;
		text += end + (text[end] == ' ');
	}
	return false;
}

/* arch/x86/events/intel/pt.c, pt_init: the driver is part of every kernel with
 * CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL, and stays away when tracing is already on or ToPA is
 * missing. */
static void explain_cpu(const char *cpuinfo, char *why, size_t why_size)
{
	char vendor[64], model[64], flags[8192];

	find_value(cpuinfo, "vendor_id", vendor, sizeof(vendor));
	find_value(cpuinfo, "model name", model, sizeof(model));
	find_value(cpuinfo, "flags", flags, sizeof(flags));
	if (strcmp(vendor, "GenuineIntel") != 0)
		snprintf(why, why_size,
			 "no Intel PT: this CPU's vendor is %s, only Intel's have it%s",
			 vendor[0] ? vendor : "unknown", ADVICE);
	else if (has_word(flags, "intel_pt"))
		snprintf(
			why, why_size,
			"this CPU has Intel PT but the kernel offers no intel_pt PMU: its firmware "
			"or another tracer keeps PT switched on ('dmesg | grep -w PT' tells), or "
			"the kernel lacks CONFIG_PERF_EVENTS or CONFIG_CPU_SUP_INTEL%s",
			ADVICE);
	else if (has_word(flags, "hypervisor"))
		snprintf(
			why, why_size,
			"no Intel PT: this is a virtual machine that hides it; KVM shows it with "
			"kvm_intel.pt_mode=1 on the host and the intel-pt CPU feature in the guest%s",
			ADVICE);
	else
		snprintf(
			why, why_size,
			"no Intel PT: this CPU (%s) does not have it, or its firmware has switched "
			"it off%s",
			model[0] ? model : "unknown model", ADVICE);
}

int source_perf_explain(const char *cpuinfo, const char *pmu, char *why, size_t why_size)
{
	char text[CPUINFO_MAX];
	struct pmu offer;
	ssize_t n;
	int r = pmu_read(pmu, &offer);

	if (why_size > 0)
		why[0] = '\0';
	if (r == 0)
		return 0;
	if (r != -ENOENT) {
		snprintf(why, why_size, "the intel_pt PMU in %s cannot be read: %s%s", pmu,
			 r == -EBADMSG ? "its files are not understood" : strerror(-r), ADVICE);
		return r;
	}
	n = procfile_read(AT_FDCWD, cpuinfo, text, sizeof(text));
	if (n < 0) {
		snprintf(why, why_size,
			 "no intel_pt PMU, and %s, which would tell why, cannot be read: %s%s",
			 cpuinfo, strerror(n == -ESRCH ? ENOENT : (int)-n), ADVICE);
		return -ENODEV;
	}
	explain_cpu(text, why, why_size);
	return -ENODEV;
}
