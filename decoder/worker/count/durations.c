/*
 * Histograms of durations.
 */
#include "decoder/worker/count/durations.h"

#include <assert.h>
#include <stdlib.h>

#include "proto/base.h"

#define SUB_BITS 3u
#define SUBS	 (1u << SUB_BITS)

void durations_done(struct durations_list *l)
{
	free(l->list);
	*l = (struct durations_list){0};
}

static unsigned bucket_of(uint64_t ticks)
{
	unsigned e;

	if (ticks < SUBS)
		return (unsigned)ticks;
	e = 63u - (unsigned)__builtin_clzll(ticks);
	return MIN_OF((e - SUB_BITS + 1) * SUBS + (unsigned)(ticks >> (e - SUB_BITS) & (SUBS - 1)),
		      DURATIONS_BUCKETS - 1);
}

/* The greatest value of bucket I. */
static uint64_t end_of(unsigned i)
{
	unsigned shift;

	if (i < SUBS)
		return i;
	shift = i / SUBS - 1;
	return ((uint64_t)(SUBS + i % SUBS + 1) << shift) - 1;
}

static int number_new(struct durations_list *l, uint32_t *number)
{
	if (ARRAY_RESERVE(l->list, l->capacity, l->n + 1) < 0)
		return -ENOMEM;
	l->list[l->n++] = (struct durations){0};
	*number = (uint32_t)l->n;
	return 0;
}

/* CALL without its waits. */
static void add_slow(struct durations *d, const struct durations_call *call)
{
	const uint64_t took = call->ticks - MIN_OF(call->waited, call->ticks - 1);
	const unsigned octave =
		MIN_OF(63u - (unsigned)__builtin_clzll(took), DURATIONS_OCTAVES - 1);
	struct durations_slow *slow = &d->slow[octave];

	slow->n++;
	slow->last = MAX_OF(slow->last, call->tsc + call->ticks);
	if (took > d->slowest.ticks) {
		d->slowest = *call;
		d->slowest.ticks = took;
	}
}

int durations_add(struct durations_list *l, uint32_t *number, const struct durations_call *call)
{
	struct durations *d;

	assert(call->ticks > 0);
	if (*number == 0 && l->n == DURATIONS_MAX) {
		l->refused++;
		return 0;
	}
	if (*number == 0 && number_new(l, number) < 0)
		return -ENOMEM;
	d = &l->list[*number - 1];
	d->n++;
	d->nested += call->nested;
	d->off += call->off;
	d->counts[bucket_of(call->ticks)]++;
	if (call->ticks > d->max) {
		d->max = call->ticks;
		d->max_tsc = call->tsc;
		d->max_off = call->off;
		d->max_thread = call->thread;
	}
	add_slow(d, call);
	return 0;
}

uint64_t durations_slower(const struct durations *d, unsigned octave, uint64_t *ret_last)
{
	uint64_t n = 0;

	*ret_last = 0;
	for (unsigned i = octave; i < DURATIONS_OCTAVES; i++) {
		n += d->slow[i].n;
		*ret_last = MAX_OF(*ret_last, d->slow[i].last);
	}
	return n;
}

uint64_t durations_octave(const struct durations *d, unsigned octave)
{
	const unsigned first = bucket_of(UINT64_C(1) << octave);
	const unsigned behind = octave + 1 < DURATIONS_OCTAVES
					? bucket_of(UINT64_C(1) << (octave + 1))
					: DURATIONS_BUCKETS;
	uint64_t n = 0;

	for (unsigned i = first; i < behind; i++)
		n += d->counts[i];
	return n;
}

uint64_t durations_quantile(const struct durations *d, uint64_t all, unsigned permille)
{
	uint64_t rank = (all * permille + 999) / 1000, seen = all - d->n;

	assert(all >= d->n && all > 0 && permille <= 1000);
	for (unsigned i = 0; seen < rank; i++) {
		seen += d->counts[i];
		if (seen >= rank)
			return MIN_OF(end_of(i), d->max);
	}
	return 0;
}
