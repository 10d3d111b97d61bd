/*
 * Keeps threads that exist before they are needed; each waits for its own work.
 */
#include "decoder/hot/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/base.h"

#define STACK_BYTES ((size_t)256 << 10)

struct crew_thread {
	struct crew *crew;
	pthread_t id;
	pthread_cond_t work;
	void (*fn)(void *userdata); /* NULL: the thread is idle */
	void *userdata;
};

struct crew {
	pthread_mutex_t lock; /* for all members, and those of the threads */
	pthread_cond_t idle;  /* a thread became idle, or began */
	bool stop;
	uint32_t n, n_begun;
	struct crew_thread *threads[CREW_MAX_THREADS];
};

static void *run(void *userdata)
{
	struct crew_thread *self = userdata;
	struct crew *c = self->crew;

	pthread_mutex_lock(&c->lock);
	c->n_begun++;
	pthread_cond_broadcast(&c->idle);
	for (;;) {
		while (!self->fn && !c->stop)
			pthread_cond_wait(&self->work, &c->lock);
		if (!self->fn)
			break;
		pthread_mutex_unlock(&c->lock);
		self->fn(self->userdata);
		pthread_mutex_lock(&c->lock);
		self->fn = NULL;
		pthread_cond_broadcast(&c->idle);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static int create(struct crew_thread *t)
{
	pthread_attr_t attr;
	int r = pthread_attr_init(&attr);

	if (r != 0)
		return r;
	r = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (r == 0)
		r = pthread_create(&t->id, &attr, run, t);
	pthread_attr_destroy(&attr);
	return r;
}

static bool add(struct crew *c)
{
	struct crew_thread *t = calloc(1, sizeof(*t));

	if (!t)
		return false;
	t->crew = c;
	pthread_cond_init(&t->work, NULL);
	if (create(t) != 0) {
		pthread_cond_destroy(&t->work);
		free(t);
		return false;
	}
	c->threads[c->n++] = t;
	return true;
}

int crew_new(uint32_t threads, struct crew **ret)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->idle, NULL);
	while (c->n < MIN_OF(threads, CREW_MAX_THREADS) && add(c))
		;
	pthread_mutex_lock(&c->lock);
	while (c->n_begun < c->n)
		pthread_cond_wait(&c->idle, &c->lock);
	pthread_mutex_unlock(&c->lock);
	*ret = c;
	return 0;
}

void crew_free(struct crew *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	for (uint32_t i = 0; i < c->n; i++)
		pthread_cond_signal(&c->threads[i]->work);
	pthread_mutex_unlock(&c->lock);
	for (uint32_t i = 0; i < c->n; i++) {
		pthread_join(c->threads[i]->id, NULL);
		pthread_cond_destroy(&c->threads[i]->work);
		free(c->threads[i]);
	}
	pthread_cond_destroy(&c->idle);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

uint32_t crew_idle(struct crew *c)
{
	uint32_t n = 0;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < c->n; i++)
		n += !c->threads[i]->fn;
	pthread_mutex_unlock(&c->lock);
	return n;
}

struct crew_thread *crew_start(struct crew *c, void (*fn)(void *userdata), void *userdata)
{
	struct crew_thread *found = NULL;

	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < c->n && !found; i++)
		if (!c->threads[i]->fn)
			found = c->threads[i];
	if (found) {
		found->fn = fn;
		found->userdata = userdata;
		pthread_cond_signal(&found->work);
	}
	pthread_mutex_unlock(&c->lock);
	return found;
}

void crew_finish(struct crew_thread *t)
{
	struct crew *c = t->crew;

	pthread_mutex_lock(&c->lock);
	while (t->fn)
		pthread_cond_wait(&c->idle, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
