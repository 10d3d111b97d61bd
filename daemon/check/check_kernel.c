/*
 * Whether the kernel's symbols and its code in memory can be read, where the kernel is traced.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "capture/kernel/kcore.h"
#include "capture/kernel/kernel_files.h"
#include "daemon/check/check_private.h"

#define FIX_SYMBOLS                                                                             \
	"sysctl kernel.kptr_restrict=1 if it is 2, and run ptsnapd as root or with CAP_SYSLOG " \
	"(AmbientCapabilities= and CapabilityBoundingSet= of its unit, no ProtectKernelLogs= "  \
	"and ProtectKernelTunables=)"
#define FIX_TEXT                                                                                \
	"run ptsnapd as root or with CAP_SYS_RAWIO (for the unit: " PTSNAP_VENDORDIR            \
	"/drop-ins/kernel-text.conf; price: the recorder may read all of the kernel's memory)," \
	" lockdown=integrity at most"

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

/* Which files with the kernel's code can be opened. */
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
