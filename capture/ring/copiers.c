/*
 * Shares out CPUs to serve among threads: a queue for each memory node, and who is done with the
 * own one takes from the longest other one.
 */
#include "capture/ring/copiers.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/ring/realtime.h"
#include "proto/base.h"

#define SHARE	     8u
#define LEAST	     8u
#define MOST_CPUS    8192u /* CONFIG_NR_CPUS is at most this on x86 */
#define ANY_NODE     (-1)
#define NOTHING_LEFT UINT32_MAX

/* The CPUs of one memory node that are to be served: [next, end) of the queue. */
struct group {
	int node;
	size_t next, end;
};

struct copier {
	struct copiers *all;
	pthread_t thread;
	size_t group;
};

struct copiers {
	pthread_mutex_t lock;
	pthread_cond_t work, done; /* there is work; all work is done */
	struct copier *threads;
	size_t n_threads;
	bool quit;
	/* Under the lock, as are the positions in the groups. */
	struct group *groups; /* one, of no node, if the host has only one node */
	size_t n_groups;
	uint32_t *queue; /* indices of CPUs, by group */
	size_t n_cpus, n_work, n_done;
	void (*serve)(void *userdata, uint32_t index);
	void *userdata;
};

unsigned copiers_default(unsigned online, unsigned nodes)
{
	unsigned n = MAX_OF(MAX_OF((online + SHARE - 1) / SHARE, LEAST), nodes + 1);

	return MAX_OF(MIN_OF(MIN_OF(n, (online + 1) / 2), COPIERS_MAX), 1u);
}

/* The group of NODE; the first one, if no CPU was on that node when the threads were started. */
static size_t group_of(const struct copiers *c, int node)
{
	for (size_t i = 0; i < c->n_groups; i++)
		if (c->groups[i].node == node)
			return i;
	return 0;
}

/* Takes the next CPU for a thread of GROUP out of the queue. The lock is held. */
static uint32_t take(struct copiers *c, size_t group)
{
	size_t most = group;

	for (size_t i = 0; c->groups[group].next == c->groups[group].end && i < c->n_groups; i++)
		if (c->groups[i].end - c->groups[i].next >
		    c->groups[most].end - c->groups[most].next)
			most = i;
	if (c->groups[most].next == c->groups[most].end)
		return NOTHING_LEFT;
	return c->queue[c->groups[most].next++];
}

/* Serves CPUs until none is left to begin. The lock is held before and after. */
static void work(struct copiers *c, size_t group)
{
	uint32_t index;

	while ((index = take(c, group)) != NOTHING_LEFT) {
		pthread_mutex_unlock(&c->lock);
		c->serve(c->userdata, index);
		pthread_mutex_lock(&c->lock);
		if (++c->n_done == c->n_work)
			pthread_cond_signal(&c->done);
	}
}

static void *copier_main(void *userdata)
{
	struct copier *t = userdata;
	struct copiers *c = t->all;

	pthread_setname_np(pthread_self(), "ptsnap-copy");
	realtime_enter();
	pthread_mutex_lock(&c->lock);
	while (!c->quit) {
		work(c, t->group);
		if (!c->quit)
			pthread_cond_wait(&c->work, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Makes a group for each node of S's CPUs, or one for all. */
static void make_groups(struct copiers *c, const struct source *s)
{
	for (size_t i = 0; i < s->n_cpus; i++) {
		int node = s->cpus[i].node;

		if (c->n_groups == 0 || c->groups[group_of(c, node)].node != node)
			c->groups[c->n_groups++] = (struct group){.node = node};
	}
	if (c->n_groups <= 1) {
		c->groups[0] = (struct group){.node = ANY_NODE};
		c->n_groups = 1;
	}
}

/* Sets in ATTR the CPUs of NODE, of those that we may use. Isolated CPUs are not among them. */
static void stay_on_node(pthread_attr_t *attr, const struct source *s, int node)
{
	size_t size = CPU_ALLOC_SIZE(MOST_CPUS);
	cpu_set_t *ours = CPU_ALLOC(MOST_CPUS), *set = CPU_ALLOC(MOST_CPUS);

	if (node != ANY_NODE && ours && set && sched_getaffinity(0, size, ours) == 0) {
		CPU_ZERO_S(size, set);
		for (size_t i = 0; i < s->n_cpus; i++)
			if (s->cpus[i].node == node && s->cpus[i].cpu < MOST_CPUS &&
			    CPU_ISSET_S(s->cpus[i].cpu, size, ours))
				CPU_SET_S(s->cpus[i].cpu, size, set);
		if (CPU_COUNT_S(size, set) > 0)
			(void)pthread_attr_setaffinity_np(attr, size, set);
	}
	if (ours)
		CPU_FREE(ours);
	if (set)
		CPU_FREE(set);
}

/* Starts the next thread, for GROUP. False: no thread could be started. */
static bool start(struct copiers *c, const struct source *s, size_t group)
{
	struct copier *t = &c->threads[c->n_threads];
	pthread_attr_t attr;
	bool started;

	*t = (struct copier){.all = c, .group = group};
	pthread_attr_init(&attr);
	stay_on_node(&attr, s, c->groups[group].node);
	/* Perhaps none of the node's CPUs is online. */
	started = pthread_create(&t->thread, &attr, copier_main, t) == 0 ||
		  pthread_create(&t->thread, NULL, copier_main, t) == 0;
	pthread_attr_destroy(&attr);
	c->n_threads += started;
	return started;
}

static void start_all(struct copiers *c, const struct source *s, unsigned n)
{
	sigset_t all, before;

	/* Only the loop handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The caller begins with the first CPU, which is often of the first group. */
	while (c->n_threads + 1 < n && start(c, s, (c->n_threads + 1) % c->n_groups))
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int copiers_new(const struct source *s, unsigned n, struct copiers **ret)
{
	struct copiers *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	pthread_cond_init(&c->done, NULL);
	c->n_cpus = s->n_cpus;
	c->groups = calloc(s->n_cpus + 1, sizeof(*c->groups));
	c->queue = calloc(s->n_cpus + 1, sizeof(*c->queue));
	c->threads = calloc(COPIERS_MAX, sizeof(*c->threads));
	if (!c->groups || !c->queue || !c->threads) {
		copiers_free(c);
		return -ENOMEM;
	}
	make_groups(c, s);
	if (n == 0) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		n = copiers_default((unsigned)MAX_OF(online, 1l), (unsigned)c->n_groups);
		n = (unsigned)MIN_OF((size_t)n, MAX_OF(s->n_cpus, (size_t)1));
	}
	start_all(c, s, MIN_OF(n, COPIERS_MAX));
	*ret = c;
	return 0;
}

void copiers_free(struct copiers *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	assert(c->n_done == c->n_work);
	c->quit = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < c->n_threads; i++)
		pthread_join(c->threads[i].thread, NULL);
	pthread_cond_destroy(&c->done);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c->threads);
	free(c->groups);
	free(c->queue);
	free(c);
}

/* Sorts ORDER into the groups. The lock is held. */
static void fill_queue(struct copiers *c, const struct source *s, const uint32_t *order, size_t n)
{
	size_t begin = 0;

	for (size_t g = 0; g < c->n_groups; g++)
		c->groups[g].end = 0;
	for (size_t i = 0; i < n; i++)
		c->groups[group_of(c, s->cpus[order[i]].node)].end++;
	for (size_t g = 0; g < c->n_groups; g++) {
		size_t size = c->groups[g].end;

		c->groups[g].next = c->groups[g].end = begin;
		begin += size;
	}
	for (size_t i = 0; i < n; i++)
		c->queue[c->groups[group_of(c, s->cpus[order[i]].node)].end++] = order[i];
}

void copiers_run(struct copiers *c, const struct source *s, const uint32_t *order, size_t n,
		 void (*serve)(void *userdata, uint32_t index), void *userdata)
{
	assert(n <= c->n_cpus && c->n_done == c->n_work);
	if (n == 0)
		return;
	pthread_mutex_lock(&c->lock);
	c->serve = serve;
	c->userdata = userdata;
	c->n_done = 0;
	c->n_work = n;
	fill_queue(c, s, order, n);
	if (n > 1)
		pthread_cond_broadcast(&c->work);
	work(c, group_of(c, s->cpus[order[0]].node));
	while (c->n_done < c->n_work)
		pthread_cond_wait(&c->done, &c->lock);
	pthread_mutex_unlock(&c->lock);
}
