/*
 * How long the calls of a function took: a histogram over TSC ticks, from the call to its end.
 *
 * Most short calls take no time, because several branches share a time. Such calls are not in the
 * histogram; their number is that of all ended calls less N. A bucket is at most an eighth wider
 * than its lower bound, as in HdrHistogram.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timeline_thread;

/* Functions beyond this number have no histogram. */
#define DURATIONS_MAX	  16384u
#define DURATIONS_BUCKETS 368u /* up to 2^48 ticks, more than a day */

#define DURATIONS_OCTAVES 48u

/* Calls whose time without waits is at least 2^I and below 2^(I+1) ticks. */
struct durations_slow {
	uint64_t last; /* when the last of them ended, TSC */
	uint32_t n;
};

/* One call that took time. */
struct durations_call {
	uint64_t ticks;	 /* not 0 */
	uint64_t off;	 /* of them, its thread was not traced */
	uint64_t waited; /* of them, its thread could have run and did not */
	uint64_t tsc;	 /* when it began */
	const struct timeline_thread *thread;
	bool nested; /* it lay within another call of its function */
};

struct durations {
	uint64_t n;	  /* calls that took time */
	uint64_t nested;  /* of them, within other calls of the function */
	uint64_t off;	  /* ticks within them in which their thread was not traced */
	uint64_t max;	  /* the longest call */
	uint64_t max_tsc; /* when the longest call began */
	uint64_t max_off; /* OFF of the longest call */
	const struct timeline_thread *max_thread;      /* that made the longest call */
	struct durations_call slowest;		       /* of all calls, without their waits */
	struct durations_slow slow[DURATIONS_OCTAVES]; /* of all calls, without their waits */
	uint32_t counts[DURATIONS_BUCKETS];
};

struct durations_list {
	struct durations *list;
	size_t n, capacity;
	uint64_t refused; /* calls that took time, of functions without a histogram */
};

void durations_done(struct durations_list *l);
/* Adds CALL. *NUMBER is the function's number in the list plus 1, or 0, which then gets a number if
 * there is room. 0 or -ENOMEM. */
int durations_add(struct durations_list *l, uint32_t *number, const struct durations_call *call);
/* How many calls took 2^OCTAVE ticks or more, without their waits; *ret_last: when the last of them
 * ended, TSC. */
uint64_t durations_slower(const struct durations *d, unsigned octave, uint64_t *ret_last);
/* How many calls took at least 2^OCTAVE and less than 2^(OCTAVE + 1) ticks, waits included; the
 * last octave, DURATIONS_OCTAVES - 1, has all longer ones, too. */
uint64_t durations_octave(const struct durations *d, unsigned octave);
/* The duration within which PERMILLE of the calls ended, in ticks, rounded up to the end of its
 * bucket. ALL is the number of all ended calls, at least D->n and at least 1. */
uint64_t durations_quantile(const struct durations *d, uint64_t all, unsigned permille);
