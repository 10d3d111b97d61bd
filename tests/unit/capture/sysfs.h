/*
 * The machines of tests/sysfs: their PMU's directory, and their CPUID as a reader.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "capture/perf/cpuid.h"
#include "capture/perf/pmu.h"

#define SYSFS_MAX_CPUS	 64
#define SYSFS_MAX_LEAVES 12

/* CPUs that say the same. */
struct sysfs_cpus {
	uint32_t first, last;
	struct cpuid_leaf leaves[SYSFS_MAX_LEAVES];
	size_t n_leaves;
};

struct sysfs_machine {
	const char *name;
	struct pmu pmu; /* as pmu_read read it */
	struct sysfs_cpus cpus[2];
	size_t n_kinds;
	struct cpuid_reader reader; /* its userdata is the machine itself */
};

extern const char *const sysfs_names[];
extern const size_t sysfs_n_names;

/* Reads machine NAME; ends the test when that is not possible. */
void sysfs_read(const char *name, struct sysfs_machine *ret);
/* All CPUs of M by its reader, into CPUS (SYSFS_MAX_CPUS); returns how many. */
size_t sysfs_cpus(const struct sysfs_machine *m, struct cpuid *cpus);
/* M's PMU as a source completes it. */
void sysfs_complete(const struct sysfs_machine *m, struct pmu *ret);
