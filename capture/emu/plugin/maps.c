/*
 * The guest's executable mappings. Called by task.c at the first block and by calls.c after a
 * system call that made pages executable, in the emulator's process.
 */
#include "capture/emu/plugin/maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/emu/plugin/buildid.h"
#include "capture/emu/plugin/guest.h"
#include "proto/base.h"

#define PAGE 4096ull

struct line {
	uint64_t begin, end, pgoff, ino;
	unsigned int maj, min;
	char perms[5];
	char *path; /* in the line's buffer */
};

/* seq_file's mangle_path writes blanks and the like as \ooo; only \n in maps (fs/proc/task_mmu.c).
 */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from != '\0'; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static bool parse(char *text, struct line *ret)
{
	int path = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &ret->begin, &ret->end, ret->perms,
		   &ret->pgoff, &ret->maj, &ret->min, &ret->ino, &path) < 7 ||
	    path == 0)
		return false;
	ret->path = text + path;
	unescape(ret->path);
	return true;
}

static const char *name_of(const struct line *l)
{
	/* Not at the address that it has for the recorder, who must not read it there. */
	if (l->ino == 0 && guest_to_host(0) != 0)
		return "[guest]";
	/* The stack that QEMU made is plain anonymous memory to the kernel. */
	return l->path[0] != '\0' ? l->path : "//anon";
}

static uint32_t prot_of(int flags)
{
	uint32_t prot = 0;

	if (flags & GUEST_PAGE_READ)
		prot |= PROT_READ;
	if (flags & GUEST_PAGE_WRITE)
		prot |= PROT_WRITE;
	if (flags & GUEST_PAGE_EXEC)
		prot |= PROT_EXEC;
	return prot;
}

struct scan {
	uint64_t begin, end;
	bool build_ids;
	maps_fn fn;
	void *userdata;
};

#define PERMISSIONS (GUEST_PAGE_READ | GUEST_PAGE_WRITE | GUEST_PAGE_EXEC)

static int permissions(uint64_t host)
{
	return guest_page_flags(guest_from_host(host)) & PERMISSIONS;
}

static void give_run(const struct scan *s, const struct line *l, uint64_t begin, uint64_t end,
		     int flags)
{
	struct sideband_mapping m = {.addr = guest_from_host(begin),
				     .len = end - begin,
				     .pgoff = l->ino != 0 ? l->pgoff + begin - l->begin
							  : guest_from_host(begin),
				     .maj = l->maj,
				     .min = l->min,
				     .ino = l->ino,
				     .prot = prot_of(flags),
				     .flags = l->perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
				     .name = name_of(l)};

	if (s->build_ids && l->ino != 0)
		m.build_id_size = buildid_read(l->path, l->ino, m.build_id);
	s->fn(s->userdata, &m);
}

static void give_runs(const struct scan *s, const struct line *l)
{
	uint64_t at = MAX_OF(l->begin, guest_to_host(s->begin));
	uint64_t end = s->end == UINT64_MAX ? l->end : MIN_OF(l->end, guest_to_host(s->end));

	while (at < end) {
		int flags = permissions(at);
		uint64_t begin = at;

		while (at < end && permissions(at) == flags)
			at += PAGE;
		if (!(flags & GUEST_PAGE_EXEC))
			continue;
		give_run(s, l, begin, at, flags);
	}
}

/* Nothing is ever executed in the vsyscall page, and the kernel has no MMAP2 record for it.
 * QEMU reserves large ranges that no guest page lies in; only the guest's own are walked page by
 * page. Its memory and files are readable to the host, its reservations are not. */
static bool may_be_guest(const struct line *l)
{
	if (strcmp(l->path, "[vsyscall]") == 0)
		return false;
	return l->perms[0] == 'r' || l->end - l->begin < (1ull << 30);
}

int maps_executable(uint64_t begin, uint64_t end, uint32_t flags, maps_fn fn, void *userdata)
{
	struct scan s = {begin, end, (flags & EMURING_BUILD_ID) != 0, fn, userdata};
	char *text = NULL;
	size_t capacity = 0;
	struct line l;
	FILE *f = fopen("/proc/self/maps", "re");

	if (f == NULL)
		return -errno;
	while (getline(&text, &capacity, f) > 0)
		if (parse(text, &l) && l.begin < guest_to_host(end) && may_be_guest(&l))
			give_runs(&s, &l);
	free(text);
	fclose(f);
	return 0;
}
