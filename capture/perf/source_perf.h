/*
 * Intel PT of this host as a trace source, through the kernel's intel_pt PMU.
 *
 * For each CPU the source opens one pinned intel_pt event with an AUX ring in overwrite mode, and
 * one dummy event for the sideband. source_perf.c opens the source and has its operations;
 * source_perf_choose.c decides which CPUs, rings and attributes, and explains why a host has no PT;
 * source_perf_cpu.c follows one CPU's events when the CPU goes offline, is used by another program,
 * or is in error. pmu.c reads the PMU from sysfs, pmu_terms.c converts config terms, preset.c
 * chooses terms. cpuid.c asks each CPU what sysfs does not say. perf_event.c opens one event, with
 * the system calls of perf_sys.c.
 *
 * Decisions that govern the room:
 * - Perf events belong to the thread that opened them. One thread (the owner) opens all PT events
 *   and no others, so that one prctl(2) stops them all without a return to user space between two
 *   CPUs. "make bench" compares that with ioctls one after the other (as fast or faster) and with
 *   a thread pinned to each CPU (two to a hundred times faster).
 * - Every CPU has a state with a reason. tend() tries again what does not trace: on news of CPUs,
 *   after sleep, and as time passes. A ring outlives its CPU's being offline, but no sleep that
 *   took the CPUs' power: the clock differs after it, and a CPU that stayed online no longer
 *   traces.
 * - Without PT the source goes on with the sideband alone (if the configuration permits that),
 *   with times of CLOCK_MONOTONIC, so that the report still says what ran when.
 * - Where the kernel would answer with a bare EINVAL or EBUSY, the source says in words what is
 *   wrong and what is valid. Errors are one line for the user, in WHY or in a CPU's state.
 *
 * A source belongs to the thread that opened it. Its operations say which threads may call them.
 */
#pragma once

#include <stddef.h>

#include "capture/ring/source.h"

/* Opens the events of CONFIG. -errno if the host has no such PMU or the events cannot be opened;
 * WHY then has one line with the reason and what to do. */
int source_perf_open(const struct source_config *config, struct source **ret, char *why,
		     size_t why_size);
/* The same with SYS in place of /sys and PROC in place of /proc, borrowed for the source's life.
 * For tests. */
int source_perf_open_at(const struct source_config *config, const char *sys, const char *proc,
			struct source **ret, char *why, size_t why_size);

/* Says in WHY, in one line without a newline, why the host has no PT. CPUINFO is /proc/cpuinfo, PMU
 * the PMU's directory in sysfs (or a test's). -ENODEV: no PT; -EBADMSG: the PMU is not understood;
 * -errno; or 0: there is a PMU. */
int source_perf_explain(const char *cpuinfo, const char *pmu, char *why, size_t why_size);
