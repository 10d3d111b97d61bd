/*
 * pid -> struct procinfo, fed by intake.c from FORK, COMM, MMAP2 and EXIT records, read out by
 * evidence.c. Everything in the loop's thread. Seeing a process costs a look-up; /proc is read
 * later, a few processes a turn, so that a storm of forks cannot hold up the loop.
 */
#include "daemon/procs.h"

#include <string.h>

#include "proto/base.h"

#define NONE UINT32_MAX

struct procs_entry {
	struct procinfo info;
	uint32_t next;		      /* in its bucket */
	uint64_t forked_at, ended_at; /* perf ns; 0: not told */
	bool pending;		      /* facts are to be read */
	bool ended;
	bool old_program; /* exe and cmdline are those from before an exec */
};

struct procs {
	const char *proc;
	struct source *source; /* borrowed */
	struct procs_entry *entries;
	uint32_t n, max;
	uint32_t *buckets; /* as many as entries */
	uint32_t victim;   /* where the search for an ended process goes on */
	uint32_t n_pending, scan_at;
	uint64_t dropped;
};

int procs_new(const char *proc, uint32_t max, struct source *source, struct procs **ret)
{
	struct procs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->proc = proc;
	p->source = source;
	p->max = max;
	p->entries = calloc(max, sizeof(*p->entries));
	p->buckets = malloc(max * sizeof(*p->buckets));
	if (!p->entries || !p->buckets) {
		procs_free(p);
		return -ENOMEM;
	}
	memset(p->buckets, 0xff, max * sizeof(*p->buckets));
	*ret = p;
	return 0;
}

void procs_free(struct procs *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n; i++)
		procinfo_done(&p->entries[i].info);
	free(p->entries);
	free(p->buckets);
	free(p);
}

void procs_freep(struct procs **p)
{
	procs_free(*p);
}

static uint32_t *procs_bucket(struct procs *p, uint32_t pid)
{
	return &p->buckets[pid % p->max];
}

static struct procs_entry *procs_find(struct procs *p, uint32_t pid)
{
	uint32_t at = *procs_bucket(p, pid);

	while (at != NONE && p->entries[at].info.pid != pid)
		at = p->entries[at].next;
	return at == NONE ? NULL : &p->entries[at];
}

static void procs_unlink(struct procs *p, uint32_t index)
{
	uint32_t *at = procs_bucket(p, p->entries[index].info.pid);

	while (*at != index)
		at = &p->entries[*at].next;
	*at = p->entries[index].next;
}

/* A free slot: a new one, or that of a process that has ended. */
static uint32_t procs_slot(struct procs *p)
{
	if (p->n < p->max)
		return p->n++;
	for (uint32_t i = 0; i < p->max; i++) {
		uint32_t at = p->victim++ % p->max;
		struct procs_entry *e = &p->entries[at];

		if (!e->ended)
			continue;
		procs_unlink(p, at);
		p->n_pending -= e->pending;
		procinfo_done(&e->info);
		return at;
	}
	return NONE;
}

static void procs_mark(struct procs *p, struct procs_entry *e)
{
	p->n_pending += !e->pending;
	e->pending = true;
}

static struct procinfo procs_unknown(uint32_t pid)
{
	return (struct procinfo){.pid = pid,
				 .ppid = MANIFEST_ABSENT,
				 .start_ns = MANIFEST_ABSENT,
				 .uid = MANIFEST_ABSENT};
}

static struct procs_entry *procs_add(struct procs *p, uint32_t pid)
{
	uint32_t *bucket = procs_bucket(p, pid);
	uint32_t index = procs_slot(p);
	struct procs_entry *e;

	if (index == NONE) {
		p->dropped++;
		return NULL;
	}
	e = &p->entries[index];
	*e = (struct procs_entry){.info = procs_unknown(pid), .next = *bucket};
	*bucket = index;
	procs_mark(p, e);
	return e;
}

static struct procs_entry *procs_get(struct procs *p, uint32_t pid)
{
	struct procs_entry *e = procs_find(p, pid);

	return e ? e : procs_add(p, pid);
}

void procs_see(struct procs *p, uint32_t pid)
{
	procs_get(p, pid);
}

/* Whom E tells of has ended, and the pid is used again. */
static void procs_reuse(struct procs *p, struct procs_entry *e)
{
	uint32_t pid = e->info.pid;

	procinfo_done(&e->info);
	e->info = procs_unknown(pid);
	e->ended = e->old_program = false;
	procs_mark(p, e);
}

void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	if (e->ended && time > e->ended_at)
		procs_reuse(p, e);
	e->forked_at = MAX_OF(e->forked_at, time);
	if (e->info.ppid == MANIFEST_ABSENT)
		e->info.ppid = ppid;
}

void procs_exit(struct procs *p, uint32_t pid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e || time < e->forked_at) /* of who had the pid before */
		return;
	e->ended = true;
	e->ended_at = time;
}

void procs_exec(struct procs *p, uint32_t pid)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	e->old_program = true;
	procs_mark(p, e);
}

static void procs_forget_program(struct procinfo *info)
{
	free(TAKE_PTR(info->exe));
	free(TAKE_PTR(info->cmdline));
	info->cmdline_cut = false;
}

/* What /proc says now; when the process is gone, what is known already stays. */
static void procs_read(struct procs *p, struct procs_entry *e)
{
	struct procinfo info = {0};

	if (procscan_info(p->proc, e->info.pid, &info) == 0) {
		if (info.ppid == MANIFEST_ABSENT)
			info.ppid = e->info.ppid;
		procinfo_done(&e->info);
		e->info = info;
	} else if (e->old_program) {
		procs_forget_program(&e->info);
	}
	e->old_program = false;
	if (p->source && p->source->ops->describe)
		p->source->ops->describe(p->source, &e->info);
}

void procs_refresh(struct procs *p, size_t budget)
{
	for (uint32_t i = 0; i < p->n && p->n_pending && budget; i++) {
		struct procs_entry *e = &p->entries[p->scan_at++ % p->n];

		if (!e->pending)
			continue;
		e->pending = false;
		p->n_pending--;
		budget--;
		procs_read(p, e);
	}
}

int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procinfo *info),
		  void *userdata)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n && r == 0; i++)
		r = fn(userdata, &p->entries[i].info);
	return r;
}

uint64_t procs_alive(const struct procs *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += !p->entries[i].ended;
	return n;
}

uint64_t procs_dropped(const struct procs *p)
{
	return p->dropped;
}
