/*
 * The tables of a timeline's state: processes, threads, CPUs, files, and what to forget at the
 * limit.
 */
#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

#define FIRST_SWEEP 1024u
#define FIRST_CPUS  16u

void state_init(struct state *s, bool history, size_t limit)
{
	memset(s, 0, sizeof(*s));
	s->history = history;
	s->sweep_files_at = FIRST_SWEEP;
	pool_init(&s->pool, limit);
	filetable_init(&s->files, &s->pool);
	TAILQ_INIT(&s->live);
	TAILQ_INIT(&s->ended);
}

void state_done(struct state *s)
{
	pool_done(&s->pool);
}

void *state_add_version(struct state *s, struct versions *v, size_t size)
{
	size_t more = v->capacity ? 2 * v->capacity : 1;
	void *grown;

	if (v->n && !s->history)
		return v->items;
	if (v->n == v->capacity) {
		grown = pool_grow(&s->pool, v->items, v->capacity * size, more * size);
		if (!grown)
			return NULL;
		v->items = grown;
		v->capacity = more;
	}
	return (uint8_t *)v->items + size * v->n++;
}

struct process *state_process(struct state *s, uint32_t pid)
{
	struct process *p = state_find_process(s, pid);

	if (p)
		return p;
	p = pool_get(&s->pool, sizeof(*p));
	if (!p)
		return NULL;
	p->node.id = pid;
	p->ppid = TIMELINE_UNKNOWN;
	LIST_INIT(&p->tasks);
	if (certainty_init(s, p) < 0 || !idmap_add(&s->processes, &s->pool, &p->node)) {
		pool_put(&s->pool, p, sizeof(*p));
		return NULL;
	}
	TAILQ_INSERT_TAIL(&s->live, p, entry);
	return p;
}

struct task *state_task(struct state *s, struct process *process, uint32_t tid)
{
	struct task *t = state_find_task(s, tid);

	if (!t) {
		t = pool_get(&s->pool, sizeof(*t));
		if (!t)
			return NULL;
		t->node.id = tid;
		if (!idmap_add(&s->tasks, &s->pool, &t->node)) {
			pool_put(&s->pool, t, sizeof(*t));
			return NULL;
		}
	} else {
		LIST_REMOVE(t, entry);
	}
	t->process = process;
	LIST_INSERT_HEAD(&process->tasks, t, entry);
	return t;
}

void state_forget_task(struct state *s, struct task *t)
{
	LIST_REMOVE(t, entry);
	idmap_remove(&s->tasks, &t->node);
	pool_put(&s->pool, t->names.items, t->names.capacity * sizeof(struct name));
	pool_put(&s->pool, t, sizeof(*t));
}

static void unlink_process(struct state *s, struct process *p)
{
	if (p->ended)
		TAILQ_REMOVE(&s->ended, p, entry);
	else
		TAILQ_REMOVE(&s->live, p, entry);
}

void state_forget_process(struct state *s, struct process *p)
{
	struct era *era = state_era(p);

	while (!LIST_EMPTY(&p->tasks))
		state_forget_task(s, LIST_FIRST(&p->tasks));
	if (era)
		space_free(era->space);
	pool_put(&s->pool, p->eras.items, p->eras.capacity * sizeof(*era));
	unlink_process(s, p);
	idmap_remove(&s->processes, &p->node);
	pool_put(&s->pool, p, sizeof(*p));
}

void state_end_process(struct state *s, struct process *p)
{
	if (p->ended)
		return;
	unlink_process(s, p);
	p->ended = true;
	TAILQ_INSERT_TAIL(&s->ended, p, entry);
}

void state_revive_process(struct state *s, struct process *p)
{
	if (!p->ended)
		return;
	unlink_process(s, p);
	p->ended = false;
	TAILQ_INSERT_TAIL(&s->live, p, entry);
}

void state_touch(struct state *s, struct process *p)
{
	if (p->ended)
		return;
	TAILQ_REMOVE(&s->live, p, entry);
	TAILQ_INSERT_TAIL(&s->live, p, entry);
}

struct cpu *state_cpu(struct state *s, uint32_t cpu)
{
	size_t n = MAX_OF(s->n_cpus, FIRST_CPUS);
	struct cpu *grown;

	if (cpu >= TIMELINE_MAX_CPUS)
		return NULL;
	if (cpu < s->n_cpus)
		return &s->cpus[cpu];
	while (n <= cpu)
		n *= 2;
	grown = pool_grow(&s->pool, s->cpus, s->n_cpus * sizeof(*grown), n * sizeof(*grown));
	if (!grown)
		return NULL;
	s->cpus = grown;
	s->n_cpus = n;
	return &s->cpus[cpu];
}

static int mark_file(void *userdata, const struct space_mapping *m)
{
	(void)userdata;
	filetable_mark(m->file);
	return 0;
}

static void mark_files(const struct process_list *list)
{
	const struct process *p;

	TAILQ_FOREACH(p, list, entry)
	{
		const struct era *era = state_era(p);

		if (era)
			space_foreach(era->space, SPACE_NOW, mark_file, NULL);
	}
}

/* Forgets the files that nothing maps. */
static void sweep_files(struct state *s)
{
	mark_files(&s->live);
	mark_files(&s->ended);
	filetable_sweep(&s->files);
	s->sweep_files_at = MAX_OF(FIRST_SWEEP, 2 * s->files.n);
}

bool state_make_room(struct state *s)
{
	size_t n_files = s->files.n, n = 1 + s->processes.n / 16;
	bool any = false;

	if (s->history)
		return false;
	while (n-- > 0) {
		struct process *p = TAILQ_FIRST(&s->ended);

		if (!p)
			p = TAILQ_FIRST(&s->live);
		if (!p)
			break;
		state_forget_process(s, p);
		s->n_evicted++;
		any = true;
	}
	sweep_files(s);
	return any || s->files.n < n_files;
}

/* Sweeping from time to time keeps the table of files in proportion to the mappings, without
 * reference counts. */
const struct space_file *state_file(struct state *s, const struct perfrecord *r)
{
	if (!s->history && s->files.n >= s->sweep_files_at)
		sweep_files(s);
	return filetable_intern(&s->files, r);
}
