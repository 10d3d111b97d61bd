/*
 * A file of a specification: its descriptor and the numbers by which the kernel knows it.
 */
#pragma once

#include "capture/probe/probe_private.h"

struct probe_file {
	int fd; /* -EBADF: no file */
	char *path;
	struct shared_file id;
};
#define PROBE_FILE_NONE ((struct probe_file){.fd = -EBADF})

/* Opens the regular file PATH. The kernel compares inode and device of its own structures, which
 * stat(2) does not always show (overlayfs, btrfs); /proc/self/maps does. 0, or -errno with a
 * sentence in *ret_error. *ret is PROBE_FILE_NONE before, and after a failure. */
int probe_file_open(const char *path, struct probe_file *ret, char **ret_error);
/* Whether the path now leads to another file, or to none. False for no file. */
bool probe_file_moved(const struct probe_file *f);
void probe_file_close(struct probe_file *f);
