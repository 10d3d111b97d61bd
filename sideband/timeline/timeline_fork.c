/*
 * FORK records: a process or thread begins, with what it inherits, or is found by the scan of
 * /proc, with all that the scan says next. Part of the state, in the daemon and in the worker.
 */
#include <errno.h>
#include <string.h>

#include "sideband/timeline/space_private.h"
#include "sideband/timeline/timeline_private.h"

static int inherit_name(struct state *s, struct task *t, const struct perfrecord *r)
{
	const struct task *parent = (struct task *)idmap_find(&s->tasks, r->u.task.ptid);
	struct name *name = parent && parent != t ? state_name(parent) : NULL;
	char comm[TIMELINE_COMM_SIZE];

	if (!name || !name->known)
		return state_set_name(s, t, r->time, NULL);
	memcpy(comm, name->comm, sizeof(comm));
	return state_set_name(s, t, r->time, comm);
}

/* A copy of the parent's space as it is now; empty when that is not known. */
static struct space *inherit_space(struct state *s, uint32_t ppid, uint64_t time)
{
	const struct process *parent = (struct process *)idmap_find(&s->processes, ppid);
	const struct era *era = parent ? state_era(parent) : NULL;

	if (!era)
		return space_new_in(&s->pool, s->history);
	return space_fork_in(&s->pool, era->space, time);
}

/* The pid stands for a new process from now on. */
static struct process *renew_process(struct state *s, uint32_t pid)
{
	struct process *p = (struct process *)idmap_find(&s->processes, pid);

	if (p && !s->history) {
		state_forget_process(s, p);
		p = NULL;
	}
	return p ? p : state_process(s, pid);
}

/* Not where records were lost, and its end may have been among them. */
static bool is_scanned(const struct state *s, const struct process *p)
{
	return p && p->scanned && !p->ended && !s->lost;
}

/* As fork_scanned(), of a thread: its name. */
static bool is_named_by_scan(const struct state *s, const struct process *p, uint32_t tid)
{
	const struct task *t = (struct task *)idmap_find(&s->tasks, tid);
	const struct timeline_thread *life = t ? state_life(t) : NULL;

	return t && t->process == p && is_scanned(s, p) && state_name(t) &&
	       (!life || life->end == SPACE_NOW);
}

static int fork_task(struct state *s, struct process *p, const struct perfrecord *r)
{
	bool named = is_named_by_scan(s, p, r->u.task.tid);
	struct task *t = state_task(s, p, r->u.task.tid);

	if (!t || state_begin_life(s, t, r->time) < 0)
		return -ENOMEM;
	return named ? 0 : inherit_name(s, t, r);
}

struct overlay {
	struct space *to;
	uint64_t time;
};

static int map_over(void *userdata, const struct space_mapping *m)
{
	const struct overlay *o = userdata;

	return space_map(o->to, o->time, m->start, m->size, m->pgoff, m->prot, m->flags, m->file);
}

/* The scan of /proc has met this very process after its fork: nobody is forked twice. What it read
 * there is true of the child; of the parent it may have been read long after the fork, when that
 * had another name and executed something else. So the scan's word on the child counts, and what
 * is inherited lies below it. */
static int fork_scanned(struct state *s, struct process *p, struct space *space,
			const struct perfrecord *r)
{
	struct overlay o = {.to = space, .time = r->time};
	struct task *t = state_task(s, p, r->u.task.tid);
	int result = state_era(p) ? space_foreach(state_era(p)->space, SPACE_NOW, map_over, &o) : 0;

	if (result < 0 || !t) {
		space_free(space);
		return -ENOMEM;
	}
	if (state_begin_era(s, p, r->time, space) < 0 ||
	    trust_fork(s, p, r->u.task.ppid, r->time) < 0 || state_begin_life(s, t, r->time) < 0)
		return -ENOMEM;
	return state_name(t) ? 0 : inherit_name(s, t, r);
}

static int fork_process(struct state *s, const struct perfrecord *r)
{
	struct space *space = inherit_space(s, r->u.task.ppid, r->time);
	struct process *p = (struct process *)idmap_find(&s->processes, r->u.task.pid);
	bool scanned = is_scanned(s, p);

	if (!space)
		return -ENOMEM;
	if (p)
		p->scanned = false;
	if (scanned) {
		p->ppid = r->u.task.ppid;
		return fork_scanned(s, p, space, r);
	}
	p = renew_process(s, r->u.task.pid);
	if (!p) {
		space_free(space);
		return -ENOMEM;
	}
	p->ppid = r->u.task.ppid;
	if (state_begin_era(s, p, r->time, space) < 0 ||
	    trust_fork(s, p, r->u.task.ppid, r->time) < 0)
		return -ENOMEM;
	return fork_task(s, p, r);
}

/* The scan's word: the process is there, with all that the scan says next; nothing is inherited,
 * and what live records have said already stays. */
static int scan_task(struct state *s, const struct perfrecord *r)
{
	struct process *p = state_process(s, r->u.task.pid);
	struct timeline_thread *life;
	struct task *t;

	if (!p)
		return -ENOMEM;
	if (p->ppid == TIMELINE_UNKNOWN && r->u.task.ppid != r->u.task.pid)
		p->ppid = r->u.task.ppid;
	t = state_see(s, r->u.task.pid, r->u.task.tid, 0);
	if (!t)
		return -ENOMEM;
	life = state_life(t);
	if (life)
		life->ppid = p->ppid;
	if (r->u.task.tid != r->u.task.pid)
		return 0;
	p->scanned = r->misc & PERF_RECORD_MISC_FORK_EXEC;
	/* The base says here up to when the mappings were told; the scan leaves it 0. */
	trust_scan(s, p, r->u.task.time);
	return 0;
}

int state_fork(struct state *s, const struct perfrecord *r)
{
	struct process *p;

	if (state_is_nobody(r->u.task.pid, r->u.task.tid))
		return 0;
	if (r->time == 0)
		return scan_task(s, r);
	if (r->u.task.pid != r->u.task.ppid)
		return fork_process(s, r);
	p = state_process(s, r->u.task.pid);
	return p ? fork_task(s, p, r) : -ENOMEM;
}
