/*
 * One line of /proc/PID/maps: fs/proc/task_mmu.c, show_map_vma.
 */
#pragma once

#include <stdint.h>

/* A path of PATH_MAX bytes may be all newlines, each written as four; before it at most 73 bytes of
 * numbers. */
#define PROCMAPS_MAX_LINE (4 * 4096 + 128)

struct procmaps_entry {
	uint64_t begin, end, pgoff; /* bytes; begin < end */
	uint32_t prot, flags;	    /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	uint32_t maj, min;
	uint64_t ino;
	const char *path; /* within the line; "" for anonymous memory */
};

/* Parses LINE (without newline; changed: escapes in the path are undone). 0 or -EBADMSG. */
int procmaps_parse(char *line, struct procmaps_entry *ret);
