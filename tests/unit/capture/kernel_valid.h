/*
 * An oracle: whether the kernel would accept an attr.config. Applies the rules of pt_event_valid
 * (arch/x86/events/intel/pt.c) to CPUID and MSR bits, without our PMU code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/unit/capture/sysfs.h"

/* IA32_RTIT_CTL, SDM volume 3, 33.2.8.2. Bit 0 is the kernel's own: use BranchEn as given. */
#define RTIT_PT		(1ull << 0)
#define RTIT_CYC	(1ull << 1)
#define RTIT_PWR_EVT	(1ull << 4)
#define RTIT_FUP_ON_PTW (1ull << 5)
#define RTIT_MTC	(1ull << 9)
#define RTIT_TSC	(1ull << 10)
#define RTIT_NORETCOMP	(1ull << 11)
#define RTIT_PTW	(1ull << 12)
#define RTIT_BRANCH	(1ull << 13)
#define RTIT_MTC_PERIOD (0xfull << 14)
#define RTIT_CYC_THRESH (0xfull << 19)
#define RTIT_PSB_PERIOD (0xfull << 24)
#define RTIT_EVENT	(1ull << 31)
#define RTIT_NOTNT	(1ull << 55)

/* Whether the kernel would accept CONFIG, whichever kind of CPU of M it asks. */
bool kernel_valid(const struct sysfs_machine *m, uint64_t config);
