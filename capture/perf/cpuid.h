/*
 * What CPUID says of each CPU: its model, its core type, what its PT can do, its crystal. The
 * kernel asks one CPU alone (arch/x86/events/intel/pt.c, pt_pmu_hw_init) and lets every CPU have
 * what that one can do; on a hybrid CPU they differ, and a value that a core does not have is a #GP
 * in the kernel when it is written to that core's IA32_RTIT_CTL (SDM volume 3, 33.2.8.2).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/perf/pmu.h"
#include "capture/proc/cpulist.h"

struct cpuid_leaf {
	uint32_t leaf, subleaf;
	uint32_t eax, ebx, ecx, edx; /* the answer; all 0 for a leaf that the CPU does not have */
};

/* Who answers. */
struct cpuid_reader {
	/* Fill in the answers that CPU gives to N questions. 0; -errno: it cannot be asked. */
	int (*read)(void *userdata, uint32_t cpu, struct cpuid_leaf *leaves, size_t n);
	void *userdata;
};

/* This host: the calling thread goes to the CPU, executes CPUID there, and may run again where it
 * might before. read: -EINVAL when the CPU is offline or not in the thread's cpuset. */
extern const struct cpuid_reader cpuid_host;

/* Leaf 1AH EAX bits 31-24, SDM volume 2, CPUID. */
#define CPUID_CORE_ATOM 0x20u
#define CPUID_CORE_CORE 0x40u

struct cpuid {
	uint32_t cpu;
	bool known;	 /* false: it could not be asked; nothing but cpu is set */
	bool intel;	 /* the vendor is "GenuineIntel"; else nothing below is set */
	bool has_pt;	 /* leaf 7 EBX bit 25 */
	bool hypervisor; /* leaf 1 ECX bit 31: a virtual machine */
	uint32_t family, model, stepping;
	uint32_t core_type; /* CPUID_CORE_*; 0: all cores are alike, or it does not tell */
	/* Leaf 14H as pmu_read gives the kernel's view of it: the caps, no terms, no clock. */
	struct pmu pt;
	/* Leaf 15H: TSC = crystal * num / den; each 0 where it does not tell. */
	uint32_t tsc_num, tsc_den, crystal_hz;
	uint32_t base_mhz; /* leaf 16H, the same as the TSC's where there is PT; 0: does not tell */
};

/* All that CPU tells. 0; -errno of the reader, with ret->known false. */
int cpuid_read(const struct cpuid_reader *reader, uint32_t cpu, struct cpuid *ret);

/* The core crystal's frequency in Hz, 0 when it cannot be known: leaf 15H ECX; else by the model;
 * else from leaf 16H (arch/x86/kernel/tsc.c, native_calibrate_tsc); else from TSC_HZ (0: not known)
 * and leaf 15H's ratio. The last two are right to about 1 in 200. */
uint64_t cpuid_crystal_hz(const struct cpuid *c, uint64_t tsc_hz);

/* Completes what pmu_read read: crystal_hz, from the first CPU that tells, else from TSC_HZ (0: not
 * known) and tsc_art; branch_always; and takes away the caps and values that some CPU with PT does
 * not have. CPUs that are not known or show no PT (a virtual machine) take nothing away. */
void cpuid_complete_pmu(const struct cpuid *cpus, size_t n, uint64_t tsc_hz, struct pmu *pmu);

/* The same by asking each CPU of LIST, for who does not keep what they say. 0, -ENOMEM. */
int cpuid_complete_pmu_of(const struct cpuid_reader *reader, const struct cpulist *list,
			  uint64_t tsc_hz, struct pmu *pmu);

/* CPUs that are alike and differ from the first one. */
struct cpuid_group {
	size_t first, n_cpus; /* index of the first of them; how many they are */
	char cpus[128];	      /* "16-23", ending in "..." when it is longer */
	char text[320];	      /* "core type atom, not core; cycle_thresholds 0-12, not 0-5" */
};

/* Groups the CPUs that differ from the first known one in PT capabilities, core type, model or
 * stepping, into RET. Returns how many; 0: all alike; MAX + 1: MAX of them and there are more. */
size_t cpuid_differences(const struct cpuid *cpus, size_t n, struct cpuid_group *ret, size_t max);
