/*
 * Finds places in a trace by looking at PSBs and their PSB+ alone: to divide traces into rounds, to
 * find where a thread ran last, and to begin where the last N seconds do (--last=TIME).
 */
#include "decoder/worker/replay/segment.h"

#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

/* A smaller part is read from its beginning, bytes. */
#define SMALL UINT64_C(16384)

bool segment_next(const uint8_t *trace, uint64_t from, uint64_t until, struct segment_psb *ret)
{
	const uint8_t *psb = from < until ? sync_find(trace + from, trace + until) : NULL;

	if (!psb)
		return false;
	ret->offset = (uint64_t)(psb - trace);
	if (!sync_tsc(psb, trace + until, &ret->tsc))
		ret->tsc = 0;
	return true;
}

/* The last PSB in [FROM, UNTIL). */
static bool last_within(const uint8_t *trace, uint64_t from, uint64_t until,
			struct segment_psb *ret)
{
	struct segment_psb place;
	bool found = false;

	for (; segment_next(trace, from, until, &place); from = place.offset + PT_PSB_SIZE) {
		*ret = place;
		found = true;
	}
	return found;
}

bool segment_before(const uint8_t *trace, uint64_t until, uint64_t reach, struct segment_psb *ret)
{
	const uint64_t least = until - MIN_OF(until, reach);
	uint64_t end = until, step = SMALL;

	/* A part reaches as far into the part behind it as a PSB that begins before the border. */
	while (end > least) {
		uint64_t from = MAX_OF(end - MIN_OF(end, step), least);

		if (last_within(trace, from, MIN_OF(end + PT_PSB_SIZE - 1, until), ret))
			return true;
		end = from;
		step *= 2;
	}
	return false;
}

/* The first PSB in [FROM, UNTIL) that has a time. */
static bool next_timed(const uint8_t *trace, uint64_t from, uint64_t until, struct segment_psb *ret)
{
	while (segment_next(trace, from, until, ret)) {
		if (ret->tsc != 0)
			return true;
		from = ret->offset + PT_PSB_SIZE;
	}
	return false;
}

/* The last PSB of [FROM, UNTIL) that is not after TSC, one by one. */
static bool find_among(const uint8_t *trace, uint64_t from, uint64_t until, uint64_t tsc,
		       struct segment_psb *ret)
{
	struct segment_psb place;
	bool found = false;

	while (next_timed(trace, from, until, &place) && !packet_tsc_is_before(tsc, place.tsc)) {
		*ret = place;
		found = true;
		from = place.offset + PT_PSB_SIZE;
	}
	return found;
}

/* The PSB that is looked for begins in [FROM, UNTIL). A half without a PSB is read once and never
 * again. */
bool segment_find(const uint8_t *trace, uint64_t size, uint64_t tsc, struct segment_psb *ret)
{
	uint64_t from = 0, until = size;

	while (until - from > SMALL) {
		const uint64_t middle = from + (until - from) / 2;
		struct segment_psb place;

		if (next_timed(trace, middle, MIN_OF(until + SMALL, size), &place) &&
		    place.offset < until && !packet_tsc_is_before(tsc, place.tsc))
			from = place.offset;
		else
			until = middle;
	}
	return find_among(trace, from, MIN_OF(until + SMALL, size), tsc, ret);
}

uint64_t segment_window(const uint8_t *trace, size_t size, uint64_t tsc)
{
	struct segment_psb place;
	uint64_t begin = 0, from = 0;

	for (; segment_next(trace, from, size, &place) && !packet_tsc_is_before(tsc, place.tsc);
	     from = place.offset + PT_PSB_SIZE)
		if (place.tsc != 0)
			begin = place.tsc;
	return begin;
}
