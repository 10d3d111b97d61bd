/*
 * Reads what CPUID says about each CPU: model, core type, PT capabilities, and the crystal.
 *
 * The kernel asks only one CPU (arch/x86/events/intel/pt.c, pt_pmu_hw_init) and assumes its
 * capabilities for all CPUs. On a hybrid CPU they differ, and writing a value that a core does not
 * support to the core's IA32_RTIT_CTL is a #GP in the kernel (SDM volume 3, 33.2.8.2).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perf/pmu.h"
#include "capture/proc/number.h"

struct cpuid_leaf {
	uint32_t leaf, subleaf;
	uint32_t eax, ebx, ecx, edx; /* the answer; all 0 if the CPU lacks the leaf */
};

/* How to ask a CPU. */
struct cpuid_reader {
	/* Fills in the CPU's answers to N leaves. 0; or -errno: the CPU cannot be asked. */
	int (*read)(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n);
	void *userdata;
};

/* Asks this host: moves the calling thread to the CPU, executes CPUID there, and restores the
 * thread's affinity. read returns -EINVAL if the CPU is offline or not in the thread's cpuset. */
extern const struct cpuid_reader cpuid_host;

/* Leaf 1AH EAX bits 31-24, SDM volume 2, CPUID. */
#define CPUID_CORE_ATOM 0x20u
#define CPUID_CORE_CORE 0x40u

struct cpuid {
	uint32_t cpu;
	bool known;	 /* false: the CPU could not be asked; nothing but cpu is set */
	bool intel;	 /* the vendor is "GenuineIntel"; else nothing below is set */
	bool has_pt;	 /* leaf 7 EBX bit 25 */
	bool hypervisor; /* leaf 1 ECX bit 31: a virtual machine */
	uint32_t family, model, stepping;
	uint32_t core_type; /* CPUID_CORE_*; 0: all cores are alike, or unknown */
	/* Leaf 14H in the form in which pmu_read() returns the kernel's view: capabilities, but no
	 * terms and no clock. */
	struct pmu pt;
	/* Leaf 15H: TSC = crystal * num / den; each 0 if unknown. */
	uint32_t tsc_num, tsc_den, crystal_hz;
	uint32_t base_mhz; /* leaf 16H; equals the TSC's on CPUs with PT; 0: unknown */
};

/* Whether an Intel processor has either Intel PT or branch records (LBR) at a time: Broadwell, and
 * Skylake with what is named otherwise and has its model numbers (Kaby, Coffee, Comet, Cascade and
 * Cooper Lake). The kernel then refuses the one with EBUSY while somebody, on whatever CPU, has the
 * other (arch/x86/events/core.c, x86_add_exclusive; models without lbr_pt_coexist in
 * arch/x86/events/intel/core.c, intel_pmu_init). */
bool cpuid_lbr_excludes_pt(uint64_t family, uint64_t model);

/* Reads everything from CPU. 0; or -errno of the reader, with ret->known false. */
int cpuid_read(const struct cpuid_reader *reader, uint32_t cpu, struct cpuid *ret);

/* The frequency of the core crystal in Hz, 0 if it cannot be known: leaf 15H ECX; else by the
 * model; else from leaf 16H (arch/x86/kernel/tsc.c, native_calibrate_tsc); else from TSC_HZ (0:
 * unknown) and the ratio of leaf 15H. The last two are accurate to about 1 in 200. */
uint64_t cpuid_crystal_hz(const struct cpuid *c, uint64_t tsc_hz);

/* Completes a PMU that pmu_read() has read. Sets crystal_hz from the first CPU that knows, else
 * from TSC_HZ (0: unknown) and tsc_art; sets branch_always; and removes capabilities and values
 * that some CPU with PT lacks. CPUs that are unknown or show no PT (a virtual machine) remove
 * nothing. */
void cpuid_complete_pmu(const struct cpuid *cpus, size_t n, uint64_t tsc_hz, struct pmu *pmu);

/* The same, asking each CPU of LIST. 0 or -ENOMEM. */
int cpuid_complete_pmu_of(const struct cpuid_reader *reader, const struct cpulist *list,
			  uint64_t tsc_hz, struct pmu *pmu);

/* CPUs that are alike among themselves and differ from the first CPU. */
struct cpuid_group {
	size_t first, n_cpus; /* the index of the first of them, and their number */
	char cpus[128];	      /* "16-23", ending in "..." if cut */
	char text[320];	      /* "core type atom, not core; cycle_thresholds 0-12, not 0-5" */
};

/* Groups the CPUs that differ from the first known CPU in PT capabilities, core type, model or
 * stepping. Returns the number of groups in RET; 0: all CPUs are alike; MAX + 1: RET holds MAX
 * groups, and there are more. */
size_t cpuid_differences(const struct cpuid *cpus, size_t n, struct cpuid_group *ret, size_t max);
