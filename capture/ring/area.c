/*
 * The memory that snapshots are copied into. Made by the recorder's loop for one copy, long before
 * it is needed, and by a job that finds that one in use.
 */
#include "capture/ring/area.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/ring/numa.h"
#include "proto/base.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t cpu_bytes(const struct source_cpu *cpu, uint64_t wanted)
{
	uint64_t all = cpu->pt.aux != NULL ? cpu->pt.aux_size : 0;

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

	return needed == 0 || (a->base != NULL && a->n_cpus == s->n_cpus && a->slice >= needed);
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Changes nothing: a job may have the memory. */
static void touch(uint8_t *start, uint64_t size)
{
	if (madvise(start, size, MADV_POPULATE_WRITE) == 0)
		return;
	/* Before Linux 5.14. */
	for (uint64_t at = 0; at < size; at += page_size())
		__atomic_fetch_or(&start[at], 0, __ATOMIC_RELAXED);
}

void area_touch(const struct area *a, const struct source *s)
{
	uint64_t page = page_size();

	for (size_t i = 0; a->base != NULL && i < a->n_cpus && i < s->n_cpus; i++) {
		uint64_t used = MIN_OF(cpu_bytes(&s->cpus[i], 0), a->slice);

		if (used > 0)
			touch(a->base + i * a->slice, (used + page - 1) / page * page);
	}
}

int area_make(const struct source *s, uint64_t wanted, struct area *ret)
{
	uint64_t slice = area_slice(s, wanted), page = page_size(), size;
	void *base;

	*ret = (struct area){0};
	if (slice == 0)
		return 0;
	/* A ring is far smaller than what overflows here. */
	slice = (slice + page - 1) / page * page;
	if (__builtin_mul_overflow(slice, s->n_cpus, &size))
		return -ENOMEM;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return -ENOMEM;
	*ret = (struct area){.base = base, .slice = slice, .n_cpus = s->n_cpus};
	for (size_t i = 0; i < s->n_cpus; i++)
		numa_prefer(ret->base + i * slice, slice, s->cpus[i].node);
	area_touch(ret, s);
	return 0;
}

void area_done(struct area *a)
{
	if (a->base != NULL)
		munmap(a->base, a->slice * a->n_cpus);
	*a = (struct area){0};
}
