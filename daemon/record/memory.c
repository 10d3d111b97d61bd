/*
 * pid -> regions. A hash table of processes of a fixed size; each has its regions in order of
 * address, regions that touch are one, so that a compiler that makes the same pages writable and
 * executable again and again costs a search each time. Called by intake.c and evidence.c.
 */
#include "daemon/record/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/record/vdso.h"
#include "proto/base.h"

#define NONE	    UINT32_MAX
#define MAX_REGIONS 4096u /* of one process */

struct region {
	uint64_t begin, end;
	uint64_t time; /* of the newest record */
	bool vdso;
};

struct owner {
	uint32_t pid;
	uint32_t next; /* in the bucket, or in the list of free ones */
	uint64_t ran;  /* perf ns */
	struct region *regions;
	uint32_t n, capacity;
};

struct memory {
	struct owner *owners;
	uint32_t *buckets; /* as many as owners */
	uint32_t n, max, n_used;
	uint32_t unused;    /* the first of the free ones */
	uint64_t vdso_size; /* of our own, 0: none */
	uint64_t dropped;
};

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

/* Its memory is kept for the next one. */
static void memory_forget(struct memory *m, struct owner *o)
{
	uint32_t index = (uint32_t)(o - m->owners), *at = memory_bucket(m, o->pid);

	while (*at != index)
		at = &m->owners[*at].next;
	*at = o->next;
	o->next = m->unused;
	o->n = 0;
	m->unused = index;
	m->n_used--;
}

static void memory_make_room(struct memory *m)
{
	struct owner *oldest = &m->owners[0];

	for (uint32_t i = 1; i < m->n; i++)
		if (m->owners[i].ran < oldest->ran)
			oldest = &m->owners[i];
	m->dropped += oldest->n;
	memory_forget(m, oldest);
}

static struct owner *memory_get(struct memory *m, uint32_t pid)
{
	struct owner *o = memory_find(m, pid);
	uint32_t index = m->n;

	if (o)
		return o;
	if (m->unused == NONE && m->n == m->max)
		memory_make_room(m);
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

/* The first region that ends at ADDRESS or behind it. */
static uint32_t first_at(const struct owner *o, uint64_t address)
{
	return FIRST_WHERE(i, o->n, o->regions[i].end >= address);
}

/* Room for one more; false: there is none. */
static bool make_room(struct memory *m, struct owner *o)
{
	if (o->n < MAX_REGIONS && ARRAY_RESERVE(o->regions, o->capacity, o->n + 1) == 0)
		return true;
	m->dropped++;
	return false;
}

/* Joined with what it touches, if that is of its kind. */
static void memory_add(struct memory *m, struct owner *o, struct region r)
{
	uint32_t first = first_at(o, r.begin), last;

	/* One of the other kind stays apart. */
	if (first < o->n && o->regions[first].vdso != r.vdso && o->regions[first].begin < r.begin)
		first++;
	last = first;
	while (last < o->n && o->regions[last].begin <= r.end && o->regions[last].vdso == r.vdso) {
		r.begin = MIN_OF(r.begin, o->regions[last].begin);
		r.end = MAX_OF(r.end, o->regions[last].end);
		r.time = MAX_OF(r.time, o->regions[last].time);
		last++;
	}
	if (first == last) {
		if (!make_room(m, o))
			return;
		memmove(&o->regions[first + 1], &o->regions[first],
			(o->n - first) * sizeof(*o->regions));
		o->n++;
	} else {
		memmove(&o->regions[first + 1], &o->regions[last],
			(o->n - last) * sizeof(*o->regions));
		o->n -= last - first - 1;
	}
	o->regions[first] = r;
}

/* Names that the kernel gives to what is no file (perf_event_mmap_event(), arch_vma_name()), and of
 * files that are only memory: /dev/zero, mmap(MAP_SHARED | MAP_ANONYMOUS), MAP_HUGETLB. The bytes
 * of a memfd are a file's, but its process may tell names. */
static bool is_file(const char *name)
{
	return name[0] == '/' && strncmp(name, "//", 2) != 0 &&
	       strncmp(name, "/dev/zero", 9) != 0 && strncmp(name, "/memfd:", 7) != 0 &&
	       strncmp(name, "/anon_hugepage", 14) != 0;
}

/* [guest] is what the software PMU calls memory that lies elsewhere for us. */
void memory_see(struct memory *m, const struct perfrecord *record)
{
	struct region r = {.begin = record->u.mmap2.addr, .time = record->time};
	const char *name = record->u.mmap2.filename;
	struct owner *o;

	if (!m || !(record->u.mmap2.prot & PROT_EXEC) || is_file(name) ||
	    __builtin_add_overflow(r.begin, record->u.mmap2.len, &r.end) || r.end == r.begin ||
	    strcmp(name, "[vsyscall]") == 0 || strcmp(name, "[guest]") == 0)
		return;
	r.vdso = strcmp(name, "[vdso]") == 0;
	if (r.vdso && r.begin >> 32 && record->u.mmap2.len == m->vdso_size)
		return;
	o = memory_get(m, record->u.mmap2.pid);
	o->ran = MAX_OF(o->ran, record->time);
	memory_add(m, o, r);
	if (o->n == 0)
		memory_forget(m, o);
}

/* What was there before TIME is gone. */
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
	if (parent->pid != ppid) /* it was the parent that made room */
		return;
	child->ran = MAX_OF(child->ran, time);
	for (uint32_t i = 0; i < parent->n; i++)
		memory_add(m, child, parent->regions[i]);
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

/* Newest first; those that are free, last. */
static int compare_owners(const void *a, const void *b)
{
	const struct owner *const *x = a, *const *y = b;

	if (((*x)->n == 0) != ((*y)->n == 0))
		return (*x)->n == 0 ? 1 : -1;
	if ((*x)->ran != (*y)->ran)
		return (*x)->ran > (*y)->ran ? -1 : 1;
	return ((*x)->pid > (*y)->pid) - ((*x)->pid < (*y)->pid);
}

static size_t copy_regions(const struct owner *o, struct memory_region *to)
{
	for (uint32_t i = 0; i < o->n; i++)
		to[i] = (struct memory_region){
			.pid = o->pid,
			.address = o->regions[i].begin,
			.size = o->regions[i].end - o->regions[i].begin,
			.vdso = o->regions[i].vdso,
		};
	return o->n;
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
		*ret_n += copy_regions(order[i], list + *ret_n);
	return 0;
}

uint64_t memory_dropped(const struct memory *m)
{
	return m ? m->dropped : 0;
}
