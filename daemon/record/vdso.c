/*
 * [vdso] in our own memory. Called by memory.c, which leaves out those that are like it, and by
 * memory_read.c.
 */
#include "daemon/record/vdso.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "capture/proc/procmaps.h"

const void *vdso_own(uint64_t *ret_size)
{
	unsigned long address = getauxval(AT_SYSINFO_EHDR);
	struct procmaps_entry e;
	char line[512];
	FILE *maps;

	*ret_size = 0;
	maps = address ? fopen("/proc/self/maps", "re") : NULL;
	if (!maps)
		return NULL;
	/* A longer line is two, of which the second is none. */
	while (*ret_size == 0 && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (procmaps_parse(line, &e) == 0 && e.begin == address &&
		    strcmp(e.path, "[vdso]") == 0)
			*ret_size = e.end - e.begin;
	}
	fclose(maps);
	return *ret_size ? (const void *)address : NULL;
}
