/*
 * What /proc says of what ran before us: records in the kernel's format for the timeline, and the
 * facts about a process that no record carries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

#define PROCSCAN_CMDLINE_MAX 1024

struct procinfo {
	uint32_t pid;
	uint64_t ppid, start_ns, uid; /* MANIFEST_ABSENT where unknown; start: CLOCK_BOOTTIME */
	char *exe, *cmdline, *cgroup; /* owned, NULL when unknown */
	uint64_t mount_ns;	      /* inode of its mount namespace; MANIFEST_ABSENT */
	uint64_t ns_pid;	      /* its number in the innermost pid namespace; so */
	bool uid_is_only; /* UID is its real, effective, saved and file system uid, and it has no
			   * capabilities: only another program can give it other rights */
	bool program_is_plain; /* its program is there, gives nobody's rights away, and UID may
				* read it */
	bool cmdline_cut;
	bool zombie;	     /* has ended and waits to be reaped */
	bool cmdline_unread; /* it was not looked for, or its reading did not end */
};

void procinfo_done(struct procinfo *info);
/* PROC is "/proc" (or a test's tree). 0; -ESRCH: gone. */
int procscan_info(const char *proc, uint32_t pid, struct procinfo *ret);
/* The same but for the command line. That is read from memory of the process, for which the kernel
 * takes that memory's lock (fs/proc/base.c, get_mm_cmdline): a thread that waits for a page of a
 * FUSE file with it, and one that wants to map something, keep it for as long as they like. */
int procscan_facts(const char *proc, uint32_t pid, struct procinfo *ret);

typedef int (*procscan_fn)(void *userdata, const void *record, size_t size);
/* One process (all its threads): FORK and COMM for each thread, MMAP2 for each executable mapping
 * (dev and inode from maps), all with sample time 0. Stops at the first non-zero result of FN and
 * returns it. 0; -ESRCH; -EACCES: its mappings are not ours to see (FORK and COMM were given). Path
 * names as in maps, octal escapes undone, " (deleted)" kept as the kernel's records do. */
int procscan_process(const char *proc, uint32_t pid, procscan_fn fn, void *userdata);
/* All processes but kernel threads' mappings; processes that vanish meanwhile are left out, and
 * mappings that are not ours to see. */
int procscan_all(const char *proc, procscan_fn fn, void *userdata);
