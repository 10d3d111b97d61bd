/*
 * What every trace source has in common. Called by the recorder, which owns the source, and by
 * freeze.c.
 */
#include "capture/ring/source.h"

#include <time.h>

#include <x86intrin.h>

#include "proto/base.h"

void source_free(struct source *s)
{
	if (s != NULL)
		s->ops->free(s);
}

void source_freep(struct source **s)
{
	source_free(*s);
}

uint64_t source_tsc(struct source *s, uint32_t index)
{
	return s->ops->read_tsc != NULL ? s->ops->read_tsc(s, index) : __rdtsc();
}

uint64_t source_now_ns(struct source *s, uint32_t index)
{
	if (s->clock.valid)
		return clock_tsc_to_ns(&s->clock, source_tsc(s, index));
	return s->clock_is_monotonic ? now_ns(CLOCK_MONOTONIC) : MANIFEST_ABSENT;
}

void source_set_watch(struct source *s, const struct source_watch *watch)
{
	s->watch = watch;
	for (uint32_t i = 0; watch != NULL && i < s->n_cpus; i++) {
		struct source_cpu *cpu = &s->cpus[i];

		if (cpu->pt.data != NULL)
			watch->ring_added(watch->userdata, i, &cpu->pt, cpu->pt_fd);
		if (cpu->sideband.data != NULL)
			watch->ring_added(watch->userdata, i, &cpu->sideband, cpu->sideband_fd);
	}
}

const char *source_cpu_state_name(enum source_cpu_state state)
{
	static const char *const names[] = {
		[SOURCE_CPU_TRACING] = "tracing", [SOURCE_CPU_OFFLINE] = "offline",
		[SOURCE_CPU_BUSY] = "busy",	  [SOURCE_CPU_YIELDED] = "yielded",
		[SOURCE_CPU_FAILED] = "failed",	  [SOURCE_CPU_NO_PT] = "no-pt",
	};

	return names[state];
}
