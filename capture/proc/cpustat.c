/*
 * Reads the lines "cpuN USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE" of
 * /proc/stat (proc(5)), in units of 1/sysconf(_SC_CLK_TCK) s.
 */
#include "capture/proc/cpustat.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

static void closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int cpustat_read(const char *proc, uint64_t *ret, size_t n)
{
	const uint64_t tick_ns = 1000000000u / (uint64_t)MAX_OF(sysconf(_SC_CLK_TCK), 1L);
	CLEANUP(closep) FILE *f = NULL;
	char path[PATH_MAX], line[512];
	bool found = false;

	snprintf(path, sizeof(path), "%s/stat", proc);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	for (size_t i = 0; i < n; i++)
		ret[i] = UINT64_MAX;
	/* The CPUs come first, behind a line of their sum. */
	while (fgets(line, sizeof(line), f) && strncmp(line, "cpu", 3) == 0) {
		uint64_t user, nice, guest, guest_nice;
		unsigned cpu;

		if (sscanf(line,
			   "cpu%u %" SCNu64 " %" SCNu64 " %*u %*u %*u %*u %*u %*u %" SCNu64
			   " %" SCNu64,
			   &cpu, &user, &nice, &guest, &guest_nice) != 5)
			continue;
		found = true;
		/* Guests' time is part of the users' (account_guest_time). */
		if (cpu < n)
			ret[cpu] =
				(user + nice - MIN_OF(user + nice, guest + guest_nice)) * tick_ns;
	}
	return found ? 0 : -EBADMSG;
}
