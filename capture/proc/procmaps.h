/*
 * The mappings of a process, and the file that is mapped at one address.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

/* --- One line of /proc/PID/maps (fs/proc/task_mmu.c, show_map_vma) --- */

/* At most 73 bytes of numbers, and a path of PATH_MAX bytes, each of which may be a newline, which
 * is written as four bytes. */
#define PROCMAPS_MAX_LINE (4 * 4096 + 128)

struct procmaps_entry {
	uint64_t begin, end, pgoff; /* bytes; begin < end */
	uint32_t prot, flags;	    /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	uint32_t maj, min;
	uint64_t ino;
	const char *path; /* a stranger's, within the line; "" for anonymous memory */
};

/* Parses LINE (without newline), and undoes the escapes of the path in LINE. 0 or -EBADMSG. */
int procmaps_parse(char *line, struct procmaps_entry *ret);

/* --- The mapping at an address --- */

/* Asks with PROCMAP_QUERY on /proc/PID/maps (include/uapi/linux/fs.h, Linux 6.11), or reads the
 * lines of that file. */
#define MAPQUERY_BUILD_ID 20

struct mapquery {
	uint64_t begin, end; /* of the mapping as it is now, which may be larger or smaller than
				when it was made */
	uint64_t pgoff;	     /* bytes */
	uint32_t maj, min;   /* as in /proc/PID/maps; stat(2) differs on overlayfs */
	uint64_t ino;
	char path[PATH_MAX]; /* ends with " (deleted)" if the file was deleted */
};

/* The file mapping that holds ADDRESS in process DIR (procfile_process()). The file itself is not
 * touched. 0; -ENOENT: no file is mapped there; -ESRCH: the process is gone; -errno. */
int mapquery_at(int dir, uint64_t address, struct mapquery *ret);
/* The build id of the file FD, which is open for reading. The kernel reads it from the file, so the
 * call may block if the file system does. Returns its size; 0: none; -EOPNOTSUPP: a kernel before
 * Linux 6.11; -errno. */
int mapquery_file_build_id(int fd, uint8_t ret[MAPQUERY_BUILD_ID]);
