/*
 * Reads /proc in a way of its own, not by the recorder's scan. Processes in another mount namespace
 * or with another root are left out: their paths are named from there.
 */
#include "tests/system/proc_oracle.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

#define DELETED	      " (deleted)"
#define KERNEL_THREAD 0x00200000u /* include/linux/sched.h, PF_KTHREAD */

struct process {
	uint32_t pid;
	unsigned long long start; /* ticks: tells a pid's processes apart */
	char state;
	char comm[64];
	char *maps; /* the executable lines */
	size_t maps_size;
};

struct oracle {
	struct process *items;
	size_t n, capacity;
};

static FILE *open_file(uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return fopen(path, "re");
}

static bool read_stat(struct process *p)
{
	FILE *in = open_file(p->pid, "stat");
	char line[1024], *end = NULL;
	unsigned flags = 0;
	bool ok = in && fgets(line, sizeof(line), in) && (end = strrchr(line, ')')) != NULL;

	if (in)
		fclose(in);
	ok = ok && sscanf(end,
			  ") %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
			  "%*d %*d %*d %llu",
			  &p->state, &flags, &p->start) == 3;
	/* The names of the kernel's threads say what they do now, and no record tells. */
	return ok && (flags & KERNEL_THREAD) == 0;
}

static bool read_comm(struct process *p)
{
	FILE *in = open_file(p->pid, "comm");
	bool ok = in && fgets(p->comm, sizeof(p->comm), in);

	if (in)
		fclose(in);
	p->comm[strcspn(p->comm, "\n")] = '\0';
	return ok;
}

static bool read_maps(struct process *p)
{
	FILE *in = open_file(p->pid, "maps"), *out;
	char *line = NULL;
	size_t size = 0;

	if (!in)
		return false;
	out = open_memstream(&p->maps, &p->maps_size);
	while (out && getline(&line, &size, in) > 0)
		if (strstr(line, "[vsyscall]") == NULL && strchr(line, ' ')[3] == 'x')
			fputs(line, out);
	fclose(in);
	free(line);
	return out && fclose(out) == 0;
}

/* LINK of its folder in /proc leads where ours does. */
static bool shares(uint32_t pid, const char *link)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/%s", link);
	if (stat(path, &ours) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/%s", pid, link);
	return stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static void add(struct oracle *o, uint32_t pid)
{
	struct process p = {.pid = pid};

	if (!shares(pid, "ns/mnt") || !shares(pid, "root") || !read_stat(&p) || !read_comm(&p) ||
	    !read_maps(&p)) {
		free(p.maps);
		return;
	}
	if (o->n == o->capacity) {
		o->capacity = o->capacity ? 2 * o->capacity : 256;
		o->items = reallocarray(o->items, o->capacity, sizeof(p));
		if (!o->items)
			abort();
	}
	o->items[o->n++] = p;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

struct oracle *oracle_read(void)
{
	struct oracle *o = calloc(1, sizeof(*o));
	DIR *dir = opendir("/proc");
	struct dirent *e;

	while (o && dir && (e = readdir(dir)) != NULL)
		if (isdigit((unsigned char)e->d_name[0]))
			add(o, (uint32_t)strtoul(e->d_name, NULL, 10));
	if (dir)
		closedir(dir);
	if (o && o->n > 0)
		qsort(o->items, o->n, sizeof(*o->items), by_pid);
	return o;
}

void oracle_free(struct oracle *o)
{
	for (size_t i = 0; o && i < o->n; i++)
		free(o->items[i].maps);
	if (o)
		free(o->items);
	free(o);
}

/* --- Comparing --- */

static void say(struct oracle_result *r, const struct process *p, const char *what,
		uint64_t address, const char *there, const char *here)
{
	if (r->wrong++ == 0)
		snprintf(r->first_wrong, sizeof(r->first_wrong),
			 "process %u (%s): %s at %" PRIx64
			 ": /proc has \"%.100s\", the timeline \"%.100s\"",
			 p->pid, p->comm, what, address, there, here);
}

/* A record names a file as it was called when it was mapped. */
static bool is_same_path(const char *there, const char *here)
{
	size_t n = strlen(there), m = strlen(here), d = strlen(DELETED);

	if (there[0] == '\0' || strncmp(there, "[anon", 5) == 0)
		return strcmp(here, "//anon") == 0;
	if (n > d && strcmp(there + n - d, DELETED) == 0)
		n -= d;
	if (m > d && strcmp(here + m - d, DELETED) == 0)
		m -= d;
	return n == m && memcmp(there, here, n) == 0;
}

/* Every byte of one line must be mapped, from the same place of the same file. */
static void compare_mapping(const struct process *p, const struct space *space, uint64_t time,
			    const char *line, struct oracle_result *r)
{
	uint64_t begin, end, offset;
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*x:%*x %*u %n", &begin, &end,
		   &offset, &path) != 3)
		return;
	r->mappings++;
	for (uint64_t at = begin; at < end;) {
		const struct space_mapping *m = space ? space_find(space, time, at) : NULL;

		if (!m || !is_same_path(line + path, m->file->path)) {
			say(r, p, "mapping", at, line + path, m ? m->file->path : "nothing");
			return;
		}
		if (line[path] == '/' && m->pgoff + (at - m->start) != offset + (at - begin)) {
			say(r, p, "another offset", at, line + path, m->file->path);
			return;
		}
		at = m->start + m->size;
	}
}

struct stale {
	const char *maps;
	uint64_t n;
};

/* A mapping of the timeline of which /proc has no byte. */
static int count_stale(void *userdata, const struct space_mapping *m)
{
	struct stale *s = userdata;
	uint64_t begin, end;

	for (const char *line = s->maps; line && *line; line = strchr(line, '\n'), line += !!line)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 && m->start < end &&
		    begin < m->start + m->size)
			return 0;
	s->n++;
	return 0;
}

static void compare_process(const struct process *p, const struct timeline *t, uint64_t time,
			    struct oracle_result *r)
{
	const struct space *space = timeline_space(t, p->pid, time);
	const char *comm = timeline_comm(t, p->pid, time);
	struct stale stale = {.maps = p->maps};
	char *copy = strdup(p->maps), *save = NULL;

	r->processes++;
	if (!comm || strcmp(comm, p->comm) != 0)
		say(r, p, "name", 0, p->comm, comm ? comm : "nothing");
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		compare_mapping(p, space, time, line, r);
	free(copy);
	if (space && p->state != 'Z')
		space_foreach(space, time, count_stale, &stale);
	r->stale += stale.n;
}

void oracle_compare(const struct oracle *before, const struct oracle *after,
		    const struct timeline *t, uint64_t time, struct oracle_result *result)
{
	for (size_t i = 0; i < before->n; i++) {
		const struct process *p = &before->items[i];
		const struct process *q = bsearch(p, after->items, after->n, sizeof(*p), by_pid);

		if (!q || p->start != q->start || strcmp(p->comm, q->comm) != 0 ||
		    strcmp(p->maps, q->maps) != 0) {
			result->changed++;
			continue;
		}
		compare_process(p, t, time, result);
	}
}
