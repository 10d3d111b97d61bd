/*
 * When a difference is more than counting noise.
 */
#include "ctl/diff/noise.h"

#include <math.h>

#include "proto/base.h"

#define SIGMAS	    4.0
#define LEAST_PART  0.2 /* of the larger value */
#define LEAST_CALLS 10.0
#define ROUNDED	    (1.0 / 8) /* a bucket is at most an eighth wide */
#define BUCKETS	    ((1 + ROUNDED) * (1 + ROUNDED))

static const double RANKS[NOISE_QUANTILES] = {0.5, 0.9, 0.99, 1};

static bool is_worth_a_line(double a, double b)
{
	return fabs(a - b) >= LEAST_PART * fmax(a, b) && fmax(a, b) > 0;
}

/* The variance of the difference of two rates, if both are the rate of A and B together. */
static double pooled(double n, struct noise_sample a, struct noise_sample b)
{
	return n / (a.exposure + b.exposure) * (1 / a.exposure + 1 / b.exposure);
}

bool noise_rate_differs(struct noise_sample a, struct noise_sample b)
{
	double ra, rb;

	if (a.exposure <= 0 || b.exposure <= 0 || a.n + b.n < LEAST_CALLS)
		return false;
	ra = a.n / a.exposure;
	rb = b.n / b.exposure;
	return is_worth_a_line(ra, rb) && fabs(ra - rb) > SIGMAS * sqrt(pooled(a.n + b.n, a, b));
}

bool noise_cost_differs(struct noise_sample a, struct noise_sample b)
{
	const double n = fmax(a.n, a.v > 0) + fmax(b.n, b.v > 0);
	double ra, rb, mean;

	if (a.exposure <= 0 || b.exposure <= 0 || n < LEAST_CALLS)
		return false;
	ra = a.v / a.exposure;
	rb = b.v / b.exposure;
	mean = (a.v + b.v) / n;
	return is_worth_a_line(ra, rb) && fabs(ra - rb) > SIGMAS * mean * sqrt(2 * pooled(n, a, b));
}

/* The logarithm of the duration at RANK, between the known quantiles. */
static double at_rank(const struct noise_durations *d, double rank)
{
	unsigned i = 1;
	double part;

	while (i < NOISE_QUANTILES - 1 && rank > RANKS[i])
		i++;
	part = (fmin(rank, 1) - RANKS[i - 1]) / (RANKS[i] - RANKS[i - 1]);
	return log(fmax(d->at[i - 1], 1)) * (1 - part) + log(fmax(d->at[i], 1)) * part;
}

/* How far off the logarithm of quantile Q may be. */
static double spread(const struct noise_durations *d, unsigned q)
{
	const double off = SIGMAS * sqrt(RANKS[q] * (1 - RANKS[q]) / d->n);
	const double middle = log(fmax(d->at[q], 1));
	const double up = at_rank(d, RANKS[q] + off) - middle;
	/* Nothing is known below the median: it is as uncertain downwards as upwards. */
	const double down = middle - at_rank(d, fmax(RANKS[q] - off, RANKS[0]));

	return fmax(fmax(up, down), 0);
}

/* Whether the times of both traces tell quantile Q of A and B apart. */
static bool is_resolved(const struct noise_durations *a, const struct noise_durations *b,
			unsigned q)
{
	return fabs(a->at[q] - b->at[q]) >
	       fmax(a->step, b->step) + fmax(a->at[q], b->at[q]) * ROUNDED;
}

bool noise_quantile_differs(const struct noise_durations *a, const struct noise_durations *b,
			    unsigned q)
{
	const double beyond = 1 - RANKS[q];
	double apart, sa, sb;

	if (a->n * beyond < LEAST_CALLS - 1e-6 || b->n * beyond < LEAST_CALLS - 1e-6 ||
	    !is_resolved(a, b, q))
		return false;
	sa = spread(a, q);
	sb = spread(b, q);
	apart = fabs(log(fmax(a->at[q], 1)) - log(fmax(b->at[q], 1)));
	return apart > log(BUCKETS) && apart > sqrt(sa * sa + sb * sb);
}
