/*
 * Why this host has no PT to record from.
 */
#pragma once

#include <stddef.h>

/* CPUINFO is /proc/cpuinfo, PMU the PMU's directory in sysfs (or a test's). One line without a
 * newline in WHY. -ENODEV: no PT here; -EOPNOTSUPP: there is, but not for this version; -EBADMSG:
 * the PMU is not understood; -errno. Never 0. */
int source_perf_explain(const char *cpuinfo, const char *pmu, char *why, size_t why_size);
