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
#include "sideband/space_private.h"
#include "sideband/timeline_private.h"

/* The idle task, and a task without a number in our pid namespace. */
static bool is_nobody(uint32_t pid, uint32_t tid)
{
	return pid == 0 || tid == 0 || pid == TIMELINE_UNKNOWN || tid == TIMELINE_UNKNOWN;
}

/* P has SPACE (taken; NULL: no memory) from TIME on. */
static int begin_era(struct state *s, struct process *p, uint64_t time, struct space *space)
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
	*era = (struct era){.begin = time, .space = space};
	return 0;
}

static struct timeline_thread *life_of(const struct task *t)
{
	struct timeline_thread **lives = t->lives.items;

	return t->lives.n ? lives[t->lives.n - 1] : NULL;
}

/* With history: a thread is seen for the first time. */
static int begin_life(struct state *s, struct task *t, uint64_t time)
{
	struct timeline_thread *thread, **life, **listed;

	if (!s->history)
		return 0;
	thread = pool_get(&s->pool, sizeof(*thread));
	life = thread ? state_add_version(s, &t->lives, sizeof(struct timeline_thread *)) : NULL;
	if (!life)
		return -ENOMEM;
	*thread = (struct timeline_thread){.pid = t->process->node.id,
					   .tid = t->node.id,
					   .begin = time,
					   .end = SPACE_NOW,
					   .ppid = t->process->ppid};
	*life = thread;
	listed = state_add_version(s, &s->threads, sizeof(struct timeline_thread *));
	if (!listed)
		return -ENOMEM;
	*listed = thread;
	return 0;
}

/* The task that a record at TIME speaks of, made when it was not known. A thread that has exited
 * may still be seen: its last way through the scheduler comes after its EXIT. */
static struct task *see(struct state *s, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct task *t = (struct task *)idmap_find(&s->tasks, tid);
	struct process *p;

	if (t && t->process->node.id == pid && (!s->history || t->lives.n))
		return t;
	p = state_process(s, pid);
	t = p ? state_task(s, p, tid) : NULL;
	if (!t || begin_life(s, t, time) < 0)
		return NULL;
	return t;
}

static int set_name(struct state *s, struct task *t, uint64_t time, const char *comm)
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

static int inherit_name(struct state *s, struct task *t, const struct perfrecord *r)
{
	const struct task *parent = (struct task *)idmap_find(&s->tasks, r->u.task.ptid);
	struct name *name = parent && parent != t ? state_name(parent) : NULL;
	char comm[TIMELINE_COMM_SIZE];

	if (!name || !name->known)
		return set_name(s, t, r->time, NULL);
	memcpy(comm, name->comm, sizeof(comm));
	return set_name(s, t, r->time, comm);
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

static int fork_task(struct state *s, struct process *p, const struct perfrecord *r)
{
	struct task *t = state_task(s, p, r->u.task.tid);

	if (!t || begin_life(s, t, r->time) < 0)
		return -ENOMEM;
	return inherit_name(s, t, r);
}

static int fork_process(struct state *s, const struct perfrecord *r)
{
	struct space *space = inherit_space(s, r->u.task.ppid, r->time);
	struct process *p;

	if (!space)
		return -ENOMEM;
	p = renew_process(s, r->u.task.pid);
	if (!p) {
		space_free(space);
		return -ENOMEM;
	}
	p->ppid = r->u.task.ppid;
	if (begin_era(s, p, r->time, space) < 0)
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
	t = see(s, r->u.task.pid, r->u.task.tid, 0);
	if (!t)
		return -ENOMEM;
	life = life_of(t);
	if (life)
		life->ppid = p->ppid;
	return 0;
}

static int apply_fork(struct state *s, const struct perfrecord *r)
{
	struct process *p;

	if (is_nobody(r->u.task.pid, r->u.task.tid))
		return 0;
	if (r->time == 0)
		return scan_task(s, r);
	if (r->u.task.pid != r->u.task.ppid)
		return fork_process(s, r);
	p = state_process(s, r->u.task.pid);
	return p ? fork_task(s, p, r) : -ENOMEM;
}

static int apply_exit(struct state *s, const struct perfrecord *r)
{
	struct process *p = (struct process *)idmap_find(&s->processes, r->u.task.pid);
	struct task *t = (struct task *)idmap_find(&s->tasks, r->u.task.tid);
	struct timeline_thread *life;

	if (!p || !t || t->process != p)
		return 0;
	life = life_of(t);
	if (life && life->end == SPACE_NOW)
		life->end = r->time;
	if (s->history)
		return 0;
	state_forget_task(s, t);
	/* Other threads may outlive the leader. */
	if (r->u.task.tid == r->u.task.pid)
		state_end_process(s, p);
	if (p->ended && LIST_EMPTY(&p->tasks))
		state_forget_process(s, p);
	return 0;
}

static int apply_comm(struct state *s, const struct perfrecord *r)
{
	struct task *t;

	if (is_nobody(r->u.comm.pid, r->u.comm.tid))
		return 0;
	t = see(s, r->u.comm.pid, r->u.comm.tid, r->time);
	if (!t || set_name(s, t, r->time, r->u.comm.comm) < 0)
		return -ENOMEM;
	state_touch(s, t->process);
	if (r->time == 0 || !(r->misc & PERF_RECORD_MISC_COMM_EXEC))
		return 0;
	return begin_era(s, t->process, r->time, space_new_in(&s->pool, s->history));
}

static int apply_mmap2(struct state *s, const struct perfrecord *r)
{
	const struct space_file *file;
	struct process *p;
	struct era *era;

	if (is_nobody(r->u.mmap2.pid, r->u.mmap2.pid))
		return 0;
	p = state_process(s, r->u.mmap2.pid);
	if (!p)
		return -ENOMEM;
	/* A process that was never heard of was there before. */
	if (!state_era(p) && begin_era(s, p, 0, space_new_in(&s->pool, s->history)) < 0)
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

/* PID/TID run on CPU from TIME on. */
static int run(struct state *s, struct cpu *cpu, uint64_t time, uint32_t pid, uint32_t tid)
{
	struct stretch *stretches = cpu->stretches.items;
	struct stretch *last = cpu->stretches.n ? &stretches[cpu->stretches.n - 1] : NULL;
	struct timeline_thread *thread = NULL;
	struct task *t;

	if (is_nobody(pid, tid))
		pid = tid = 0;
	if (last && (last->time > time || (last->pid == pid && last->tid == tid)))
		return 0;
	if (s->history && pid) {
		t = see(s, pid, tid, time);
		if (!t)
			return -ENOMEM;
		thread = life_of(t);
	}
	last = state_add_version(s, &cpu->stretches, sizeof(*last));
	if (!last)
		return -ENOMEM;
	*last = (struct stretch){.time = time, .pid = pid, .tid = tid, .thread = thread};
	return 0;
}

static int apply_switch(struct state *s, const struct perfrecord *r)
{
	struct process *p = (struct process *)idmap_find(&s->processes, r->pid);
	struct cpu *cpu = state_cpu(s, r->cpu);
	bool out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
	bool wide = r->type == PERF_RECORD_SWITCH_CPU_WIDE;
	bool first;

	if (p)
		state_touch(s, p);
	if (!cpu)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	/* Who leaves a CPU of which nothing is known was there before. */
	first = cpu->n_switches++ == 0 && cpu->n_starts == 0;
	if (first && out && !is_nobody(r->pid, r->tid) && run(s, cpu, 0, r->pid, r->tid) < 0)
		return -ENOMEM;
	if (!out)
		return run(s, cpu, r->time, r->pid, r->tid);
	if (!wide)
		return run(s, cpu, r->time, 0, 0);
	return run(s, cpu, r->time, r->u.context_switch.next_prev_pid,
		   r->u.context_switch.next_prev_tid);
}

static int apply_itrace_start(struct state *s, const struct perfrecord *r)
{
	struct cpu *cpu = state_cpu(s, r->cpu);

	if (!cpu)
		return r->cpu < TIMELINE_MAX_CPUS ? -ENOMEM : 0;
	cpu->n_starts++;
	return run(s, cpu, r->time, r->u.itrace_start.pid, r->u.itrace_start.tid);
}

static int apply_loss(struct state *s, const struct perfrecord *r, uint64_t lost, uint64_t flags)
{
	struct timeline_loss *loss;

	if (!s->history || (!lost && !flags))
		return 0;
	loss = state_add_version(s, &s->losses, sizeof(*loss));
	if (!loss)
		return -ENOMEM;
	*loss = (struct timeline_loss){
		.cpu = r->cpu, .time = r->time, .lost = lost, .aux_flags = flags};
	return 0;
}

int state_apply(struct state *s, const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK: return apply_fork(s, r);
	case PERF_RECORD_EXIT: return apply_exit(s, r);
	case PERF_RECORD_COMM: return apply_comm(s, r);
	case PERF_RECORD_MMAP2: return apply_mmap2(s, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE: return apply_switch(s, r);
	case PERF_RECORD_ITRACE_START: return apply_itrace_start(s, r);
	case PERF_RECORD_LOST: return apply_loss(s, r, r->u.lost.lost, 0);
	case PERF_RECORD_AUX: return apply_loss(s, r, 0, r->u.aux.flags);
	default: return 0;
	}
}
