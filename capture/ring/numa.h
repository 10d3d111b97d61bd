/*
 * Memory on the node of the CPU whose trace goes there: copying between nodes costs half the speed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The node of CPU as SYSFS ("/sys") names it (Documentation/ABI/stable/sysfs-devices-node); -1: not
 * known, or the host has one node only, and nothing needs a place. */
int numa_node_of_cpu(const char *sysfs, uint32_t cpu);
/* Pages of [START, START + SIZE), page-aligned and not yet touched, come from NODE while it has any
 * (mbind(2), MPOL_PREFERRED). NODE below 0: nothing to do. 0 or -errno, and they come from
 * anywhere. */
int numa_prefer(void *start, size_t size, int node);
