/*
 * Runs tasks in a thread that is left behind when it hangs.
 *
 * The loop and its threads share two queues: tasks to run, and tasks that have been run. Their lock
 * is never held for longer than it takes to add or remove a task. One thread, the worker, takes
 * tasks. A worker that hangs is left behind: it returns its task one day and ends. The last one to
 * leave, loop or thread, frees everything.
 */
#include "daemon/base/aside.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"

#define NSEC_PER_SEC 1000000000u

struct queue {
	struct aside_task *first, *last;
};

struct worker {
	struct aside *aside;
	void *context;
	/* Guarded by the lock: */
	struct aside_task *task; /* that it runs; NULL: it waits for one */
	uint64_t began_ns;	 /* that task */
	bool left_behind;	 /* ends after that task */
};

struct aside {
	const struct aside_ops *ops;
	char *proc;
	int event;
	/* For the loop alone: */
	struct worker *worker; /* NULL: none yet, or none could be started */
	unsigned int n_pending;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t asked, done;
	struct queue to_run, were_run;
	unsigned int n_stuck;
	unsigned int n_users; /* threads that use this struct, and the loop */
	bool closed;	      /* the loop has left */
};

static void queue_put(struct queue *q, struct aside_task *task)
{
	task->next = NULL;
	if (q->first)
		q->last->next = task;
	else
		q->first = task;
	q->last = task;
}

static struct aside_task *queue_take(struct queue *q)
{
	struct aside_task *task = q->first;

	if (task)
		q->first = task->next;
	return task;
}

/* The loop or a thread leaves. */
static void aside_leave(struct aside *a)
{
	struct aside_task *task;
	bool last;

	pthread_mutex_lock(&a->lock);
	last = --a->n_users == 0;
	pthread_mutex_unlock(&a->lock);
	if (!last)
		return;
	while ((task = queue_take(&a->to_run)) || (task = queue_take(&a->were_run)))
		a->ops->task_free(task);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->asked);
	pthread_cond_destroy(&a->done);
	close_fd(a->event);
	free(a->proc);
	free(a);
}

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;
	struct aside *a = w->aside;
	uint64_t one = 1;

	pthread_mutex_lock(&a->lock);
	while (!a->closed && !w->left_behind) {
		w->task = queue_take(&a->to_run);
		if (!w->task) {
			pthread_cond_wait(&a->asked, &a->lock);
			continue;
		}
		w->began_ns = now_ns(CLOCK_MONOTONIC);
		pthread_mutex_unlock(&a->lock);
		a->ops->run(w->context, w->task);
		pthread_mutex_lock(&a->lock);
		/* A counter that is full is readable, too. */
		if (!a->were_run.first && write(a->event, &one, sizeof(one)) < 0)
			errno = 0;
		queue_put(&a->were_run, TAKE_PTR(w->task));
		pthread_cond_signal(&a->done);
	}
	a->n_stuck -= w->left_behind;
	pthread_mutex_unlock(&a->lock);
	if (a->ops->context_free)
		a->ops->context_free(w->context);
	free(w);
	aside_leave(a);
	return NULL;
}

/* Starts a detached thread for W. 0 or -errno. */
static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The loop handles all signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

/* Makes sure that there is a worker. 0; -EAGAIN: too many threads hang; or -errno. */
static int need_worker(struct aside *a)
{
	struct worker *w;
	int r = 0;

	if (a->worker)
		return 0;
	if (aside_stuck(a) == ASIDE_STUCK_MAX)
		return -EAGAIN;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->aside = a;
	if (a->ops->context_new)
		r = a->ops->context_new(a->proc, &w->context);
	if (r < 0) {
		free(w);
		return r;
	}
	pthread_mutex_lock(&a->lock);
	a->n_users++;
	pthread_mutex_unlock(&a->lock);
	r = start_thread(w);
	if (r == 0) {
		a->worker = w;
		return 0;
	}
	if (a->ops->context_free)
		a->ops->context_free(w->context);
	free(w);
	aside_leave(a);
	return r;
}

int aside_new(const struct aside_ops *ops, const char *proc, struct aside **ret)
{
	struct aside *a = calloc(1, sizeof(*a));
	pthread_condattr_t attr;
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->ops = ops;
	a->n_users = 1;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&a->asked, NULL);
	pthread_cond_init(&a->done, &attr);
	pthread_condattr_destroy(&attr);
	a->proc = strdup(proc);
	a->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->event < 0)
		r = -errno;
	else if (!a->proc)
		r = -ENOMEM;
	if (r < 0) {
		aside_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

void aside_free(struct aside *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->closed = true;
	pthread_cond_signal(&a->asked);
	pthread_mutex_unlock(&a->lock);
	aside_leave(a);
}

int aside_fd(const struct aside *a)
{
	return a->event;
}

void aside_clear(struct aside *a)
{
	uint64_t n;

	if (read(a->event, &n, sizeof(n)) < 0)
		return; /* the descriptor is not readable */
}

unsigned int aside_stuck(struct aside *a)
{
	unsigned int n;

	pthread_mutex_lock(&a->lock);
	n = a->n_stuck;
	pthread_mutex_unlock(&a->lock);
	return n;
}

unsigned int aside_pending(const struct aside *a)
{
	return a->n_pending;
}

int aside_ask(struct aside *a, struct aside_task *task)
{
	int r = need_worker(a);

	if (r < 0)
		return r;
	if (a->n_pending == ASIDE_ROOM)
		return ASIDE_FULL;
	task->given_up = false;
	a->n_pending++;
	pthread_mutex_lock(&a->lock);
	queue_put(&a->to_run, task);
	pthread_cond_signal(&a->asked);
	pthread_mutex_unlock(&a->lock);
	return 0;
}

struct aside_task *aside_take(struct aside *a)
{
	struct aside_task *task;

	pthread_mutex_lock(&a->lock);
	task = queue_take(&a->were_run);
	pthread_mutex_unlock(&a->lock);
	if (task)
		a->n_pending -= !task->given_up;
	else if (a->n_pending > 0)
		need_worker(a); /* there may have been too many that hang */
	return task;
}

int aside_wait(struct aside *a, uint64_t ns)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + ns;
	struct timespec t = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
			     .tv_nsec = (long)(until % NSEC_PER_SEC)};
	int r = need_worker(a);

	if (r < 0 || a->n_pending == 0)
		return r;
	pthread_mutex_lock(&a->lock);
	while (!a->were_run.first && pthread_cond_timedwait(&a->done, &a->lock, &t) == 0)
		;
	pthread_mutex_unlock(&a->lock);
	return 0;
}

struct aside_task *aside_give_up(struct aside *a, uint64_t ns)
{
	struct aside_task *stuck = NULL;
	struct worker *w = a->worker;

	if (!w)
		return NULL;
	pthread_mutex_lock(&a->lock);
	if (w->task && !a->were_run.first && now_ns(CLOCK_MONOTONIC) - w->began_ns > ns) {
		stuck = w->task;
		stuck->given_up = true;
		w->left_behind = true;
		a->n_stuck++;
		for (struct aside_task *t = a->to_run.first; t && a->ops->moved; t = t->next)
			a->ops->moved(t, a->n_stuck);
	}
	pthread_mutex_unlock(&a->lock);
	if (stuck) {
		a->worker = NULL;
		a->n_pending--;
		need_worker(a);
	}
	return stuck;
}
