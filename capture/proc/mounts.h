/*
 * Which file system a device number, an fd or a path is on, as a process sees it, and whether it
 * can block whoever touches it: its server may be a stranger (FUSE) or far away (NFS).
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

enum mounts_kind {
	MOUNTS_UNKNOWN, /* not mounted where anybody sees it */
	MOUNTS_LOCAL,
	MOUNTS_ALIASED, /* local; stat(2) tells other device numbers than /proc/PID/maps does: of
			 * overlayfs the layers', of btrfs the subvolumes' */
	MOUNTS_BLOCKING,
};

struct mounts;

/* PROC is "/proc" (or a test's tree). Our own mounts and those of process 1 are read again only
 * when they have changed, others at each mounts_look. */
int mounts_new(const char *proc, struct mounts **ret);
void mounts_free(struct mounts *m);
/* The questions that follow are about process DIR (procfile_process). An overlay that only it and
 * others of a user namespace of their own see counts as one that may block. 0, -ESRCH, -EACCES,
 * -ENOMEM, -errno: they would be answered by nothing. */
int mounts_look(struct mounts *m, int dir);
/* So of ourselves. */
int mounts_look_self(struct mounts *m);
/* A device number as /proc/PID/maps has it. */
enum mounts_kind mounts_device(struct mounts *m, uint32_t maj, uint32_t min);
/* Of an open file (O_PATH is enough: its file system is not asked). *ret: type, mode, inode and
 * device of it, as far as they are known without asking. As long as FD is open nothing else can get
 * its device number: an answer stays true, if mounts_look came after the open. */
enum mounts_kind mounts_fd(struct mounts *m, int fd, struct statx *ret);
/* Whether walking to PATH, which begins with '/', touches a mount that may block: BLOCKING or
 * UNKNOWN. */
enum mounts_kind mounts_path(struct mounts *m, const char *path);
