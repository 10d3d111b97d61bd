/*
 * The mappings of a process: lines of /proc/PID/maps, and the mapping at one address, by
 * PROCMAP_QUERY or, on kernels without that, by reading the lines.
 */
#include "capture/proc/procmaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "proto/base.h"

/* --- One line --- */

/* Parses a number followed by STOP, and moves *TEXT behind STOP. */
static bool take_number(const char **text, int base, uint64_t max, char stop, uint64_t *ret)
{
	const char *end;

	if (!number_parse(*text, base, max, (const char[]){stop, '\0'}, &end, ret) || *end != stop)
		return false;
	*text = end + 1;
	return true;
}

/* "r-xp " */
static bool take_permissions(const char **text, struct procmaps_entry *ret)
{
	static const char letters[] = "rwx";
	static const uint32_t bits[] = {PROT_READ, PROT_WRITE, PROT_EXEC};
	const char *t = *text;

	for (size_t i = 0; i < 3; i++) {
		if (t[i] == letters[i])
			ret->prot |= bits[i];
		else if (t[i] != '-')
			return false;
	}
	if ((t[3] != 'p' && t[3] != 's') || t[4] != ' ')
		return false;
	ret->flags = t[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	*text = t + 5;
	return true;
}

/* The kernel escapes only newlines, and no backslashes (seq_file_path with "\n"), so anything else
 * that looks like an escape is part of the path. */
static void undo_escapes(char *path)
{
	char *to = path;

	while (*path != '\0') {
		if (strncmp(path, "\\012", 4) == 0) {
			*to++ = '\n';
			path += 4;
		} else {
			*to++ = *path++;
		}
	}
	*to = '\0';
}

int procmaps_parse(char *line, struct procmaps_entry *ret)
{
	const char *text = line, *path;
	uint64_t maj, min;

	*ret = (struct procmaps_entry){0};
	if (!take_number(&text, 16, UINT64_MAX, '-', &ret->begin) ||
	    !take_number(&text, 16, UINT64_MAX, ' ', &ret->end) || ret->begin >= ret->end ||
	    !take_permissions(&text, ret) ||
	    !take_number(&text, 16, UINT64_MAX, ' ', &ret->pgoff) ||
	    !take_number(&text, 16, UINT32_MAX, ':', &maj) ||
	    !take_number(&text, 16, UINT32_MAX, ' ', &min) ||
	    !number_parse(text, 10, UINT64_MAX, " ", &path, &ret->ino))
		return -EBADMSG;
	ret->maj = (uint32_t)maj;
	ret->min = (uint32_t)min;
	path += strspn(path, " ");
	ret->path = path;
	undo_escapes(line + (path - line));
	return 0;
}

/* --- The mapping at an address --- */

/* struct procmap_query. Its size is part of the request's number. */
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

/* 0; -EAGAIN: ADDRESS is not in the mapping of LINE; -ENOENT: it is not in a file. */
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

/* Line by line, as a process may have any number of mappings. */
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
	CLEANUP_CLOSE int maps = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	int r;

	if (maps < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = ask_at(maps, address, ret);
	return r == -EOPNOTSUPP ? read_at(maps, address, ret) : r;
}

int mapquery_file_build_id(int fd, uint8_t ret[MAPQUERY_BUILD_ID])
{
	struct question q = {
		.query_flags = QUERY_FILE_BACKED,
		.build_id_size = MAPQUERY_BUILD_ID,
		.build_id_addr = (uintptr_t)ret,
	};
	CLEANUP_CLOSE int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	long page = sysconf(_SC_PAGESIZE);
	void *at;
	int r;

	if (maps < 0)
		return -errno;
	/* The mapping is never read, and not executable, so no record tells of it. */
	at = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	q.query_addr = (uintptr_t)at;
	r = ask(maps, &q);
	munmap(at, (size_t)page);
	return r < 0 ? r : (int)MIN_OF(q.build_id_size, (uint32_t)MAPQUERY_BUILD_ID);
}
