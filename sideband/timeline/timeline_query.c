/*
 * What the worker asks a loaded timeline. Every answer is a binary search in what the load has put
 * in order of time; nothing changes, so threads may ask at the same time.
 */
#include "proto/base.h"
#include "sideband/timeline/timeline_private.h"

/* Every kind of version begins with its time. */
_Static_assert(offsetof(struct era, begin) == 0 && offsetof(struct name, begin) == 0 &&
		       offsetof(struct stretch, time) == 0 && offsetof(struct telling, time) == 0,
	       "time first");

/* The number of versions up to and including TIME. */
static size_t count_until(const struct versions *v, size_t size, uint64_t time)
{
	const uint8_t *items = v->items;

	return FIRST_WHERE(i, v->n, *(const uint64_t *)(const void *)(items + i * size) > time);
}

static const struct versions *turns_of(const struct timeline *t, uint32_t cpu)
{
	static const struct versions none;

	return cpu < t->state.n_cpus ? &t->state.cpus[cpu].stretches : &none;
}

size_t timeline_n_turns(const struct timeline *t, uint32_t cpu)
{
	return turns_of(t, cpu)->n;
}

void timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
		       struct timeline_turn *ret)
{
	const struct versions *v = turns_of(t, cpu);
	const struct stretch *stretches = v->items;
	size_t next = index < v->n ? index + 1 : 0;

	*ret = (struct timeline_turn){.until = next < v->n ? stretches[next].time : SPACE_NOW};
	if (index >= v->n)
		return;
	ret->since = stretches[index].time;
	ret->thread = stretches[index].thread;
	ret->uncertain = stretches[index].uncertain;
	ret->preempted = stretches[index].preempted;
}

/* What is not known to have been told anew may have been lost in the first silence. */
bool timeline_space_uncertain(const struct timeline *t, uint32_t pid, uint64_t time)
{
	const struct process *p = (struct process *)idmap_find(&t->state.processes, pid);
	const struct silence *silences = t->state.silences.items;
	const struct telling *tellings;
	uint64_t doubt = t->state.silences.n ? silences[0].since : SPACE_NOW;

	if (p) {
		tellings = p->trust->tellings.items;
		doubt = tellings[count_until(&p->trust->tellings, sizeof(*tellings), time) - 1]
				.doubt;
	}
	return doubt != SPACE_NOW && time >= doubt;
}

const struct space *timeline_space(const struct timeline *t, uint32_t pid, uint64_t time)
{
	const struct process *p = (struct process *)idmap_find(&t->state.processes, pid);
	const struct era *eras = p ? p->eras.items : NULL;
	size_t n = p ? count_until(&p->eras, sizeof(*eras), time) : 0;

	return n ? eras[n - 1].space : NULL;
}

const char *timeline_comm(const struct timeline *t, uint32_t tid, uint64_t time)
{
	const struct task *task = (struct task *)idmap_find(&t->state.tasks, tid);
	const struct name *names = task ? task->names.items : NULL;
	size_t n = task ? count_until(&task->names, sizeof(*names), time) : 0;

	return n && names[n - 1].known ? names[n - 1].comm : NULL;
}

const struct timeline_thread *timeline_last_thread(const struct timeline *t, uint32_t tid)
{
	const struct task *task = (struct task *)idmap_find(&t->state.tasks, tid);

	return task && task->lives.n ? state_life(task) : NULL;
}

size_t timeline_n_threads(const struct timeline *t)
{
	return t->state.threads.n;
}

const struct timeline_thread *timeline_thread(const struct timeline *t, size_t index)
{
	struct timeline_thread *const *threads = t->state.threads.items;

	return index < t->state.threads.n ? threads[index] : NULL;
}

const struct timeline_loss *timeline_loss(const struct timeline *t, size_t index)
{
	const struct timeline_loss *losses = t->state.losses.items;

	return index < t->state.losses.n ? &losses[index] : NULL;
}
