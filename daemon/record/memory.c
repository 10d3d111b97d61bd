/*
 * Remembers which processes have code in memory that is in no file.
 *
 * A hash table of processes with a fixed size. Each process has its regions in order of address,
 * and regions that touch and are alike are one: a compiler that makes the same pages writable and
 * executable again and again costs one search each time. Where a process has too many, regions that
 * are not alike become one, of which the less is known.
 */
#include "daemon/record/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "capture/proc/procmaps.h"
#include "proto/base.h"

#define NONE	    UINT32_MAX
#define MAX_REGIONS 4096u /* of one process */

struct region {
	uint64_t begin, end;
	uint64_t time;	/* of the newest record */
	uint64_t since; /* the region is as it is since then, perf ns; UINT64_MAX: unknown */
	bool writable;	/* the process, or another one, can write to it */
	bool vdso;
};

struct owner {
	uint32_t pid;
	uint32_t next; /* in the bucket, or in the list of unused ones */
	uint64_t ran;  /* perf ns */
	struct region *regions;
	uint32_t n, capacity;
	uint64_t dropped; /* regions that found no room; over when the process ends */
};

struct memory {
	struct owner *owners;
	uint32_t *buckets; /* as many as owners */
	uint32_t n, max, n_used;
	uint32_t unused;    /* the first unused owner */
	uint64_t vdso_size; /* of our own vDSO; 0: none */
	/* Regions of processes that made room. Nobody knows when these processes end. */
	uint64_t dropped;
	uint64_t lost_ns; /* records were lost up to then */
};

const void *vdso_own(uint64_t *ret_size)
{
	unsigned long address = getauxval(AT_SYSINFO_EHDR);
	struct procmaps_entry e;
	char line[512];
	FILE *maps;

	*ret_size = 0;
	maps = address ? fopen("/proc/self/maps", "re") : NULL;
	if (!maps)
		return NULL;
	/* A line longer than the buffer reads as two, and the second one does not parse. */
	while (*ret_size == 0 && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = '\0';
		if (procmaps_parse(line, &e) == 0 && e.begin == address &&
		    strcmp(e.path, "[vdso]") == 0)
			*ret_size = e.end - e.begin;
	}
	fclose(maps);
	return *ret_size ? (const void *)address : NULL;
}

int memory_new(uint32_t max, struct memory **ret)
{
	struct memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->max = MAX_OF(max, 1u);
	m->unused = NONE;
	m->owners = calloc(m->max, sizeof(*m->owners));
	m->buckets = malloc(m->max * sizeof(*m->buckets));
	if (!m->owners || !m->buckets) {
		memory_free(m);
		return -ENOMEM;
	}
	memset(m->buckets, 0xff, m->max * sizeof(*m->buckets));
	vdso_own(&m->vdso_size);
	*ret = m;
	return 0;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		free(m->owners[i].regions);
	free(m->owners);
	free(m->buckets);
	free(m);
}

static uint32_t *memory_bucket(const struct memory *m, uint32_t pid)
{
	return &m->buckets[pid % m->max];
}

static struct owner *memory_find(const struct memory *m, uint32_t pid)
{
	uint32_t at = *memory_bucket(m, pid);

	while (at != NONE && m->owners[at].pid != pid)
		at = m->owners[at].next;
	return at == NONE ? NULL : &m->owners[at];
}

/* Forgets O. Its array is kept for the next process in its place. */
static void memory_forget(struct memory *m, struct owner *o)
{
	uint32_t index = (uint32_t)(o - m->owners), *at = memory_bucket(m, o->pid);

	while (*at != index)
		at = &m->owners[*at].next;
	*at = o->next;
	o->next = m->unused;
	o->n = 0;
	o->dropped = 0;
	m->unused = index;
	m->n_used--;
}

static struct owner *memory_get(struct memory *m, uint32_t pid)
{
	struct owner *o = memory_find(m, pid);
	uint32_t index = m->n;

	if (o)
		return o;
	if (m->unused == NONE && m->n == m->max) {
		/* The process that has not run for longest makes room. */
		struct owner *oldest = &m->owners[0];

		for (uint32_t i = 1; i < m->n; i++)
			if (m->owners[i].ran < oldest->ran)
				oldest = &m->owners[i];
		m->dropped += oldest->n + oldest->dropped;
		memory_forget(m, oldest);
	}
	if (m->unused != NONE) {
		index = m->unused;
		m->unused = m->owners[index].next;
	} else {
		m->n++;
	}
	m->n_used++;
	o = &m->owners[index];
	o->pid = pid;
	o->ran = 0;
	o->next = *memory_bucket(m, pid);
	*memory_bucket(m, pid) = index;
	return o;
}

/* Whether two regions that touch can be one. Where a process can write, it does not matter since
 * when. */
static bool is_alike(const struct region *a, const struct region *b)
{
	return a->vdso == b->vdso && a->writable == b->writable &&
	       (a->writable || a->since == b->since);
}

/* Says of R what holds for all of R and OTHER. */
static void take_both(struct region *r, const struct region *other)
{
	r->time = MAX_OF(r->time, other->time);
	r->since = MAX_OF(r->since, other->since);
	r->writable |= other->writable;
}

/* Puts the N regions of BY in place of the regions [FIRST, LAST). False: there is no room. */
static bool replace(struct owner *o, uint32_t first, uint32_t last, const struct region *by,
		    uint32_t n)
{
	uint32_t all = o->n - (last - first) + n;

	if (all > MAX_REGIONS || ARRAY_RESERVE(o->regions, o->capacity, all) < 0)
		return false;
	memmove(&o->regions[first + n], &o->regions[last], (o->n - last) * sizeof(*by));
	memcpy(&o->regions[first], by, n * sizeof(*by));
	o->n = all;
	return true;
}

/* Makes R and what it touches one region, which says what holds for all of it. */
static bool absorb(struct owner *o, struct region r)
{
	uint32_t first = FIRST_WHERE(i, o->n, o->regions[i].end >= r.begin), last = first;

	for (; last < o->n && o->regions[last].begin <= r.end; last++) {
		r.begin = MIN_OF(r.begin, o->regions[last].begin);
		r.end = MAX_OF(r.end, o->regions[last].end);
		take_both(&r, &o->regions[last]);
		r.vdso &= o->regions[last].vdso;
	}
	return first < last && replace(o, first, last, &r, 1);
}

/* Adds R, which replaces what it overlaps. */
static void memory_add(struct owner *o, struct region r)
{
	uint32_t first = FIRST_WHERE(i, o->n, o->regions[i].end >= r.begin), last = first, n = 0;
	struct region by[3];

	/* The parts before and behind R stay. */
	for (; last < o->n && o->regions[last].begin <= r.end; last++) {
		const struct region *old = &o->regions[last];

		if (old->begin < r.begin && n == 0) {
			by[n] = *old;
			by[n++].end = MIN_OF(old->end, r.begin);
		}
		/* Records of different CPUs come in any order. */
		if (old->end > r.begin && old->begin < r.end && old->time > r.time)
			take_both(&r, old);
	}
	if (n > 0 && is_alike(&by[0], &r)) {
		r.begin = by[0].begin;
		r.time = MAX_OF(r.time, by[0].time);
		n = 0;
	}
	by[n++] = r;
	if (last > first && o->regions[last - 1].end > r.end) {
		struct region rest = o->regions[last - 1];

		rest.begin = MAX_OF(rest.begin, r.end);
		if (is_alike(&rest, &r))
			by[n - 1].end = rest.end;
		else
			by[n++] = rest;
	}
	if (!replace(o, first, last, by, n) && !absorb(o, r))
		o->dropped++;
}

/* Whether a mapping's NAME is that of a file with bytes of its own. The kernel has names for what
 * is no file (perf_event_mmap_event(), arch_vma_name()) and for files that are only memory:
 * /dev/zero, mmap(MAP_SHARED | MAP_ANONYMOUS), MAP_HUGETLB. A memfd is a file, but its process may
 * tell the names of functions in it. */
static bool is_file(const char *name)
{
	return name[0] == '/' && strncmp(name, "//", 2) != 0 &&
	       strncmp(name, "/dev/zero", 9) != 0 && strncmp(name, "/memfd:", 7) != 0 &&
	       strncmp(name, "/anon_hugepage", 14) != 0;
}

void memory_see(struct memory *m, const struct perfrecord *record, uint64_t since)
{
	struct region r = {
		.begin = record->u.mmap2.addr,
		.time = record->time,
		.since = since,
	};
	const char *name = record->u.mmap2.filename;
	struct owner *o;

	/* The software PMU calls memory [guest] that has another address in the recorder. */
	if (!m || !(record->u.mmap2.prot & PROT_EXEC) || is_file(name) ||
	    __builtin_add_overflow(r.begin, record->u.mmap2.len, &r.end) || r.end == r.begin ||
	    strcmp(name, "[vsyscall]") == 0 || strcmp(name, "[guest]") == 0)
		return;
	/* Files that are only memory may be mapped a second time, and written to there. */
	r.writable = (record->u.mmap2.prot & PROT_WRITE) || (name[0] == '/' && name[1] != '/') ||
		     (record->u.mmap2.flags & MAP_TYPE) != MAP_PRIVATE;
	r.vdso = strcmp(name, "[vdso]") == 0;
	if (r.vdso && r.begin >> 32 && record->u.mmap2.len == m->vdso_size)
		return;
	o = memory_get(m, record->u.mmap2.pid);
	o->ran = MAX_OF(o->ran, record->time);
	memory_add(o, r);
	if (o->n == 0)
		memory_forget(m, o);
}

/* Forgets the regions of PID that are not newer than TIME. */
static void memory_clear(struct memory *m, uint32_t pid, uint64_t time)
{
	struct owner *o = memory_find(m, pid);
	uint32_t n = 0;

	if (!o)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->regions[i].time > time)
			o->regions[n++] = o->regions[i];
	o->n = n;
	if (n == 0)
		memory_forget(m, o);
}

void memory_fork(struct memory *m, uint32_t pid, uint32_t ppid, uint64_t time)
{
	const struct owner *parent;
	struct owner *child;
	uint32_t from;

	if (!m || m->n_used == 0)
		return;
	memory_clear(m, pid, time);
	parent = pid != ppid ? memory_find(m, ppid) : NULL;
	if (!parent)
		return;
	from = (uint32_t)(parent - m->owners);
	child = memory_get(m, pid);
	parent = &m->owners[from];
	if (parent->pid != ppid) /* the parent made room */
		return;
	child->ran = MAX_OF(child->ran, time);
	for (uint32_t i = 0; i < parent->n; i++)
		memory_add(child, parent->regions[i]);
	if (child->n == 0)
		memory_forget(m, child);
}

void memory_exec(struct memory *m, uint32_t pid, uint64_t time)
{
	if (m && m->n_used)
		memory_clear(m, pid, time);
}

void memory_exit(struct memory *m, uint32_t pid)
{
	struct owner *o = m && m->n_used ? memory_find(m, pid) : NULL;

	if (o)
		memory_forget(m, o);
}

void memory_ran(struct memory *m, uint32_t pid, uint64_t time)
{
	struct owner *o = m && m->n_used ? memory_find(m, pid) : NULL;

	if (o)
		o->ran = MAX_OF(o->ran, time);
}

/* Since when region R cannot have been written to; MEMORY_UNKNOWN: it can, or that is not known. */
static uint64_t unchanged_since(const struct memory *m, const struct region *r)
{
	return r->writable ? MEMORY_UNKNOWN : MAX_OF(r->since, m->lost_ns);
}

/* The process that ran last comes first; processes without regions come last. */
static int compare_owners(const void *a, const void *b)
{
	const struct owner *const *x = a, *const *y = b;

	if (((*x)->n == 0) != ((*y)->n == 0))
		return (*x)->n == 0 ? 1 : -1;
	if ((*x)->ran != (*y)->ran)
		return (*x)->ran > (*y)->ran ? -1 : 1;
	return ((*x)->pid > (*y)->pid) - ((*x)->pid < (*y)->pid);
}

int memory_regions(const struct memory *m, struct memory_region **ret, size_t *ret_n)
{
	CLEANUP_FREE const struct owner **order = NULL;
	struct memory_region *list;
	size_t n = 0;

	*ret = NULL;
	*ret_n = 0;
	if (!m)
		return 0;
	order = calloc(m->n + 1u, sizeof(*order));
	for (uint32_t i = 0; i < m->n && order; i++) {
		order[i] = &m->owners[i];
		n += m->owners[i].n;
	}
	list = order ? calloc(n + 1, sizeof(*list)) : NULL;
	if (!list)
		return -ENOMEM;
	qsort(order, m->n, sizeof(struct owner *), compare_owners);
	*ret = list;
	for (uint32_t i = 0; i < m->n; i++)
		for (uint32_t j = 0; j < order[i]->n; j++) {
			const struct region *region = &order[i]->regions[j];

			list[(*ret_n)++] = (struct memory_region){
				.pid = order[i]->pid,
				.address = region->begin,
				.size = region->end - region->begin,
				.vdso = region->vdso,
				.unchanged_ns = unchanged_since(m, region),
			};
		}
	return 0;
}

void memory_lost(struct memory *m, uint64_t time)
{
	if (m)
		m->lost_ns = MAX_OF(m->lost_ns, time == 0 ? UINT64_MAX : time);
}

uint64_t memory_unchanged(const struct memory *m, uint32_t pid, uint64_t address, uint64_t size)
{
	const struct owner *o = m ? memory_find(m, pid) : NULL;
	uint64_t at = address, since = 0, end;

	if (!o || __builtin_add_overflow(address, size, &end))
		return MEMORY_UNKNOWN;
	for (uint32_t i = FIRST_WHERE(k, o->n, o->regions[k].end > address); at < end; i++) {
		if (i == o->n || o->regions[i].begin > at)
			return MEMORY_UNKNOWN;
		since = MAX_OF(since, unchanged_since(m, &o->regions[i]));
		at = o->regions[i].end;
	}
	return since;
}

uint64_t memory_dropped(const struct memory *m)
{
	uint64_t n = m ? m->dropped : 0;

	for (uint32_t i = 0; m && i < m->n; i++)
		n += m->owners[i].dropped;
	return n;
}
