/*
 * One frozen moment of all CPUs: stop them in order, copy, restart them in order. A CPU that cannot
 * be stopped has a ring whose head is not final; its bytes are left out. Called by the recorder's
 * job, in its thread.
 */
#include "capture/freeze.h"

#include <time.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_bytes(const struct source_cpu *cpu, uint64_t wanted)
{
	uint64_t all = cpu->pt.aux != NULL ? cpu->pt.aux_size : 0;

	return wanted == 0 || wanted > all ? all : wanted;
}

uint64_t freeze_area_size(const struct source *s, uint64_t wanted)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_cpus; i++)
		sum += cpu_bytes(&s->cpus[i], wanted);
	return sum;
}

/* dark_ns holds the time of the call until the CPU is restarted. */
static int stop_cpu(struct source *s, uint32_t index, struct freeze_cpu *ret)
{
	int r;

	*ret = (struct freeze_cpu){.dark_ns = now()};
	r = s->ops->disable(s, index);
	ret->stop_ns = r < 0 ? MANIFEST_ABSENT : source_now_ns(s, index);
	ret->no_answer = r == SOURCE_NO_ANSWER;
	ret->not_stopped = r < 0;
	return r < 0 ? r : 0;
}

static void copy_cpu(const struct source_cpu *cpu, uint64_t wanted, uint8_t *area,
		     struct freeze_cpu *ret)
{
	uint64_t begin = now();

	if (cpu->pt.aux != NULL)
		ret->bytes = ring_copy_aux(&cpu->pt, wanted, area + ret->offset);
	ret->copy_ns = now() - begin;
}

static int restart_cpu(struct source *s, uint32_t index, struct freeze_cpu *ret)
{
	int r = s->ops->enable(s, index);

	ret->dark_ns = r == 0 ? now() - ret->dark_ns : MANIFEST_ABSENT;
	ret->not_restarted = r < 0;
	if (r == SOURCE_NO_ANSWER)
		ret->no_answer = true;
	return r < 0 ? r : 0;
}

int freeze_snapshot(struct source *s, uint64_t wanted, bool resume, uint8_t *area,
		    struct freeze_cpu *ret)
{
	uint64_t offset = 0;
	int first = 0;

	for (uint32_t i = 0; i < s->n_cpus; i++) {
		int r = stop_cpu(s, i, &ret[i]);

		first = first != 0 ? first : r;
	}
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		ret[i].offset = offset;
		offset += cpu_bytes(&s->cpus[i], wanted);
		if (!ret[i].not_stopped)
			copy_cpu(&s->cpus[i], wanted, area, &ret[i]);
	}
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		int r = 0;

		if (resume)
			r = restart_cpu(s, i, &ret[i]);
		else
			ret[i].dark_ns = MANIFEST_ABSENT;
		first = first != 0 ? first : r;
	}
	return first;
}
