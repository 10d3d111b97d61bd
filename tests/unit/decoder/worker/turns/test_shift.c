#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/turns/shift.h"
#include "proto/base.h"
#include "tests/unit/sideband/load.h"

/* Two processes take turns on each CPU, of 0.3 to 1.7 ms, with code at different addresses. The
 * process that has the CPU comes to user code ENTER after the switch at the earliest, and leaves it
 * LEAVE before the next switch at the latest. */
#define BEGIN  1000000000ull
#define ENTER  2000u
#define LEAVE  3000u
#define CODE_1 0x10000u
#define CODE_2 0x20000u
#define NONE   0x30000u

#define MAX_CPUS    2u
#define MAX_TURNS   400u
#define PER_TURN    4u
#define MAX_SAMPLES (MAX_CPUS * MAX_TURNS * PER_TURN)

struct host {
	struct perfrecord records[4 + MAX_CPUS * MAX_TURNS];
	size_t n_records;
	struct shift_sample samples[MAX_SAMPLES];
	size_t n;
	uint32_t random;
	struct timeline *timeline;
	struct turns turns;
	struct shift shift;
};

static uint32_t next_random(struct host *h)
{
	h->random = h->random * 1664525u + 1013904223u;
	return h->random >> 8;
}

static void add_samples(struct host *h, uint32_t cpu, uint64_t since, uint64_t until, uint64_t ip)
{
	uint64_t first = since + ENTER, last = until - LEAVE;

	for (uint64_t i = 0; i < PER_TURN; i++) {
		uint64_t enter = first + (last - first) * i / PER_TURN;

		h->samples[h->n++] = (struct shift_sample){
			.enter_lo = enter - 500,
			.enter_hi = enter + 500,
			.leave_lo = first + (last - first) * (i + 1) / PER_TURN - 500,
			.ip = ip,
			.cpu = cpu};
	}
}

/* N turns on CPU, whose records have times that are LATE later than the trace's. */
static void add_turns(struct host *h, uint32_t cpu, size_t n, int64_t late)
{
	uint64_t time = BEGIN;

	for (size_t i = 0; i < n; i++) {
		uint64_t until = time + 300000 + next_random(h) % 1400000;
		uint32_t pid = 1 + 2 * cpu + i % 2;

		h->records[h->n_records++] = ENTERS(cpu, time + (uint64_t)late, pid, pid);
		add_samples(h, cpu, time, until, i % 2 ? CODE_2 : CODE_1);
		time = until;
	}
}

static struct host *begin(void)
{
	struct host *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	for (uint32_t pid = 1; pid <= 4; pid++)
		h->records[h->n_records++] =
			MMAP2(0, 0, pid, pid % 2 ? CODE_1 : CODE_2, 0x1000, pid, "/code");
	return h;
}

static void ask(struct host *h, uint32_t n_cpus, struct shift_question *ret)
{
	h->timeline = load(h->records, h->n_records);
	assert_int_equal(turns_init(&h->turns, n_cpus), 0);
	for (uint32_t cpu = 0; cpu < n_cpus; cpu++)
		assert_int_equal(turns_load(&h->turns, cpu, h->timeline, cpu, MANIFEST_ABSENT), 0);
	assert_int_equal(turns_link(&h->turns), 0);
	*ret = (struct shift_question){&h->turns, h->timeline, h->samples, h->n};
}

static void find(struct host *h, uint32_t n_cpus)
{
	struct shift_question q;

	ask(h, n_cpus, &q);
	assert_int_equal(shift_find(&q, &h->shift), 0);
	assert_int_equal(h->shift.samples, h->n);
}

static void end(struct host *h)
{
	shift_done(&h->shift);
	turns_done(&h->turns);
	timeline_free(h->timeline);
	free(h);
}

static void shift_find_fitting_times_finds_none(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, MAX_TURNS, 0);
	add_turns(h, 1, MAX_TURNS, 0);
	find(h, 2);
	assert_false(h->shift.found);
	assert_int_equal(h->shift.ns, 0);
	assert_int_equal(h->shift.before, 0);
	assert_int_equal(h->shift.after, 0);
	end(h);
}

static void shift_find_late_sideband_is_applied_earlier(void **state)
{
	const int64_t late[] = {20000, 50000, -50000, 700000, -2000000, 5000000, -5000000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(late); i++) {
		struct host *h = begin();

		add_turns(h, 0, MAX_TURNS, late[i]);
		add_turns(h, 1, MAX_TURNS, late[i]);
		find(h, 2);
		assert_true(h->shift.found);
		assert_false(h->shift.differ);
		/* The middle of what suits, which is LEAVE earlier to ENTER later. */
		assert_in_range(h->shift.ns - late[i] + LEAVE, LEAVE - 1000, LEAVE + 500);
		assert_true(h->shift.before > SHIFT_TURNS);
		assert_int_equal(h->shift.after, 0);
		end(h);
	}
}

/* A shift that would explain some of what cannot be explained: no reason to believe it. */
/* A turn of process 1 with a moment of another one in it, and a sample of it AFTER that moment. */
static void add_divided_turn(struct host *h, uint64_t time, uint64_t after, int64_t late)
{
	const uint64_t moment = 300;

	h->records[h->n_records++] = ENTERS(0, time + (uint64_t)late, 1, 1);
	h->records[h->n_records++] = ENTERS(0, time + 100000 + (uint64_t)late, 2, 2);
	h->records[h->n_records++] = ENTERS(0, time + 100000 + moment + (uint64_t)late, 1, 1);
	h->samples[h->n] =
		(struct shift_sample){.enter_lo = time + 100000 + moment + after, .ip = CODE_1};
	h->samples[h->n].enter_hi = h->samples[h->n].leave_lo = h->samples[h->n].enter_lo;
	h->n++;
	h->records[h->n_records++] = ENTERS(0, time + 200000 + (uint64_t)late, 2, 2);
}

static void shift_find_divided_shifts_doubts_all_of_them(void **state)
{
	const int64_t late = 700000;
	struct host *h = begin();

	(void)state;
	for (uint64_t i = 0; i < 2; i++)
		add_divided_turn(h, BEGIN - 1000000 + 400000 * i, 500 + 700 * i, late);
	add_turns(h, 0, MAX_TURNS / 2, late);
	find(h, 1);
	assert_true(h->shift.found);
	assert_int_equal(h->shift.after, 0);
	/* No middle may be one of those that are left out. */
	assert_false(late - h->shift.ns > 500 && late - h->shift.ns < 800);
	assert_false(late - h->shift.ns > 1200 && late - h->shift.ns < 1500);
	/* From LEAVE earlier to ENTER later. */
	assert_true(h->shift.ns - late - (int64_t)h->shift.doubt <= 500 - LEAVE);
	assert_true(h->shift.ns - late + (int64_t)h->shift.doubt >= ENTER - 1000);
	assert_true(h->shift.doubt <= LEAVE + ENTER);
	end(h);
}

static void shift_find_what_fits_nowhere_finds_none(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, MAX_TURNS, 0);
	for (size_t i = 0; i < h->n; i += 3)
		h->samples[i].ip = i % 2 ? NONE : i % 4 ? CODE_1 : CODE_2;
	find(h, 1);
	assert_true(h->shift.before > h->n / 8);
	assert_false(h->shift.found);
	assert_int_equal(h->shift.after, h->shift.before);
	end(h);
}

/* And what cannot be explained hides no shift that explains the rest. */
static void shift_find_late_sideband_is_found_among_lost(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, MAX_TURNS, 300000);
	for (size_t i = 0; i < h->n; i += 3)
		h->samples[i].ip = NONE;
	find(h, 1);
	assert_true(h->shift.found);
	assert_in_range(h->shift.ns - 300000 + LEAVE, 0, ENTER + LEAVE);
	assert_true(h->shift.after < h->shift.before);
	assert_true(h->shift.after >= h->n / 3);
	end(h);
}

/* A shift that explains the late part makes the rest a contradiction: it is no reason, either. */
static void shift_find_partly_late_sideband_finds_none(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, MAX_TURNS, 0);
	for (size_t i = h->n_records - MAX_TURNS; i < h->n_records - MAX_TURNS / 3; i++)
		h->records[i].time += 250000;
	find(h, 1);
	assert_true(h->shift.before > SHIFT_TURNS);
	assert_false(h->shift.found);
	end(h);
}

static void shift_find_few_turns_finds_none(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, SHIFT_TURNS - 1, 200000);
	find(h, 1);
	assert_true(h->shift.before > 0);
	assert_false(h->shift.found);
	end(h);
}

static void shift_find_one_cpu_off_is_that_cpu(void **state)
{
	struct host *h = begin();

	(void)state;
	add_turns(h, 0, MAX_TURNS, 0);
	add_turns(h, 1, MAX_TURNS / 2, 400000);
	find(h, 2);
	assert_true(h->shift.found);
	assert_true(h->shift.differ);
	assert_int_equal(h->shift.n_cpus, 2);
	assert_int_equal(h->shift.cpus[0].ns, 0);
	assert_in_range(h->shift.cpus[1].ns - 400000 + LEAVE, 0, ENTER + LEAVE);
	assert_true(h->shift.cpus[1].before > 0);
	assert_int_equal(h->shift.after, 0);
	end(h);
}

/* When code is mapped tells as much as who ran: each program maps its own just before it uses it.
 */
static void shift_find_late_mappings_are_applied_earlier(void **state)
{
	struct host *h = calloc(1, sizeof(*h));
	uint64_t late = 250000, time = BEGIN;

	(void)state;
	assert_non_null(h);
	for (uint32_t pid = 10; pid < 40; pid++, time += 1000000) {
		uint64_t code = pid % 2 ? CODE_1 : CODE_2;

		h->records[h->n_records++] = EXEC(0, time + late, pid, "program");
		h->records[h->n_records++] = ENTERS(0, time + late, pid, pid);
		h->records[h->n_records++] =
			MMAP2(0, time + late + 100000, pid, code, 0x1000, 1, "/code");
		h->samples[h->n++] =
			(struct shift_sample){time + 101000, time + 102000, time + 110000, code, 0};
		h->samples[h->n++] =
			(struct shift_sample){time + 980000, time + 980100, time + 997000, code, 0};
	}
	find(h, 1);
	assert_true(h->shift.found);
	assert_in_range(h->shift.ns, late - 2100, late + 3000);
	assert_int_equal(h->shift.after, 0);
	end(h);
}

static void shift_contradicts_only_what_is_known(void **state)
{
	struct host *h = begin();
	struct shift_question q;
	const struct shift_sample own = {BEGIN + 10, BEGIN + 20, BEGIN + 30, CODE_1, 0};
	const struct shift_sample other = {BEGIN + 10, BEGIN + 20, BEGIN + 30, CODE_2, 0};
	const struct shift_sample beyond = {BEGIN + 10, BEGIN + 20, BEGIN + 200, CODE_1, 0};
	const struct shift_sample before = {BEGIN - 20, BEGIN - 10, BEGIN - 5, CODE_2, 0};
	const struct shift_sample unknown = {BEGIN + 310, BEGIN + 320, BEGIN + 330, NONE, 0};
	const struct shift_sample lost = {BEGIN + 510, BEGIN + 520, BEGIN + 530, NONE, 0};

	(void)state;
	h->records[h->n_records++] = ENTERS_AFTER(0, BEGIN, 1, 1, 2, 2);
	h->records[h->n_records++] = LEAVES(0, BEGIN + 100, 1, 1, 0, 0);
	h->records[h->n_records++] = ENTERS(0, BEGIN + 300, 9, 9);
	h->records[h->n_records++] = LOST(0, BEGIN + 600, 7);
	ask(h, 1, &q);
	assert_false(shift_contradicts(&q, &own, 0));
	assert_true(shift_contradicts(&q, &other, 0));
	/* Applied earlier and later: who had it before has that code. */
	assert_true(shift_contradicts(&q, &own, -40));
	assert_false(shift_contradicts(&q, &other, -40));
	assert_false(shift_contradicts(&q, &before, 0));
	assert_true(shift_contradicts(&q, &before, 40));
	/* It lasted into the idle time. */
	assert_true(shift_contradicts(&q, &beyond, 0));
	/* Nothing is known of process 9, so anybody may have run. */
	assert_false(shift_contradicts(&q, &unknown, 0));
	assert_false(shift_contradicts(&q, &lost, 0));
	/* No time is before the first. */
	assert_false(shift_contradicts(&q, &before, -(int64_t)(2 * BEGIN)));
	end(h);
}

static void shift_turns_since_bounds_the_turns_that_contradict(void **state)
{
	struct host *h = begin();
	struct shift_question q;
	struct turns_cpu none = {0};
	const struct turns_cpu *cpu;

	(void)state;
	add_turns(h, 0, 20, 0);
	ask(h, 1, &q);
	cpu = &h->turns.cpus[0];
	assert_int_equal(shift_turns_since(cpu, 0), cpu->n + 1);
	assert_int_equal(shift_turns_since(cpu, cpu->list[cpu->n - 2].until + 1), 2);
	assert_int_equal(shift_turns_since(cpu, cpu->list[cpu->n - 2].since + 1), 3);
	assert_int_equal(shift_turns_since(&none, 0), 0);
	end(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shift_find_fitting_times_finds_none),
		cmocka_unit_test(shift_find_late_sideband_is_applied_earlier),
		cmocka_unit_test(shift_find_divided_shifts_doubts_all_of_them),
		cmocka_unit_test(shift_find_what_fits_nowhere_finds_none),
		cmocka_unit_test(shift_find_late_sideband_is_found_among_lost),
		cmocka_unit_test(shift_find_partly_late_sideband_finds_none),
		cmocka_unit_test(shift_find_few_turns_finds_none),
		cmocka_unit_test(shift_find_one_cpu_off_is_that_cpu),
		cmocka_unit_test(shift_find_late_mappings_are_applied_earlier),
		cmocka_unit_test(shift_contradicts_only_what_is_known),
		cmocka_unit_test(shift_turns_since_bounds_the_turns_that_contradict),
	};

	return cmocka_run_group_tests_name("shift", tests, NULL, NULL);
}
