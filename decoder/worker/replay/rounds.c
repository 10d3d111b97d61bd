/*
 * Rounds of a decode that has a deadline. Each one begins anew, further back, so that the last one
 * that was done in time is a whole report. Used by decode_rounds.c.
 */
#include "decoder/worker/replay/rounds.h"

#include <stdlib.h>

#include "proto/base.h"

/* Where the first place is looked for, from the end; the next ones a quarter of the way farther. */
#define NEAREST UINT64_C(4096)
/* From NEAREST to the largest trace that a bundle can have. */
#define MAX_PLACES 128u
/* The smallest round is done in any case: that many bytes of all CPUs, and of one. */
#define SMALLEST     UINT64_C(1048576)
#define SMALLEST_CPU UINT64_C(65536)
/* A round is so many times the one before at most: what is known of its speed is that one's. */
#define GROWTH 8u
/* No byte takes less, ns. */
#define FASTEST 1u

/* Where what was asked for of CPU begins. */
static uint64_t asked_from(const struct replay *r, size_t cpu, const uint8_t *trace, uint64_t size)
{
	const uint64_t since = replay_asked_since(r, cpu);
	struct segment_place place;

	return since != 0 && segment_find(trace, size, since, &place) ? place.offset : 0;
}

/* The places of a trace from FROM on; each part of it is looked at once. */
static void find_places(struct rounds_cpu *c, const uint8_t *trace, uint64_t from)
{
	uint64_t until = c->size, distance = NEAREST;

	while (until > from && c->n < MAX_PLACES) {
		const uint64_t at = MAX_OF(c->size - MIN_OF(c->size, distance), from);

		if (at < until && segment_next(trace, at, until, &c->places[c->n])) {
			until = c->places[c->n++].offset;
		} else {
			until = MIN_OF(until, at);
		}
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
	size_t i, j;

	r->times = calloc(r->n_cpus * MAX_PLACES + 1, sizeof(*r->times));
	if (r->times == NULL)
		return -ENOMEM;
	for (i = 0; i < r->n_cpus; i++)
		for (j = 0; j < r->cpus[i].n; j++)
			if (r->cpus[i].places[j].tsc != 0)
				r->times[r->n_times++] = r->cpus[i].places[j].tsc;
	qsort(r->times, r->n_times, sizeof(*r->times), by_time);
	return 0;
}

int rounds_init(struct rounds *r, const struct replay *replay)
{
	size_t i;

	*r = (struct rounds){.n_cpus = replay->manifest->n_cpus};
	r->cpus = calloc(r->n_cpus + 1, sizeof(*r->cpus));
	if (r->cpus == NULL)
		return -ENOMEM;
	for (i = 0; i < r->n_cpus; i++) {
		struct rounds_cpu *c = &r->cpus[i];
		size_t size;
		const uint8_t *trace = bundle_cpu(replay->bundle, i, &size);
		const uint64_t from = asked_from(replay, i, trace, size);

		c->places = calloc(MAX_PLACES, sizeof(*c->places));
		if (c->places == NULL) {
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
	size_t i;

	for (i = 0; i < r->n_cpus && r->cpus != NULL; i++)
		free(r->cpus[i].places);
	free(r->cpus);
	free(r->times);
	*r = (struct rounds){0};
}

/* Where C begins so that all since TSC is in it; its oldest place, where all is newer. */
static uint64_t since_time(const struct rounds_cpu *c, uint64_t tsc)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->places[i].tsc != 0 && c->places[i].tsc <= tsc)
			return c->places[i].offset;
	return c->n > 0 ? c->places[c->n - 1].offset : c->size;
}

/* Where it begins so that it has no more than BYTES; its end, where even the newest has more. */
static uint64_t within_bytes(const struct rounds_cpu *c, uint64_t bytes)
{
	uint64_t from = c->size;
	size_t i;

	for (i = 0; i < c->n && c->size - c->places[i].offset <= bytes; i++)
		from = c->places[i].offset;
	return from;
}

static bool has_time(const struct rounds_cpu *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->places[i].tsc != 0)
			return true;
	return false;
}

/* Its share of BYTES, where nothing tells the time. */
static uint64_t share_of(const struct rounds *r, const struct rounds_cpu *c, uint64_t bytes)
{
	const unsigned __int128 share = (unsigned __int128)c->size * bytes;

	return r->bytes == 0 ? 0 : (uint64_t)MIN_OF(share / r->bytes, (unsigned __int128)c->size);
}

static uint64_t begin_of(const struct rounds *r, size_t cpu, uint64_t tsc, uint64_t bytes)
{
	const struct rounds_cpu *c = &r->cpus[cpu];

	return has_time(c) ? since_time(c, tsc) : within_bytes(c, share_of(r, c, bytes));
}

static uint64_t bytes_since(const struct rounds *r, uint64_t tsc, uint64_t bytes)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < r->n_cpus; i++)
		sum += r->cpus[i].size - begin_of(r, i, tsc, bytes);
	return sum;
}

/* How many of the times, latest first, lead to no more than BYTES. */
static size_t fitting(const struct rounds *r, uint64_t bytes)
{
	return FIRST_WHERE(i, r->n_times, bytes_since(r, r->times[i], bytes) > bytes);
}

bool rounds_parts(const struct rounds *r, uint64_t bytes, struct replay_part *ret)
{
	const uint64_t smallest = MIN_OF(SMALLEST_CPU, SMALLEST / MAX_OF(r->n_cpus, (size_t)1));
	const size_t n = fitting(r, bytes);
	uint64_t sum = 0;
	bool all;
	size_t i;

	for (i = 0; i < r->n_cpus; i++) {
		const struct rounds_cpu *c = &r->cpus[i];
		const uint64_t newest = c->n > 0 ? c->places[0].offset : c->size;
		uint64_t from = c->size - newest <= smallest ? newest : c->size;

		if (n > 0 || !has_time(c))
			from = MIN_OF(from, begin_of(r, i, n > 0 ? r->times[n - 1] : 0, bytes));
		ret[i] = (struct replay_part){.from = from};
		sum += c->size - from;
	}
	all = bytes >= r->bytes || sum >= r->bytes;
	for (i = 0; all && i < r->n_cpus; i++)
		ret[i] = (struct replay_part){0};
	return all;
}

uint64_t rounds_next(const struct rounds_pace *pace)
{
	/* Nothing may have been decoded, in no time. */
	const uint64_t bytes = MAX_OF(pace->bytes, SMALLEST_CPU);
	const uint64_t took = MAX_OF(pace->took, bytes * FASTEST);
	/* Most code is not new any more then; but who knows how the older part is. */
	const unsigned __int128 can = (unsigned __int128)bytes * pace->left / took * 6 / 10;
	const unsigned __int128 next = MIN_OF(can, (unsigned __int128)bytes * GROWTH);

	if (next >= pace->total)
		return pace->total;
	return next < (unsigned __int128)bytes * 4 / 3 ? 0 : (uint64_t)next;
}
