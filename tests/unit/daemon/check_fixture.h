/*
 * A host for the check: a tree of /proc and /sys below $TMPDIR, a CPUID, and perf events
 * (tests/unit/capture/fake_perf.h). The new host is a Skylake on which everything works; a test
 * breaks something.
 */
#pragma once

#include "daemon/check/check.h"
#include "tests/unit/capture/fake_perf.h"
#include "tests/unit/capture/sysfs.h"
#include "tests/unit/capture/tree.h"

struct check_fixture {
	char *root;
	char proc[128], sys[128], dev[128], boot[128];
	struct check_paths paths;
	struct config config;
	struct sysfs_machine machine;
	struct cpuid_leaf hypervisor; /* leaf 0x40000000 */
	struct finding all[64];
	size_t n;
	int failures;
};

extern uint64_t check_fixture_free; /* bytes in the state directory; UINT64_MAX: -EIO */
extern int check_fixture_landlock;  /* ABI or -errno */
extern int check_fixture_look_up;   /* 0 or -errno */

int check_fixture_setup(void **state);
int check_fixture_teardown(void **state);
/* Writes proc/self/status with these capabilities (hex) and this mode of Seccomp. */
void check_fixture_status(struct check_fixture *f, const char *capabilities, int seccomp);
/* proc/cpuinfo. */
void check_fixture_cpu(struct check_fixture *f, const char *vendor, int model, const char *flags);
/* Removes the intel_pt PMU, or copies that of MACHINE (tests/sysfs). */
void check_fixture_pmu(struct check_fixture *f, const char *machine);
void check_fixture_run(struct check_fixture *f);
/* Expects a finding about WHAT with this level, TEXT in its text and FIX in its fix (NULL: no fix).
 */
void check_fixture_expect(struct check_fixture *f, enum finding_level level, const char *what,
			  const char *text, const char *fix);
void check_fixture_expect_none(struct check_fixture *f, const char *what);
