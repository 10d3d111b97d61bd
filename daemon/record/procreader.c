/*
 * Requests for facts as tasks of a thread that can be left behind (aside.c), which has copies of
 * all that it needs. What comes after it was given up is thrown away: the process has been asked
 * again, or is not what it was. Called by procs.c.
 */
#include "daemon/record/procreader.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

struct task {
	struct aside_task task; /* first: they are one */
	struct procreader_answer answer;
	bool late;	   /* the loop's; it was given up */
	struct task *next; /* taken behind it */
};

struct procreader {
	struct aside *aside;
	struct task *first, *last; /* taken already, in order; NULL: none */
	unsigned int n_taken;
};

static struct task *task_of(struct aside_task *task)
{
	return (struct task *)(void *)task;
}

static int context_new(const char *proc, void **ret)
{
	*ret = strdup(proc);
	return *ret ? 0 : -ENOMEM;
}

static void run(void *context, struct aside_task *task)
{
	struct procreader_answer *a = &task_of(task)->answer;

	a->error = a->request.cmdline ? procscan_info(context, a->request.pid, &a->info)
				      : procscan_facts(context, a->request.pid, &a->info);
}

static void task_free(struct aside_task *task)
{
	procinfo_done(&task_of(task)->answer.info);
	free(task_of(task));
}

static void moved(struct aside_task *task, unsigned int n_stuck)
{
	task_of(task)->answer.request.cmdline &= n_stuck < PROCREADER_STUCK;
}

static const struct aside_ops ops = {
	.context_new = context_new,
	.context_free = free,
	.run = run,
	.task_free = task_free,
	.moved = moved,
};

int procreader_new(const char *proc, struct procreader **ret)
{
	struct procreader *r = calloc(1, sizeof(*r));
	int result;

	if (!r)
		return -ENOMEM;
	result = aside_new(&ops, proc, &r->aside);
	if (result < 0) {
		free(r);
		return result;
	}
	*ret = r;
	return 0;
}

static struct task *take_first(struct procreader *r)
{
	struct task *t = r->first;

	if (!t)
		return NULL;
	r->first = t->next;
	if (!r->first)
		r->last = NULL;
	r->n_taken--;
	return t;
}

void procreader_free(struct procreader *r)
{
	if (!r)
		return;
	while (r->first)
		task_free(&take_first(r)->task);
	aside_free(r->aside);
	free(r);
}

/* Takes all answers, for as long as one lies there its thread counts as held up; those that are too
 * late are for nobody. */
static void take_all(struct procreader *r)
{
	struct aside_task *task;

	while ((task = aside_take(r->aside))) {
		struct task *t = task_of(task);

		if (t->late) {
			task_free(task);
			continue;
		}
		if (r->last)
			r->last->next = t;
		else
			r->first = t;
		r->last = t;
		r->n_taken++;
	}
}

unsigned int procreader_stuck(struct procreader *r)
{
	take_all(r);
	return aside_stuck(r->aside);
}

unsigned int procreader_pending(const struct procreader *r)
{
	return aside_pending(r->aside) + r->n_taken;
}

int procreader_ask(struct procreader *r, const struct procreader_request *request)
{
	bool many = procreader_stuck(r) >= PROCREADER_STUCK;
	struct task *t;
	int result;

	if (procreader_pending(r) == PROCREADER_ROOM)
		return PROCREADER_FULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->answer.request = *request;
	t->answer.request.cmdline &= !many;
	result = aside_ask(r->aside, &t->task);
	if (result != 0)
		task_free(&t->task);
	return result;
}

int procreader_take(struct procreader *r, struct procreader_answer *ret)
{
	struct task *t;

	take_all(r);
	t = take_first(r);
	if (!t)
		return PROCREADER_NOTHING;
	*ret = t->answer;
	free(t);
	return 0;
}

int procreader_wait(struct procreader *r, uint64_t ns)
{
	return r->first ? 0 : aside_wait(r->aside, ns);
}

int procreader_give_up(struct procreader *r, uint64_t ns, struct procreader_request *ret)
{
	struct aside_task *task = r->first ? NULL : aside_give_up(r->aside, ns);

	if (!task)
		return PROCREADER_NOTHING;
	task_of(task)->late = true;
	*ret = task_of(task)->answer.request;
	return 0;
}
