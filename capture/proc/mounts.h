/*
 * The kind of file system that a device number, an open file or a path is on, as a process sees it.
 * Above all: whether the file system can block a process that touches it, because its server may be
 * a stranger's program (FUSE) or far away (NFS).
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

enum mounts_kind {
	MOUNTS_UNKNOWN, /* mounted nowhere that can be seen */
	MOUNTS_LOCAL,
	MOUNTS_ALIASED, /* local, but device numbers of stat(2) are not those of /proc/PID/maps:
			 * they are the layers' on overlayfs, the subvolumes' on btrfs */
	MOUNTS_BLOCKING,
};

struct mounts;

/* PROC is "/proc" (or a test's tree). The mounts of the recorder and of process 1 are read again
 * only when they have changed, those of other processes at each mounts_look(). 0 or -ENOMEM. */
int mounts_new(const char *proc, struct mounts **ret);
void mounts_free(struct mounts *m);
/* Makes the following questions be about process DIR (procfile_process()). An overlay that only
 * processes of another user namespace see counts as one that can block. 0; or -ESRCH, -EACCES,
 * -ENOMEM, -errno: the process' mounts are unknown. */
int mounts_look(struct mounts *m, int dir);
/* The same for the recorder's own mounts. */
int mounts_look_self(struct mounts *m);
/* The kind of a device number as /proc/PID/maps tells it. */
enum mounts_kind mounts_device(struct mounts *m, uint32_t maj, uint32_t min);
/* The kind of an open file. O_PATH is enough, and the file system is not asked: *ret has type,
 * mode, inode and device as far as the kernel remembers them. While FD is open no other file system
 * can get its device number, so the answer stays true if mounts_look() was called after the open.
 */
enum mounts_kind mounts_fd(struct mounts *m, int fd, struct statx *ret);
/* MOUNTS_BLOCKING if the walk to PATH, which begins with '/', touches a mount that can block, else
 * MOUNTS_UNKNOWN. */
enum mounts_kind mounts_path(struct mounts *m, const char *path);
