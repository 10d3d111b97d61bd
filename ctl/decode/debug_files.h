/*
 * Files with the names and the DWARF of programs, in directories that the user named (--symbols):
 * found by build id, else by the program's path. Used by cmd_decode.c, for questions of the worker
 * (WORKER_DEBUG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEBUG_FILES_MAX_DIRS 8u

struct debug_files {
	int dirs[DEBUG_FILES_MAX_DIRS]; /* owned, open as paths */
	size_t n;
	int fd;		   /* owned; the file that was given last; -EBADF */
	bool without_path; /* this kernel has no openat2(2): nothing was looked for by path */
};

void debug_files_init(struct debug_files *d);
void debug_files_done(struct debug_files *d);
/* -E2BIG: DEBUG_FILES_MAX_DIRS are there; -errno: it is no directory that can be looked into. */
int debug_files_add(struct debug_files *d, const char *directory);
/* The file PATH, wherever it is; as below. */
int debug_files_open(struct debug_files *d, const char *path, int *ret_fd, uint64_t *ret_size);
/* The file for a program that has the build id ID (1 to 20 bytes, else there is none) and was
 * mapped from PATH (NULL: unknown). Both may be a stranger's: that it is of the same build the
 * worker finds out. In all directories, in their order, .build-id/XX/YYYY.debug and
 * .build-id/XX/YYYY, wherever links lead to; then PATH.debug and PATH (without " (deleted)"),
 * where no link leads out of the directory; never where PATH is not absolute or has "..". Only what
 * is a regular file and not empty. *ret_fd is borrowed until the next call. 0, -ENOENT. */
int debug_files_find(struct debug_files *d, const uint8_t *id, size_t id_size, const char *path,
		     int *ret_fd, uint64_t *ret_size);
