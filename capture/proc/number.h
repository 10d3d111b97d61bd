/*
 * Numbers and lists of CPUs in text that the kernel or a user wrote.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses an unsigned number of at most MAX up to the end of TEXT or a character of STOP: digits of
 * BASE (0: 16 after "0x", else 10) without a sign or a blank before them. True: *ret is the number,
 * and *ret_end (may be NULL) points behind the digits. */
bool number_parse(const char *text, int base, uint64_t max, const char *stop, const char **ret_end,
		  uint64_t *ret);

/* --- Lists of CPUs: "0-3,8,10-11" --- */

#define CPULIST_MAX 4096u

struct cpulist {
	uint64_t bits[CPULIST_MAX / 64];
};

bool cpulist_has(const struct cpulist *l, uint32_t cpu);
size_t cpulist_count(const struct cpulist *l);
/* Parses TEXT up to a newline or its end; "" is the empty list. 0; -EINVAL: no list (lists with
 * strides are none), or a CPU of CPULIST_MAX or more. */
int cpulist_parse(const char *text, struct cpulist *ret);
/* Writes L with at most SIZE - 1 bytes; "..." at the end stands for what does not fit. */
void cpulist_format(const struct cpulist *l, char *ret, size_t size);
/* Reads a file that holds one list, such as /sys/devices/system/cpu/online. 0, -EBADMSG, or -errno
 * of reading. */
int cpulist_read(const char *path, struct cpulist *ret);
