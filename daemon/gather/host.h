/*
 * The facts of this host that go into every manifest.
 */
#pragma once

#include "proto/bundle/manifest.h"

/* "xxxxxxxx-xxxx-...": /proc/sys/kernel/random/boot_id, zeros where it cannot be read. */
#define HOST_BOOT_ID_SIZE 37
void host_boot_id(char ret[HOST_BOOT_ID_SIZE]);
/* Host name, kernel, machine, boot id into M; WITH_CPU: also the processor, whose trace it is.
 * CPUINFO is "/proc/cpuinfo" (or a test's file). 0 or -ENOMEM. */
int host_describe(struct manifest *m, const char *cpuinfo, bool with_cpu);
