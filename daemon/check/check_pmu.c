/*
 * Is there an intel_pt PMU, and if not, which of the many reasons it is.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/check/check_private.h"

#define PMU_PATH "bus/event_source/devices/intel_pt"
/* The kernel's log as far as we read it. */
#define LOG_MAX (1u << 20)

static bool cpuid_has_pt(const struct check *c)
{
	return c->n_cpuids > 0 && c->cpuids[0].has_pt;
}

/* Which of WORDS the kernel's log holds, -1: none, -EPERM...: it cannot be read. A record of
 * /dev/kmsg comes whole with each read(2), and none twice. */
static int log_find(const struct check *c, const char *const *words, size_t n, int *ret)
{
	char path[PATH_MAX], text[8192];
	size_t total = 0;
	CLEANUP_CLOSE int fd = -EBADF;

	*ret = -1;
	snprintf(path, sizeof(path), "%s/kmsg", c->paths->dev);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (total < LOG_MAX) {
		ssize_t got = read(fd, text, sizeof(text) - 1);

		if (got < 0 && errno == EPIPE)
			continue; /* overwritten under us: the next one follows */
		if (got <= 0)
			break;
		text[got] = '\0';
		total += (size_t)got;
		for (size_t i = 0; i < n; i++)
			if (strstr(text, words[i]))
				*ret = (int)i;
	}
	return 0;
}

/* CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL, where the kernel's configuration can be read. */
static bool config_lacks(const struct check *c, const char *option)
{
	CLEANUP_FREE char *text = malloc(1u << 20);
	char path[256], line[80];
	struct utsname u;

	if (!text || uname(&u) < 0)
		return false;
	snprintf(path, sizeof(path), "config-%s", u.release);
	if (check_read(c->paths->boot, path, text, 1u << 20) <= 0)
		return false;
	snprintf(line, sizeof(line), "\n%s=y\n", option);
	return !strstr(text, line);
}

/* arch/x86/events/intel/pt.c, pt_init: what keeps the driver away from a CPU that has PT. */
static void explain_kernel(struct check *c)
{
	static const char *const words[] = {"PT is enabled at boot time",
					    "ToPA output is not supported"};
	int found, r = log_find(c, words, ARRAY_SIZE(words), &found);

	if (found == 0)
		check_say(c, FINDING_FAILURE, "pmu",
			  "turn off processor trace in the firmware's setup and restart",
			  "the firmware has switched Intel PT on for itself (kernel log: PT is "
			  "enabled at boot time), so the kernel leaves it alone");
	else if (found == 1)
		check_say(c, FINDING_FAILURE, "pmu", CHECK_NO_COMMAND_FIX,
			  "this CPU's Intel PT cannot write to several places in memory (ToPA), "
			  "which the kernel needs");
	else if (config_lacks(c, "CONFIG_PERF_EVENTS") || config_lacks(c, "CONFIG_CPU_SUP_INTEL"))
		check_say(c, FINDING_FAILURE, "pmu",
			  "run a kernel with CONFIG_PERF_EVENTS=y and CONFIG_CPU_SUP_INTEL=y",
			  "this CPU has Intel PT, but this kernel is built without its driver");
	else if (r < 0)
		check_say(c, FINDING_FAILURE, "pmu",
			  "as root: dmesg | grep -w PT; if the firmware has it on, turn it off in "
			  "its setup",
			  "this CPU has Intel PT but the kernel offers no intel_pt PMU; why stands "
			  "in the kernel's log, which cannot be read here (%s)",
			  strerror(-r));
	else
		check_say(
			c, FINDING_FAILURE, "pmu",
			"dmesg | grep -w PT; restart, with processor trace off in the firmware's "
			"setup",
			"this CPU has Intel PT but the kernel offers no intel_pt PMU: its firmware "
			"or another tracer had it when the kernel started");
}

static bool is_xen_dom0(const struct check *c)
{
	char text[256];

	check_read(c->paths->proc, "xen/capabilities", text, sizeof(text));
	return strstr(text, "control_d");
}

static void explain_cpu(struct check *c)
{
	if (strcmp(c->vendor, "GenuineIntel") != 0)
		check_say(c, FINDING_FAILURE, "pmu", CHECK_NO_COMMAND_FIX,
			  "no Intel PT: this is not an Intel CPU (%s, %s)",
			  *c->vendor ? c->vendor : "unknown vendor",
			  *c->model_name ? c->model_name : "unknown model");
	else if (is_xen_dom0(c))
		check_say(c, FINDING_FAILURE, "pmu", "start this host without Xen",
			  "no Intel PT: this is dom0 of Xen, which keeps it from its domains");
	else if (c->flag_pt)
		explain_kernel(c);
	else if (c->flag_hypervisor)
		check_virtual(c);
	else if (cpuid_has_pt(c))
		check_say(c, FINDING_FAILURE, "pmu",
			  "remove clearcpuid= from the kernel's command line and restart",
			  "this CPU has Intel PT, but the kernel was told to ignore it");
	else
		check_say(
			c, FINDING_FAILURE, "pmu",
			"a CPU from Broadwell, or Goldmont (Atom), on; " CHECK_NO_COMMAND_FIX,
			"no Intel PT: this CPU (%s) has none, or its firmware has switched it off",
			*c->model_name ? c->model_name : "unknown model");
}

void check_pmu(struct check *c)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/" PMU_PATH, c->paths->sys);
	r = pmu_read(path, &c->pmu);
	c->have_pmu = r == 0;
	if (r == 0 && c->n_cpuids > 0)
		cpuid_complete_pmu(c->cpuids, c->n_cpuids, 0, &c->pmu);
	/* As source_choice.c does. */
	c->emulated |= c->config->source == CONFIG_AUTO && c->config->command &&
		       !c->config->require_pt && r == -ENOENT;
	if (r == -ENOENT)
		explain_cpu(c);
	else if (r < 0)
		check_say(c, FINDING_FAILURE, "pmu", "", "the intel_pt PMU cannot be used: %s: %s",
			  path, r == -EBADMSG ? "its files are not understood" : strerror(-r));
	else
		check_say(c, FINDING_OK, "pmu", "", "intel_pt is here (type %u, %s%s%s)",
			  c->pmu.type, c->pmu.mtc ? "mtc" : "no mtc",
			  c->pmu.psb_cyc ? ", cyc" : ", no cyc",
			  c->pmu.topa_multiple_entries ? "" : ", rings of one block only");
	if (c->have_pmu && c->flag_hypervisor)
		check_say(c, FINDING_NOTE, "virtual", "",
			  "this is a virtual machine that is given Intel PT: what its host does "
			  "meanwhile is not in the trace");
	if (c->have_pmu && !c->pmu.mtc)
		check_say(c, FINDING_NOTE, "timing", "",
			  "this CPU's Intel PT has no MTC packets: times are known at its "
			  "synchronisation points only");
}
