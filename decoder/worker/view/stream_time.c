/*
 * Converts times to those of a stream.
 */
#include "decoder/worker/view/stream_time.h"

#include "proto/base.h"

struct stream_time stream_time_of(const struct replay *replay)
{
	const struct manifest *m = replay->manifest;
	struct stream_time t = {.replay = replay};
	uint64_t last = 0;

	if (m->monotonic_ns != MANIFEST_ABSENT && m->perf_ns != MANIFEST_ABSENT)
		t.offset = (int64_t)(m->monotonic_ns - m->perf_ns);
	for (size_t i = 0; i < m->n_cpus; i++)
		if (m->cpus[i].stop_ns != MANIFEST_ABSENT)
			last = MAX_OF(last, m->cpus[i].stop_ns);
	if (last == 0 && m->perf_ns != MANIFEST_ABSENT)
		last = m->perf_ns;
	t.first = stream_time_ns(&t, replay->begin_ns);
	t.last = MAX_OF(stream_time_ns(&t, last), t.first);
	t.trigger = stream_time_ns(&t, m->perf_ns);
	return t;
}

uint64_t stream_time_ns(const struct stream_time *t, uint64_t perf_ns)
{
	return perf_ns == MANIFEST_ABSENT || perf_ns == 0 ? 0 : perf_ns + (uint64_t)t->offset;
}

struct stream_when stream_time_when(const struct stream_time *t, size_t index, uint64_t lo,
				    uint64_t hi)
{
	const struct tscmap *clock = &t->replay->clocks[index];
	struct stream_when ret;

	ret.lo = lo == 0 ? 0 : stream_time_ns(t, tscmap_ns(clock, lo));
	ret.hi = hi == UINT64_MAX || !clock->known ? t->last
						   : stream_time_ns(t, tscmap_ns(clock, hi));
	if (ret.lo == 0)
		ret.lo = MIN_OF(t->first, ret.hi);
	ret.hi = MAX_OF(ret.lo, ret.hi);
	return ret;
}
