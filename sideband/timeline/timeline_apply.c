/*
 * Applies each kind of record to the state of a timeline.
 *
 * Records come in order of time, except those of the scan of /proc and of a bundle's base. They
 * have time 0, may come after live records, and then only add what is not known.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* --- Threads, names and eras --- */

void state_end_life(struct state *s, struct task *t, uint64_t time)
{
	struct timeline_thread *life = state_life(t);
	struct process *p = life ? state_find_process(s, life->pid) : NULL;

	if (!life || life->end != SPACE_NOW)
		return;
	life->end = time;
	if (!p)
		return;
	p->certainty->threads_since = time;
	if (p->certainty->n_threads > 0)
		p->certainty->n_threads--;
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

/* With history: a thread of T begins or is seen for the first time. 0, -ENOMEM. */
static int begin_life(struct state *s, struct task *t, uint64_t time)
{
	struct certainty *certainty = t->process->certainty;
	struct timeline_thread *thread;

	if (!s->history)
		return 0;
	/* If the last thread of that number still lives, its EXIT was lost. */
	state_end_life(s, t, time);
	thread = add_life(s, t);
	if (!thread)
		return -ENOMEM;
	*thread = (struct timeline_thread){.pid = t->process->node.id,
					   .tid = t->node.id,
					   .begin = time,
					   .end = SPACE_NOW,
					   .ppid = t->process->ppid};
	certainty->n_threads++;
	certainty->threads_since = time;
	return 0;
}

/* A thread that has exited may still be seen: its last switch out comes after its EXIT. */
struct task *state_seen_task(struct state *s, uint32_t pid, uint32_t tid, uint64_t time)
{
	struct task *t = state_find_task(s, tid);
	struct process *p;

	if (t && t->process->node.id == pid && (!s->history || t->lives.n))
		return t;
	p = state_process(s, pid);
	t = p ? state_task(s, p, tid) : NULL;
	if (!t || begin_life(s, t, time) < 0)
		return NULL;
	return t;
}

/* T is called COMM (NULL: unknown) from TIME on. 0, -ENOMEM. */
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

/* P has SPACE (taken over; NULL: no memory) from TIME on. 0, -ENOMEM. */
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
	space_set_pid(space, p->node.id);
	*era = (struct era){.begin = time, .space = space};
	return 0;
}

/* --- FORK --- */

static int inherit_name(struct state *s, struct task *t, const struct perfrecord *r)
{
	const struct task *parent = state_find_task(s, r->u.task.ptid);
	const struct name *name = parent && parent != t ? state_name(parent) : NULL;

	return set_name(s, t, r->time, name && name->known ? name->comm : NULL);
}

/* True: what the scan of /proc said of P still counts. It does not where records were lost, as P's
 * end may be among them. */
static bool is_scanned(const struct state *s, const struct process *p)
{
	return p && p->scanned && !p->ended && !s->lost;
}

/* A thread begins in process P. A name that the scan gave this very thread stays. */
static int fork_task(struct state *s, struct process *p, const struct perfrecord *r)
{
	struct task *t = state_find_task(s, r->u.task.tid);
	const struct timeline_thread *life = t ? state_life(t) : NULL;
	bool named = t && t->process == p && is_scanned(s, p) && state_name(t) &&
		     (!life || life->end == SPACE_NOW);

	t = state_task(s, p, r->u.task.tid);
	if (!t || begin_life(s, t, r->time) < 0)
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

/*
 * The scan of /proc met the child P after this fork, as nothing is forked twice. The scan's facts
 * about the child are true. Its facts about the parent may be newer than the fork: another name,
 * another program. The scan's mappings of the child are therefore mapped over those that the child
 * inherits. SPACE (taken over) is the inherited space.
 */
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
	if (begin_era(s, p, r->time, space) < 0 ||
	    certainty_fork(s, p, r->u.task.ppid, r->time) < 0 || begin_life(s, t, r->time) < 0)
		return -ENOMEM;
	return state_name(t) ? 0 : inherit_name(s, t, r);
}

static int fork_process(struct state *s, const struct perfrecord *r)
{
	const struct process *parent = state_find_process(s, r->u.task.ppid);
	const struct era *era = parent ? state_era(parent) : NULL;
	struct process *p = state_find_process(s, r->u.task.pid);
	bool scanned = is_scanned(s, p);
	struct space *space;

	space = era ? space_fork_in(&s->pool, era->space, r->time)
		    : space_new_in(&s->pool, s->history);
	if (!space)
		return -ENOMEM;
	if (p)
		p->scanned = false;
	if (scanned) {
		p->ppid = r->u.task.ppid;
		return fork_scanned(s, p, space, r);
	}
	/* The pid is a new process' now. */
	if (p && !s->history) {
		state_forget_process(s, p);
		p = NULL;
	}
	p = p ? p : state_process(s, r->u.task.pid);
	if (!p) {
		space_free(space);
		return -ENOMEM;
	}
	p->ppid = r->u.task.ppid;
	if (begin_era(s, p, r->time, space) < 0 ||
	    certainty_fork(s, p, r->u.task.ppid, r->time) < 0)
		return -ENOMEM;
	return fork_task(s, p, r);
}

/* A FORK with time 0: the scan or the base says that the thread is there. Nothing is inherited, as
 * records with all of its mappings follow, and what live records have said stays. */
static int fork_at_zero(struct state *s, const struct perfrecord *r)
{
	struct process *p = state_process(s, r->u.task.pid);
	struct timeline_thread *life;
	struct task *t;

	if (!p)
		return -ENOMEM;
	if (p->ppid == TIMELINE_UNKNOWN && r->u.task.ppid != r->u.task.pid)
		p->ppid = r->u.task.ppid;
	t = state_seen_task(s, r->u.task.pid, r->u.task.tid, 0);
	if (!t)
		return -ENOMEM;
	life = state_life(t);
	if (life)
		life->ppid = p->ppid;
	if (r->u.task.tid != r->u.task.pid)
		return 0;
	p->scanned = r->misc & PERF_RECORD_MISC_FORK_EXEC;
	/* In the base the record's body says since when the mappings are complete; the scan has 0
	 * there. */
	certainty_scan(s, p, r->u.task.time);
	return 0;
}

/* A FORK of a leader with FORK_EXEC, which the kernel never sets: the recorder has read the
 * mappings of a process again (capture/proc/procscan.h, procscan_again()). The MMAP2 records that
 * follow are all of them. */
static int begin_again(struct state *s, const struct perfrecord *r)
{
	struct task *t = state_seen_task(s, r->u.task.pid, r->u.task.tid, r->time);
	struct process *p = t ? t->process : NULL;

	if (!p || begin_era(s, p, r->time, space_new_in(&s->pool, s->history)) < 0)
		return -ENOMEM;
	/* The pid's last process has ended, and the record of this one's birth was lost. */
	if (s->history ? state_life(t)->end != SPACE_NOW : p->ended) {
		if (begin_life(s, t, r->time) < 0)
			return -ENOMEM;
		state_revive_process(s, p);
	}
	if (p->ppid == TIMELINE_UNKNOWN)
		p->ppid = r->u.task.ppid;
	state_touch(s, p);
	return certainty_exec(s, p, r->time);
}

/* --- The other records --- */

static int apply_exit(struct state *s, const struct perfrecord *r)
{
	struct process *p = state_find_process(s, r->u.task.pid);
	struct task *t = state_find_task(s, r->u.task.tid);

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

static int apply_exec(struct state *s, struct task *t, const struct perfrecord *r)
{
	struct process *p = t->process;

	if (begin_era(s, p, r->time, space_new_in(&s->pool, s->history)) < 0 ||
	    certainty_exec(s, p, r->time) < 0)
		return -ENOMEM;
	/* After a loss the software PMU reports a process' mappings again, by an exec record of the
	 * thread that has the CPU. A real exec is always the leader's. */
	if (r->u.comm.tid != r->u.comm.pid)
		return 0;
	if (s->history && state_life(t)->end != SPACE_NOW && begin_life(s, t, r->time) < 0)
		return -ENOMEM;
	/* The exec has left T, the leader, as the only thread. The leader may have been another
	 * thread so far, and the EXIT of that one may have ended the process. */
	if (!s->history && p->ended) {
		struct task *other, *next;

		state_revive_process(s, p);
		for (other = LIST_FIRST(&p->tasks); other; other = next) {
			next = LIST_NEXT(other, entry);
			if (other != t)
				state_forget_task(s, other);
		}
	}
	return turns_exec(s, r);
}

static int apply_comm(struct state *s, const struct perfrecord *r)
{
	struct task *t;

	if (state_is_nobody(r->u.comm.pid, r->u.comm.tid))
		return 0;
	t = state_seen_task(s, r->u.comm.pid, r->u.comm.tid, r->time);
	if (!t || set_name(s, t, r->time, r->u.comm.comm) < 0)
		return -ENOMEM;
	state_touch(s, t->process);
	if (r->time == 0 || !(r->misc & PERF_RECORD_MISC_COMM_EXEC))
		return 0;
	return apply_exec(s, t, r);
}

/* A second record of mapped bytes comes from mprotect(2), with which the process made them
 * executable again: it may have made them writable before, without a record (mm/mprotect.c,
 * mprotect_fixup(); kernel/events/core.c, perf_event_mmap_match()). Loading a library again at its
 * last place looks the same, as unmapping is no record. Of memory without a file the recorder knows
 * more (daemon/record/memory.h). */
static uint32_t protection(const struct space *space, const struct perfrecord *r,
			   const struct space_file *file)
{
	const char *name = r->u.mmap2.filename;
	bool bytes = (name[0] == '/' && name[1] != '/') || strcmp(name, "[vdso]") == 0;

	if (r->time > 0 && bytes &&
	    space_shows(space, r->u.mmap2.addr, r->u.mmap2.len, r->u.mmap2.pgoff, file))
		return r->u.mmap2.prot | PROT_WRITE;
	return r->u.mmap2.prot;
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
	/* A process without an earlier record was there before. */
	if (!state_era(p) && begin_era(s, p, 0, space_new_in(&s->pool, s->history)) < 0)
		return -ENOMEM;
	era = state_era(p);
	if (r->time < era->begin)
		return 0;
	file = state_file(s, r);
	if (!file)
		return -ENOMEM;
	return space_map(era->space, r->time, r->u.mmap2.addr, r->u.mmap2.len, r->u.mmap2.pgoff,
			 protection(era->space, r, file), r->u.mmap2.flags, file);
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

int state_apply_lost(struct state *s, const struct perfrecord *r, uint64_t since)
{
	if (!r->u.lost.lost)
		return 0;
	s->lost = true;
	if (turns_lose(s, r, since) < 0 || (s->history && certainty_lose(s, r->time) < 0))
		return -ENOMEM;
	return add_loss(s, r, since, r->u.lost.lost, 0);
}

int state_apply(struct state *s, const struct perfrecord *r)
{
	struct process *p;

	switch (r->type) {
	case PERF_RECORD_FORK:
		if (state_is_nobody(r->u.task.pid, r->u.task.tid))
			return 0;
		if (r->time == 0)
			return fork_at_zero(s, r);
		if (r->misc & PERF_RECORD_MISC_FORK_EXEC && r->u.task.pid == r->u.task.tid)
			return begin_again(s, r);
		if (r->u.task.pid != r->u.task.ppid)
			return fork_process(s, r);
		p = state_process(s, r->u.task.pid);
		return p ? fork_task(s, p, r) : -ENOMEM;
	case PERF_RECORD_EXIT: return apply_exit(s, r);
	case PERF_RECORD_COMM: return apply_comm(s, r);
	case PERF_RECORD_MMAP2: return apply_mmap2(s, r);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		/* The order in which processes were seen matters only when memory becomes short. */
		p = s->pool.used > s->pool.limit / 2 ? state_find_process(s, r->pid) : NULL;
		if (p)
			state_touch(s, p);
		return turns_switch(s, r);
	case PERF_RECORD_ITRACE_START: return turns_start(s, r);
	case PERF_RECORD_LOST: return state_apply_lost(s, r, 0);
	case PERF_RECORD_AUX: return r->u.aux.flags ? add_loss(s, r, 0, 0, r->u.aux.flags) : 0;
	default: return 0;
	}
}
