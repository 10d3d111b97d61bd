/*
 * Files below /proc/PID, read relative to a descriptor of that directory, so that a pid that is
 * used again is not mistaken for its former process. Reading from a process that is gone is -ESRCH
 * in every function.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct procfile_stat {
	uint32_t ppid;
	uint64_t start_ticks; /* since boot, of sysconf(_SC_CLK_TCK) a second */
	bool kernel;	      /* a kernel thread */
	bool zombie;	      /* has ended */
};

/* Opens PROC/PID; *ret_dir is the caller's to close. 0, -ESRCH or -errno. */
int procfile_process(const char *proc, uint32_t pid, int *ret_dir);
/* Opens PATH below the process' root with O_PATH and FLAGS (O_NOFOLLOW: a link at its end is opened
 * itself); no symlinks are followed. Only what the kernel remembers is found (from Linux 5.12 on),
 * so a file system that somebody mounts there meanwhile (FUSE) is not asked. Returns an fd, the
 * caller's; -ESRCH; -EAGAIN: the kernel does not remember; -errno. */
int procfile_beneath(int dir, const char *path, int flags);
/* PATH below DIR; *ret is the caller's. 0, -ESRCH or -errno. */
int procfile_opendir(int dir, const char *path, DIR **ret);
int procfile_fopen(int dir, const char *path, FILE **ret);
/* Reads at most SIZE - 1 bytes of a file and puts a NUL behind them. Returns the number of bytes,
 * -ESRCH, or -errno. */
ssize_t procfile_read(int dir, const char *path, char *ret, size_t size);
/* Reads DIR/stat. 0, -ESRCH, -EBADMSG, -errno. */
int procfile_stat(int dir, struct procfile_stat *ret);
/* Reads a thread's name, without the newline that ends the file; the name may hold newlines, too.
 * 0, -ESRCH or -errno. */
int procfile_comm(int dir, const char *path, char *ret, size_t size);
