/*
 * One number out of /proc/PID/stat. Called by trigger.c in the loop's thread, once a request.
 */
#include "daemon/trigger/sender.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/proc/number.h"
#include "daemon/store/entry.h"
#include "proto/base.h"

/* Field 39, processor (Documentation/filesystems/proc.rst, table 1-4), counted from field 3 on. */
#define FIELD (39 - 3)

/* Digits up to a blank or the end, below the limit of CPUs. */
static uint32_t parse_cpu(const char *s)
{
	uint32_t cpu = 0;

	if (*s < '0' || *s > '9')
		return ENTRY_NO_CPU;
	for (; *s >= '0' && *s <= '9'; s++) {
		cpu = 10 * cpu + (uint32_t)(*s - '0');
		if (cpu >= CPULIST_MAX)
			return ENTRY_NO_CPU;
	}
	return *s == ' ' || *s == '\n' ? cpu : ENTRY_NO_CPU;
}

/* The name in field 2 may hold blanks and brackets, but nothing behind it does. */
static uint32_t parse_stat(const char *stat)
{
	const char *s = strrchr(stat, ')');

	if (!s || s[1] != ' ')
		return ENTRY_NO_CPU;
	s += 2;
	for (int field = 0; field < FIELD; field++) {
		s = strchr(s, ' ');
		if (!s)
			return ENTRY_NO_CPU;
		s++;
	}
	return parse_cpu(s);
}

uint32_t sender_last_cpu(const char *proc, uint64_t pid)
{
	char path[PATH_MAX], stat[1024];
	CLEANUP_CLOSE int fd = -EBADF;
	ssize_t n;

	/* 0: of another pid namespace, or the kernel. */
	if (pid == 0 || pid > INT32_MAX)
		return ENTRY_NO_CPU;
	snprintf(path, sizeof(path), "%s/%" PRIu64 "/stat", proc, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return ENTRY_NO_CPU;
	n = read(fd, stat, sizeof(stat) - 1);
	if (n <= 0)
		return ENTRY_NO_CPU;
	stat[n] = '\0';
	return parse_stat(stat);
}
