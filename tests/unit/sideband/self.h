/*
 * Real files for the tests of ELF and symbols: this program, the C library, files of the system.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "proto/base.h"

struct file {
	const uint8_t *bytes;
	size_t size;
};

/* Maps a file read-only, so a parser that writes is killed. Size 0: no such file. */
static inline struct file file_map(const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file f = {0};
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size == 0)
		return f;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return f;
	f.bytes = p;
	f.size = (size_t)st.st_size;
	return f;
}

static inline void file_unmap(struct file *f)
{
	if (f->bytes)
		munmap((void *)(uintptr_t)f->bytes, f->size);
	*f = (struct file){0};
}

/* Finds the path (of up to 4096 bytes) and the offset of the file that is mapped at ADDRESS. */
static inline bool file_of_address(const void *address, char *ret_path, uint64_t *ret_offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset, at = (unsigned long)(uintptr_t)address;
	char line[4352];
	bool found = false;

	*ret_offset = 0;
	while (maps && !found && fgets(line, sizeof(line), maps)) {
		ret_path[0] = 0;
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &offset,
			   ret_path) < 3)
			continue;
		found = at >= start && at < end && ret_path[0] == '/';
		*ret_offset = at - start + offset;
	}
	if (maps)
		fclose(maps);
	return found;
}
