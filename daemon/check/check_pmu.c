/*
 * Whether there is an intel_pt PMU, and why not: the CPU, the kernel, the firmware, or a virtual
 * machine.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "daemon/check/check_private.h"

#define PMU_PATH "bus/event_source/devices/intel_pt"
/* How much of the kernel's log is read. */
#define LOG_MAX (1u << 20)

/* Sets *RET to the index of the one of WORDS that the kernel's log holds (last), or to -1. Each
 * read(2) of /dev/kmsg returns one whole record. 0, or -errno if the log cannot be read. */
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
			continue; /* the record was overwritten meanwhile: read the next one */
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

/* Whether the kernel was built without OPTION; false where its configuration cannot be read. */
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

/* Says what keeps the driver away from a CPU that has PT: arch/x86/events/intel/pt.c, pt_init. */
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
			  "this CPU has Intel PT but the kernel offers no intel_pt PMU; the reason "
			  "is in the kernel's log, which cannot be read here (%s)",
			  strerror(-r));
	else
		check_say(
			c, FINDING_FAILURE, "pmu",
			"dmesg | grep -w PT; restart, with processor trace off in the firmware's "
			"setup",
			"this CPU has Intel PT but the kernel offers no intel_pt PMU: its firmware "
			"or another tracer had it when the kernel started");
}

#define FIX_ELSEWHERE "run ptsnapd on the host, or on a machine that is not virtual"
#define FIX_HYPERV                                                                        \
	"on the Hyper-V host, the machine off: Set-VMProcessor NAME -Perfmon @(\"ipt\", " \
	"\"pmu\"); Azure does not offer it"
/* KVM: arch/x86/kvm/vmx/vmx.c, pt_mode; Linux 6.12 put what is not 0 behind CONFIG_BROKEN. */
#define FIX_KVM                                                                        \
	FIX_ELSEWHERE "; hosts before Linux 6.12 could load kvm_intel with pt_mode=1 " \
		      "and give the guest -cpu host,+intel-pt"

/* SDM volume 2, CPUID: leaves from 0x40000000 on belong to the hypervisor; EBX, ECX, EDX of the
 * first one spell its name. */
static const struct {
	const char *signature, *name, *fix;
} hypervisors[] = {
	{"KVMKVMKVM", "KVM", FIX_KVM},
	{"Linux KVM Hv", "KVM", FIX_KVM},
	{"TCGTCGTCGTCG", "QEMU without KVM", FIX_ELSEWHERE},
	{"Microsoft Hv", "Hyper-V", FIX_HYPERV},
	{"VMwareVMware", "VMware", FIX_ELSEWHERE},
	{"XenVMMXenVMM", "Xen", FIX_ELSEWHERE},
	{"VBoxVBoxVBox", "VirtualBox", FIX_ELSEWHERE},
	{"ACRNACRNACRN", "ACRN", FIX_ELSEWHERE},
	{"bhyve bhyve ", "bhyve", FIX_ELSEWHERE},
	{" lrpepyh  vr", "Parallels", FIX_ELSEWHERE},
};

/* Cloud providers, by the vendor that the firmware names. */
static const struct {
	const char *vendor, *fix;
} clouds[] = {
	{"Amazon EC2", "use a bare metal instance (its type ends in .metal)"},
	{"Google", "use a bare metal machine type (its name ends in -metal)"},
	{"OpenStack Foundation", "use a flavour of bare metal (Ironic)"},
	{"Hetzner", "use a dedicated server"},
	{"DigitalOcean", "use a bare metal machine"},
};

/* Says whose virtual machine this is, and what its owner can do. */
static void explain_virtual(struct check *c)
{
	const struct cpuid_reader *reader = &c->paths->calls.cpuid;
	struct cpuid_leaf leaf = {.leaf = 0x40000000};
	char signature[13], vendor[64], product[64];
	const char *name = signature, *fix = FIX_ELSEWHERE;

	if (reader->read(reader->userdata, check_first_cpu(c), &leaf, 1) < 0)
		leaf = (struct cpuid_leaf){0};
	memcpy(signature, &leaf.ebx, 4);
	memcpy(signature + 4, &leaf.ecx, 4);
	memcpy(signature + 8, &leaf.edx, 4);
	signature[12] = '\0';
	check_read(c->paths->sys, "class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	check_read(c->paths->sys, "class/dmi/id/product_name", product, sizeof(product));
	for (size_t i = 0; i < ARRAY_SIZE(hypervisors); i++)
		if (strncmp(signature, hypervisors[i].signature, 12) == 0) {
			name = hypervisors[i].name;
			fix = hypervisors[i].fix;
		}
	for (size_t i = 0; i < ARRAY_SIZE(clouds); i++)
		if (strcmp(vendor, clouds[i].vendor) == 0)
			fix = clouds[i].fix;
	check_say(c, FINDING_FAILURE, "pmu", fix,
		  "no Intel PT: this is a virtual machine (%s%s%s%s%s) that is not given it",
		  *name ? name : "of an unknown hypervisor", *vendor ? "; " : "", vendor,
		  *product ? " " : "", product);
}

static void explain_cpu(struct check *c)
{
	char xen[256];

	check_read(c->paths->proc, "xen/capabilities", xen, sizeof(xen));
	if (strcmp(c->vendor, "GenuineIntel") != 0)
		check_say(c, FINDING_FAILURE, "pmu", CHECK_NO_COMMAND_FIX,
			  "no Intel PT: this is not an Intel CPU (%s, %s)",
			  *c->vendor ? c->vendor : "unknown vendor",
			  *c->model_name ? c->model_name : "unknown model");
	else if (strstr(xen, "control_d"))
		check_say(c, FINDING_FAILURE, "pmu", "start this host without Xen",
			  "no Intel PT: this is dom0 of Xen, which keeps it from its domains");
	else if (c->flag_pt)
		explain_kernel(c);
	else if (c->flag_hypervisor)
		explain_virtual(c);
	else if (c->n_cpuids > 0 && c->cpuids[0].has_pt)
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
	/* The same choice as open_source() in main.c makes. */
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
