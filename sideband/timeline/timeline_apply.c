/*
 * What each kind of record does to the state. Records come in order of time, but for those of the
 * scan of /proc (time 0), which may come after live ones and then only fill what is not known.
 *
 * Called by the daemon when it folds the log into the base, and by the worker when it loads a
 * bundle's records.
 */
#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/timeline/space_private.h"
#include "sideband/timeline/timeline_private.h"

int state_begin_era(struct state *s, struct process *p, uint64_t time, struct space *space)
{
	struct era *era;

	if (!space)
		return -ENOMEM;
	era = state_add_version(s, &p->eras, sizeof(*era));
	if (!era) {
		space_free(space);
		return -ENOMEM;
	}
	if (!s->history)
		space_free(era->space);
	space_set_pid(space, p->node.id);
	*era = (struct era){.begin = time, .space = space};
	return 0;
}

void state_end_life(struct state *s, struct task *t, uint64_t time)
{
	struct timeline_thread *life = state_life(t);
	struct process *p = life ? (struct process *)idmap_find(&s->processes, life->pid) : NULL;

	if (!life || life->end != SPACE_NOW)
		return;
	life->end = time;
	if (!p)
		return;
	p->trust->threads_since = time;
	if (p->trust->n_threads > 0)
		p->trust->n_threads--;
}

static struct timeline_thread *add_life(struct state *s, struct task *t)
{
	struct timeline_thread *thread, **life, **listed;

	thread = pool_get(&s->pool, sizeof(*thread));
	life = thread ? state_add_version(s, &t->lives, sizeof(struct timeline_thread *)) : NULL;
	if (!life)
		return NULL;
	*life = thread;
	listed = state_add_version(s, &s->threads, sizeof(struct timeline_thread *));
	if (!listed) {
		t->lives.n--;
		return NULL;
	}
	*listed = thread;
	return thread;
}

int state_begin_life(struct state *s, struct task *t, uint64_t time)
{
	struct timeline_thread *thread;
	struct trust *trust = t->process->trust;

	if (!s->history)
		return 0;
	/* Its EXIT was lost. */
	state_end_life(s, t, time);
	thread = add_life(s, t);
	if (!thread)
		return -ENOMEM;
	*thread = (struct timeline_thread){.pid = t->process->node.id,
					   .tid = t->node.id,
					   .begin = time,
					   .end = SPACE_NOW,
					   .ppid = t->process->ppid};
	trust->n_threads++;
	trust->threads_since = time;
	return 0;
}

/* A thread that has exited may still be seen: its last way through the scheduler comes after its
 * EXIT. */
struct task *state_see(struct state *s, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct task *t = (struct task *)idmap_find(&s->tasks, tid);
	struct process *p;

	if (t && t->process->node.id == pid && (!s->history || t->lives.n))
		return t;
	p = state_process(s, pid);
	t = p ? state_task(s, p, tid) : NULL;
	if (!t || state_begin_life(s, t, time) < 0)
		return NULL;
	return t;
}

int state_set_name(struct state *s, struct task *t, uint64_t time, const char *comm)
{
	struct name *last = state_name(t), *name;

	if (last && last->begin > time)
		return 0;
	if (!last && !comm)
		return 0;
	if (last && last->known == !!comm &&
	    (!comm || strncmp(last->comm, comm, sizeof(last->comm) - 1) == 0))
		return 0;
	name = state_add_version(s, &t->names, sizeof(*name));
	if (!name)
		return -ENOMEM;
	*name = (struct name){.begin = time, .known = comm};
	if (comm)
		memcpy(name->comm, comm, strnlen(comm, sizeof(name->comm) - 1));
	return 0;
}

static int apply_exit(struct state *s, const struct perfrecord *r)
{
	struct process *p = (struct process *)idmap_find(&s->processes, r->u.task.pid);
	struct task *t = (struct task *)idmap_find(&s->tasks, r->u.task.tid);

	if (!p || !t || t->process != p)
		return 0;
	if (s->history) {
		state_end_life(s, t, r->time);
		return 0;
	}
	state_forget_task(s, t);
	/* Other threads may outlive the leader. */
	if (r->u.task.tid == r->u.task.pid)
		state_end_process(s, p);
	if (p->ended && LIST_EMPTY(&p->tasks))
		state_forget_process(s, p);
	return 0;
}

/* Of all threads the leader alone is left; it may have been another one so far, and its own EXIT
 * have come before. */
static void revive(struct state *s, struct task *leader)
{
	struct process *p = leader->process;
	struct task *t, *next;

	state_revive_process(s, p);
	for (t = LIST_FIRST(&p->tasks); t; t = next) {
		next = LIST_NEXT(t, entry);
		if (t != leader)
			state_forget_task(s, t);
	}
}

static int lead(struct state *s, struct task *leader, const struct perfrecord *r)
{
	const struct timeline_thread *life = state_life(leader);

	if (s->history && life->end != SPACE_NOW && state_begin_life(s, leader, r->time) < 0)
		return -ENOMEM;
	if (!s->history && leader->process->ended)
		revive(s, leader);
	return turns_exec(s, r);
}

static int apply_exec(struct state *s, struct task *t, const struct perfrecord *r)
{
	struct process *p = t->process;

	if (state_begin_era(s, p, r->time, space_new_in(&s->pool, s->history)) < 0 ||
	    trust_exec(s, p, r->time) < 0)
		return -ENOMEM;
	return r->u.comm.tid == r->u.comm.pid ? lead(s, t, r) : 0;
}

static int apply_comm(struct state *s, const struct perfrecord *r)
{
	struct task *t;

	if (state_is_nobody(r->u.comm.pid, r->u.comm.tid))
		return 0;
	t = state_see(s, r->u.comm.pid, r->u.comm.tid, r->time);
	if (!t || state_set_name(s, t, r->time, r->u.comm.comm) < 0)
		return -ENOMEM;
	state_touch(s, t->process);
	if (r->time == 0 || !(r->misc & PERF_RECORD_MISC_COMM_EXEC))
		return 0;
	return apply_exec(s, t, r);
}

static int apply_mmap2(struct state *s, const struct perfrecord *r)
{
	const struct space_file *file;
	struct process *p;
	struct era *era;

	if (state_is_nobody(r->u.mmap2.pid, r->u.mmap2.pid))
		return 0;
	p = state_process(s, r->u.mmap2.pid);
	if (!p)
		return -ENOMEM;
	/* A process that was never heard of was there before. */
	if (!state_era(p) && state_begin_era(s, p, 0, space_new_in(&s->pool, s->history)) < 0)
		return -ENOMEM;
	era = state_era(p);
	if (r->time < era->begin)
		return 0;
	file = state_file(s, r);
	if (!file)
		return -ENOMEM;
	return space_map(era->space, r->time, r->u.mmap2.addr, r->u.mmap2.len, r->u.mmap2.pgoff,
			 r->u.mmap2.prot, r->u.mmap2.flags, file);
}

static int apply_switch(struct state *s, const struct perfrecord *r)
{
	struct process *p = NULL;

	/* Who was not seen for long matters where memory is short. */
	if (s->pool.used > s->pool.limit / 2)
		p = (struct process *)idmap_find(&s->processes, r->pid);
	if (p)
		state_touch(s, p);
	return turns_switch(s, r);
}

static int add_loss(struct state *s, const struct perfrecord *r, uint64_t since, uint64_t lost,
		    uint64_t flags)
{
	struct timeline_loss *loss;

	if (!s->history)
		return 0;
	loss = state_add_version(s, &s->losses, sizeof(*loss));
	if (!loss)
		return -ENOMEM;
	*loss = (struct timeline_loss){
		.cpu = r->cpu, .time = r->time, .since = since, .lost = lost, .aux_flags = flags};
	return 0;
}

int state_lose(struct state *s, const struct perfrecord *r, uint64_t since)
{
	if (!r->u.lost.lost)
		return 0;
	s->lost = true;
	if (turns_lose(s, r, since) < 0 || (s->history && trust_lose(s, r->time) < 0))
		return -ENOMEM;
	return add_loss(s, r, since, r->u.lost.lost, 0);
}

int state_apply(struct state *s, const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK: return state_fork(s, r);
	case PERF_RECORD_EXIT: return apply_exit(s, r);
	case PERF_RECORD_COMM: return apply_comm(s, r);
	case PERF_RECORD_MMAP2: return apply_mmap2(s, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: return apply_switch(s, r);
	case PERF_RECORD_ITRACE_START: return turns_start(s, r);
	case PERF_RECORD_LOST: return state_lose(s, r, 0);
	case PERF_RECORD_AUX: return r->u.aux.flags ? add_loss(s, r, 0, 0, r->u.aux.flags) : 0;
	default: return 0;
	}
}
