/*
 * Which file is mapped at an address of a process, asked of the process' mappings themselves:
 * PROCMAP_QUERY on /proc/PID/maps (include/uapi/linux/fs.h, Linux 6.11), else the line of that
 * file.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#define MAPQUERY_BUILD_ID 20

struct mapquery {
	uint64_t begin, end; /* of the mapping as it is now: it may be larger or smaller than it was
				when it was made */
	uint64_t pgoff;	     /* bytes */
	uint32_t maj, min;   /* as in /proc/PID/maps: of overlayfs, where stat(2) tells others */
	uint64_t ino;
	char path[PATH_MAX]; /* " (deleted)" behind it where that is so */
};

/* The file mapping of process DIR (procfile_process) that holds ADDRESS. Nothing is asked of the
 * file. 0; -ENOENT: there is none; -ESRCH: the process is gone; -errno. */
int mapquery_at(int dir, uint64_t address, struct mapquery *ret);
/* The build id of a file that is open for reading, which the kernel reads from it: that may block
 * where the file system does. Size of the id, 0: it has none; -EOPNOTSUPP: before Linux 6.11;
 * -errno. */
int mapquery_file_build_id(int fd, uint8_t ret[MAPQUERY_BUILD_ID]);
