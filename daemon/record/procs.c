/*
 * The table of processes, kept by records.
 *
 * Seeing a process costs a look-up. /proc is read later, a few processes a turn of the loop and in
 * another thread (procreader.c), so that neither a storm of forks nor a command line that cannot be
 * read holds up the loop.
 */
#include "daemon/record/procs_private.h"

#include <string.h>

#define SECOND_NS 1000000000u

int procs_new(const char *proc, uint32_t max, struct source *source, struct procs **ret)
{
	struct procs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->source = source;
	p->max = max;
	procs_set_patience(p, SECOND_NS, SECOND_NS / 10);
	p->entries = calloc(max, sizeof(*p->entries));
	p->buckets = malloc(max * sizeof(*p->buckets));
	p->ended.items = malloc(max * sizeof(*p->ended.items));
	p->line.items = malloc(max * sizeof(*p->line.items));
	if (!p->entries || !p->buckets || !p->ended.items || !p->line.items ||
	    procreader_new(proc, &p->reader) < 0) {
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
	procreader_free(p->reader);
	for (uint32_t i = 0; i < p->n; i++)
		procinfo_done(&p->entries[i].info);
	free(p->entries);
	free(p->buckets);
	free(p->ended.items);
	free(p->line.items);
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

struct procs_entry *procs_find(const struct procs *p, uint32_t pid)
{
	uint32_t at = p->buckets[pid % p->max];

	while (at != PROCS_NONE && p->entries[at].info.pid != pid)
		at = p->entries[at].next;
	return at == PROCS_NONE ? NULL : &p->entries[at];
}

static void procs_queue(const struct procs *p, struct procs_line *l, uint32_t index)
{
	l->items[l->tail++ % p->max] = index;
}

/* A free slot: a new one, or that of the process that ended first. PROCS_NONE: none. */
static uint32_t procs_slot(struct procs *p)
{
	if (p->n < p->max)
		return p->n++;
	while (p->ended.head < p->ended.tail) {
		uint32_t at = p->ended.items[p->ended.head++ % p->max];
		struct procs_entry *e = &p->entries[at];
		uint32_t *link = procs_bucket(p, e->info.pid);

		e->in_ended = false;
		if (!e->ended)
			continue;
		while (*link != at)
			link = &p->entries[*link].next;
		*link = e->next;
		p->n_pending -= e->pending;
		procinfo_done(&e->info);
		return at;
	}
	return PROCS_NONE;
}

void procs_mark(struct procs *p, struct procs_entry *e)
{
	p->n_pending += !e->pending;
	e->pending = true;
	if (e->in_line)
		return;
	e->in_line = true;
	e->since_ns = p->now_ns;
	procs_queue(p, &p->line, (uint32_t)(e - p->entries));
}

static struct procinfo procs_unknown(uint32_t pid)
{
	return (struct procinfo){.pid = pid,
				 .ppid = MANIFEST_ABSENT,
				 .start_ns = MANIFEST_ABSENT,
				 .uid = MANIFEST_ABSENT,
				 .mount_ns = MANIFEST_ABSENT,
				 .ns_pid = MANIFEST_ABSENT};
}

static struct procs_entry *procs_add(struct procs *p, uint32_t pid)
{
	uint32_t *bucket = procs_bucket(p, pid);
	uint32_t index = procs_slot(p);
	struct procs_entry *e;

	if (index == PROCS_NONE) {
		p->dropped++;
		return NULL;
	}
	e = &p->entries[index];
	*e = (struct procs_entry){.info = procs_unknown(pid),
				  .next = *bucket,
				  .before_asked = p->tags,
				  .uid = {.since = MANIFEST_ABSENT, .losses = p->losses},
				  .in_line = e->in_line,
				  .since_ns = e->since_ns};
	*bucket = index;
	procs_mark(p, e);
	return e;
}

/* NULL: no room. */
static struct procs_entry *procs_get(struct procs *p, uint32_t pid)
{
	struct procs_entry *e = procs_find(p, pid);

	return e ? e : procs_add(p, pid);
}

void procs_see(struct procs *p, uint32_t pid)
{
	procs_get(p, pid);
}

void procs_reuse(struct procs *p, struct procs_entry *e)
{
	uint32_t pid = e->info.pid;

	procinfo_done(&e->info);
	e->info = procs_unknown(pid);
	e->ended = e->old_program = e->awaits_exe = e->no_cmdline = false;
	e->exec_at = 0;
	procs_uid_forget(p, e);
	e->before_asked = p->tags;
	procs_mark(p, e);
}

void procs_fork(struct procs *p, uint32_t pid, uint32_t ppid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	/* The pid is reused if its process has ended, or was forked before: none is forked twice.
	 */
	if (e->ended ? time > e->ended_at : e->forked_at && time > e->forked_at) {
		/* Records of the new process's first programs may have come before its birth. */
		uint64_t exec_at = e->exec_at > time ? e->exec_at : 0;
		uint32_t execs = exec_at > 0 ? MAX_OF(e->uid.execs, 1u) : 0;

		procs_reuse(p, e);
		e->exec_at = exec_at;
		e->uid.execs = execs;
	}
	/* Records of what the process did next may have been lost. */
	if (p->losses > 0 && time <= p->lost_at)
		e->uid.losses = p->losses - 1;
	if (time >= e->forked_at) {
		e->forked_at = time;
		e->uid.forked_by = ppid;
	}
	if (e->info.ppid == MANIFEST_ABSENT)
		e->info.ppid = ppid;
}

void procs_exit(struct procs *p, uint32_t pid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e || time < e->forked_at) /* of the process that had the pid before */
		return;
	e->ended = true;
	e->ended_at = time;
	if (e->in_ended)
		return;
	e->in_ended = true;
	procs_queue(p, &p->ended, (uint32_t)(e - p->entries));
}

void procs_exec(struct procs *p, uint32_t pid, uint64_t time)
{
	struct procs_entry *e = procs_get(p, pid);

	if (!e)
		return;
	e->old_program = e->awaits_exe = e->asked_stale = true;
	e->no_cmdline = e->info.cmdline_unread = false;
	e->exec_at = time;
	procs_uid_exec(e, time);
	procs_mark(p, e);
}

void procs_forget_program(struct procinfo *info)
{
	free(TAKE_PTR(info->exe));
	free(TAKE_PTR(info->cmdline));
	info->cmdline_cut = false;
}

void procs_map(struct procs *p, uint32_t pid, const char *path)
{
	struct procs_entry *e = procs_find(p, pid);

	if (!e || !e->awaits_exe || path[0] != '/')
		return;
	e->awaits_exe = false;
	/* The program that /proc has told since the exec is better. */
	if (e->info.exe && !e->old_program)
		return;
	procs_forget_program(&e->info);
	e->info.exe = strdup(path);
	e->old_program = false;
}

uint32_t procs_parent(const struct procs *p, uint32_t pid)
{
	const struct procs_entry *e = procs_find(p, pid);

	return e && e->info.ppid <= UINT32_MAX ? (uint32_t)e->info.ppid : 0;
}

int procs_foreach(const struct procs *p, int (*fn)(void *userdata, const struct procs_told *told),
		  void *userdata)
{
	int r = 0;

	for (uint32_t i = 0; i < p->n && r == 0; i++) {
		const struct procs_entry *e = &p->entries[i];
		struct procs_told told = {.info = &e->info};

		procs_uid_tell(p, e, &told);
		r = fn(userdata, &told);
	}
	return r;
}

uint64_t procs_unread(const struct procs *p, uint32_t *ret_pids, size_t n)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		const struct procinfo *info = &p->entries[i].info;

		if (!info->cmdline_unread)
			continue;
		if (found < n)
			ret_pids[found] = info->pid;
		found++;
	}
	return found;
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
