/*
 * Reads what /proc and sysfs say of processes, mounts, CPUs and memory.
 *
 * The recorder reads these files before and beside the records of the kernel: what ran before the
 * recorder, facts about processes that no record carries, whether a file may be touched, and how
 * large the host is.
 *
 * procscan.c  all processes: what ran before, as records, and who has perf events open
 * procinfo.c  the facts about one process
 * procfile.c  opens and reads the files of one process
 * procmaps.c  the mappings of a process, and the file at one address
 * mounts.c    which file systems can block whoever touches them
 * number.c    numbers and lists of CPUs in text
 * budget.c    how large rings may be
 *
 * Except for struct mounts, which its owner frees, the room keeps nothing between two calls. It
 * depends on no other part of the recorder, and opens nothing but /proc and sysfs and, below a
 * process' root, descriptors with O_PATH.
 *
 * Decisions that govern the room:
 * - A process is a descriptor of its directory (procfile_process()), so that a pid that is used
 *   again is not mistaken for its former process. A process that vanishes is the result -ESRCH, and
 *   never an error that is logged.
 * - The room describes what runs before the recorder by the records that the recorder would have
 *   seen, in the kernel's format with time 0. Live records win over them. After a loss of records
 *   the room tells again, at a time, which mappings a process has.
 * - The text of /proc is the kernel's, but names, paths and command lines in it are a stranger's:
 *   they are bounded, and escapes are undone exactly as the kernel makes them.
 * - Reading a command line takes a lock of the process' memory, which the process can hold for as
 *   long as it likes; procscan_facts() leaves out the command line for that reason.
 * - File systems that can block are never touched, so they are recognized by what the kernel
 *   remembers (mounts.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/perf/perfrecord.h"

/* --- Facts about one process --- */

#define PROCSCAN_CMDLINE_MAX 1024 /* bytes; longer ones are cut */

struct procinfo {
	uint32_t pid;
	/* MANIFEST_ABSENT if unknown; start_ns is of CLOCK_BOOTTIME. */
	uint64_t ppid, start_ns, uid;
	char *exe, *cmdline, *cgroup; /* owned, NULL if unknown */
	uint64_t mount_ns;	      /* inode of its mount namespace; MANIFEST_ABSENT */
	uint64_t ns_pid;	      /* pid in its innermost pid namespace; MANIFEST_ABSENT */
	/* UID is its real, effective, saved and file system uid, and it has no capabilities: only
	 * another program can give it other rights. */
	bool uid_is_only;
	/* Its program can be looked at, gives no rights to whoever executes it, and UID may read
	 * it. */
	bool program_is_plain;
	bool cmdline_cut;
	bool zombie;	     /* has ended and waits to be reaped */
	bool cmdline_unread; /* was not looked for, or reading it did not end */
};

void procinfo_done(struct procinfo *info);
/* PROC is "/proc" (or a test's tree). 0; -ESRCH: the process is gone; -errno. *ret always needs
 * procinfo_done(). */
int procscan_info(const char *proc, uint32_t pid, struct procinfo *ret);
/* The same without the command line. The command line lies in the process' memory, whose lock the
 * kernel takes to read it (fs/proc/base.c, get_mm_cmdline). A process can hold that lock for as
 * long as it likes, with one thread that waits for a page of a FUSE file under the lock and one
 * that wants to map something. */
int procscan_facts(const char *proc, uint32_t pid, struct procinfo *ret);

/* --- What ran before, as records --- */

typedef int (*procscan_fn)(void *userdata, const void *record, size_t size);
/* One process: FORK and COMM for each of its threads, MMAP2 for each executable mapping (device and
 * inode as in maps), all with sample time 0. A result of FN other than 0 ends the scan and is
 * returned. 0; -ESRCH; -EACCES: its mappings may not be seen (FORK and COMM were given); -errno.
 * Paths are as in records of the kernel: octal escapes undone, " (deleted)" kept. */
int procscan_process(const char *proc, uint32_t pid, procscan_fn fn, void *userdata);
/* All processes, kernel threads without mappings. Leaves out processes that vanish meanwhile, and
 * mappings that may not be seen. */
int procscan_all(const char *proc, procscan_fn fn, void *userdata);

/* After records were lost: all executable mappings of process PID, which nothing may have changed
 * since TIME (perf ns, not 0): a FORK of the leader with PERF_RECORD_MISC_FORK_EXEC, which the
 * kernel never sets, says that they begin; then come the COMMs of all threads and the MMAP2s. All
 * have TIME and no CPU (UINT32_MAX). A private mapping of a file has PROT_WRITE if the process may
 * have changed its bytes. 0, also for kernel threads, which give nothing; else as
 * procscan_process(). */
int procscan_again(const char *proc, uint32_t pid, uint64_t time, procscan_fn fn, void *userdata);

/* --- Who has perf events open --- */

/* The kernel does not tell which process has Intel PT, but such a process holds a perf event. */
#define HOLDERS_MAX 8

struct holder {
	uint32_t pid;
	char comm[17]; /* a stranger's, as in /proc */
};

struct holders {
	struct holder all[HOLDERS_MAX]; /* those with the lowest pids */
	size_t n;			/* their number, may be more than HOLDERS_MAX */
	bool partial;			/* the files of some process could not be looked at */
};

/* Processes below PROC ("/proc") other than OWN_PID with an open "anon_inode:[perf_event]". 0 or
 * -errno. */
int holders_find(const char *proc, uint32_t own_pid, struct holders *ret);
/* Writes "perf (pid 12), top (pid 34) and 2 more", with names made printable, or, if there are
 * none, "no process that can be seen". */
void holders_format(const struct holders *h, char *ret, size_t size);
