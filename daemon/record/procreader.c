/*
 * Requests for facts, as tasks of a thread that can be left behind (aside.h). The answer to a
 * request that was given up is discarded: the process has been asked again, or has changed.
 */
#include "daemon/record/procs_private.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

struct task {
	struct aside_task task; /* first */
	struct procreader_answer answer;
};

struct procreader {
	struct aside *aside;
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

void procreader_free(struct procreader *r)
{
	if (!r)
		return;
	aside_free(r->aside);
	free(r);
}

unsigned int procreader_stuck(struct procreader *r)
{
	return aside_stuck(r->aside);
}

unsigned int procreader_pending(const struct procreader *r)
{
	return aside_pending(r->aside);
}

int procreader_ask(struct procreader *r, const struct procreader_request *request)
{
	struct task *t;
	int result;

	if (procreader_pending(r) == PROCREADER_ROOM)
		return PROCREADER_FULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->answer.request = *request;
	t->answer.request.cmdline &= procreader_stuck(r) < PROCREADER_STUCK;
	result = aside_ask(r->aside, &t->task);
	if (result != 0)
		task_free(&t->task);
	return result;
}

int procreader_take(struct procreader *r, struct procreader_answer *ret)
{
	struct aside_task *task;

	while ((task = aside_take(r->aside)) && task->given_up)
		task_free(task);
	if (!task)
		return PROCREADER_NOTHING;
	*ret = task_of(task)->answer;
	free(task_of(task));
	return 0;
}

int procreader_wait(struct procreader *r, uint64_t ns)
{
	return aside_wait(r->aside, ns);
}

int procreader_give_up(struct procreader *r, uint64_t ns, struct procreader_request *ret)
{
	struct aside_task *task = aside_give_up(r->aside, ns);

	if (!task)
		return PROCREADER_NOTHING;
	*ret = task_of(task)->answer.request;
	return 0;
}
