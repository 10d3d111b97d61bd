/*
 * The loop and the thread share a desk: requests on one side, answers on the other, and a lock that
 * nobody holds for longer than it takes to put something there or to take it away. A thread that
 * stands in a read has its desk for itself, the loop takes another one with another thread; who of
 * the two leaves a desk last clears it away. Called by procs.c.
 */
#include "daemon/procreader.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "proto/base.h"

#define NSEC_PER_SEC 1000000000u

struct desk {
	pthread_mutex_t lock;
	pthread_cond_t asked, answered;
	char *proc;
	bool left_by_loop, left_by_thread;
	bool reading; /* .current, since .began_ns */
	struct procreader_request current;
	uint64_t began_ns;
	struct procreader_request requests[PROCREADER_ROOM];
	struct procreader_answer answers[PROCREADER_ROOM];
	/* Ever put there and taken away. */
	uint64_t n_asked, n_begun, n_answered, n_taken;
};

struct procreader {
	char *proc;
	struct desk *desk; /* NULL: no thread yet */
	struct desk *stuck[PROCREADER_STUCK_MAX];
	unsigned int n_stuck;
	/* Requests without a desk: no thread was to be had for them. */
	struct procreader_request waiting[PROCREADER_ROOM];
	unsigned int n_waiting;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void desk_free(struct desk *d)
{
	for (; d->n_taken < d->n_answered; d->n_taken++)
		procinfo_done(&d->answers[d->n_taken % PROCREADER_ROOM].info);
	pthread_mutex_destroy(&d->lock);
	pthread_cond_destroy(&d->asked);
	pthread_cond_destroy(&d->answered);
	free(d->proc);
	free(d);
}

static struct desk *desk_new(const char *proc)
{
	struct desk *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;

	if (!d)
		return NULL;
	d->proc = strdup(proc);
	if (!d->proc) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->asked, NULL);
	pthread_cond_init(&d->answered, &attr);
	pthread_condattr_destroy(&attr);
	return d;
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

/* The thread's: the next request; false: nobody waits for answers any more. */
static bool desk_begin(struct desk *d, struct procreader_request *ret)
{
	bool wanted;

	pthread_mutex_lock(&d->lock);
	while (!d->left_by_loop && d->n_begun == d->n_asked)
		pthread_cond_wait(&d->asked, &d->lock);
	wanted = !d->left_by_loop;
	if (wanted) {
		*ret = d->requests[d->n_begun++ % PROCREADER_ROOM];
		d->current = *ret;
		d->began_ns = now_ns();
	}
	d->reading = wanted;
	pthread_mutex_unlock(&d->lock);
	return wanted;
}

/* What nobody waits for is thrown away. */
static void desk_answer(struct desk *d, struct procreader_answer *answer)
{
	pthread_mutex_lock(&d->lock);
	d->reading = false;
	if (!d->left_by_loop)
		d->answers[d->n_answered++ % PROCREADER_ROOM] = *answer;
	else
		procinfo_done(&answer->info);
	pthread_cond_signal(&d->answered);
	pthread_mutex_unlock(&d->lock);
}

static void *desk_main(void *userdata)
{
	struct desk *d = userdata;
	struct procreader_answer answer;

	while (desk_begin(d, &answer.request)) {
		const struct procreader_request *q = &answer.request;

		answer.error = q->cmdline ? procscan_info(d->proc, q->pid, &answer.info)
					  : procscan_facts(d->proc, q->pid, &answer.info);
		desk_answer(d, &answer);
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

int procreader_new(const char *proc, struct procreader **ret)
{
	struct procreader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->proc = strdup(proc);
	if (!r->proc) {
		free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void procreader_free(struct procreader *r)
{
	if (!r)
		return;
	if (r->desk)
		desk_leave(r->desk, &r->desk->left_by_loop);
	for (unsigned int i = 0; i < r->n_stuck; i++)
		desk_leave(r->stuck[i], &r->stuck[i]->left_by_loop);
	free(r->proc);
	free(r);
}

static void desk_put(struct desk *d, const struct procreader_request *request)
{
	pthread_mutex_lock(&d->lock);
	d->requests[d->n_asked++ % PROCREADER_ROOM] = *request;
	pthread_cond_signal(&d->asked);
	pthread_mutex_unlock(&d->lock);
}

unsigned int procreader_stuck(struct procreader *r)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->n_stuck; i++) {
		struct desk *d = r->stuck[i];
		bool back;

		pthread_mutex_lock(&d->lock);
		back = !d->reading;
		pthread_mutex_unlock(&d->lock);
		if (back)
			desk_leave(d, &d->left_by_loop);
		else
			r->stuck[n++] = d;
	}
	r->n_stuck = n;
	return n;
}

/* A desk with a thread, and on it what waits for one. */
static int procreader_staff(struct procreader *r)
{
	struct desk *d;
	int result;

	if (r->desk)
		return 0;
	if (procreader_stuck(r) == PROCREADER_STUCK_MAX)
		return -EAGAIN;
	d = desk_new(r->proc);
	if (!d)
		return -ENOMEM;
	for (unsigned int i = 0; i < r->n_waiting; i++)
		desk_put(d, &r->waiting[i]);
	result = desk_staff(d);
	if (result < 0) {
		desk_free(d);
		return result;
	}
	r->n_waiting = 0;
	r->desk = d;
	return 0;
}

unsigned int procreader_pending(const struct procreader *r)
{
	/* Only the loop counts these two up. */
	return r->desk ? (unsigned int)(r->desk->n_asked - r->desk->n_taken) : r->n_waiting;
}

int procreader_ask(struct procreader *r, const struct procreader_request *request)
{
	struct procreader_request q = *request;
	int result = procreader_staff(r);

	if (result < 0)
		return result;
	if (procreader_pending(r) == PROCREADER_ROOM)
		return PROCREADER_FULL;
	if (procreader_stuck(r) >= PROCREADER_STUCK)
		q.cmdline = false;
	desk_put(r->desk, &q);
	return 0;
}

int procreader_take(struct procreader *r, struct procreader_answer *ret)
{
	struct desk *d;
	bool any;

	if (procreader_pending(r) == 0 || procreader_staff(r) < 0)
		return PROCREADER_NOTHING;
	d = r->desk;
	pthread_mutex_lock(&d->lock);
	any = d->n_taken < d->n_answered;
	if (any)
		*ret = d->answers[d->n_taken++ % PROCREADER_ROOM];
	pthread_mutex_unlock(&d->lock);
	return any ? 0 : PROCREADER_NOTHING;
}

int procreader_wait(struct procreader *r, uint64_t ns)
{
	uint64_t until = now_ns() + ns;
	struct timespec t = {.tv_sec = (time_t)(until / NSEC_PER_SEC),
			     .tv_nsec = (long)(until % NSEC_PER_SEC)};
	int result = procreader_staff(r);
	struct desk *d = r->desk;

	if (result < 0 || procreader_pending(r) == 0)
		return result;
	pthread_mutex_lock(&d->lock);
	while (d->n_taken == d->n_answered &&
	       pthread_cond_timedwait(&d->answered, &d->lock, &t) == 0)
		;
	pthread_mutex_unlock(&d->lock);
	return 0;
}

/* What the thread has not begun with goes on another desk. */
static void procreader_collect(struct procreader *r, const struct desk *d)
{
	bool cmdline = r->n_stuck < PROCREADER_STUCK;

	r->n_waiting = 0;
	for (uint64_t i = d->n_begun; i < d->n_asked; i++) {
		struct procreader_request q = d->requests[i % PROCREADER_ROOM];

		q.cmdline &= cmdline;
		r->waiting[r->n_waiting++] = q;
	}
}

int procreader_give_up(struct procreader *r, uint64_t ns, struct procreader_request *ret)
{
	struct desk *d = r->desk;
	bool stuck;

	if (!d || procreader_pending(r) == 0)
		return PROCREADER_NOTHING;
	pthread_mutex_lock(&d->lock);
	stuck = d->reading && d->n_taken == d->n_answered && now_ns() - d->began_ns > ns;
	if (stuck) {
		*ret = d->current;
		r->desk = NULL;
		r->stuck[r->n_stuck++] = d;
		procreader_collect(r, d);
		d->n_asked = d->n_begun; /* nothing is left for who comes back */
	}
	pthread_mutex_unlock(&d->lock);
	if (stuck)
		procreader_staff(r);
	return stuck ? 0 : PROCREADER_NOTHING;
}
