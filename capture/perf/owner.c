/*
 * Called by source_perf.c.
 */
#include "capture/perf/owner.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/base.h"

struct owner {
	pthread_t thread;
	pthread_mutex_t callers; /* held by the one whose turn it is */
	pthread_mutex_t lock;	 /* of what follows */
	pthread_cond_t asked, answered;
	void (*fn)(void *arg); /* NULL: nothing to do */
	void *arg;
	bool end;
};

static void *owner_main(void *userdata)
{
	const struct sched_param priority = {.sched_priority = 1};
	struct owner *o = userdata;

	pthread_setschedparam(pthread_self(), SCHED_FIFO | SCHED_RESET_ON_FORK, &priority);
	pthread_mutex_lock(&o->lock);
	while (!o->end) {
		if (o->fn == NULL) {
			pthread_cond_wait(&o->asked, &o->lock);
			continue;
		}
		o->fn(o->arg);
		o->fn = NULL;
		pthread_cond_signal(&o->answered);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

int owner_new(struct owner **ret)
{
	CLEANUP_FREE struct owner *o = calloc(1, sizeof(*o));
	sigset_t all, before;
	int r;

	if (o == NULL)
		return -ENOMEM;
	pthread_mutex_init(&o->callers, NULL);
	pthread_mutex_init(&o->lock, NULL);
	pthread_cond_init(&o->asked, NULL);
	pthread_cond_init(&o->answered, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&o->thread, NULL, owner_main, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	pthread_setname_np(o->thread, "ptsnap-pt");
	*ret = TAKE_PTR(o);
	return 0;
}

void owner_free(struct owner *o)
{
	if (o == NULL)
		return;
	pthread_mutex_lock(&o->lock);
	o->end = true;
	pthread_cond_signal(&o->asked);
	pthread_mutex_unlock(&o->lock);
	pthread_join(o->thread, NULL);
	pthread_mutex_destroy(&o->callers);
	pthread_mutex_destroy(&o->lock);
	pthread_cond_destroy(&o->asked);
	pthread_cond_destroy(&o->answered);
	free(o);
}

void owner_run(struct owner *o, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&o->callers);
	pthread_mutex_lock(&o->lock);
	o->fn = fn;
	o->arg = arg;
	pthread_cond_signal(&o->asked);
	while (o->fn != NULL)
		pthread_cond_wait(&o->answered, &o->lock);
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_unlock(&o->callers);
}
