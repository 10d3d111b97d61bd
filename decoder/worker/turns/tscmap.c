/*
 * Time: TSC of the trace <-> perf clock of the sideband. Used by all of the worker. The numbers
 * come out of a bundle, so they are computed with 128 bits and checked, not believed.
 */
#include "decoder/worker/turns/tscmap.h"

#include "proto/base.h"

void tscmap_init(struct tscmap *map, const struct manifest *m)
{
	map->known = m->have_clock && m->time_mult > 0 && m->time_shift < 64;
	map->shift = m->time_shift;
	map->mult = m->time_mult;
	map->zero = m->time_zero;
	map->ahead = 0;
	map->doubt = 0;
}

uint64_t tscmap_span(const struct tscmap *map, uint64_t ticks)
{
	unsigned __int128 ns;

	if (!map->known)
		return MANIFEST_ABSENT;
	ns = ((unsigned __int128)ticks * map->mult) >> map->shift;
	return ns < MANIFEST_ABSENT ? (uint64_t)ns : MANIFEST_ABSENT;
}

uint64_t tscmap_ns(const struct tscmap *map, uint64_t tsc)
{
	uint64_t span = tscmap_span(map, tsc);

	if (span == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	/* time_zero is signed in effect: it is added modulo 2^64, as the kernel's recipe does. */
	return map->zero + span + (uint64_t)map->ahead;
}

uint64_t tscmap_tsc(const struct tscmap *map, uint64_t ns)
{
	unsigned __int128 tsc;

	if (!map->known)
		return MANIFEST_ABSENT;
	ns -= map->zero + (uint64_t)map->ahead;
	tsc = ((unsigned __int128)ns << map->shift) / map->mult;
	return tsc < MANIFEST_ABSENT ? (uint64_t)tsc : MANIFEST_ABSENT;
}

uint64_t tscmap_not_before(const struct tscmap *map, uint64_t tsc)
{
	uint64_t ns = tscmap_ns(map, tsc - MIN_OF(tsc, (uint64_t)TSCMAP_SLACK_TICKS));

	if (tsc == 0 || ns == MANIFEST_ABSENT)
		return 0;
	return ns - MIN_OF(ns, TSCMAP_SLACK_NS + map->doubt);
}

uint64_t tscmap_not_after(const struct tscmap *map, uint64_t tsc)
{
	uint64_t slack = TSCMAP_SLACK_NS + map->doubt, ns = MANIFEST_ABSENT;

	if (tsc <= UINT64_MAX - TSCMAP_SLACK_TICKS)
		ns = tscmap_ns(map, tsc + TSCMAP_SLACK_TICKS);
	return ns > UINT64_MAX - slack ? UINT64_MAX : ns + slack;
}
