/*
 * Where the PSBs of a trace say that execution was, and when, must be code of a thread that had the
 * CPU then; so where tracing went on, of which the newest are looked at. Samples for shift.c, fewer
 * than a decode has, but had at once. Called by skim.c.
 */
#include "decoder/worker/skim/skim_shift.h"

#include <stdlib.h>

#include "decoder/packet/event.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/turns/scan.h"
#include "proto/base.h"

/* Of a kind, of all CPUs together; of each. */
#define ALL_SAMPLES   ((size_t)8192)
#define LEAST_SAMPLES ((size_t)64)
/* Bytes, of all CPUs together; of each. */
#define ALL_TAILS ((size_t)8 << 20)
#define MAX_TAIL  ((size_t)1 << 20)
/* A place between packets is known to a tick, times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u
#define NEWEST	    (4u << 20)

/* The newest ones of each CPU. */
struct collector {
	const struct replay *replay;
	struct shift_sample *list;
	size_t n;
	struct shift_sample *ring;
	size_t room; /* of the ring */
	size_t most; /* newest bytes of each CPU that are looked at */
	size_t tail; /* and of which all packets are read */
};

static bool take(const struct collector *c, const struct skim_sample *s, struct shift_sample *ret)
{
	uint64_t lo, hi;

	if (!s->has_ip || s->guest || scan_is_kernel(s->ip) || s->tsc_lo <= SLACK_TICKS ||
	    s->tsc_hi >= UINT64_MAX - SLACK_TICKS)
		return false;
	lo = tscmap_ns(&c->replay->clock, s->tsc_lo - SLACK_TICKS);
	hi = tscmap_ns(&c->replay->clock, s->tsc_hi + SLACK_TICKS);
	if (lo == MANIFEST_ABSENT || hi == MANIFEST_ABSENT || lo < SLACK_NS ||
	    hi > UINT64_MAX - SLACK_NS || hi < lo)
		return false;
	*ret = (struct shift_sample){.enter_lo = lo - SLACK_NS,
				     .enter_hi = hi + SLACK_NS,
				     .leave_lo = lo - SLACK_NS,
				     .ip = s->ip};
	return true;
}

static struct skim_config config_of(const struct replay *r, size_t index)
{
	const struct manifest *m = r->manifest;
	bool known = m->have_cpu && m->cpu_intel;
	struct skim_config config = {
		.errata = errata_for(known ? m->cpu_family : 0, known ? m->cpu_model : 0),
		.timing = {.mtc_period = m->mtc_period,
			   .max_nonturbo_ratio = m->max_nonturbo_ratio,
			   .tsc_art_num = m->tsc_art_num,
			   .tsc_art_den = m->tsc_art_den},
	};

	config.timing.quirks = event_quirks(&config.errata);
	config.timing.skl168 = config.errata.skl168;
	config.trace = bundle_cpu(r->bundle, index, &config.size);
	return config;
}

/* The newest samples of that kind that CONFIG's reader gives. */
static void collect_kind(struct collector *c, size_t index, const struct skim_config *config,
			 enum skim_kind kind)
{
	struct skim_reader reader;
	struct skim_sample s;
	size_t i, n = 0;

	skim_reader_init(&reader, config);
	while (skim_reader_next(&reader, &s)) {
		struct shift_sample *to = &c->ring[n % c->room];

		if (s.kind != kind || !take(c, &s, to))
			continue;
		to->cpu = (uint32_t)index;
		n++;
	}
	for (i = n - MIN_OF(n, c->room); i < n; i++)
		c->list[c->n++] = c->ring[i % c->room];
}

/* Where tracing goes on says most, as that is near the switches; of that the newest is enough. */
static void collect_cpu(struct collector *c, size_t index)
{
	struct skim_config config = config_of(c->replay, index);

	config.start = config.size - MIN_OF(config.size, c->most);
	config.psb_only = true;
	collect_kind(c, index, &config, SKIM_PSB);
	config.psb_only = false;
	config.start = config.size - MIN_OF(config.size, c->tail);
	collect_kind(c, index, &config, SKIM_ENABLE);
}

static int by_time(const void *a, const void *b)
{
	const struct shift_sample *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->enter_lo < y->enter_lo ? -1 : x->enter_lo > y->enter_lo;
}

static int collect(struct collector *c)
{
	size_t i, n = c->replay->manifest->n_cpus;

	c->room = MAX_OF(ALL_SAMPLES / MAX_OF(n, (size_t)1), LEAST_SAMPLES);
	c->tail = MIN_OF(MAX_TAIL, ALL_TAILS / MAX_OF(n, (size_t)1));
	c->ring = calloc(c->room, sizeof(*c->ring));
	c->list = calloc(2 * c->room * n + 1, sizeof(*c->list));
	if (c->ring == NULL || c->list == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		collect_cpu(c, i);
	qsort(c->list, c->n, sizeof(*c->list), by_time);
	return 0;
}

/* Where an offset was given, that is what is wanted. */
static bool is_given(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_pevents; i++)
		if (m->pevents[i].tsc_offset != 0)
			return true;
	return false;
}

/* So few turns explain nothing, whatever the samples are. */
static bool is_hopeless(const struct replay *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->manifest->n_cpus; i++)
		n += r->turns.cpus[i].n;
	return n < SHIFT_TURNS;
}

static int find_clocks(struct replay *r, size_t most)
{
	struct collector c = {.replay = r, .most = most};
	int result = 0;

	if (r->clock.known && !is_given(r->manifest) && !is_hopeless(r)) {
		result = collect(&c);
		if (result == 0)
			result = shift_find(
				&(struct shift_question){&r->turns, r->timeline, c.list, c.n},
				&r->shift);
	}
	free(c.ring);
	free(c.list);
	return result == 0 ? shift_tell(&r->shift, r->manifest->n_cpus, &r->clock, &r->clocks)
			   : result;
}

int skim_clocks(struct replay *r)
{
	return find_clocks(r, SIZE_MAX);
}

int skim_clocks_newest(struct replay *r)
{
	return find_clocks(r, NEWEST);
}
