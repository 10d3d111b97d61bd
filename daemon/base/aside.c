/*
 * The loop and the thread share a desk: tasks to do on one side, done ones on the other, and a lock
 * that nobody holds for longer than it takes to put something there or to take it away. A thread
 * that stands in a task has its desk for itself, the loop takes another one with another thread;
 * who of the two leaves a desk last clears it away. Called by files.c and procreader.c.
 */
#include "daemon/base/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"

#define NSEC_PER_SEC 1000000000u

struct desk {
	pthread_mutex_t lock;
	pthread_cond_t asked, done;
	const struct aside_ops *ops;
	void *context;
	int event; /* its own copy of the loop's eventfd */
	bool left_by_loop, left_by_thread;
	struct aside_task *current; /* NULL: none; since .began_ns */
	uint64_t began_ns;
	struct aside_task *asked_for[ASIDE_ROOM], *were_done[ASIDE_ROOM];
	/* Ever put there and taken away. */
	uint64_t n_asked, n_begun, n_done, n_taken;
};

struct aside {
	const struct aside_ops *ops;
	char *proc;
	int event;
	struct desk *desk; /* NULL: no thread yet */
	struct desk *stuck[ASIDE_STUCK_MAX];
	unsigned int n_stuck;
	/* Tasks without a desk: no thread was to be had for them. */
	struct aside_task *waiting[ASIDE_ROOM];
	unsigned int n_waiting;
};

static void desk_free(struct desk *d)
{
	for (; d->n_begun < d->n_asked; d->n_begun++)
		d->ops->task_free(d->asked_for[d->n_begun % ASIDE_ROOM]);
	for (; d->n_taken < d->n_done; d->n_taken++)
		d->ops->task_free(d->were_done[d->n_taken % ASIDE_ROOM]);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->asked);
	pthread_cond_destroy(&d->done);
	d->ops->context_free(d->context);
	close_fd(d->event);
	free(d);
}

static void desk_init(struct desk *d, const struct aside_ops *ops)
{
	pthread_condattr_t attr;

	d->ops = ops;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->asked, NULL);
	pthread_cond_init(&d->done, &attr);
	pthread_condattr_destroy(&attr);
}

static int desk_new(const struct aside *a, struct desk **ret)
{
	struct desk *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->event = fcntl(a->event, F_DUPFD_CLOEXEC, 0);
	r = d->event < 0 ? -errno : a->ops->context_new(a->proc, &d->context);
	if (r < 0) {
		close_fd(d->event);
		free(d);
		return r;
	}
	desk_init(d, a->ops);
	*ret = d;
	return 0;
}

/* One of the two that share D goes; LEFT says so to the other. */
static void desk_leave(struct desk *d, bool *left)
{
	bool last;

	pthread_mutex_lock(&d->lock);
	*left = true;
	last = d->left_by_loop && d->left_by_thread;
	pthread_cond_signal(&d->asked);
	pthread_mutex_unlock(&d->lock);
	if (last)
		desk_free(d);
}

/* The thread's: the next task; NULL: nobody waits for it any more. */
static struct aside_task *desk_begin(struct desk *d)
{
	struct aside_task *task = NULL;

	pthread_mutex_lock(&d->lock);
	while (!d->left_by_loop && d->n_begun == d->n_asked)
		pthread_cond_wait(&d->asked, &d->lock);
	if (!d->left_by_loop) {
		task = d->asked_for[d->n_begun++ % ASIDE_ROOM];
		d->began_ns = now_ns(CLOCK_MONOTONIC);
	}
	d->current = task;
	pthread_mutex_unlock(&d->lock);
	return task;
}

/* What nobody takes goes with the desk. */
static void desk_done(struct desk *d, struct aside_task *task)
{
	uint64_t one = 1;
	bool first;

	pthread_mutex_lock(&d->lock);
	d->current = NULL;
	first = d->n_taken == d->n_done;
	d->were_done[d->n_done++ % ASIDE_ROOM] = task;
	pthread_cond_signal(&d->done);
	pthread_mutex_unlock(&d->lock);
	/* A counter that is full is readable, too. */
	if (first && write(d->event, &one, sizeof(one)) < 0)
		return;
}

static void *desk_main(void *userdata)
{
	struct desk *d = userdata;
	struct aside_task *task;

	while ((task = desk_begin(d))) {
		d->ops->run(d->context, task);
		desk_done(d, task);
	}
	desk_leave(d, &d->left_by_thread);
	return NULL;
}

/* Signals are the loop's; nobody waits for the thread's end. */
static int desk_staff(struct desk *d)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attr, desk_main, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}

static void desk_put(struct desk *d, struct aside_task *task)
{
	pthread_mutex_lock(&d->lock);
	d->asked_for[d->n_asked++ % ASIDE_ROOM] = task;
	pthread_cond_signal(&d->asked);
	pthread_mutex_unlock(&d->lock);
}

static struct aside_task *desk_take(struct desk *d)
{
	struct aside_task *task = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->n_taken < d->n_done)
		task = d->were_done[d->n_taken++ % ASIDE_ROOM];
	pthread_mutex_unlock(&d->lock);
	return task;
}

int aside_new(const struct aside_ops *ops, const char *proc, struct aside **ret)
{
	struct aside *a = calloc(1, sizeof(*a));
	int r = 0;

	if (!a)
		return -ENOMEM;
	a->ops = ops;
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
	if (a->desk)
		desk_leave(a->desk, &a->desk->left_by_loop);
	for (unsigned int i = 0; i < a->n_stuck; i++)
		desk_leave(a->stuck[i], &a->stuck[i]->left_by_loop);
	for (unsigned int i = 0; i < a->n_waiting; i++)
		a->ops->task_free(a->waiting[i]);
	close_fd(a->event);
	free(a->proc);
	free(a);
}

int aside_fd(const struct aside *a)
{
	return a->event;
}

void aside_clear(struct aside *a)
{
	uint64_t n;

	if (read(a->event, &n, sizeof(n)) < 0)
		return; /* nothing was told */
}

/* Has the thread come back, and has all been taken that it did? */
static bool desk_is_idle(struct desk *d)
{
	bool idle;

	pthread_mutex_lock(&d->lock);
	idle = !d->current && d->n_taken == d->n_done;
	pthread_mutex_unlock(&d->lock);
	return idle;
}

unsigned int aside_stuck(struct aside *a)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < a->n_stuck; i++) {
		struct desk *d = a->stuck[i];

		if (desk_is_idle(d))
			desk_leave(d, &d->left_by_loop);
		else
			a->stuck[n++] = d;
	}
	a->n_stuck = n;
	return n;
}

/* A desk with a thread, and on it what waits for one. */
static int aside_staff(struct aside *a)
{
	struct desk *d = NULL;
	int r;

	if (a->desk)
		return 0;
	if (aside_stuck(a) == ASIDE_STUCK_MAX)
		return -EAGAIN;
	r = desk_new(a, &d);
	if (r < 0)
		return r;
	r = desk_staff(d);
	if (r < 0) {
		desk_free(d);
		return r;
	}
	for (unsigned int i = 0; i < a->n_waiting; i++)
		desk_put(d, a->waiting[i]);
	a->n_waiting = 0;
	a->desk = d;
	return 0;
}

unsigned int aside_pending(const struct aside *a)
{
	/* Only the loop counts these two up. */
	return a->desk ? (unsigned int)(a->desk->n_asked - a->desk->n_taken) : a->n_waiting;
}

int aside_ask(struct aside *a, struct aside_task *task)
{
	int r = aside_staff(a);

	if (r < 0)
		return r;
	if (aside_pending(a) == ASIDE_ROOM)
		return ASIDE_FULL;
	desk_put(a->desk, task);
	return 0;
}

struct aside_task *aside_take(struct aside *a)
{
	struct aside_task *task = NULL;

	for (unsigned int i = 0; i < a->n_stuck && !task; i++)
		task = desk_take(a->stuck[i]);
	if (!task && aside_pending(a) > 0 && aside_staff(a) == 0)
		task = desk_take(a->desk);
	if (!task)
		aside_stuck(a); /* who came back may go */
	return task;
}

int aside_wait(struct aside *a, uint64_t ns)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + ns;
	struct timespec t = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
			     .tv_nsec = (long)(until % NSEC_PER_SEC)};
	int r = aside_staff(a);
	struct desk *d = a->desk;

	if (r < 0 || aside_pending(a) == 0)
		return r;
	pthread_mutex_lock(&d->lock);
	while (d->n_taken == d->n_done && pthread_cond_timedwait(&d->done, &d->lock, &t) == 0)
		;
	pthread_mutex_unlock(&d->lock);
	return 0;
}

/* What the thread has not begun with goes on another desk. */
static void aside_collect(struct aside *a, struct desk *d)
{
	a->n_waiting = 0;
	for (uint64_t i = d->n_begun; i < d->n_asked; i++) {
		struct aside_task *task = d->asked_for[i % ASIDE_ROOM];

		if (a->ops->moved)
			a->ops->moved(task, a->n_stuck);
		a->waiting[a->n_waiting++] = task;
	}
	d->n_asked = d->n_begun; /* nothing is left for who comes back */
}

struct aside_task *aside_give_up(struct aside *a, uint64_t ns)
{
	struct aside_task *stuck = NULL;
	struct desk *d = a->desk;

	if (!d || aside_pending(a) == 0)
		return NULL;
	pthread_mutex_lock(&d->lock);
	if (d->current && d->n_taken == d->n_done && now_ns(CLOCK_MONOTONIC) - d->began_ns > ns) {
		stuck = d->current;
		a->desk = NULL;
		a->stuck[a->n_stuck++] = d;
		aside_collect(a, d);
	}
	pthread_mutex_unlock(&d->lock);
	if (stuck)
		aside_staff(a);
	return stuck;
}
