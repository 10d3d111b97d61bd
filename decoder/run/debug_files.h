/*
 * Separate files with symbols and DWARF, in directories as packages have them.
 *
 * ptsnapd and ptsnapctl only find and open such files; ptsnap-decode reads them, and checks that
 * they are of the same build.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where distributions install them. */
#define DEBUG_FILES_INSTALLED "/usr/lib/debug"

#define DEBUG_FILES_MAX_DIRS 9u

struct debug_files {
	int dirs[DEBUG_FILES_MAX_DIRS]; /* owned, opened with O_PATH */
	size_t n;
	int fd;		   /* owned: the file of the last answer, or -EBADF */
	bool without_path; /* the kernel has no openat2(2): no file was looked for by path */
};

void debug_files_init(struct debug_files *d);
void debug_files_done(struct debug_files *d);
/* 0; -E2BIG: there are DEBUG_FILES_MAX_DIRS already; -errno of opening the directory. */
int debug_files_add(struct debug_files *d, const char *directory);
/* Opens the file PATH of any directory. Results as debug_files_find(). */
int debug_files_open(struct debug_files *d, const char *path, int *ret_fd, uint64_t *ret_size);
/*
 * Finds the file for a program with the build id ID (1 to 20 bytes; with another size there is no
 * file) that was mapped from PATH (NULL: unknown). Both may come from a stranger; ptsnap-decode
 * checks that the file is of the same build. The directories are searched in their order, first for
 * .build-id/XX/YYYY.debug and .build-id/XX/YYYY, wherever links lead, then for PATH.debug and PATH
 * (without " (deleted)"), where no link leads out of the directory. A PATH that is not absolute or
 * contains ".." is not searched. Only regular files that are not empty are found. *ret_fd is
 * borrowed until the next call. 0 or -ENOENT.
 */
int debug_files_find(struct debug_files *d, const uint8_t *id, size_t id_size, const char *path,
		     int *ret_fd, uint64_t *ret_size);
