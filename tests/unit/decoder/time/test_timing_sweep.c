/*
 * decoder/time/timing against traces of the made-up processor (clocked.h): each interval must hold
 * the time at which the event happened, whatever happens to the clocks.
 *
 *   test_timing_sweep [--events=N] [--seed=N]
 *
 * Goes through random worlds until N events were checked (1,000,000 without the option), and prints
 * how wide the intervals are for each kind of trace.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/time/timing.h"
#include "proto/base.h"
#include "tests/unit/decoder/time/clocked.h"

#define STEPS	   2000u
#define FAILURES   10u /* that are printed */
#define PER_OCTAVE 16u /* classes of widths */
#define CLASSES	   (40u * PER_OCTAVE)

static uint64_t events_wanted = 1000000, first_seed = 1;

enum kind { TSC_ONLY, MTC, CYC, MTC_CYC, KINDS };

struct widths {
	uint64_t n, unbounded, classes[CLASSES];
};

struct sweep {
	struct widths widths[KINDS];
	uint64_t events, wrong, worst, worlds;
};

static void add_width(struct widths *w, uint64_t lo, uint64_t hi)
{
	double octave;

	w->n++;
	if (lo == 0 || hi == UINT64_MAX) {
		w->unbounded++;
		return;
	}
	octave = log2((double)(hi - lo) + 1);
	w->classes[MIN_OF((unsigned int)(octave * PER_OCTAVE), CLASSES - 1)]++;
}

/* The width that this share of the intervals does not exceed. */
static double quantile(const struct widths *w, double share)
{
	double left = share * (double)(w->n - w->unbounded);
	unsigned int i = 0;

	while (i < CLASSES - 1 && (left -= (double)w->classes[i]) > 0)
		i++;
	return exp2((double)i / PER_OCTAVE) - 1;
}

static void complain(const struct sweep *s, uint64_t seed, const struct clocked_event *e,
		     uint64_t lo, uint64_t hi)
{
	if (s->wrong <= FAILURES)
		printf("# seed %llu offset %#llx: %llu..%llu is not within %llu..%llu\n",
		       (unsigned long long)seed, (unsigned long long)e->offset,
		       (unsigned long long)e->first, (unsigned long long)e->last,
		       (unsigned long long)lo, (unsigned long long)hi);
}

static void check(struct sweep *s, uint64_t seed, const struct clocked *c)
{
	enum kind kind = (c->world.mtc ? MTC : TSC_ONLY) + (c->world.cyc ? CYC : TSC_ONLY);
	struct timing t;

	timing_init(&t, c->bytes, c->size, 0, &c->config);
	for (size_t i = 0; i < c->n; i++) {
		const struct clocked_event *e = &c->events[i];
		uint64_t lo, hi;

		timing_at(&t, e->offset, &lo, &hi);
		s->events++;
		add_width(&s->widths[kind], lo, hi);
		if (lo <= e->first && e->last <= hi && e->first <= timing_first(&t))
			continue;
		s->wrong++;
		s->worst = MAX_OF(s->worst, lo > e->first ? lo - e->first : 0);
		s->worst = MAX_OF(s->worst, e->last > hi ? e->last - hi : 0);
		complain(s, seed, e, lo, hi);
	}
}

static void each_interval_holds_the_time(void **state)
{
	static const char *const names[KINDS] = {"TSC", "MTC", "CYC", "MTC and CYC"};
	static struct sweep s;

	(void)state;
	for (uint64_t seed = first_seed; s.events < events_wanted; seed++) {
		struct clocked_world world;
		struct clocked c;

		clocked_any_world(seed, &world);
		clocked_make(seed, &world, STEPS, &c);
		check(&s, seed, &c);
		clocked_free(&c);
		s.worlds++;
	}
	for (unsigned int i = 0; i < KINDS; i++)
		printf("# %s: %llu events, width %.0f (median), %.0f (99 %%); %llu without bound\n",
		       names[i], (unsigned long long)s.widths[i].n, quantile(&s.widths[i], 0.5),
		       quantile(&s.widths[i], 0.99), (unsigned long long)s.widths[i].unbounded);
	printf("# %llu of %llu events in %llu worlds lie outside, by up to %llu ticks\n",
	       (unsigned long long)s.wrong, (unsigned long long)s.events,
	       (unsigned long long)s.worlds, (unsigned long long)s.worst);
	assert_int_equal(s.wrong, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_interval_holds_the_time),
	};

	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "--events=%" SCNu64, &events_wanted) != 1 &&
		    sscanf(argv[i], "--seed=%" SCNu64, &first_seed) != 1) {
			fprintf(stderr, "usage: test_timing_sweep [--events=N] [--seed=N]\n");
			return 2;
		}
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
