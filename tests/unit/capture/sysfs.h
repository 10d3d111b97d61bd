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

/* CPUs with the same CPUID. */
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

/* Reads machine NAME. Ends the test on failure. */
void sysfs_read(const char *name, struct sysfs_machine *ret);
/* Reads all CPUs of M with its reader into CPUS (SYSFS_MAX_CPUS). Returns their number. */
size_t sysfs_cpus(const struct sysfs_machine *m, struct cpuid *cpus);
/* Returns M's PMU as a source completes it. */
void sysfs_complete(const struct sysfs_machine *m, struct pmu *ret);
