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

int durations_add(struct durations_list *l, uint32_t *number, uint64_t ticks, uint64_t off,
		  uint64_t tsc, const struct timeline_thread *thread)
{
	struct durations *d;

	if (*number == 0 && l->n == DURATIONS_MAX) {
		l->refused++;
		return 0;
	}
	if (*number == 0 && number_new(l, number) < 0)
		return -ENOMEM;
	d = &l->list[*number - 1];
	d->n++;
	d->off += off;
	d->counts[bucket_of(ticks)]++;
	if (ticks > d->max) {
		d->max = ticks;
		d->max_tsc = tsc;
		d->max_off = off;
		d->max_thread = thread;
	}
	return 0;
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
