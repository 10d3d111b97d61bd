/*
 * When a difference is more than counting noise.
 *
 * All three rules ask for four standard deviations, because thousands of functions are compared and
 * hardly any of them may be listed by chance, and for a difference that is worth a line: a fifth of
 * the larger value for counts and costs, two buckets of the histogram for durations. Fewer than ten
 * counts, of both reports together, say nothing. Two measurements of one duration may be a step of
 * the trace's time apart, because begin and end are known to a step only.
 */
#pragma once

#include <stdbool.h>

/* What happened N times in an exposure (seconds, instructions), at a cost of V in all. */
struct noise_sample {
	double n, v, exposure;
};

/* Whether A and B happened at rates that differ: N is a Poisson count, and both rates are one rate
 * if there is no difference. */
bool noise_rate_differs(struct noise_sample a, struct noise_sample b);
/* Whether V of A and B differ, for their exposure: a sum of N costs that vary as much as an
 * exponential distribution does, so that its variance is twice the square of the mean cost, times
 * N. An N of 0 counts as 1 if V is not 0. */
bool noise_cost_differs(struct noise_sample a, struct noise_sample b);

/* Durations of N calls: the quantiles 0.5, 0.9, 0.99 and 1. */
#define NOISE_QUANTILES 4
struct noise_durations {
	double n, at[NOISE_QUANTILES]; /* ns */
	double step;		       /* ns of a step of the trace's time; 0: unknown */
};

/* Whether quantile Q (an index, not that of the longest call) differs: both have ten calls beyond
 * the quantile, and the quantiles are further apart than a place in the order of calls that is four
 * standard deviations off, read between the known quantiles, than two buckets, and than a step of
 * the coarser time and the rounding of a quantile (an eighth). */
bool noise_quantile_differs(const struct noise_durations *a, const struct noise_durations *b,
			    unsigned q);
