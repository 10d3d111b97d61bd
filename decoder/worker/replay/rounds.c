/*
 * Divides a decode that has a deadline into rounds. Each round begins anew, further back than the
 * one before, so the last round that was done in time gives a whole report.
 */
#include "decoder/worker/replay/rounds.h"

#include <stdlib.h>

#include "proto/base.h"

/* Distance of the first place from the end, bytes; each place is a quarter farther away than the
 * one before. */
#define NEAREST UINT64_C(4096)
/* Enough from NEAREST to the largest trace that a bundle can have. */
#define MAX_PLACES 128u
/* The smallest round, which is done in any case: bytes of all CPUs, and of one. */
#define SMALLEST     UINT64_C(1048576)
#define SMALLEST_CPU UINT64_C(65536)
/* A round is at most so many times as large as the one before, whose speed is all that is known. */
#define GROWTH 8u
/* The least time that a byte takes, ns. */
#define FASTEST 1u

/* The places of a trace from FROM on. Each part of the trace is looked at once. */
static void find_places(struct rounds_cpu *c, const uint8_t *trace, uint64_t from)
{
	uint64_t until = c->size, distance = NEAREST;

	while (until > from && c->n < MAX_PLACES) {
		const uint64_t at = MAX_OF(c->size - MIN_OF(c->size, distance), from);

		if (at < until && segment_next(trace, at, until, &c->places[c->n]))
			until = c->places[c->n++].offset;
		else
			until = MIN_OF(until, at);
		distance += distance / 4;
	}
}

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

static int collect_times(struct rounds *r)
{
	r->times = calloc(r->n_cpus * MAX_PLACES + 1, sizeof(*r->times));
	if (!r->times)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_cpus; i++)
		for (size_t j = 0; j < r->cpus[i].n; j++)
			if (r->cpus[i].places[j].tsc != 0)
				r->times[r->n_times++] = r->cpus[i].places[j].tsc;
	qsort(r->times, r->n_times, sizeof(*r->times), by_time);
	return 0;
}

int rounds_init(struct rounds *r, const struct replay *replay)
{
	*r = (struct rounds){.n_cpus = replay->manifest->n_cpus};
	r->cpus = calloc(r->n_cpus + 1, sizeof(*r->cpus));
	if (!r->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_cpus; i++) {
		struct rounds_cpu *c = &r->cpus[i];
		const uint64_t since = replay_asked_since(replay, i);
		struct segment_psb place;
		size_t size;
		const uint8_t *trace = bundle_cpu(replay->bundle, i, &size);
		const bool found = since != 0 && segment_find(trace, size, since, &place);
		const uint64_t from = found ? place.offset : 0;

		c->places = calloc(MAX_PLACES, sizeof(*c->places));
		if (!c->places) {
			rounds_done(r);
			return -ENOMEM;
		}
		c->size = size;
		find_places(c, trace, from);
		r->bytes += size - from;
	}
	if (collect_times(r) == 0)
		return 0;
	rounds_done(r);
	return -ENOMEM;
}

void rounds_done(struct rounds *r)
{
	for (size_t i = 0; i < r->n_cpus && r->cpus; i++)
		free(r->cpus[i].places);
	free(r->cpus);
	free(r->times);
	*r = (struct rounds){0};
}

/* Where C's part begins so that it has everything since TSC; C's oldest place, where all of C is
 * newer. */
static uint64_t since_time(const struct rounds_cpu *c, uint64_t tsc)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->places[i].tsc != 0 && c->places[i].tsc <= tsc)
			return c->places[i].offset;
	return c->n > 0 ? c->places[c->n - 1].offset : c->size;
}

/* Where C's part begins so that it has no more than BYTES; C's end, where even the newest segment
 * has more. */
static uint64_t within_bytes(const struct rounds_cpu *c, uint64_t bytes)
{
	uint64_t from = c->size;

	for (size_t i = 0; i < c->n && c->size - c->places[i].offset <= bytes; i++)
		from = c->places[i].offset;
	return from;
}

static bool has_time(const struct rounds_cpu *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->places[i].tsc != 0)
			return true;
	return false;
}

static uint64_t begin_of(const struct rounds *r, size_t cpu, uint64_t tsc, uint64_t bytes)
{
	const struct rounds_cpu *c = &r->cpus[cpu];
	unsigned __int128 share = 0;

	if (has_time(c))
		return since_time(c, tsc);
	/* Nothing tells the time: the CPU's share of BYTES. */
	if (r->bytes != 0)
		share = (unsigned __int128)c->size * bytes / r->bytes;
	return within_bytes(c, (uint64_t)MIN_OF(share, (unsigned __int128)c->size));
}

static uint64_t bytes_since(const struct rounds *r, uint64_t tsc, uint64_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_cpus; i++)
		sum += r->cpus[i].size - begin_of(r, i, tsc, bytes);
	return sum;
}

bool rounds_parts(const struct rounds *r, uint64_t bytes, struct replay_part *ret)
{
	const uint64_t smallest = MIN_OF(SMALLEST_CPU, SMALLEST / MAX_OF(r->n_cpus, (size_t)1));
	/* How many of the times, latest first, lead to no more than BYTES. */
	const size_t n = FIRST_WHERE(i, r->n_times, bytes_since(r, r->times[i], bytes) > bytes);
	uint64_t sum = 0;
	bool all;

	for (size_t i = 0; i < r->n_cpus; i++) {
		const struct rounds_cpu *c = &r->cpus[i];
		const uint64_t newest = c->n > 0 ? c->places[0].offset : c->size;
		uint64_t from = c->size - newest <= smallest ? newest : c->size;

		if (n > 0 || !has_time(c))
			from = MIN_OF(from, begin_of(r, i, n > 0 ? r->times[n - 1] : 0, bytes));
		ret[i] = (struct replay_part){.from = from};
		sum += c->size - from;
	}
	all = bytes >= r->bytes || sum >= r->bytes;
	for (size_t i = 0; all && i < r->n_cpus; i++)
		ret[i] = (struct replay_part){0};
	return all;
}

uint64_t rounds_next(const struct rounds_pace *pace)
{
	/* The last round may have decoded nothing, in no time. */
	const uint64_t bytes = MAX_OF(pace->bytes, SMALLEST_CPU);
	const uint64_t took = MAX_OF(pace->took, bytes * FASTEST);
	/* Most code is known by then, which makes the next round faster; how the older part of the
	 * trace decodes is not known, which may make it slower. */
	const unsigned __int128 can = (unsigned __int128)bytes * pace->left / took * 6 / 10;
	const unsigned __int128 next = MIN_OF(can, (unsigned __int128)bytes * GROWTH);

	if (next >= pace->total)
		return pace->total;
	return next < (unsigned __int128)bytes * 4 / 3 ? 0 : (uint64_t)next;
}
