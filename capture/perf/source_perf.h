/*
 * The intel_pt source with its ways into the kernel open for tests, and why a host has none.
 */
#pragma once

#include <stddef.h>

#include "capture/ring/source.h"

/* source_perf_open() with SYS for /sys and PROC for /proc, borrowed for the source's life. */
int source_perf_open_at(const struct source_config *config, const char *sys, const char *proc,
			struct source **ret, char *why, size_t why_size);

/* CPUINFO is /proc/cpuinfo, PMU the PMU's directory in sysfs (or a test's). One line without a
 * newline in WHY. -ENODEV: no PT here; -EBADMSG: the PMU is not understood; -errno. 0: there is a
 * PMU, and nothing to explain. */
int source_perf_explain(const char *cpuinfo, const char *pmu, char *why, size_t why_size);
