/*
 * Finds the shift of the trace's clock against the sideband's, from samples.
 *
 * Execution at a PSB, and where tracing goes on, must be in code of a thread that had the CPU at
 * that time. Only the newest places where tracing went on are used. shift.c finds the shift; its
 * samples from here are fewer than those of a decode, but are had at once.
 */
#include "decoder/worker/skim/skim.h"

#include <stdlib.h>

#include "decoder/packet/event.h"
#include "decoder/worker/skim/skim_read.h"
#include "decoder/worker/turns/scan.h"
#include "proto/base.h"

#define ALL_SAMPLES   ((size_t)8192)	/* of one kind, of all CPUs together */
#define LEAST_SAMPLES ((size_t)64)	/* of one kind, of each CPU */
#define ALL_TAILS     ((size_t)8 << 20) /* bytes of all CPUs together */
#define MAX_TAIL      ((size_t)1 << 20) /* bytes of each CPU */
/* A place between packets is known to a tick; times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u
#define NEWEST	    (4u << 20) /* bytes of each CPU */

/* Collects the newest samples of each CPU. */
struct collector {
	const struct replay *replay;
	struct shift_sample *list;
	size_t n;
	struct shift_sample *ring;
	size_t room; /* of the ring */
	size_t most; /* newest bytes of each CPU whose PSBs are read */
	size_t tail; /* newest bytes of each CPU whose packets are all read */
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
	config.seams = replay_seams(r, index, &config.n_seams);
	return config;
}

/* Adds the newest samples of KIND that the reader gives. */
static void collect_kind(struct collector *c, size_t index, const struct skim_config *config,
			 enum skim_kind kind)
{
	struct skim_reader reader;
	struct skim_sample s;
	size_t n = 0;

	skim_reader_init(&reader, config);
	while (skim_reader_next(&reader, &s)) {
		struct shift_sample *to = &c->ring[n % c->room];

		if (s.kind != kind || !take(c, &s, to))
			continue;
		to->cpu = (uint32_t)index;
		n++;
	}
	for (size_t i = n - MIN_OF(n, c->room); i < n; i++)
		c->list[c->n++] = c->ring[i % c->room];
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
	size_t n = c->replay->manifest->n_cpus;

	c->room = MAX_OF(ALL_SAMPLES / MAX_OF(n, (size_t)1), LEAST_SAMPLES);
	c->tail = MIN_OF(MAX_TAIL, ALL_TAILS / MAX_OF(n, (size_t)1));
	c->ring = calloc(c->room, sizeof(*c->ring));
	c->list = calloc(2 * c->room * n + 1, sizeof(*c->list));
	if (!c->ring || !c->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct skim_config config = config_of(c->replay, i);

		config.start = config.size - MIN_OF(config.size, c->most);
		config.psb_only = true;
		collect_kind(c, i, &config, SKIM_PSB);
		/* A place where tracing goes on says most, because it is close to a switch; the
		 * newest such places are enough. */
		config.psb_only = false;
		config.start = config.size - MIN_OF(config.size, c->tail);
		collect_kind(c, i, &config, SKIM_ENABLE);
	}
	qsort(c->list, c->n, sizeof(*c->list), by_time);
	return 0;
}

static int find_clocks(struct replay *r, size_t most)
{
	struct collector c = {.replay = r, .most = most};
	bool given = false;
	size_t turns = 0;
	int result = 0;

	/* An offset that the user gave stays. */
	for (size_t i = 0; i < r->manifest->n_pevents; i++)
		given |= r->manifest->pevents[i].tsc_offset != 0;
	/* Fewer turns than SHIFT_TURNS decide nothing, whatever the samples are. */
	for (size_t i = 0; i < r->manifest->n_cpus; i++)
		turns += r->turns.cpus[i].n;
	if (r->clock.known && !given && turns >= SHIFT_TURNS) {
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
