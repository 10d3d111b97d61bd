/*
 * Whether the kernel lets this process open the perf events that ptsnapd opens, and read the
 * kernel's symbols and code; and why not: perf_event_paranoid, capabilities, filters on system
 * calls, lockdown.
 *
 * check_look() has tried to open a sideband event before; check_rights() explains the result, and
 * check_events() tells the result and tries Intel PT.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/kernel/kcore.h"
#include "capture/kernel/kernel_files.h"
#include "capture/perf/cpuid.h"
#include "capture/perf/perf_event.h"
#include "capture/perf/pmu.h"
#include "capture/proc/procscan.h"
#include "daemon/check/check_private.h"

/* ptsnapd changes neither setting by itself, as each has a price. */
#define FIX_PARANOID                                                                        \
	"sysctl kernel.perf_event_paranoid=2 (price: every user may again count events of " \
	"his own processes), or CAP_SYS_ADMIN for the unit (price: the recorder is nearly " \
	"root); " PTSNAP_VENDORDIR " has both: sysctl.d/60-ptsnap-paranoid.conf, "          \
	"drop-ins/paranoid3.conf"
#define FIX_ROOT "run it as root, or by the unit: systemctl start ptsnapd"
#define FIX_SECCOMP                                                                     \
	"let the container's seccomp profile pass perf_event_open: docker and podman: " \
	"--cap-add PERFMON or --security-opt seccomp=unconfined"

#define FIX_SYMBOLS                                                                             \
	"sysctl kernel.kptr_restrict=1 if it is 2, and run ptsnapd as root or with CAP_SYSLOG " \
	"(AmbientCapabilities= and CapabilityBoundingSet= of its unit, no ProtectKernelLogs= "  \
	"and ProtectKernelTunables=)"
#define FIX_TEXT                                                                                \
	"run ptsnapd as root or with CAP_SYS_RAWIO (for the unit: " PTSNAP_VENDORDIR            \
	"/drop-ins/kernel-text.conf; price: the recorder may read all of the kernel's memory)," \
	" lockdown=integrity at most"

/* kernel/events/core.c, perf_allow_cpu: above 0 events of a CPU need CAP_PERFMON (from Linux 5.8)
 * or CAP_SYS_ADMIN. Debian and Ubuntu add: from 3 on every event does, and most of their kernels
 * take CAP_SYS_ADMIN alone. */
static void check_paranoid(struct check *c)
{
	bool admin = check_capable(c, CHECK_SYS_ADMIN), perfmon = check_capable(c, CHECK_PERFMON);
	bool open = c->open_error == 0;

	if (c->paranoid == INT_MAX)
		check_say(
			c, FINDING_FAILURE, "paranoid",
			"run a kernel with CONFIG_PERF_EVENTS=y, and mount /proc",
			"this kernel has no perf events (kernel.perf_event_paranoid is not there)");
	else if (admin && c->paranoid > 2 && check_capable(c, CHECK_SYS_MODULE))
		/* Root, by hand. */
		check_say(c, FINDING_NOTE, "paranoid", FIX_PARANOID,
			  "kernel.perf_event_paranoid is %d; this process may ignore it by "
			  "CAP_SYS_ADMIN, which ptsnapd.service does not have by default",
			  c->paranoid);
	else if (admin || c->paranoid <= 0 || (perfmon && c->paranoid <= 2))
		check_say(c, FINDING_OK, "paranoid", "", "kernel.perf_event_paranoid is %d%s",
			  c->paranoid,
			  admin	    ? "; CAP_SYS_ADMIN overrides it"
			  : perfmon ? "; CAP_PERFMON overrides it"
				    : "");
	else if (perfmon)
		check_say(c, open ? FINDING_NOTE : FINDING_FAILURE, "paranoid", FIX_PARANOID,
			  "kernel.perf_event_paranoid is %d: from 3 on, kernels of Debian and "
			  "Ubuntu want CAP_SYS_ADMIN, and CAP_PERFMON is %s",
			  c->paranoid, open ? "not always enough" : "not enough");
	else
		check_say(c, FINDING_FAILURE, "paranoid", c->paranoid > 2 ? FIX_PARANOID : FIX_ROOT,
			  "kernel.perf_event_paranoid is %d and this process has neither %s "
			  "CAP_SYS_ADMIN: it may not trace CPUs",
			  c->paranoid, "CAP_PERFMON nor");
}

/* The capabilities, each with what is missing in reports without it. CAP_PERFMON and CAP_IPC_LOCK
 * have findings of their own. */
static const struct {
	enum check_capability bit;
	const char *name, *reason;
} wanted[] = {
	{CHECK_SYSLOG, "CAP_SYSLOG", "names of the kernel's functions"},
	{CHECK_SYS_PTRACE, "CAP_SYS_PTRACE", "what other users' processes have mapped"},
	{CHECK_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "their files"},
	{CHECK_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", "mapped files that are deleted"},
};

static void check_capabilities(struct check *c)
{
	char text[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted) && used < sizeof(text); i++)
		if (!check_capable(c, wanted[i].bit) &&
		    !(wanted[i].bit == CHECK_CHECKPOINT_RESTORE &&
		      check_capable(c, CHECK_SYS_ADMIN)))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%s)",
						 used ? ", " : "", wanted[i].name,
						 wanted[i].reason);
	if (check_trace_kernel(c) && !check_capable(c, CHECK_SYS_RAWIO) && used < sizeof(text))
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%sCAP_SYS_RAWIO (the kernel's code in /proc/kcore)",
					 used ? ", " : "");
	if (used)
		check_say(c, FINDING_WARNING, "capabilities",
			  "AmbientCapabilities= and CapabilityBoundingSet= of the unit, or run as "
			  "root",
			  "reports will know less without %s", text);
	else
		check_say(c, FINDING_OK, "capabilities", "",
			  "this process may read all programs, processes and the kernel");
}

/* perf_event_open(2) asks for capabilities in the first user namespace (capable, not ns_capable).
 * Only the first user namespace maps all users to themselves. */
static bool is_in_user_namespace(const struct check *c)
{
	char text[256];
	unsigned first = 0, outside = 0, n = UINT_MAX;

	check_read(c->paths->proc, "self/uid_map", text, sizeof(text));
	return sscanf(text, "%u %u %u", &first, &outside, &n) == 3 &&
	       (first != 0 || outside != 0 || n != UINT_MAX);
}

/* Explains a refusal although the process has the rights: a user namespace, a filter, or a security
 * module. */
static void check_seccomp(struct check *c)
{
	bool capable = check_capable(c, CHECK_SYS_ADMIN) || c->paranoid <= 0 ||
		       (check_capable(c, CHECK_PERFMON) && c->paranoid <= 2);
	bool refused = c->open_error == -EPERM || c->open_error == -EACCES;

	if (!capable || c->paranoid == INT_MAX || (!refused && c->open_error != -ENOSYS))
		return;
	if (refused && !c->seccomp && is_in_user_namespace(c))
		check_say(
			c, FINDING_FAILURE, "namespace",
			"run ptsnapd outside of it: not in a rootless container, without unshare -U",
			"perf_event_open is refused (%s): this process is in a user namespace, in "
			"which its capabilities do not count for perf events",
			strerror(-c->open_error));
	else if (c->seccomp || c->open_error == -ENOSYS)
		check_say(c, FINDING_FAILURE, "seccomp", FIX_SECCOMP,
			  "perf_event_open is refused (%s) although this process has the rights: a "
			  "seccomp filter (of a container, or SystemCallFilter=) stops it",
			  strerror(-c->open_error));
	else
		check_say(c, FINDING_FAILURE, "seccomp",
			  "ausearch -m avc -ts recent, and allow ptsnapd class perf_event",
			  "perf_event_open is refused (%s) although this process has the rights: a "
			  "security module (SELinux) stops it",
			  strerror(-c->open_error));
}

/* security/lockdown/lockdown.c: LOCKDOWN_KCORE is forbidden at the level confidentiality. */
static void check_lockdown(struct check *c)
{
	char text[128];

	check_read(c->paths->sys, "kernel/security/lockdown", text, sizeof(text));
	if (!strstr(text, "[confidentiality]"))
		return;
	if (check_trace_kernel(c))
		check_say(c, FINDING_WARNING, "lockdown",
			  "start with lockdown=integrity, or Trace=user",
			  "kernel lockdown is at confidentiality: /proc/kcore is closed, so that "
			  "the kernel's part of the trace has gaps where its code was patched");
	else
		check_say(c, FINDING_NOTE, "lockdown", "",
			  "kernel lockdown is at confidentiality; user programs are traced all the "
			  "same");
}

void check_rights(struct check *c)
{
	check_paranoid(c);
	check_seccomp(c);
	check_capabilities(c);
	check_lockdown(c);
}

/* Whether all addresses are 0. In a kallsyms that hides nothing the per-CPU variables come first
 * and their addresses count up from 0. */
static bool are_hidden(const char *symbols)
{
	for (const char *at = symbols; *at; at += *at == '\n') {
		if (at[strspn(at, "0")] != ' ')
			return false;
		at += strcspn(at, "\n");
	}
	return true;
}

static void check_symbols(struct check *c)
{
	char text[CHECK_TEXT_MAX];

	if (check_read(c->paths->proc, "kallsyms", text, sizeof(text)) <= 0)
		check_say(c, FINDING_WARNING, "kallsyms",
			  "run a kernel with CONFIG_KALLSYMS=y, and mount /proc",
			  "the kernel's symbols cannot be read: where its code lies is not known");
	else if (are_hidden(text))
		check_say(c, FINDING_WARNING, "kallsyms", FIX_SYMBOLS,
			  "the kernel hides its addresses (/proc/kallsyms): where its code lies is "
			  "not known, and its part of the trace is a gap");
	else
		check_say(c, FINDING_OK, "kallsyms", "", "the kernel's symbols can be read");
}

/* The files with the kernel's code that can be opened. */
struct files_found {
	size_t modules; /* that are loaded */
	size_t opened;	/* modules with a file that can be opened */
	bool kernel;	/* the file of the kernel itself can be opened */
};

static void find_kernel_files(const struct check *c, struct files_found *ret)
{
	struct kernel_places places = {.root = c->paths->root, .sys = c->paths->sys};
	struct kernel_modules modules;
	struct kernel_files files;
	struct utsname u;
	char path[256];

	*ret = (struct files_found){0};
	snprintf(path, sizeof(path), "%s/modules", c->paths->proc);
	if (uname(&u) < 0 || kernel_modules_read(path, &modules) == -ENOMEM)
		return;
	places.release = u.release;
	ret->modules = modules.n;
	if (kernel_files_open(&places, &modules, &files) == 0) {
		for (size_t i = 0; i < files.n; i++) {
			bool kernel = strcmp(files.items[i].name, "kernel") == 0;

			ret->kernel |= kernel && files.items[i].fd >= 0;
			ret->opened += !kernel && files.items[i].fd >= 0;
		}
		kernel_files_done(&files);
	}
	kernel_modules_done(&modules);
}

static void check_text(struct check *c)
{
	struct files_found found;
	struct kcore kcore;
	char path[256];
	int error;

	snprintf(path, sizeof(path), "%s/kcore", c->paths->proc);
	error = kcore_open(path, &kcore);
	if (error >= 0) {
		kcore_close(&kcore);
		check_say(c, FINDING_OK, "kernel-text", "",
			  "the kernel's code can be copied from memory (/proc/kcore)");
		return;
	}
	find_kernel_files(c, &found);
	if (!found.kernel)
		check_say(c, FINDING_WARNING, "kernel-text", FIX_TEXT,
			  "the kernel's code cannot be read: /proc/kcore: %s; and there is no "
			  "vmlinux or vmlinuz of it: its part of the trace is a gap",
			  strerror(-error));
	else
		check_say(
			c, FINDING_WARNING, "kernel-text", FIX_TEXT,
			"/proc/kcore: %s: the kernel's code is taken from files (its own, and those "
			"of %zu of %zu modules), with a gap wherever it patches itself",
			strerror(-error), found.opened, found.modules);
}

void check_kernel(struct check *c)
{
	if (!check_trace_kernel(c))
		return;
	if (c->emulated) {
		check_say(c, FINDING_WARNING, "kernel-text", "Trace=user",
			  "the emulated source has no kernel to trace");
		return;
	}
	check_symbols(c);
	check_text(c);
}

static void check_sideband(struct check *c)
{
	char missing[128];

	if (c->open_error == 0) {
		perf_attr_missing(c->kinds, missing, sizeof(missing));
		if (*missing)
			check_say(c, FINDING_WARNING, "sideband",
				  "run a newer kernel (5.9 has all records)",
				  "this kernel has no records of: %s", missing);
		else
			check_say(c, FINDING_OK, "sideband", "",
				  "perf events can be opened, and the kernel has all records");
		return;
	}
	/* check_rights() has said why. */
	if (c->open_error == -EPERM || c->open_error == -EACCES || c->open_error == -ENOSYS)
		check_say(c, FINDING_FAILURE, "sideband", "see above",
			  "perf events cannot be opened: %s", strerror(-c->open_error));
	else
		check_say(c, FINDING_FAILURE, "sideband",
			  c->open_error == -EMFILE ? "LimitNOFILE=65536 in the unit" : "",
			  "perf events cannot be opened on CPU %u: %s", check_first_cpu(c),
			  strerror(-c->open_error));
}

static bool check_lbr_excludes_pt(const struct check *c)
{
	return strcmp(c->vendor, "GenuineIntel") == 0 && cpuid_lbr_excludes_pt(c->family, c->model);
}

/* A recorder that has Intel PT is no failure: the recorder traces. */
static void explain_busy(struct check *c)
{
	struct holders holders;
	char names[200];

	holders_find(c->paths->proc, (uint32_t)getpid(), &holders);
	for (size_t i = 0; i < MIN_OF(holders.n, HOLDERS_MAX); i++)
		if (strcmp(holders.all[i].comm, "ptsnapd") == 0) {
			check_say(c, FINDING_OK, "pt", "",
				  "Intel PT is in use by a recorder, ptsnapd (pid %u); ptsnapctl "
				  "check asks that recorder",
				  holders.all[i].pid);
			return;
		}
	holders_format(&holders, names, sizeof(names));
	if (check_lbr_excludes_pt(c) && perf_lbr_is_used(check_first_cpu(c))) {
		check_say(c, FINDING_FAILURE, "pt",
			  "end what records branches (perf record -b, --call-graph lbr); ptsnapd "
			  "takes Intel PT as soon as nobody does",
			  "branch records (LBR) are in use, and this processor has either these or "
			  "Intel PT; perf events are open in: %s%s",
			  names, holders.partial ? " (not all processes could be seen)" : "");
		return;
	}
	check_say(c, FINDING_FAILURE, "pt",
		  "end the program that traces; ptsnapd takes Intel PT as soon as it is free",
		  "Intel PT is in use by somebody else; perf events are open in: %s%s", names,
		  holders.partial ? " (not all processes could be seen)" : "");
}

static void explain_pt(struct check *c, int r)
{
	if (r == -EBUSY)
		explain_busy(c);
	else if (r == -EPERM || r == -EACCES)
		check_say(c, FINDING_FAILURE, "pt",
			  check_trace_kernel(c) ? "CAP_PERFMON or CAP_SYS_ADMIN, or Trace=user"
						: "CAP_PERFMON or CAP_SYS_ADMIN",
			  "the intel_pt event is refused: %s", strerror(-r));
	else if (r == -EINVAL)
		check_say(c, FINDING_FAILURE, "pt", "change Preset= or Terms= (--preset=, --pt=)",
			  "the kernel does not take the intel_pt event with this configuration");
	else
		check_say(c, FINDING_FAILURE, "pt", "dmesg | tail", "the intel_pt event: %s",
			  strerror(-r));
}

static void check_pt(struct check *c)
{
	char why[256] = "no memory";
	struct perf_event_attr attr;
	const char *preset;
	int r;

	if (!c->have_pmu)
		return;
	if (check_lbr_excludes_pt(c))
		check_say(
			c, FINDING_NOTE, "lbr",
			"ptsnapctl yield --for=TIME frees Intel PT for that time",
			"this processor has either Intel PT or branch records (LBR): while the "
			"recorder traces, perf record -b and --call-graph lbr fail with EBUSY for "
			"everybody; and while somebody uses LBR, Intel PT cannot be taken");
	if (preset_config(&c->pmu, c->config->preset, c->config->pt_terms, &c->pt_config, &preset,
			  why, sizeof(why)) != 0) {
		check_say(c, FINDING_FAILURE, "terms",
			  "change Preset= or Terms= (--preset=, --pt=)",
			  "this configuration is not for this CPU: %s", why);
		return;
	}
	c->have_config = true;
	if (c->paths->leave_pt || c->open_error < 0)
		return;
	perf_attr_pt(c->pmu.type, c->pt_config,
		     c->config->trace ? c->config->trace : SOURCE_TRACE_USER, &attr);
	r = perf_sys_open(&attr, check_first_cpu(c));
	if (r < 0) {
		explain_pt(c, r);
		return;
	}
	close(r);
	check_say(c, FINDING_OK, "pt", "", "Intel PT is free and can be taken");
	check_unit(c, &attr);
}

void check_events(struct check *c)
{
	check_sideband(c);
	check_pt(c);
}
