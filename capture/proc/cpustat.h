/*
 * For how long user code has run on each CPU, from /proc/stat.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The largest step in which the kernel counts: a clock tick of a kernel with HZ=100
 * (kernel/sched/cputime.c, account_process_tick). A tick counts for the code that it interrupts. */
#define CPUSTAT_STEP_NS 10000000u

/* Reads PROC/stat: RET[CPU], for each CPU below N, becomes the time in ns that this host's user
 * code has run there since boot, without guests of KVM; UINT64_MAX: the CPU is offline. 0, -EBADMSG
 * or -errno. */
int cpustat_read(const char *proc, uint64_t *ret, size_t n);
