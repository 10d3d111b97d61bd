/*
 * Stops all CPUs, copies their rings, and restarts each CPU as soon as its own ring is copied.
 *
 * The source stops the CPUs as close together as it can, the trigger's CPU first. Several threads
 * then copy in the order of stopping, so no CPU stays dark for the sum of all copies. If a CPU
 * cannot be stopped, its head is not final, and its bytes are left out.
 */
#include "capture/ring/freeze.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define BITS_OF(word) (CHAR_BIT * sizeof(word))
#define MAX_COPIERS   8u
#define NO_CPU	      UINT32_MAX

/* --- Memory for the copies --- */

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t cpu_bytes(const struct source_cpu *cpu, uint64_t wanted)
{
	uint64_t all = cpu->pt.aux ? cpu->pt.aux_size : 0;

	return wanted == 0 || wanted > all ? all : wanted;
}

uint64_t area_slice(const struct source *s, uint64_t wanted)
{
	uint64_t most = 0;

	for (size_t i = 0; i < s->n_cpus; i++)
		most = MAX_OF(most, cpu_bytes(&s->cpus[i], wanted));
	return most;
}

bool area_holds(const struct area *a, const struct source *s, uint64_t wanted)
{
	uint64_t needed = area_slice(s, wanted);

	return needed == 0 || (a->base && a->n_cpus == s->n_cpus && a->slice >= needed);
}

void area_touch(const struct area *a, const struct source *s)
{
	uint64_t page = page_size();

	for (size_t i = 0; a->base && i < a->n_cpus && i < s->n_cpus; i++) {
		uint64_t used = MIN_OF(cpu_bytes(&s->cpus[i], 0), a->slice);
		uint8_t *slice = a->base + i * a->slice;

		used = (used + page - 1) / page * page;
		if (used == 0 || madvise(slice, used, MADV_POPULATE_WRITE) == 0)
			continue;
		/* Before Linux 5.14. OR with 0 changes nothing: a job may be using the memory. */
		for (uint64_t at = 0; at < used; at += page)
			__atomic_fetch_or(&slice[at], 0, __ATOMIC_RELAXED);
	}
}

int area_prefer_node(void *start, size_t size, int node)
{
	unsigned long mask[SOURCE_MAX_NODES / BITS_OF(unsigned long)] = {0};

	assert((uintptr_t)start % page_size() == 0);
	if (node < 0 || size == 0)
		return 0;
	if ((unsigned)node >= SOURCE_MAX_NODES)
		return -EINVAL;
	mask[(unsigned)node / BITS_OF(*mask)] = 1ul << ((unsigned)node % BITS_OF(*mask));
	/* The kernel reads one bit less than the count says (mm/mempolicy.c, get_nodes). */
	return syscall(SYS_mbind, start, size, MPOL_PREFERRED, mask, SOURCE_MAX_NODES + 1, 0) < 0
		       ? -errno
		       : 0;
}

int area_make(const struct source *s, uint64_t wanted, struct area *ret)
{
	uint64_t slice = area_slice(s, wanted), page = page_size(), size;
	void *base;

	*ret = (struct area){0};
	if (slice == 0)
		return 0;
	/* No ring is so large that the rounding overflows. */
	slice = (slice + page - 1) / page * page;
	if (__builtin_mul_overflow(slice, s->n_cpus, &size))
		return -ENOMEM;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	*ret = (struct area){.base = base, .slice = slice, .n_cpus = s->n_cpus};
	for (size_t i = 0; i < s->n_cpus; i++)
		area_prefer_node(ret->base + i * slice, slice, s->cpus[i].node);
	area_touch(ret, s);
	return 0;
}

void area_done(struct area *a)
{
	if (a->base)
		munmap(a->base, a->slice * a->n_cpus);
	*a = (struct area){0};
}

/* --- The threads that copy --- */

struct freezer {
	pthread_mutex_t lock;
	pthread_cond_t work, done; /* there is work; all work is done */
	pthread_t threads[MAX_COPIERS];
	unsigned n_threads;
	bool quit;
	/* The arguments of freeze_snapshot(), while it runs. */
	struct source *source;
	struct freeze_wish wish;
	const struct area *area;
	struct freeze_cpu *cpus;
	/* Indices of the CPUs to copy, in this order; the first n_stopped of them are stopped. */
	uint32_t *order;
	size_t n_order, n_stopped;
	int *results; /* of stopping each CPU, then of restarting it */
	size_t n_cpus;
	/* Under the lock: how many CPUs of the order are to be copied, begun, and done. */
	size_t n_work, n_begun, n_done;
};

/* Copies the CPU's ring, and restarts the CPU if it was stopped. */
static void serve_cpu(const struct freezer *f, uint32_t index)
{
	const struct area *a = f->area;
	struct freeze_cpu *c = &f->cpus[index];
	uint64_t wanted = f->wish.bytes == 0 ? a->slice : MIN_OF(f->wish.bytes, a->slice);
	int r;

	if (!c->not_stopped && wanted > 0 && index < a->n_cpus) {
		uint64_t begin = now_ns(CLOCK_MONOTONIC);

		c->bytes = ring_copy_aux(&f->source->cpus[index].pt, wanted, a->base + c->offset);
		c->copy_ns = now_ns(CLOCK_MONOTONIC) - begin;
	}
	if (!c->traced)
		return;
	if (!f->wish.resume) {
		c->dark_ns = MANIFEST_ABSENT;
		return;
	}
	r = f->source->ops->enable(f->source, index);
	/* Until now dark_ns was the time at which the CPU was told to stop. */
	c->dark_ns =
		r == 0 && !c->not_stopped ? now_ns(CLOCK_MONOTONIC) - c->dark_ns : MANIFEST_ABSENT;
	c->not_restarted = r < 0;
	c->no_answer |= r == SOURCE_NO_ANSWER;
	f->results[index] = r;
}

/* Works until nothing is left to begin. The lock is held before and after. */
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

int freezer_new(size_t n_cpus, unsigned copiers, struct freezer **ret)
{
	struct freezer *f = calloc(1, sizeof(*f));
	sigset_t all, before;

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->done, NULL);
	f->n_cpus = n_cpus;
	f->order = calloc(n_cpus + 1, sizeof(*f->order));
	f->results = calloc(n_cpus + 1, sizeof(*f->results));
	if (!f->order || !f->results) {
		freezer_free(f);
		return -ENOMEM;
	}
	if (copiers == 0) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		copiers = online < 1 ? 1 : (unsigned)MIN_OF((online + 1) / 2, (long)MAX_COPIERS);
	}
	copiers = MIN_OF(copiers, MAX_COPIERS);
	/* Only the loop handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (f->n_threads + 1 < copiers &&
	       pthread_create(&f->threads[f->n_threads], NULL, freezer_main, f) == 0)
		f->n_threads++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	*ret = f;
	return 0;
}

void freezer_free(struct freezer *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	assert(f->n_done == f->n_work);
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

/* --- A snapshot --- */

static bool is_traced(const struct source_cpu *cpu)
{
	return cpu->state == SOURCE_CPU_TRACING && cpu->pt.aux;
}

static void add_to_order(struct freezer *f, uint32_t index)
{
	f->order[f->n_order++] = index;
}

/* First the CPUs to stop, beginning with the wished one; then the CPUs that only have a ring. */
static void choose_order(struct freezer *f)
{
	const struct source *s = f->source;
	uint32_t first = NO_CPU;

	f->n_order = 0;
	for (uint32_t i = 0; i < s->n_cpus && first == NO_CPU; i++)
		if (s->cpus[i].cpu == f->wish.cpu && is_traced(&s->cpus[i]))
			first = i;
	if (first != NO_CPU)
		add_to_order(f, first);
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (i != first && is_traced(&s->cpus[i]))
			add_to_order(f, i);
	f->n_stopped = f->n_order;
	for (uint32_t i = 0; i < s->n_cpus; i++)
		if (!is_traced(&s->cpus[i]) && s->cpus[i].pt.aux)
			add_to_order(f, i);
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

/* The negative result of the CPU with the lowest index that has one, else 0. */
static int first_error(const struct freezer *f)
{
	for (size_t i = 0; i < f->source->n_cpus; i++)
		if (f->cpus[i].traced && f->results[i] < 0)
			return f->results[i];
	return 0;
}

static int freezer_stop(struct freezer *f)
{
	const struct source_ops *ops = f->source->ops;

	if (f->n_stopped == 0 || !ops->disable_all) {
		for (size_t i = 0; i < f->n_stopped; i++) {
			note_ask(f, f->order[i]);
			note_stop(f, f->order[i], ops->disable(f->source, f->order[i]));
		}
		return first_error(f);
	}
	for (size_t i = 0; i < f->n_stopped; i++)
		note_ask(f, f->order[i]);
	for (size_t i = 0; i < f->source->n_cpus; i++)
		f->results[i] = 0;
	ops->disable_all(f->source, f->order[0], f->results);
	for (size_t i = 0; i < f->n_stopped; i++) {
		note_stop(f, f->order[i], f->results[f->order[i]]);
		f->cpus[f->order[i]].together = true;
	}
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

int freeze_snapshot(struct freezer *f, struct source *s, const struct freeze_wish *wish,
		    const struct area *area, struct freeze_cpu *ret)
{
	int stopped, restarted;

	assert(s->n_cpus <= f->n_cpus);
	assert(f->n_done == f->n_work);
	f->source = s;
	f->wish = *wish;
	f->area = area;
	f->cpus = ret;
	for (uint32_t i = 0; i < s->n_cpus; i++)
		ret[i] = (struct freeze_cpu){.offset = i * area->slice,
					     .stop_order = MANIFEST_ABSENT,
					     .asked_ns = MANIFEST_ABSENT,
					     .stop_ns = MANIFEST_ABSENT,
					     .dark_ns = MANIFEST_ABSENT,
					     .copy_ns = MANIFEST_ABSENT};
	choose_order(f);
	for (uint32_t i = 0; i < f->n_stopped; i++) {
		ret[f->order[i]].traced = true;
		ret[f->order[i]].stop_order = i;
	}
	stopped = freezer_stop(f);
	restarted = freezer_copy(f);
	return stopped < 0 ? stopped : restarted;
}

uint64_t freeze_stop_ns(const struct freeze_cpu *cpu, uint64_t told_ns)
{
	if (cpu->stop_ns == MANIFEST_ABSENT || told_ns < cpu->asked_ns || told_ns > cpu->stop_ns)
		return cpu->stop_ns;
	return told_ns;
}
