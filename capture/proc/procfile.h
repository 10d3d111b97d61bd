/*
 * Files below /proc/PID, read from a descriptor of that directory, so that a pid used again is not
 * mistaken for its former owner. What a vanished process makes of a read is -ESRCH everywhere.
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

/* PROC/PID; *ret_dir is the caller's to close. 0, -ESRCH or -errno. */
int procfile_process(const char *proc, uint32_t pid, int *ret_dir);
/* PATH in the process' root, as O_PATH with FLAGS (O_NOFOLLOW: a link at its end is opened itself);
 * no symlinks are followed. Where somebody mounts a file system of his own (FUSE) meanwhile, that
 * is not asked: only what the kernel remembers is found (from Linux 5.12 on). An fd; -ESRCH;
 * -EAGAIN: it does not remember; -errno. */
int procfile_beneath(int dir, const char *path, int flags);
int procfile_opendir(int dir, const char *path, DIR **ret);
int procfile_fopen(int dir, const char *path, FILE **ret);
/* At most SIZE - 1 bytes of a file and a NUL behind them. Bytes read, or -ESRCH, or -errno. */
ssize_t procfile_read(int dir, const char *path, char *ret, size_t size);
/* 0, -ESRCH, -EBADMSG, -errno. */
int procfile_stat(int dir, struct procfile_stat *ret);
/* A thread's name without the newline that ends the file; it may hold others. */
int procfile_comm(int dir, const char *path, char *ret, size_t size);
