/*
 * The made-up processor: clocks, enables, and the packets that they make.
 */
#include "tests/unit/decoder/time/clocked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define COUNTER_FULL 4095u /* of a counter with 12 bits */

struct core {
	struct clocked_world world;
	struct timing_config config;
	uint64_t random;
	double ratio_excess, base_excess; /* what the rounded ratios omit */
	/* Clocks. */
	double time, cycles; /* TSC; core cycles since the beginning */
	uint32_t cbr;
	uint64_t next_ctc; /* of the next MTC */
	/* Enables. */
	bool trigger, context;
	bool dropping; /* the internal buffer has overflowed */
	/* The packets' state. */
	uint64_t cyc_base;  /* the cycle from which the next CYC counts */
	uint64_t sent_base; /* the same for the last CYC that was sent */
	size_t psb_at;	    /* bytes at the last PSB */
	unsigned int bits, lose_mtcs;
	uint64_t first_bit, last_bit, first_bit_cycle;
	bool force; /* the CYC before was alone, so the next eligible packet has one of its own */
	bool full;  /* there is no more room */
	/* The packets that were written. */
	uint8_t *bytes;
	size_t size, room;
	struct clocked_event *events;
	size_t n, n_room;
};

static uint64_t any(struct core *c, uint64_t n)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (c->random >> 11) % n;
}

static bool chance(struct core *c, uint32_t of_10000)
{
	return any(c, 10000) < of_10000;
}

/* A number up to MAX, of any order of magnitude. */
static double any_size(struct core *c, double max)
{
	return exp((double)any(c, 1000000) / 1e6 * log(max));
}

/* --- Bytes --- */

static void put(struct core *c, const void *bytes, size_t n)
{
	if (c->dropping || !c->trigger)
		return;
	c->full = c->full || c->size + n + 4096 > c->room;
	if (c->size + n > c->room)
		abort();
	memcpy(c->bytes + c->size, bytes, n);
	c->size += n;
}
#define PUT(c, ...) put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void note(struct core *c, uint64_t first, uint64_t last)
{
	if (c->dropping)
		return;
	if (c->n == c->n_room) {
		c->n_room = 2 * c->n_room + 1024;
		c->events = realloc(c->events, c->n_room * sizeof(*c->events));
		if (!c->events)
			abort();
	}
	c->events[c->n++] = (struct clocked_event){c->size, first, last};
}

/* A packet that is eligible for a CYC comes in the cycle CYCLE. */
static void put_cyc(struct core *c, uint64_t cycle)
{
	uint64_t n = cycle - c->cyc_base;
	uint8_t bytes[12] = {0};
	size_t size = 1;

	if (!c->world.cyc || !c->trigger || n == 0 || (n < c->world.threshold && !c->force))
		return;
	c->cyc_base = cycle;
	c->force = false;
	if (!c->dropping)
		c->sent_base = cycle;
	bytes[0] = (uint8_t)(3 | (n & 31) << 3 | (n > 31 ? 4 : 0));
	for (n >>= 5; n != 0; n >>= 7)
		bytes[size++] = (uint8_t)((n & 127) << 1 | (n > 127));
	put(c, bytes, size);
}

static void eligible(struct core *c)
{
	put_cyc(c, (uint64_t)c->cycles);
}

/* Writes the TNT, whose CYC tells the time of its first branch. */
static void flush(struct core *c)
{
	if (c->bits == 0)
		return;
	put_cyc(c, MAX_OF(c->first_bit_cycle, c->cyc_base));
	note(c, c->first_bit, c->last_bit);
	PUT(c, (uint8_t)(1u << (c->bits + 1)));
	c->bits = 0;
}

/* --- Clocks --- */

/* Cycles per tick, now. */
static double speed(const struct core *c)
{
	double whole = 3300.0 * c->config.max_nonturbo_ratio, phase, speed;

	speed = (c->cbr + c->ratio_excess) / (c->config.max_nonturbo_ratio + c->base_excess);
	if (!c->world.spread)
		return speed;
	phase = c->time / whole - floor(c->time / whole);
	return speed * (1 - 0.005 * (phase < 0.5 ? 2 * phase : 2 - 2 * phase));
}

static double ctc_edge(const struct core *c, uint64_t ctc)
{
	return (double)ctc * c->config.tsc_art_num / c->config.tsc_art_den;
}

static uint64_t ctc_now(const struct core *c)
{
	return (uint64_t)(c->time * c->config.tsc_art_den / c->config.tsc_art_num);
}

static void aim_at_next_mtc(struct core *c)
{
	c->next_ctc = ((ctc_now(c) >> c->world.period) + 1) << c->world.period;
}

/* Time passes while the core's clock stands. */
static void stand(struct core *c, double ticks)
{
	c->time += ticks;
	aim_at_next_mtc(c);
}

static bool has_lone_cycs(const struct core *c)
{
	return c->world.cyc && c->world.lone_cyc && c->trigger &&
	       (c->world.cyc_before_psb || c->world.cyc_before_tsc);
}

/* The core's clock runs. */
static void run_to(struct core *c, double time)
{
	while (c->time < time) {
		double step = MIN_OF(time - c->time, 200.0), faster = speed(c);
		double left = (double)(c->cyc_base + COUNTER_FULL) - c->cycles;

		if (has_lone_cycs(c) && left / faster < step)
			step = MAX_OF(left, 0.0) / faster + 1e-6;
		c->cycles += step * faster;
		c->time += step;
		if (has_lone_cycs(c) && (uint64_t)c->cycles - c->cyc_base >= COUNTER_FULL) {
			flush(c);
			eligible(c);
			c->force = true;
		}
	}
}

static void mtc(struct core *c)
{
	uint8_t payload = (uint8_t)(c->next_ctc >> c->world.period);

	run_to(c, ctc_edge(c, c->next_ctc));
	c->next_ctc += UINT64_C(1) << c->world.period;
	if (c->lose_mtcs > 1) {
		c->lose_mtcs--;
		return;
	}
	/* Less than 256 periods are lost between two MTCs. */
	if (c->lose_mtcs == 0 && chance(c, c->world.lost_mtcs))
		c->lose_mtcs = 2 + (unsigned int)any(c, chance(c, 1000) ? 250 : 3);
	else
		c->lose_mtcs = 0;
	flush(c);
	eligible(c);
	PUT(c, 0x59, payload);
}

static void pass(struct core *c, double ticks)
{
	double to = c->time + ticks;

	while (c->trigger && c->world.mtc && ctc_edge(c, c->next_ctc) <= to && !c->full)
		mtc(c);
	run_to(c, to);
}

/* --- Packets of time and state --- */

static void put_time(struct core *c)
{
	uint64_t tsc = (uint64_t)c->time, ctc = ctc_now(c);
	uint64_t fc = tsc - MIN_OF(tsc, (uint64_t)ctc_edge(c, ctc));

	if (c->world.cyc_before_tsc)
		eligible(c);
	PUT(c, 0x19, (uint8_t)tsc, (uint8_t)(tsc >> 8), (uint8_t)(tsc >> 16), (uint8_t)(tsc >> 24),
	    (uint8_t)(tsc >> 32), (uint8_t)(tsc >> 40), (uint8_t)(tsc >> 48));
	if (c->world.mtc)
		PUT(c, 2, 0x73, (uint8_t)ctc, (uint8_t)(ctc >> 8), 0, (uint8_t)fc,
		    (uint8_t)(fc >> 8));
}

static void put_cbr(struct core *c)
{
	PUT(c, 2, 3, (uint8_t)c->cbr, 0);
}

static void put_psb(struct core *c)
{
	uint8_t bytes[16];

	flush(c);
	if (c->world.cyc_before_psb)
		eligible(c);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 2 == 0 ? 2 : 0x82;
	put(c, bytes, sizeof(bytes));
	put_time(c);
	if (c->context)
		PUT(c, 0x99, 1); /* MODE.Exec */
	put_cbr(c);
	if (c->context)
		PUT(c, 0x7d, 1, 2, 3, 4, 0, 0); /* FUP */
	PUT(c, 2, 0x23);
	c->psb_at = c->size;
}

static void put_enable(struct core *c)
{
	if (chance(c, 5000))
		PUT(c, 0x99, 1);
	eligible(c);
	note(c, (uint64_t)c->time, (uint64_t)c->time);
	PUT(c, 0x31, 1, 2);
}

static void put_disable(struct core *c)
{
	flush(c);
	if (chance(c, 5000))
		PUT(c, 0x3d, 7, 7); /* FUP */
	eligible(c);
	note(c, (uint64_t)c->time, (uint64_t)c->time);
	PUT(c, 1);
}

/* --- What happens --- */

static void new_speed(struct core *c)
{
	c->cbr = 4 + (uint32_t)any(c, 2 * c->config.max_nonturbo_ratio);
}

static void conditional(struct core *c)
{
	if (c->bits == 0) {
		c->first_bit = (uint64_t)c->time;
		c->first_bit_cycle = (uint64_t)c->cycles;
	}
	c->last_bit = (uint64_t)c->time;
	if (++c->bits == 6)
		flush(c);
}

static void tip(struct core *c)
{
	flush(c);
	eligible(c);
	note(c, (uint64_t)c->time, (uint64_t)c->time);
	PUT(c, 0x2d, 1, 2);
}

static void enter_kernel(struct core *c)
{
	if (!c->world.user_only || !c->context)
		return;
	put_disable(c);
	c->context = false;
}

static void leave_kernel(struct core *c)
{
	if (c->context)
		return;
	c->context = true;
	put_enable(c);
}

/* The core's clock stops. The kernel has that done. */
static void sleep_on(struct core *c)
{
	bool user = c->context;

	enter_kernel(c);
	pass(c, (double)any(c, 2000));
	flush(c);
	if (chance(c, 3000)) {
		eligible(c);
		PUT(c, 2, 0x62); /* EXSTOP */
	}
	stand(c, any_size(c, chance(c, 2000) ? 1e8 : 1e5));
	if (chance(c, 3000))
		new_speed(c);
	put_time(c);
	put_cbr(c);
	pass(c, (double)any(c, 2000));
	if (user)
		leave_kernel(c);
}

/* TraceEn goes to 0, as for another thread, and to 1 again. */
static void off_and_on(struct core *c)
{
	bool was_in_kernel = !c->context, behind = chance(c, 5000);

	if (chance(c, 5000))
		enter_kernel(c);
	pass(c, (double)any(c, 3000));
	if (c->context)
		put_disable(c);
	c->trigger = false;
	stand(c, any_size(c, chance(c, 2000) ? 1e8 : 1e5));
	if (chance(c, 2000))
		new_speed(c);
	c->trigger = true;
	c->cyc_base = c->sent_base = (uint64_t)c->cycles;
	run_to(c, c->time + (double)any(c, 40));
	if (c->world.user_only)
		c->context = false;
	if (c->context && behind) {
		/* TIP.PGE, then PSB+. */
		put_enable(c);
		put_psb(c);
		return;
	}
	if (chance(c, 5000)) {
		bool context = c->context;

		c->context = false;
		put_psb(c);
		c->context = context;
	} else {
		put_time(c);
		put_cbr(c);
	}
	if (c->context) {
		put_enable(c);
		return;
	}
	pass(c, (double)any(c, 3000));
	if (!was_in_kernel || chance(c, 5000))
		leave_kernel(c);
}

static void change_speed(struct core *c)
{
	flush(c);
	if (chance(c, 5000)) {
		stand(c, any_size(c, 1e5));
		new_speed(c);
		put_time(c);
	} else {
		new_speed(c);
	}
	put_cbr(c);
}

/* Packets are dropped for a time. All packets may be among them. */
static void overflow(struct core *c)
{
	flush(c);
	c->dropping = true;
	for (uint64_t i = any(c, 30); i > 0; i--) {
		pass(c, (double)any(c, chance(c, 100) ? 100000 : 300));
		if (c->context)
			tip(c);
	}
	if (chance(c, 500))
		stand(c, any_size(c, 1e6));
	c->dropping = false;
	c->bits = 0;
	if (c->world.through_loss)
		c->cyc_base = c->sent_base;
	else if (chance(c, 5000))
		c->cyc_base = (uint64_t)c->cycles;
	if (chance(c, 5000))
		eligible(c);
	PUT(c, 2, 0xf3);
	if (chance(c, 8000))
		put_time(c);
	if (c->context) {
		note(c, (uint64_t)c->time, (uint64_t)c->time);
		PUT(c, 0x7d, 1, 2, 3, 4, 0, 0); /* FUP */
	}
}

static void step(struct core *c)
{
	const struct clocked_world *w = &c->world;

	if (c->size - c->psb_at >= w->psb_bytes || chance(c, w->psb))
		put_psb(c);
	if (chance(c, w->off))
		off_and_on(c);
	if (chance(c, w->sleep))
		sleep_on(c);
	if (chance(c, w->speed))
		change_speed(c);
	if (chance(c, w->overflow))
		overflow(c);
	if (chance(c, w->kernel))
		enter_kernel(c);
	if (!c->context) {
		pass(c, any_size(c, chance(c, 1000) ? 1e6 : 1e4));
		if (c->size - c->psb_at >= w->psb_bytes)
			put_psb(c);
		if (chance(c, 8000))
			leave_kernel(c);
		return;
	}
	pass(c, (double)any(c, chance(c, 100) ? 100 * w->pause : w->pause) +
			(double)any(c, 100) / 100);
	if (chance(c, 7000))
		conditional(c);
	else
		tip(c);
}

/* A chance that is often 0. */
static uint32_t often_none(struct core *c, uint32_t max)
{
	return chance(c, 4000) ? 0 : 1 + (uint32_t)any(c, max);
}

void clocked_any_world(uint64_t seed, struct clocked_world *ret)
{
	struct core c = {.random = seed * 0x9e3779b97f4a7c15ull + 0x12345};

	any(&c, 2);
	any(&c, 2);
	*ret = (struct clocked_world){
		.mtc = chance(&c, 7000),
		.cyc = chance(&c, 7000),
		.user_only = chance(&c, 6000),
		.spread = chance(&c, 5000),
		.lone_cyc = chance(&c, 5000),
		.cyc_before_psb = chance(&c, 5000),
		.cyc_before_tsc = chance(&c, 5000),
		.no_ratio = chance(&c, 500),
		.through_loss = chance(&c, 5000),
		.period = (uint32_t)any(&c, 10),
		.threshold = chance(&c, 5000) ? 0 : 1u << any(&c, 12),
		.psb_bytes = 256u << any(&c, 8),
		.pause = 20u + (uint32_t)any(&c, 400),
		.kernel = often_none(&c, 1000),
		.off = often_none(&c, chance(&c, 2000) ? 500 : 50),
		.sleep = often_none(&c, 50),
		.speed = often_none(&c, 50),
		.overflow = often_none(&c, 50),
		.lost_mtcs = chance(&c, 7000) ? 0 : 1 + (uint32_t)any(&c, 300),
		.psb = often_none(&c, 20),
	};
}

void clocked_make(uint64_t seed, const struct clocked_world *world, unsigned int steps,
		  struct clocked *ret)
{
	struct core c = {.world = *world, .random = seed * 0x9e3779b97f4a7c15ull + 1};
	size_t room = (size_t)1 << 22;

	c.bytes = malloc(room);
	if (!c.bytes)
		abort();
	c.room = room;
	any(&c, 2);
	c.config.max_nonturbo_ratio = 8 + (uint32_t)any(&c, 32);
	c.config.tsc_art_den = 1 + (uint32_t)any(&c, 3);
	c.config.tsc_art_num = c.config.tsc_art_den * (40 + (uint32_t)any(&c, 200)) +
			       (uint32_t)any(&c, c.config.tsc_art_den);
	c.config.mtc_period = world->mtc ? world->period : UINT32_MAX;
	c.ratio_excess = (double)any(&c, 900) / 1000;
	c.base_excess = (double)any(&c, 900) / 1000;
	new_speed(&c);
	c.time = 1e9 + (double)any(&c, 1000000);
	aim_at_next_mtc(&c);
	c.trigger = c.context = true;
	put_psb(&c);
	for (unsigned int i = 0; i < steps && !c.full; i++)
		step(&c);
	flush(&c);
	if (world->no_ratio)
		c.config.max_nonturbo_ratio = 0;
	c.config.end_tsc = (uint64_t)c.time + 1;
	*ret = (struct clocked){.world = *world,
				.config = c.config,
				.bytes = c.bytes,
				.size = c.size,
				.events = c.events,
				.n = c.n};
}

void clocked_free(struct clocked *c)
{
	free((void *)(uintptr_t)c->bytes);
	free((void *)(uintptr_t)c->events);
}
