/*
 * Lists of CPUs as the kernel writes them: "0-3,8,10-11".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPULIST_MAX 4096u

struct cpulist {
	uint64_t bits[CPULIST_MAX / 64];
};

bool cpulist_has(const struct cpulist *l, uint32_t cpu);
size_t cpulist_count(const struct cpulist *l);
/* TEXT up to a newline or its end; "" is the empty list. 0; -EINVAL: not a list, or a CPU of
 * CPULIST_MAX or more. */
int cpulist_parse(const char *text, struct cpulist *ret);
/* A file that holds one list, such as /sys/devices/system/cpu/online. 0, -EBADMSG, -errno. */
int cpulist_read(const char *path, struct cpulist *ret);
