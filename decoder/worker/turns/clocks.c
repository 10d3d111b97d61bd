/*
 * Converts between TSC ticks and the sideband's clock, and has the clocks of a bundle corrected by
 * the shift that its traces show.
 *
 * For the shift the newest stretches of user code of each CPU are collected, with their times, by
 * packets alone. A trace is read in pieces from its end, each from a PSB on, until there are enough
 * stretches or enough bytes were read.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/packet/packet.h"
#include "decoder/worker/turns/scan.h"
#include "decoder/worker/turns/shift.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define PIECE	      (1u << 18)  /* bytes; doubled where it has no PSB */
#define MAX_BYTES     (8u << 20)  /* of a CPU */
#define ALL_BYTES     (64u << 20) /* of all CPUs */
#define ALL_SAMPLES   200000u
#define LEAST_SAMPLES 500u
#define LEAST_BYTES   (1u << 18)

/* --- Ticks and nanoseconds --- */

/* The TSC at NS, all bits; MANIFEST_ABSENT: none. */
static uint64_t whole_tsc(const struct tscmap *map, uint64_t ns)
{
	unsigned __int128 tsc;

	if (!map->known)
		return MANIFEST_ABSENT;
	ns -= map->zero + (uint64_t)map->ahead;
	tsc = ((unsigned __int128)ns << map->shift) / map->mult;
	return tsc < MANIFEST_ABSENT ? (uint64_t)tsc : MANIFEST_ABSENT;
}

/* The TSC whose lower bits are those of TSC, nearest to map->near. */
static uint64_t extend(const struct tscmap *map, uint64_t tsc)
{
	uint64_t later = (tsc - map->near) & PT_TSC_MASK, earlier = PT_TSC_MASK + 1 - later;

	if (map->near == 0 || tsc == 0)
		return tsc;
	if (later >= PT_TSC_WRAP && earlier <= map->near)
		return map->near - earlier;
	return map->near <= UINT64_MAX - later ? map->near + later : tsc;
}

void tscmap_init(struct tscmap *map, const struct manifest *m)
{
	uint64_t near;

	map->known = m->have_clock && m->time_mult > 0 && m->time_shift < 64;
	map->shift = m->time_shift;
	map->mult = m->time_mult;
	map->zero = m->time_zero;
	map->ahead = 0;
	map->doubt = 0;
	near = m->perf_ns == MANIFEST_ABSENT ? m->tsc : whole_tsc(map, m->perf_ns);
	map->near = near == MANIFEST_ABSENT ? 0 : near;
}

uint64_t tscmap_span(const struct tscmap *map, uint64_t ticks)
{
	unsigned __int128 ns;

	if (!map->known)
		return MANIFEST_ABSENT;
	ns = ((unsigned __int128)ticks * map->mult) >> map->shift;
	return ns < MANIFEST_ABSENT ? (uint64_t)ns : MANIFEST_ABSENT;
}

uint64_t tscmap_ns(const struct tscmap *map, uint64_t tsc)
{
	uint64_t span = tscmap_span(map, extend(map, tsc));

	if (span == MANIFEST_ABSENT)
		return MANIFEST_ABSENT;
	/* time_zero is signed in effect: it is added modulo 2^64, as the kernel's recipe does. */
	return map->zero + span + (uint64_t)map->ahead;
}

uint64_t tscmap_tsc(const struct tscmap *map, uint64_t ns)
{
	uint64_t tsc = whole_tsc(map, ns);

	return map->near == 0 || tsc == MANIFEST_ABSENT ? tsc : tsc & PT_TSC_MASK;
}

uint64_t tscmap_not_before(const struct tscmap *map, uint64_t tsc)
{
	uint64_t ns = tscmap_ns(map, tsc - MIN_OF(tsc, (uint64_t)TSCMAP_SLACK_TICKS));

	if (tsc == 0 || ns == MANIFEST_ABSENT)
		return 0;
	return ns - MIN_OF(ns, TSCMAP_SLACK_NS + map->doubt);
}

uint64_t tscmap_not_after(const struct tscmap *map, uint64_t tsc)
{
	uint64_t slack = TSCMAP_SLACK_NS + map->doubt, ns = MANIFEST_ABSENT;

	if (tsc <= UINT64_MAX - TSCMAP_SLACK_TICKS)
		ns = tscmap_ns(map, tsc + TSCMAP_SLACK_TICKS);
	return ns > UINT64_MAX - slack ? UINT64_MAX : ns + slack;
}

/* --- The newest stretches of each CPU --- */

struct collector {
	const struct bundle *bundle;
	const struct manifest *manifest;
	const struct tscmap *clock;
	struct shift_sample *list;
	size_t n;
	struct shift_sample *ring; /* the newest stretches of a piece */
	size_t room;		   /* of the ring */
	struct scan scan;
};

static bool take(const struct collector *c, const struct scan_stretch *s, struct shift_sample *ret)
{
	uint64_t lo, hi, leave = MAX_OF(s->leave_lo, s->enter_lo);

	if (s->enter_lo <= TSCMAP_SLACK_TICKS || s->enter_hi >= UINT64_MAX - TSCMAP_SLACK_TICKS ||
	    scan_is_kernel(s->ip))
		return false;
	lo = tscmap_ns(c->clock, s->enter_lo - TSCMAP_SLACK_TICKS);
	hi = tscmap_ns(c->clock, s->enter_hi + TSCMAP_SLACK_TICKS);
	leave = tscmap_ns(c->clock, leave - TSCMAP_SLACK_TICKS);
	if (lo == MANIFEST_ABSENT || hi == MANIFEST_ABSENT || leave == MANIFEST_ABSENT ||
	    lo < TSCMAP_SLACK_NS || hi > UINT64_MAX - TSCMAP_SLACK_NS || hi < lo)
		return false;
	*ret = (struct shift_sample){.enter_lo = lo - TSCMAP_SLACK_NS,
				     .enter_hi = hi + TSCMAP_SLACK_NS,
				     .leave_lo = MAX_OF(leave, lo) - TSCMAP_SLACK_NS,
				     .ip = s->ip};
	return true;
}

static void collect_cpu(struct collector *c, uint32_t cpu, size_t max_bytes)
{
	const struct manifest *m = c->manifest;
	struct flow_config config = {
		.mtc_period = m->mtc_period,
		.max_nonturbo_ratio = m->max_nonturbo_ratio,
		.tsc_art_num = m->tsc_art_num,
		.tsc_art_den = m->tsc_art_den,
	};
	size_t end, piece = PIECE, have = c->n, want, seen;
	struct scan_stretch stretch;
	struct shift_sample sample;

	if (m->have_cpu && m->cpu_intel) {
		config.cpu_family = m->cpu_family;
		config.cpu_model = m->cpu_model;
		config.cpu_stepping = m->cpu_stepping;
	}
	config.trace = bundle_cpu(c->bundle, cpu, &config.size);
	end = config.size;
	while (end > 0 && c->n - have < c->room && config.size - end < max_bytes) {
		size_t from = end - MIN_OF(end, piece);
		const uint8_t *psb = sync_find(config.trace + from, config.trace + end);

		if (!psb && (from == 0 || piece >= max_bytes))
			break;
		if (!psb) {
			piece *= 2;
			continue;
		}
		from = (size_t)(psb - config.trace);
		scan_start(&c->scan, &config, from, end);
		/* The newest stretches between these two PSBs. */
		want = c->room - (c->n - have);
		seen = 0;
		while (scan_next(&c->scan, &stretch, NULL))
			if (take(c, &stretch, &sample)) {
				sample.cpu = cpu;
				c->ring[seen++ % want] = sample;
			}
		for (size_t i = seen - MIN_OF(seen, want); i < seen; i++)
			c->list[c->n++] = c->ring[i % want];
		end = from;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct shift_sample *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->enter_lo < y->enter_lo ? -1 : x->enter_lo > y->enter_lo;
}

/* The newest stretches of each CPU of BUNDLE, up to SHIFT_MAX_SAMPLES of a CPU and fewer where CPUs
 * are many, in order of CPU and time. *ret is the caller's. 0 or -ENOMEM. */
static int collect(const struct bundle *bundle, const struct tscmap *clock,
		   struct shift_sample **ret, size_t *ret_n)
{
	const struct manifest *m = bundle_manifest(bundle);
	size_t n = MAX_OF(m->n_cpus, (size_t)1);
	size_t room = MIN_OF(SHIFT_MAX_SAMPLES, MAX_OF(ALL_SAMPLES / n, (size_t)LEAST_SAMPLES));
	size_t bytes = MIN_OF(MAX_BYTES, MAX_OF(ALL_BYTES / n, (size_t)LEAST_BYTES));
	CLEANUP_FREE struct collector *c = calloc(1, sizeof(*c));
	CLEANUP_FREE struct shift_sample *ring = calloc(room, sizeof(*ring));
	CLEANUP_FREE struct shift_sample *list = calloc(room * n, sizeof(*list));

	if (!c || !ring || !list)
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
	list = NULL; /* handed over */
	return 0;
}

/* --- The clocks of a bundle --- */

uint64_t shift_begin_of(const struct bundle *bundle, size_t cpu, const struct tscmap *clock)
{
	size_t size;
	const uint8_t *trace = bundle_cpu(bundle, cpu, &size), *psb;
	uint64_t tsc;

	psb = sync_find_tsc(trace, trace + size, 1);
	if (!psb || !sync_tsc(psb, trace + size, &tsc))
		return 0;
	return tscmap_not_before(clock, tsc);
}

static int find(const struct bundle *bundle, const struct turns *turns,
		const struct timeline *timeline, const struct tscmap *clock, struct shift *ret)
{
	CLEANUP_FREE struct shift_sample *samples = NULL;
	struct shift_question question = {.turns = turns, .timeline = timeline};
	const struct manifest *m = bundle_manifest(bundle);
	size_t n = 0;
	int result;

	if (!clock->known)
		return 0;
	/* An offset that was given to the recorder is the one to use. */
	for (size_t i = 0; i < m->n_pevents; i++)
		if (m->pevents[i].tsc_offset != 0)
			return 0;
	/* With so few turns in the trace no shift can explain enough of them. */
	for (size_t i = 0; i < m->n_cpus && n < SHIFT_TURNS; i++)
		n += shift_turns_since(&turns->cpus[i], shift_begin_of(bundle, i, clock));
	if (n < SHIFT_TURNS)
		return 0;
	result = collect(bundle, clock, &samples, &question.n);
	question.samples = samples;
	return result == 0 ? shift_find(&question, ret) : result;
}

int shift_tell(const struct shift *s, size_t n, struct tscmap *clock, struct tscmap **ret_clocks)
{
	struct tscmap *clocks = calloc(n + 1, sizeof(*clocks));

	assert(!s->cpus || n <= s->n_cpus);
	*ret_clocks = clocks;
	if (!clocks)
		return -ENOMEM;
	clock->ahead = s->ns;
	clock->doubt = s->doubt;
	for (size_t i = 0; i < n; i++) {
		clocks[i] = *clock;
		if (!s->cpus)
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
