/*
 * PROCMAP_QUERY, and its stand-in for kernels that do not have it. The kernel opens and parses
 * nothing for a question without a build id. Called when the recorder sees a file for the first
 * time.
 */
#include "capture/proc/mapquery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "proto/base.h"

/* struct procmap_query; 104 bytes, which is part of the request's number. */
struct question {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start, vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};
_Static_assert(sizeof(struct question) == 104, "PROCMAP_QUERY's layout");

#define QUERY		  _IOWR('f', 17, struct question)
#define QUERY_FILE_BACKED 0x20u

static int open_maps(int dir)
{
	int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

static int ask(int maps, struct question *q)
{
	q->size = sizeof(*q);
	if (ioctl(maps, QUERY, q) == 0)
		return 0;
	return errno == ENOTTY || errno == EINVAL ? -EOPNOTSUPP : -errno;
}

static int ask_at(int maps, uint64_t address, struct mapquery *ret)
{
	struct question q = {
		.query_flags = QUERY_FILE_BACKED,
		.query_addr = address,
		.vma_name_size = sizeof(ret->path),
		.vma_name_addr = (uintptr_t)ret->path,
	};
	int r = ask(maps, &q);

	if (r < 0)
		return r;
	if (q.vma_name_size == 0)
		return -ENOENT;
	ret->begin = q.vma_start;
	ret->end = q.vma_end;
	ret->pgoff = q.vma_offset;
	ret->maj = q.dev_major;
	ret->min = q.dev_minor;
	ret->ino = q.inode;
	return 0;
}

static int take_line(char *line, uint64_t address, struct mapquery *ret)
{
	struct procmaps_entry e;

	line[strcspn(line, "\n")] = '\0';
	if (procmaps_parse(line, &e) < 0 || address < e.begin || address >= e.end)
		return -EAGAIN;
	if (e.ino == 0 || strlen(e.path) >= sizeof(ret->path))
		return -ENOENT;
	*ret = (struct mapquery){.begin = e.begin,
				 .end = e.end,
				 .pgoff = e.pgoff,
				 .maj = e.maj,
				 .min = e.min,
				 .ino = e.ino};
	strcpy(ret->path, e.path);
	return 0;
}

/* The lines are in order of address, but a process may have any number of them. */
static int read_at(int maps, uint64_t address, struct mapquery *ret)
{
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;
	int fd = dup(maps), r = -EAGAIN;
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

	if (!in) {
		close_fd(fd);
		return -ENOMEM;
	}
	while (r == -EAGAIN && getline(&line, &size, in) > 0)
		r = take_line(line, address, ret);
	fclose(in);
	return r == -EAGAIN ? -ENOENT : r;
}

int mapquery_at(int dir, uint64_t address, struct mapquery *ret)
{
	CLEANUP_CLOSE int maps = open_maps(dir);
	int r;

	if (maps < 0)
		return maps;
	r = ask_at(maps, address, ret);
	return r == -EOPNOTSUPP ? read_at(maps, address, ret) : r;
}

static int ask_build_id(int maps, uint64_t address, uint8_t ret[MAPQUERY_BUILD_ID])
{
	struct question q = {
		.query_flags = QUERY_FILE_BACKED,
		.query_addr = address,
		.build_id_size = MAPQUERY_BUILD_ID,
		.build_id_addr = (uintptr_t)ret,
	};
	int r = ask(maps, &q);

	return r < 0 ? r : (int)MIN_OF(q.build_id_size, (uint32_t)MAPQUERY_BUILD_ID);
}

/* Mapped but never read here, and not executable: nobody records it. */
int mapquery_file_build_id(int fd, uint8_t ret[MAPQUERY_BUILD_ID])
{
	CLEANUP_CLOSE int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	long page = sysconf(_SC_PAGESIZE);
	void *at;
	int r;

	if (maps < 0)
		return -errno;
	at = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	r = ask_build_id(maps, (uintptr_t)at, ret);
	munmap(at, (size_t)page);
	return r;
}
