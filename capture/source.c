/*
 * What every trace source has in common. Called by the recorder, which owns the source, and by
 * freeze.c.
 */
#include "capture/source.h"

#include <x86intrin.h>

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
	return s->clock.valid ? clock_tsc_to_ns(&s->clock, source_tsc(s, index)) : MANIFEST_ABSENT;
}
