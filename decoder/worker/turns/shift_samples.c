/*
 * The trace's part of a shift: the newest stretches of user code of each CPU, with their times, by
 * packets alone. Called by replay.c.
 *
 * A trace is read in pieces from its end, each from a PSB on, until there are enough stretches or
 * enough bytes were read.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/packet/sync.h"
#include "decoder/worker/turns/scan.h"
#include "decoder/worker/turns/shift.h"
#include "proto/base.h"

#define PIECE	      (1u << 18) /* bytes; doubled where it has no PSB */
#define MAX_BYTES     (8u << 20) /* of a CPU; and of all together: */
#define ALL_BYTES     (64u << 20)
#define ALL_SAMPLES   200000u
#define LEAST_SAMPLES 500u
#define LEAST_BYTES   (1u << 18)
/* A place between packets is known to a tick, times are rounded to ns on both sides. */
#define SLACK_TICKS 2u
#define SLACK_NS    1u

struct collector {
	const struct bundle *bundle;
	const struct manifest *manifest;
	const struct tscmap *clock;
	struct shift_sample *list;
	size_t n;
	struct shift_sample *ring; /* of a piece: its newest */
	size_t room;		   /* of the ring */
	struct scan scan;
};

static bool take(const struct collector *c, const struct scan_stretch *s, struct shift_sample *ret)
{
	uint64_t lo, hi, leave = MAX_OF(s->leave_lo, s->enter_lo);

	if (s->enter_lo <= SLACK_TICKS || s->enter_hi >= UINT64_MAX - SLACK_TICKS ||
	    scan_is_kernel(s->ip))
		return false;
	lo = tscmap_ns(c->clock, s->enter_lo - SLACK_TICKS);
	hi = tscmap_ns(c->clock, s->enter_hi + SLACK_TICKS);
	leave = tscmap_ns(c->clock, leave - SLACK_TICKS);
	if (lo == MANIFEST_ABSENT || hi == MANIFEST_ABSENT || leave == MANIFEST_ABSENT ||
	    lo < SLACK_NS || hi > UINT64_MAX - SLACK_NS || hi < lo)
		return false;
	*ret = (struct shift_sample){.enter_lo = lo - SLACK_NS,
				     .enter_hi = hi + SLACK_NS,
				     .leave_lo = MAX_OF(leave, lo) - SLACK_NS,
				     .ip = s->ip};
	return true;
}

/* The stretches between two PSBs, the newest WANT of them. */
static void read_piece(struct collector *c, uint32_t cpu, size_t want)
{
	struct scan_stretch stretch;
	struct shift_sample sample;
	size_t seen = 0;

	while (scan_next(&c->scan, &stretch, NULL))
		if (take(c, &stretch, &sample)) {
			sample.cpu = cpu;
			c->ring[seen++ % want] = sample;
		}
	for (size_t i = seen - MIN_OF(seen, want); i < seen; i++)
		c->list[c->n++] = c->ring[i % want];
}

static void configure(const struct manifest *m, struct flow_config *config)
{
	*config = (struct flow_config){
		.mtc_period = m->mtc_period,
		.max_nonturbo_ratio = m->max_nonturbo_ratio,
		.tsc_art_num = m->tsc_art_num,
		.tsc_art_den = m->tsc_art_den,
	};
	if (m->have_cpu && m->cpu_intel) {
		config->cpu_family = m->cpu_family;
		config->cpu_model = m->cpu_model;
		config->cpu_stepping = m->cpu_stepping;
	}
}

static void collect_cpu(struct collector *c, uint32_t cpu, size_t max_bytes)
{
	struct flow_config config;
	size_t end, piece = PIECE, have = c->n;

	configure(c->manifest, &config);
	config.trace = bundle_cpu(c->bundle, cpu, &config.size);
	end = config.size;
	while (end > 0 && c->n - have < c->room && config.size - end < max_bytes) {
		size_t from = end - MIN_OF(end, piece);
		const uint8_t *psb = sync_find(config.trace + from, config.trace + end);

		if (psb == NULL && (from == 0 || piece >= max_bytes))
			break;
		if (psb == NULL) {
			piece *= 2;
			continue;
		}
		from = (size_t)(psb - config.trace);
		scan_start(&c->scan, &config, from, end);
		read_piece(c, cpu, c->room - (c->n - have));
		end = from;
	}
}

/* Where an offset was given, that is what is wanted. */
static bool has_offset(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_pevents; i++)
		if (m->pevents[i].tsc_offset != 0)
			return true;
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct shift_sample *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->enter_lo < y->enter_lo ? -1 : x->enter_lo > y->enter_lo;
}

/* The newest ones of each CPU of BUNDLE, at least SHIFT_MAX_SAMPLES of few CPUs, in order of CPU
 * and time: *ret for the caller to free. 0 or -ENOMEM. */
static int shift_collect(const struct bundle *bundle, const struct tscmap *clock,
			 struct shift_sample **ret, size_t *ret_n)
{
	const struct manifest *m = bundle_manifest(bundle);
	size_t n = MAX_OF(m->n_cpus, (size_t)1);
	size_t room = MIN_OF(SHIFT_MAX_SAMPLES, MAX_OF(ALL_SAMPLES / n, (size_t)LEAST_SAMPLES));
	size_t bytes = MIN_OF(MAX_BYTES, MAX_OF(ALL_BYTES / n, (size_t)LEAST_BYTES));
	CLEANUP_FREE struct collector *c = calloc(1, sizeof(*c));
	CLEANUP_FREE struct shift_sample *ring = calloc(room, sizeof(*ring));
	CLEANUP_FREE struct shift_sample *list = calloc(room * n, sizeof(*list));

	if (c == NULL || ring == NULL || list == NULL)
		return -ENOMEM;
	*c = (struct collector){.bundle = bundle,
				.manifest = m,
				.clock = clock,
				.list = list,
				.ring = ring,
				.room = room};
	for (size_t i = 0; i < m->n_cpus; i++)
		collect_cpu(c, (uint32_t)i, bytes);
	qsort(list, c->n, sizeof(*list), by_time);
	*ret_n = c->n;
	*ret = list;
	list = NULL;
	return 0;
}

/* When the trace of CPU begins, or before that; 0: not known. */
static uint64_t begin_of(const struct bundle *bundle, uint32_t cpu, const struct tscmap *clock)
{
	size_t size;
	const uint8_t *trace = bundle_cpu(bundle, cpu, &size), *psb;
	uint64_t tsc, ns;

	psb = sync_find_tsc(trace, trace + size, 1);
	if (psb == NULL || !sync_tsc(psb, trace + size, &tsc))
		return 0;
	ns = tscmap_ns(clock, tsc - MIN_OF(tsc, (uint64_t)SLACK_TICKS));
	return ns == MANIFEST_ABSENT ? 0 : ns - MIN_OF(ns, (uint64_t)SLACK_NS);
}

/* Too few turns lie in the trace for a shift to explain enough of them, whatever the samples are.
 */
static bool is_hopeless(const struct bundle *bundle, const struct turns *turns,
			const struct tscmap *clock)
{
	size_t n = 0;

	for (size_t i = 0; i < turns->n_cpus && n < SHIFT_TURNS; i++)
		n += shift_turns_since(&turns->cpus[i], begin_of(bundle, (uint32_t)i, clock));
	return n < SHIFT_TURNS;
}

static int find(const struct bundle *bundle, const struct turns *turns,
		const struct timeline *timeline, const struct tscmap *clock, struct shift *ret)
{
	CLEANUP_FREE struct shift_sample *samples = NULL;
	struct shift_question question = {.turns = turns, .timeline = timeline};
	int result;

	if (!clock->known || has_offset(bundle_manifest(bundle)) ||
	    is_hopeless(bundle, turns, clock))
		return 0;
	result = shift_collect(bundle, clock, &samples, &question.n);
	question.samples = samples;
	return result == 0 ? shift_find(&question, ret) : result;
}

int shift_tell(const struct shift *s, size_t n, struct tscmap *clock, struct tscmap **ret_clocks)
{
	struct tscmap *clocks = calloc(n + 1, sizeof(*clocks));

	*ret_clocks = clocks;
	if (clocks == NULL)
		return -ENOMEM;
	clock->ahead = s->ns;
	clock->doubt = s->doubt;
	for (size_t i = 0; i < n; i++) {
		clocks[i] = *clock;
		if (s->cpus == NULL)
			continue;
		clocks[i].ahead = s->cpus[i].ns;
		clocks[i].doubt = s->cpus[i].doubt;
	}
	return 0;
}

int shift_clocks(const struct bundle *bundle, const struct turns *turns,
		 const struct timeline *timeline, struct tscmap *clock, struct shift *ret,
		 struct tscmap **ret_clocks)
{
	int result;

	*ret = (struct shift){0};
	*ret_clocks = NULL;
	result = find(bundle, turns, timeline, clock, ret);
	return result == 0 ? shift_tell(ret, bundle_manifest(bundle)->n_cpus, clock, ret_clocks)
			   : result;
}
