/*
 * Used by the tests of the check.
 */
#include "tests/unit/daemon/check_fixture.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"

#define PMU_PATH "sys/bus/event_source/devices/intel_pt"

uint64_t check_fixture_free;
int check_fixture_landlock;
int check_fixture_look_up;

static int free_bytes(const char *path, uint64_t *ret)
{
	(void)path;
	if (check_fixture_free == UINT64_MAX)
		return -EIO;
	*ret = check_fixture_free;
	return 0;
}

static int landlock(void)
{
	return check_fixture_landlock;
}

static int look_up(void)
{
	return check_fixture_look_up;
}

static int read_cpuid(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n)
{
	struct check_fixture *f = userdata;
	struct cpuid_reader *r = &f->machine.reader;

	if (n != 1 || leaves->leaf != 0x40000000)
		return r->read(r->userdata, cpu, leaves, n);
	*leaves = f->hypervisor;
	return 0;
}

void check_fixture_status(struct check_fixture *f, const char *capabilities, int seccomp)
{
	char text[128];

	snprintf(text, sizeof(text), "Name:\tx\nCapEff:\t%s\nSeccomp:\t%d\n", capabilities,
		 seccomp);
	tree_write(f->root, "proc/self/status", text);
}

void check_fixture_cpu(struct check_fixture *f, const char *vendor, int model, const char *flags)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "processor\t: 0\nvendor_id\t: %s\ncpu family\t: 6\nmodel\t\t: %d\n"
		 "model name\t: A CPU of some kind\nflags\t\t: fpu %s tsc\n\n",
		 vendor, model, flags);
	tree_write(f->root, "proc/cpuinfo", text);
}

void check_fixture_pmu(struct check_fixture *f, const char *machine)
{
	const char *source = getenv("PTSNAP_SRCDIR");
	char path[PATH_MAX], target[PATH_MAX];

	snprintf(path, sizeof(path), "%s/" PMU_PATH, f->root);
	unlink(path);
	if (!machine)
		return;
	snprintf(target, sizeof(target), "%s/tests/sysfs/%s/intel_pt", source ? source : ".",
		 machine);
	CLEANUP_FREE char *absolute = realpath(target, NULL);
	assert_non_null(absolute);
	tree_symlink(f->root, PMU_PATH, absolute);
	sysfs_read(machine, &f->machine);
}

static void make_host(struct check_fixture *f)
{
	check_fixture_pmu(f, "skylake");
	check_fixture_cpu(f, "GenuineIntel", 94, "intel_pt");
	check_fixture_status(f, "000001ffffffffff", 0);
	tree_write(
		f->root, "proc/self/limits",
		"Max locked memory         8388608              8388608              bytes     \n"
		"Max open files            65536                65536                files     \n");
	tree_write(f->root, "proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_write(f->root, "proc/sys/kernel/perf_event_mlock_kb", "516\n");
	tree_write(f->root, "proc/sys/kernel/seccomp/actions_avail", "kill_process kill_thread\n");
	tree_write(f->root, "proc/self/uid_map", "         0          0 4294967295\n");
	tree_write(f->root, "proc/meminfo", "MemTotal:       16000000 kB\n");
	tree_write(f->root, "sys/devices/system/cpu/online", "0-3\n");
	tree_write(f->root, "sys/devices/system/cpu/offline", "\n");
	tree_write(f->root, "sys/devices/system/cpu/isolated", "\n");
	tree_write(f->root, "sys/devices/system/clocksource/clocksource0/current_clocksource",
		   "tsc\n");
	tree_write(f->root, "dev/kmsg", "6,1,1,-;Linux version\n");
}

int check_fixture_setup(void **state)
{
	struct check_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->root = tree_new();
	snprintf(f->proc, sizeof(f->proc), "%s/proc", f->root);
	snprintf(f->sys, sizeof(f->sys), "%s/sys", f->root);
	snprintf(f->dev, sizeof(f->dev), "%s/dev", f->root);
	snprintf(f->boot, sizeof(f->boot), "%s/boot", f->root);
	f->paths = (struct check_paths){
		.proc = f->proc,
		.root = f->root,
		.sys = f->sys,
		.dev = f->dev,
		.boot = f->boot,
		.calls = {{read_cpuid, f}, landlock, look_up, free_bytes},
	};
	f->config = (struct config){
		.source = CONFIG_INTEL_PT,
		.aux_size = 8u << 20,
		.data_size = 512u << 10,
		.state_dir = "/var/lib/ptsnap",
		.worker = "/bin/true",
	};
	check_fixture_free = 100ull << 30;
	check_fixture_landlock = 4;
	check_fixture_look_up = 0;
	fake_perf_reset();
	make_host(f);
	*state = f;
	return 0;
}

int check_fixture_teardown(void **state)
{
	struct check_fixture *f = *state;

	tree_free(f->root);
	free(f);
	return 0;
}

static void keep(void *userdata, const struct finding *finding)
{
	struct check_fixture *f = userdata;

	assert_true(f->n < ARRAY_SIZE(f->all));
	f->all[f->n++] = *finding;
}

void check_fixture_run(struct check_fixture *f)
{
	f->n = 0;
	f->failures = check_host(&f->paths, &f->config, keep, f);
	assert_int_equal(fake_perf_open_events(), 0);
}

static const struct finding *find(const struct check_fixture *f, const char *what)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->all[i].what, what) == 0)
			return &f->all[i];
	return NULL;
}

void check_fixture_expect(struct check_fixture *f, enum finding_level level, const char *what,
			  const char *text, const char *fix)
{
	const struct finding *found = find(f, what);

	if (!found)
		fail_msg("no finding about %s", what);
	if (found->level != level || !strstr(found->text, text) ||
	    (fix ? !strstr(found->fix, fix) : *found->fix))
		fail_msg("%s %s: %s; fix: %s", finding_level_name(found->level), what, found->text,
			 found->fix);
}

void check_fixture_expect_none(struct check_fixture *f, const char *what)
{
	const struct finding *found = find(f, what);

	if (found)
		fail_msg("%s %s: %s", finding_level_name(found->level), what, found->text);
}
