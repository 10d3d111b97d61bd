/*
 * decoder/time/timing against a model: a made-up core executes at known times and writes packets as
 * the SDM says, and each interval must hold the time. Thousands of cases from fixed seeds.
 */
#include "decoder/time/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define MAX_BYTES  524288u
#define MAX_CHECKS 131072u

struct check {
	uint64_t offset, first, last; /* TSC of the first and of the last event of the packet */
};

/* The properties of a case. Chances are per 1000 events. */
struct world {
	bool mtc, cyc, skl168, spread, no_config;
	bool eager;	    /* a CYC before each PSB */
	bool busy;	    /* the core never waits */
	uint32_t threshold; /* the threshold of CYCs */
	uint32_t psb, halt, speed, overflow, restart, lost_mtc, alone;
};

struct core {
	struct world world;
	uint64_t random;
	struct timing_config config;
	double ratio_excess, base_excess; /* what the rounded ratios omit */
	/* the state now */
	double time, cycles;
	uint32_t cbr;
	bool dropping, force_cyc;
	uint64_t next_ctc; /* of the next MTC */
	uint64_t last_cyc;
	unsigned int bits, lose_mtcs;
	uint64_t first_bit, last_bit, first_bit_cycles;
	/* what was written */
	uint8_t bytes[MAX_BYTES];
	size_t size;
	struct check checks[MAX_CHECKS];
	size_t n;
	/* for the mean distance of the CYCs around a check */
	uint64_t since; /* checks since the last CYC */
	uint64_t n_apart;
	double apart;
};

static uint64_t any(struct core *c, uint64_t n)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return (c->random >> 11) % n;
}

static bool chance(struct core *c, uint32_t of_1000)
{
	return any(c, 1000) < of_1000;
}

static void put(struct core *c, const void *bytes, size_t n)
{
	if (c->dropping)
		return;
	assert_true(c->size + n <= MAX_BYTES);
	memcpy(c->bytes + c->size, bytes, n);
	c->size += n;
}
#define PUT(c, ...) put(c, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* The cycles per tick, now. */
static double speed(const struct core *c)
{
	double whole = 3300.0 * c->config.max_nonturbo_ratio, phase, speed;

	speed = (c->cbr + c->ratio_excess) / (c->config.max_nonturbo_ratio + c->base_excess);
	if (!c->world.spread)
		return speed;
	phase = c->time / whole - (double)(uint64_t)(c->time / whole);
	return speed * (1 - 0.005 * (phase < 0.5 ? 2 * phase : 2 - 2 * phase));
}

static void run_to(struct core *c, double time, bool halted)
{
	while (c->time < time) {
		double step = time - c->time;

		step = step > 200 ? 200 : step;
		if (!halted)
			c->cycles += step * speed(c);
		c->time += step;
	}
}

static void put_cyc(struct core *c, uint64_t cycles, bool force)
{
	uint64_t n = cycles - c->last_cyc;
	uint8_t bytes[12] = {0};
	size_t size = 1;

	if (!c->world.cyc || (n == 0 && !c->force_cyc) ||
	    (n < c->world.threshold && !force && !c->force_cyc))
		return;
	c->last_cyc = cycles;
	c->force_cyc = false;
	c->apart += (double)c->since * (double)n / speed(c);
	c->n_apart += c->since;
	c->since = 0;
	bytes[0] = (uint8_t)(3 | (n & 31) << 3 | (n > 31 ? 4 : 0));
	for (n >>= 5; n != 0; n >>= 7)
		bytes[size++] = (uint8_t)((n & 127) << 1 | (n > 127));
	put(c, bytes, size);
}

static void add_check(struct core *c, uint64_t first, uint64_t last)
{
	if (c->dropping || c->n == MAX_CHECKS)
		return;
	c->checks[c->n++] = (struct check){c->size, first, last};
	c->since++;
}

static void flush(struct core *c)
{
	if (c->bits == 0)
		return;
	put_cyc(c, c->first_bit_cycles, false);
	add_check(c, c->first_bit, c->last_bit);
	PUT(c, (uint8_t)(1u << (c->bits + 1)));
	c->bits = 0;
}

static double ctc_edge(const struct core *c, uint64_t ctc)
{
	return (double)ctc * c->config.tsc_art_num / c->config.tsc_art_den;
}

static void aim_at_next_mtc(struct core *c)
{
	uint32_t period = c->config.mtc_period;
	uint64_t ctc = (uint64_t)(c->time * c->config.tsc_art_den / c->config.tsc_art_num);

	if (c->world.mtc)
		c->next_ctc = ((ctc >> period) + 1) << period;
}

static void put_time(struct core *c)
{
	uint64_t tsc = (uint64_t)c->time;
	uint64_t ctc = (uint64_t)(c->time * c->config.tsc_art_den / c->config.tsc_art_num);
	uint64_t fc = tsc - (uint64_t)ctc_edge(c, ctc);

	PUT(c, 0x19, (uint8_t)tsc, (uint8_t)(tsc >> 8), (uint8_t)(tsc >> 16), (uint8_t)(tsc >> 24),
	    (uint8_t)(tsc >> 32), (uint8_t)(tsc >> 40), (uint8_t)(tsc >> 48));
	if (!c->world.mtc)
		return;
	assert_true(fc < 512);
	PUT(c, 2, 0x73, (uint8_t)ctc, (uint8_t)(ctc >> 8), 0, (uint8_t)fc, (uint8_t)(fc >> 8));
}

static void put_cbr(struct core *c)
{
	PUT(c, 2, 3, (uint8_t)c->cbr, 0);
}

static void mtc(struct core *c)
{
	uint8_t payload = (uint8_t)(c->next_ctc >> c->config.mtc_period);

	run_to(c, ctc_edge(c, c->next_ctc), false);
	c->next_ctc += UINT64_C(1) << c->config.mtc_period;
	if (chance(c, c->world.lost_mtc))
		c->lose_mtcs = 1 + (unsigned int)any(c, chance(c, 100) ? 250 : 3);
	if (c->lose_mtcs > 0) {
		c->lose_mtcs--;
		return;
	}
	flush(c);
	put_cyc(c, (uint64_t)c->cycles, false);
	PUT(c, 0x59, payload);
}

static void pass(struct core *c, double ticks)
{
	double to = c->time + ticks;

	while (c->world.mtc && ctc_edge(c, c->next_ctc) <= to && c->size < MAX_BYTES - 4096)
		mtc(c);
	run_to(c, to, false);
}

static void conditional(struct core *c)
{
	if (c->bits == 0) {
		c->first_bit = (uint64_t)c->time;
		c->first_bit_cycles = (uint64_t)c->cycles;
	}
	c->last_bit = (uint64_t)c->time;
	if (++c->bits == 6)
		flush(c);
}

static void tip(struct core *c)
{
	flush(c);
	put_cyc(c, (uint64_t)c->cycles, false);
	add_check(c, (uint64_t)c->time, (uint64_t)c->time);
	PUT(c, 0x2d, 1, 2);
}

/* With the erratum SKL168, packets right before the PSB may be missing. */
static void psb(struct core *c)
{
	uint8_t bytes[16];

	flush(c);
	/* No CYC is written in the cycle of the last one. */
	if (c->world.eager)
		pass(c, 1 + 2 / speed(c));
	if (c->world.skl168 && chance(c, 500))
		c->last_cyc = (uint64_t)c->cycles;
	else
		put_cyc(c, (uint64_t)c->cycles, c->world.eager || chance(c, 900));
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 2 == 0 ? 2 : 0x82;
	put(c, bytes, sizeof(bytes));
	put_time(c);
	put_cbr(c);
	PUT(c, 0x7d, 1, 2, 3, 4, 0, 0);
	PUT(c, 2, 0x23);
}

/* A stop of the clock is followed by a TSC. */
static void halt(struct core *c)
{
	flush(c);
	run_to(c, c->time + (double)any(c, chance(c, 300) ? 1000000 : 3000), true);
	aim_at_next_mtc(c);
	put_time(c);
}

static void change_speed(struct core *c)
{
	flush(c);
	if (chance(c, 500))
		halt(c);
	c->cbr = 4 + (uint32_t)any(c, 2 * c->config.max_nonturbo_ratio);
	put_cbr(c);
}

static void lose(struct core *c)
{
	flush(c);
	c->dropping = true;
	for (uint64_t i = any(c, 30); i > 0; i--) {
		pass(c, (double)any(c, chance(c, 100) ? 100000 : 300));
		tip(c);
	}
	c->dropping = false;
	c->bits = 0;
	PUT(c, 2, 0xf3);
	if (chance(c, 800))
		put_time(c);
	if (chance(c, 500))
		c->last_cyc = (uint64_t)c->cycles;
}

static void restart(struct core *c)
{
	flush(c);
	run_to(c, c->time + (double)any(c, 100000), false);
	c->last_cyc = (uint64_t)c->cycles;
	aim_at_next_mtc(c);
	put_time(c);
	put_cbr(c);
}

/* Writes a CYC by itself; another CYC then stands before the next packet to which CYCs bind. */
static void cyc_alone(struct core *c)
{
	if (!c->world.cyc)
		return;
	flush(c);
	put_cyc(c, (uint64_t)c->cycles, true);
	c->force_cyc = true;
}

static void event(struct core *c)
{
	const struct world *w = &c->world;

	if (chance(c, w->psb))
		psb(c);
	if (chance(c, w->halt))
		halt(c);
	if (chance(c, w->speed))
		change_speed(c);
	if (chance(c, w->overflow))
		lose(c);
	if (chance(c, w->restart))
		restart(c);
	if (chance(c, w->alone))
		cyc_alone(c);
	pass(c,
	     (double)any(c, !w->busy && chance(c, 20) ? 20000 : 160) + (double)any(c, 100) / 100);
	if (chance(c, 700))
		conditional(c);
	else
		tip(c);
}

static struct core *new_core(uint64_t seed, const struct world *world)
{
	struct core *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->world = *world;
	c->random = seed * 0x9e3779b97f4a7c15ull + 1;
	any(c, 2);
	c->config.max_nonturbo_ratio = 8 + (uint32_t)any(c, 32);
	c->config.tsc_art_den = 1 + (uint32_t)any(c, 3);
	c->config.tsc_art_num = c->config.tsc_art_den * (40 + (uint32_t)any(c, 200)) +
				(uint32_t)any(c, c->config.tsc_art_den);
	c->config.mtc_period = world->mtc ? (uint32_t)any(c, 10) : UINT32_MAX;
	c->config.skl168 = world->skl168;
	c->ratio_excess = (double)any(c, 900) / 1000;
	c->base_excess = (double)any(c, 900) / 1000;
	c->cbr = 4 + (uint32_t)any(c, 2 * c->config.max_nonturbo_ratio);
	c->time = 1e9 + (double)any(c, 1000000);
	aim_at_next_mtc(c);
	return c;
}

static void run(struct core *c, unsigned int events)
{
	psb(c);
	for (unsigned int i = 0; i < events && c->size < MAX_BYTES - 16384; i++)
		event(c);
	flush(c);
}

/* A caller that asks only where timing_until() says so gets the same answers. */
struct lazy {
	struct timing t;
	bool asked;
	uint64_t lo, hi, first;
};

static void check_lazy(struct lazy *z, uint64_t offset, const uint64_t answer[3])
{
	if (!z->asked || offset > timing_until(&z->t)) {
		timing_at(&z->t, offset, &z->lo, &z->hi);
		z->first = timing_first(&z->t);
	}
	z->asked = true;
	assert_in_range(timing_until(&z->t), offset, UINT64_MAX);
	assert_int_equal(z->lo, answer[0]);
	assert_int_equal(z->hi, answer[1]);
	assert_int_equal(z->first, answer[2]);
}

/* Checks that all intervals hold the true time, and returns the sum of their widths. */
static double compare(struct core *c, uint64_t seed)
{
	struct timing t, copy;
	struct lazy lazy = {0};
	double sum = 0;

	if (c->world.no_config)
		c->config.max_nonturbo_ratio = 0;
	c->config.end_tsc = (uint64_t)c->time + 1;
	timing_init(&t, c->bytes, c->size, 0, &c->config);
	lazy.t = t;
	for (size_t i = 0; i < c->n; i++) {
		const struct check *k = &c->checks[i];
		uint64_t lo, hi;

		timing_at(&t, k->offset, &lo, &hi);
		if (lo > k->first || hi < k->last || lo > hi) {
			printf("# seed %llu offset %llu: %llu..%llu within %llu..%llu\n",
			       (unsigned long long)seed, (unsigned long long)k->offset,
			       (unsigned long long)k->first, (unsigned long long)k->last,
			       (unsigned long long)lo, (unsigned long long)hi);
			fail();
		}
		check_lazy(&lazy, k->offset, (uint64_t[]){lo, hi, timing_first(&t)});
		sum += (double)(hi - lo);
		if (i % 7 == 0) {
			copy = t;
			t = copy;
		}
	}
	return sum;
}

struct means {
	double width;	/* ticks */
	double between; /* the distance of the CYCs around it */
	double period;	/* between MTCs */
};

/* The means over cases. For the mean in periods, each width is divided by its own case's period. */
static struct means many(const struct world *world, uint64_t seed, unsigned int cases,
			 unsigned int events)
{
	struct means m = {0};
	double checks = 0, apart = 0, n_apart = 0;

	for (unsigned int i = 0; i < cases; i++) {
		struct core *c = new_core(seed + i, world);
		double sum, period;

		run(c, events);
		period = ctc_edge(c, UINT64_C(1) << (c->config.mtc_period & 15));
		sum = compare(c, seed + i);
		m.width += sum;
		m.period += sum / period;
		checks += (double)c->n;
		apart += c->apart;
		n_apart += (double)c->n_apart;
		free(c);
	}
	m.width /= checks;
	m.period /= checks;
	m.between = n_apart > 0 ? apart / n_apart : 0;
	return m;
}

static void tsc_alone_holds(void **state)
{
	const struct world w = {.psb = 20, .halt = 5, .overflow = 3, .restart = 3, .speed = 5};

	(void)state;
	many(&w, 1000, 300, 500);
}

static void mtc_is_no_wider_than_a_period(void **state)
{
	const struct world w = {.mtc = true, .psb = 10};
	struct means m = many(&w, 2000, 300, 800);

	(void)state;
	print_message("# mtc: %.3f periods\n", m.period);
	assert_true(m.period <= 1);
}

static void mtc_with_everything_that_happens_holds(void **state)
{
	const struct world w = {.mtc = true,
				.psb = 10,
				.halt = 5,
				.speed = 5,
				.overflow = 5,
				.restart = 5,
				.lost_mtc = 20};

	(void)state;
	many(&w, 3000, 1000, 500);
}

static void cyc_and_mtc_are_no_wider_than_cycs_are_apart(void **state)
{
	const struct world w = {.mtc = true, .cyc = true, .spread = true, .psb = 10};
	struct means m = many(&w, 4000, 300, 800);

	(void)state;
	print_message("# cyc and mtc: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
	assert_true(m.width <= m.between);
}

static void cyc_with_threshold_is_no_wider_than_cycs_are_apart(void **state)
{
	struct world w = {.mtc = true, .cyc = true, .spread = true, .psb = 10};

	(void)state;
	for (w.threshold = 1; w.threshold <= 1024; w.threshold *= 4) {
		struct means m = many(&w, 5000 + w.threshold, 100, 800);

		print_message("# threshold %u: %.1f ticks, CYCs %.1f apart\n", w.threshold, m.width,
			      m.between);
		assert_true(m.width <= m.between);
	}
}

static void cyc_without_mtc_is_no_wider_than_cycs_are_apart(void **state)
{
	struct world w = {.cyc = true, .psb = 10, .eager = true};
	struct means m = many(&w, 6000, 60, 5000);

	(void)state;
	print_message("# cyc: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
	assert_true(m.width <= m.between);
	/* If the clock swings, its phase is unknown. */
	w.spread = true;
	m = many(&w, 6200, 60, 5000);
	print_message("# cyc, spread: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
	assert_true(m.width <= m.between + 160);
}

/* Anchors are so far apart that only a steady clock tells the times in between. */
static void cyc_of_busy_code_is_as_exact_as_its_clock(void **state)
{
	struct world w = {.cyc = true, .psb = 1, .eager = true, .busy = true};
	struct means m = many(&w, 6300, 10, 120000);

	(void)state;
	print_message("# busy: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
	assert_true(m.width <= m.between);
	w.spread = true;
	m = many(&w, 6400, 10, 120000);
	print_message("# busy, spread: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
	assert_true(m.width <= m.between + 160);
}

static void cyc_without_mtc_holds(void **state)
{
	const struct world w = {.cyc = true, .spread = true, .psb = 10, .halt = 5, .speed = 3};

	(void)state;
	many(&w, 6500, 300, 800);
}

static void cyc_with_everything_that_happens_holds(void **state)
{
	struct world w = {.mtc = true,
			  .cyc = true,
			  .spread = true,
			  .psb = 10,
			  .halt = 8,
			  .speed = 8,
			  .overflow = 8,
			  .restart = 8,
			  .lost_mtc = 20,
			  .alone = 20};

	(void)state;
	for (w.threshold = 0; w.threshold <= 256; w.threshold = 4 * w.threshold + 1)
		many(&w, 7000 + w.threshold, 400, 500);
}

static void cyc_with_unknown_ratio_holds(void **state)
{
	const struct world w = {.mtc = true,
				.cyc = true,
				.spread = true,
				.no_config = true,
				.psb = 10,
				.halt = 8,
				.speed = 8,
				.overflow = 5};
	struct means m = many(&w, 8000, 300, 500);

	(void)state;
	print_message("# ratio unknown: %.1f ticks, CYCs %.1f apart\n", m.width, m.between);
}

static void skl168_holds(void **state)
{
	struct world w = {
		.mtc = true, .cyc = true, .skl168 = true, .spread = true, .psb = 50, .halt = 3};

	(void)state;
	for (w.threshold = 0; w.threshold <= 256; w.threshold = 4 * w.threshold + 1)
		many(&w, 9000 + w.threshold, 200, 500);
	w.mtc = false;
	many(&w, 9500, 200, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tsc_alone_holds),
		cmocka_unit_test(mtc_is_no_wider_than_a_period),
		cmocka_unit_test(mtc_with_everything_that_happens_holds),
		cmocka_unit_test(cyc_and_mtc_are_no_wider_than_cycs_are_apart),
		cmocka_unit_test(cyc_with_threshold_is_no_wider_than_cycs_are_apart),
		cmocka_unit_test(cyc_without_mtc_is_no_wider_than_cycs_are_apart),
		cmocka_unit_test(cyc_of_busy_code_is_as_exact_as_its_clock),
		cmocka_unit_test(cyc_without_mtc_holds),
		cmocka_unit_test(cyc_with_everything_that_happens_holds),
		cmocka_unit_test(cyc_with_unknown_ratio_holds),
		cmocka_unit_test(skl168_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
