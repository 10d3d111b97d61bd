/*
 * One frozen moment of all CPUs: stop them as close together as the source can, the trigger's CPU
 * first; then several threads copy, in the order of stopping, and restart each CPU as soon as its
 * own ring is copied, so that nobody's darkness is the sum of all copies. A CPU that cannot be
 * stopped has a ring whose head is not final; its bytes are left out. Called by the recorder's job,
 * in its thread.
 */
#include "capture/ring/freeze.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"

#define MAX_COPIERS 8u
#define NO_WORK	    UINT32_MAX

struct freezer {
	pthread_mutex_t lock;
	pthread_cond_t work, done; /* there is some; all of it is done */
	pthread_t threads[MAX_COPIERS];
	unsigned n_threads;
	bool quit;
	/* The moment in work. */
	struct source *source;
	struct freeze_wish wish;
	const struct area *area;
	struct freeze_cpu *cpus;
	uint32_t *order; /* indices of CPUs, as they are to be copied */
	size_t n_order, n_stopped;
	int *results; /* of stopping; then of restarting */
	size_t n_cpus;
	/* Under the lock: how much of the order there is to do, begun, done. */
	size_t n_work, n_begun, n_done;
};

static void copy_cpu(const struct freezer *f, uint32_t index)
{
	const struct area *a = f->area;
	struct freeze_cpu *c = &f->cpus[index];
	uint64_t wanted = f->wish.bytes == 0 ? a->slice : MIN_OF(f->wish.bytes, a->slice);
	uint64_t begin = now_ns(CLOCK_MONOTONIC);

	if (c->not_stopped || wanted == 0 || index >= a->n_cpus)
		return;
	c->bytes = ring_copy_aux(&f->source->cpus[index].pt, wanted, a->base + c->offset);
	c->copy_ns = now_ns(CLOCK_MONOTONIC) - begin;
}

/* dark_ns holds the time of the call that stopped it until then. */
static void restart_cpu(const struct freezer *f, uint32_t index)
{
	struct freeze_cpu *c = &f->cpus[index];
	int r = f->source->ops->enable(f->source, index);

	c->dark_ns =
		r == 0 && !c->not_stopped ? now_ns(CLOCK_MONOTONIC) - c->dark_ns : MANIFEST_ABSENT;
	c->not_restarted = r < 0;
	c->no_answer |= r == SOURCE_NO_ANSWER;
	f->results[index] = r;
}

static void serve_cpu(const struct freezer *f, uint32_t index)
{
	copy_cpu(f, index);
	if (!f->cpus[index].traced)
		return;
	if (f->wish.resume)
		restart_cpu(f, index);
	else
		f->cpus[index].dark_ns = MANIFEST_ABSENT;
}

/* Works until nothing is left; the lock is held before and after. */
static void freezer_work(struct freezer *f)
{
	while (f->n_begun < f->n_work) {
		uint32_t index = f->order[f->n_begun++];

		pthread_mutex_unlock(&f->lock);
		serve_cpu(f, index);
		pthread_mutex_lock(&f->lock);
		if (++f->n_done == f->n_work)
			pthread_cond_signal(&f->done);
	}
}

static void *freezer_main(void *userdata)
{
	struct freezer *f = userdata;

	pthread_mutex_lock(&f->lock);
	while (!f->quit) {
		freezer_work(f);
		if (!f->quit)
			pthread_cond_wait(&f->work, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static unsigned usual_copiers(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);

	return online < 1 ? 1 : (unsigned)MIN_OF((online + 1) / 2, (long)MAX_COPIERS);
}

static void freezer_start(struct freezer *f, unsigned copiers)
{
	sigset_t all, before;

	sigfillset(&all);
	/* Signals are the loop's. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (f->n_threads + 1 < copiers &&
	       pthread_create(&f->threads[f->n_threads], NULL, freezer_main, f) == 0)
		f->n_threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int freezer_new(size_t n_cpus, unsigned copiers, struct freezer **ret)
{
	struct freezer *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->done, NULL);
	f->n_cpus = n_cpus;
	f->order = calloc(n_cpus + 1, sizeof(*f->order));
	f->results = calloc(n_cpus + 1, sizeof(*f->results));
	if (f->order == NULL || f->results == NULL) {
		freezer_free(f);
		return -ENOMEM;
	}
	freezer_start(f, copiers == 0 ? usual_copiers() : MIN_OF(copiers, MAX_COPIERS));
	*ret = f;
	return 0;
}

void freezer_free(struct freezer *f)
{
	if (f == NULL)
		return;
	pthread_mutex_lock(&f->lock);
	f->quit = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->n_threads; i++)
		pthread_join(f->threads[i], NULL);
	pthread_cond_destroy(&f->done);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->lock);
	free(f->order);
	free(f->results);
	free(f);
}

static bool is_traced(const struct source_cpu *cpu)
{
	return cpu->state == SOURCE_CPU_TRACING && cpu->pt.aux != NULL;
}

static void add_to_order(struct freezer *f, uint32_t index)
{
	f->order[f->n_order++] = index;
}

/* Those that are to be stopped, the wished one first; behind them other rings. */
static void choose_order(struct freezer *f)
{
	const struct source *s = f->source;
	uint32_t first = NO_WORK;

	f->n_order = 0;
	for (uint32_t i = 0; i < s->n_cpus && first == NO_WORK; i++)
		if (s->cpus[i].cpu == f->wish.cpu && is_traced(&s->cpus[i]))
			first = i;
	if (first != NO_WORK)
		add_to_order(f, first);
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (i != first && is_traced(&s->cpus[i]))
			add_to_order(f, i);
	f->n_stopped = f->n_order;
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (!is_traced(&s->cpus[i]) && s->cpus[i].pt.aux != NULL)
			add_to_order(f, i);
}

static void blank_cpus(struct freezer *f)
{
	for (uint32_t i = 0; i < f->source->n_cpus; i++)
		f->cpus[i] = (struct freeze_cpu){.offset = i * f->area->slice,
						 .stop_order = MANIFEST_ABSENT,
						 .asked_ns = MANIFEST_ABSENT,
						 .stop_ns = MANIFEST_ABSENT,
						 .dark_ns = MANIFEST_ABSENT,
						 .copy_ns = MANIFEST_ABSENT};
	for (uint32_t i = 0; i < f->n_stopped; i++) {
		f->cpus[f->order[i]].traced = true;
		f->cpus[f->order[i]].stop_order = i;
	}
}

static void note_ask(struct freezer *f, uint32_t index)
{
	f->cpus[index].asked_ns = source_now_ns(f->source, index);
	f->cpus[index].dark_ns = now_ns(CLOCK_MONOTONIC);
}

static void note_stop(struct freezer *f, uint32_t index, int r)
{
	struct freeze_cpu *c = &f->cpus[index];

	f->results[index] = r;
	c->no_answer = r == SOURCE_NO_ANSWER;
	c->not_stopped = r < 0;
	if (r >= 0)
		c->stop_ns = source_now_ns(f->source, index);
}

static void stop_together(struct freezer *f)
{
	for (size_t i = 0; i < f->n_stopped; i++)
		note_ask(f, f->order[i]);
	for (size_t i = 0; i < f->source->n_cpus; i++)
		f->results[i] = 0;
	f->source->ops->disable_all(f->source, f->order[0], f->results);
	for (size_t i = 0; i < f->n_stopped; i++) {
		note_stop(f, f->order[i], f->results[f->order[i]]);
		f->cpus[f->order[i]].together = true;
	}
}

static void stop_in_order(struct freezer *f)
{
	for (size_t i = 0; i < f->n_stopped; i++) {
		note_ask(f, f->order[i]);
		note_stop(f, f->order[i], f->source->ops->disable(f->source, f->order[i]));
	}
}

/* The result of the first CPU by index that has a bad one. */
static int first_error(const struct freezer *f)
{
	for (size_t i = 0; i < f->source->n_cpus; i++)
		if (f->cpus[i].traced && f->results[i] < 0)
			return f->results[i];
	return 0;
}

static int freezer_stop(struct freezer *f)
{
	if (f->n_stopped > 0 && f->source->ops->disable_all != NULL)
		stop_together(f);
	else
		stop_in_order(f);
	return first_error(f);
}

static int freezer_copy(struct freezer *f)
{
	pthread_mutex_lock(&f->lock);
	f->n_begun = f->n_done = 0;
	f->n_work = f->n_order;
	if (f->n_work > 1)
		pthread_cond_broadcast(&f->work);
	freezer_work(f);
	while (f->n_done < f->n_work)
		pthread_cond_wait(&f->done, &f->lock);
	pthread_mutex_unlock(&f->lock);
	return first_error(f);
}

uint64_t freeze_stop_ns(const struct freeze_cpu *cpu, uint64_t told_ns)
{
	if (cpu->stop_ns == MANIFEST_ABSENT || told_ns < cpu->asked_ns || told_ns > cpu->stop_ns)
		return cpu->stop_ns;
	return told_ns;
}

int freeze_snapshot(struct freezer *f, struct source *s, const struct freeze_wish *wish,
		    const struct area *area, struct freeze_cpu *ret)
{
	int stopped, restarted;

	assert(s->n_cpus <= f->n_cpus);
	f->source = s;
	f->wish = *wish;
	f->area = area;
	f->cpus = ret;
	choose_order(f);
	blank_cpus(f);
	stopped = freezer_stop(f);
	restarted = freezer_copy(f);
	return stopped < 0 ? stopped : restarted;
}
