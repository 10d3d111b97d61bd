/*
 * Stops all CPUs, copies their rings, and restarts each CPU as soon as its own ring is copied.
 *
 * The source stops the CPUs as close together as it can, the trigger's CPU first. Several threads
 * (copiers.h) then copy in the order of stopping, so no CPU stays dark for the sum of all copies.
 * If a CPU cannot be stopped, its head is not final, and its bytes are left out.
 */
#include "capture/ring/freeze.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/ring/copiers.h"
#include "capture/ring/realtime.h"
#include "proto/base.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define BITS_OF(word) (CHAR_BIT * sizeof(word))
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

/* --- One CPU --- */

struct freezer {
	struct copiers *copiers;
	/* The arguments of freeze_snapshot(), while it runs. */
	struct source *source;
	struct freeze_wish wish;
	const struct area *area;
	struct freeze_cpu *cpus;
	/* Indices of the CPUs to copy, in this order; the first n_stopped of them are stopped. */
	uint32_t *order;
	size_t n_order, n_stopped;
	int *results;		  /* of stopping each CPU, then of restarting it */
	uint64_t *restarts, *ran; /* of each CPU: perf clock behind its restart; user time */
	size_t n_cpus;
};

/* Lists the time since the stop as dark. R: the result of the restart. It is unknown when a CPU
 * that did not answer runs again. */
static void note_dark(const struct freezer *f, uint32_t index, int r)
{
	struct source_cpu *cpu = &f->source->cpus[index];
	const struct freeze_cpu *c = &f->cpus[index];

	if (c->not_stopped)
		return;
	if (r != 0)
		dark_begin(&cpu->dark, source_cpu_state_fault(SOURCE_CPU_FAILED),
			   r < 0 ? "the CPU did not trace again behind a snapshot"
				 : "it is unknown when the CPU traced again behind a snapshot",
			   c->stop_ns);
	else if (dark_open(&cpu->dark))
		dark_end(&cpu->dark, f->restarts[index]);
	else
		dark_add(&cpu->dark, DARK_COPY, NULL, c->stop_ns, f->restarts[index]);
}

/* Copies the CPU's ring, and restarts the CPU if it was stopped. */
static void serve_cpu(void *userdata, uint32_t index)
{
	const struct freezer *f = userdata;
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
	if (!c->not_stopped)
		pulse_stop(&f->source->cpus[index].pulse, &f->source->cpus[index].pt);
	if (!f->wish.resume) {
		c->dark_ns = MANIFEST_ABSENT;
		return;
	}
	r = f->source->ops->enable(f->source, index);
	f->restarts[index] = source_now_ns(f->source, index);
	/* Until now dark_ns was the time at which the CPU was told to stop. */
	c->dark_ns =
		r == 0 && !c->not_stopped ? now_ns(CLOCK_MONOTONIC) - c->dark_ns : MANIFEST_ABSENT;
	c->not_restarted = r < 0;
	c->no_answer |= r == SOURCE_NO_ANSWER;
	f->results[index] = r;
	note_dark(f, index, r);
}

int freezer_new(const struct source *s, unsigned copiers, struct freezer **ret)
{
	struct freezer *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->n_cpus = s->n_cpus;
	f->order = calloc(s->n_cpus + 1, sizeof(*f->order));
	f->results = calloc(s->n_cpus + 1, sizeof(*f->results));
	f->restarts = calloc(s->n_cpus + 1, sizeof(*f->restarts));
	f->ran = calloc(s->n_cpus + 1, sizeof(*f->ran));
	if (!f->order || !f->results || !f->restarts || !f->ran ||
	    copiers_new(s, copiers, &f->copiers) < 0) {
		freezer_free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

void freezer_free(struct freezer *f)
{
	if (!f)
		return;
	copiers_free(f->copiers);
	free(f->order);
	free(f->results);
	free(f->restarts);
	free(f->ran);
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

/* Leaves in each CPU of the source when its part of the snapshot ends. */
static void note_ends(const struct freezer *f)
{
	uint64_t last = MANIFEST_ABSENT;

	for (size_t i = 0; i < f->source->n_cpus; i++) {
		uint64_t stop = f->cpus[i].stop_ns;

		if (stop != MANIFEST_ABSENT && (last == MANIFEST_ABSENT || stop > last))
			last = stop;
	}
	if (last == MANIFEST_ABSENT && f->source->n_cpus > 0)
		last = source_now_ns(f->source, 0);
	for (size_t i = 0; i < f->source->n_cpus; i++)
		f->source->cpus[i].frozen_ns =
			f->cpus[i].stop_ns != MANIFEST_ABSENT ? f->cpus[i].stop_ns : last;
}

/* Whether the CPU was not traced at some time since its ring was seen to stand, other than for
 * copies. */
static bool was_dark(const struct source_cpu *cpu)
{
	for (size_t i = cpu->dark.n; i-- > 0;) {
		const struct dark_span *span = dark_at(&cpu->dark, i);

		if (strcmp(span->kind, DARK_COPY) != 0)
			return span->open || span->until_ns > cpu->pulse.since_ns;
	}
	return false;
}

/* When the CPUs run again: compares what user code ran with what the trace units wrote. */
static void feel_pulses(struct freezer *f)
{
	const struct source *s = f->source;
	uint64_t read_ns, step_ns = 0;

	if (!f->wish.resume || !s->ops->ran || f->n_stopped == 0)
		return;
	if (s->ops->ran(s, f->ran, &step_ns) < 0)
		for (size_t i = 0; i < s->n_cpus; i++)
			f->ran[i] = UINT64_MAX;
	read_ns = source_now_ns(f->source, f->order[0]);
	for (size_t i = 0; i < f->n_stopped; i++) {
		const uint32_t index = f->order[i];
		const struct pulse_times times = {f->cpus[index].stop_ns, f->restarts[index],
						  read_ns, f->ran[index]};
		struct source_cpu *cpu = &s->cpus[index];

		if (f->cpus[index].not_stopped || f->results[index] != 0) {
			cpu->pulse = (struct pulse){0};
			continue;
		}
		cpu->pulse.stands = cpu->pulse.stands && !was_dark(cpu);
		pulse_restart(&cpu->pulse, &times, step_ns);
	}
}

int freeze_snapshot(struct freezer *f, struct source *s, const struct freeze_wish *wish,
		    const struct area *area, struct freeze_cpu *ret)
{
	struct realtime priority;
	int stopped, restarted;

	assert(s->n_cpus <= f->n_cpus);
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
	realtime_begin(&priority);
	stopped = freezer_stop(f);
	note_ends(f);
	copiers_run(f->copiers, s, f->order, f->n_order, serve_cpu, f);
	realtime_end(&priority);
	restarted = first_error(f);
	feel_pulses(f);
	return stopped < 0 ? stopped : restarted;
}

uint64_t freeze_stop_ns(const struct freeze_cpu *cpu, uint64_t told_ns)
{
	if (cpu->stop_ns == MANIFEST_ABSENT || told_ns < cpu->asked_ns || told_ns > cpu->stop_ns)
		return cpu->stop_ns;
	return told_ns;
}
