#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/replay/rounds.h"
#include "decoder/worker/replay/segment.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"

#define KB UINT64_C(1024)

/* A trace of PADs, PSBs and TSCs, nothing else. */
static void put_psb(uint8_t *to, uint64_t tsc)
{
	int i;

	for (i = 0; i < 8; i++)
		memcpy(to + 2 * i, "\x02\x82", 2);
	to[16] = 0x19; /* TSC */
	for (i = 0; i < 7; i++)
		to[17 + i] = (uint8_t)(tsc >> (8 * i));
	memcpy(to + 24, "\x02\x23", 2);
}

static void segment_find_any_time_is_the_last_one_before(void **state)
{
	const uint64_t size = 300 * KB, far = 170 * KB; /* PSBs every 1000 bytes, but for a hole */
	uint8_t *trace = calloc(1, size);
	struct segment_psb place;
	uint64_t i, tsc;

	(void)state;
	for (i = 0; i * 1000 + 100 < size; i++)
		if (i * 1000 < 40 * KB || i * 1000 > far)
			put_psb(trace + i * 1000 + 50, 5000 + i * 10);
	assert_false(segment_find(trace, size, 4999, &place));
	for (tsc = 5000; tsc < 8100; tsc += 7) {
		uint64_t want = MIN_OF((tsc - 5000) / 10, (size - 101) / 1000);

		while (want * 1000 >= 40 * KB && want * 1000 <= far)
			want--;
		assert_true(segment_find(trace, size, tsc, &place));
		assert_int_equal(place.offset, want * 1000 + 50);
		assert_int_equal(place.tsc, 5000 + want * 10);
	}
	free(trace);
}

static void segment_find_without_times_finds_nothing(void **state)
{
	uint8_t *trace = calloc(1, 100 * KB);
	struct segment_psb place;

	(void)state;
	assert_false(segment_find(trace, 100 * KB, 1, &place));
	assert_false(segment_find(trace, 0, 1, &place));
	memcpy(trace + 90 * KB, "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82",
	       16);
	assert_false(segment_find(trace, 100 * KB, 1, &place));
	free(trace);
}

static void segment_before_reaches_as_far_as_it_is_told(void **state)
{
	uint8_t *trace = calloc(1, 100 * KB);
	struct segment_psb place;
	uint64_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		put_psb(trace + 1000 * i, i + 1);
	assert_true(segment_before(trace, 100 * KB, UINT64_MAX, &place));
	assert_int_equal(place.offset, 2000);
	assert_true(segment_before(trace, 2000, UINT64_MAX, &place));
	assert_int_equal(place.offset, 1000);
	assert_int_equal(place.tsc, 2);
	/* One that is cut off is none. */
	assert_true(segment_before(trace, 2015, UINT64_MAX, &place));
	assert_int_equal(place.offset, 1000);
	assert_false(segment_before(trace, 0, UINT64_MAX, &place));
	assert_false(segment_before(trace, 100 * KB, 90 * KB, &place));
	free(trace);
}

/* Two CPUs: the first one wrote ten times as fast. */
#define N_PLACES 40

struct fixture {
	struct segment_psb places[2][N_PLACES];
	struct rounds_cpu cpus[2];
	uint64_t times[2 * N_PLACES];
	struct rounds rounds;
};

static int by_time(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x > y ? -1 : x < y;
}

/* Places every 10 KB, of a time in KB of the first CPU; each trace has been written for 400. */
static void make(struct fixture *f, bool timed)
{
	size_t i, j;

	*f = (struct fixture){.rounds = {.n_cpus = 2, .bytes = 440 * KB}};
	for (i = 0; i < 2; i++) {
		f->cpus[i] = (struct rounds_cpu){
			.places = f->places[i], .n = i == 0 ? N_PLACES : 4, .size = 400 * KB};
		if (i == 1)
			f->cpus[i].size = 40 * KB;
		for (j = 0; j < f->cpus[i].n; j++) {
			uint64_t offset = f->cpus[i].size - 10 * KB * (j + 1);

			f->places[i][j] = (struct segment_psb){
				offset, timed ? 1 + offset / KB * (i == 0 ? 1 : 10) : 0};
			if (timed)
				f->times[f->rounds.n_times++] = f->places[i][j].tsc;
		}
	}
	qsort(f->times, f->rounds.n_times, sizeof(f->times[0]), by_time);
	f->rounds.cpus = f->cpus;
	f->rounds.times = f->times;
}

static void rounds_parts_begin_at_the_same_time_everywhere(void **state)
{
	struct fixture f;
	struct replay_part parts[2];

	(void)state;
	make(&f, true);
	/* 100 KB of the first CPU are 100 of 400 time units, and 10 KB of the second. */
	assert_false(rounds_parts(&f.rounds, 115 * KB, parts));
	assert_int_equal(parts[0].from, 300 * KB);
	assert_int_equal(parts[1].from, 30 * KB);
	assert_int_equal(parts[0].end, 0);
	/* One place further back the second one has 20 KB. */
	assert_false(rounds_parts(&f.rounds, 130 * KB, parts));
	assert_int_equal(parts[0].from, 290 * KB);
	assert_int_equal(parts[1].from, 20 * KB);
}

static void rounds_parts_nothing_asked_for_is_the_newest_of_each(void **state)
{
	struct fixture f;
	struct replay_part parts[2];

	(void)state;
	make(&f, true);
	assert_false(rounds_parts(&f.rounds, 0, parts));
	assert_int_equal(parts[0].from, 390 * KB);
	assert_int_equal(parts[1].from, 30 * KB);
	/* Unless that is a lot. */
	f.places[0][0].offset = 300 * KB;
	assert_false(rounds_parts(&f.rounds, 0, parts));
	assert_int_equal(parts[0].from, 400 * KB);
	assert_int_equal(parts[1].from, 30 * KB);
}

static void rounds_parts_all_is_all(void **state)
{
	struct fixture f;
	struct replay_part parts[2];

	(void)state;
	make(&f, true);
	assert_true(rounds_parts(&f.rounds, 440 * KB, parts));
	assert_int_equal(parts[0].from, 0);
	assert_int_equal(parts[1].from, 0);
	assert_false(rounds_parts(&f.rounds, 440 * KB - 1, parts));
}

static void rounds_parts_without_time_are_shares(void **state)
{
	struct fixture f;
	struct replay_part parts[2];

	(void)state;
	make(&f, false);
	assert_false(rounds_parts(&f.rounds, 220 * KB, parts));
	assert_int_equal(parts[0].from, 200 * KB);
	assert_int_equal(parts[1].from, 20 * KB);
}

static void rounds_parts_without_cpus_is_all(void **state)
{
	const struct rounds none = {0};

	(void)state;
	assert_true(rounds_parts(&none, 0, NULL));
}

static void rounds_next_grows_with_what_is_left(void **state)
{
	struct rounds_pace pace = {
		.total = 1000000 * KB, .bytes = 100 * KB, .took = 1000000, .left = 10000000};

	(void)state;
	/* Six tenths of ten times as much. */
	assert_int_equal(rounds_next(&pace), 600 * KB);
	/* Never too much at once. */
	pace.left = UINT64_MAX;
	assert_int_equal(rounds_next(&pace), 800 * KB);
	pace.total = 700 * KB;
	assert_int_equal(rounds_next(&pace), 700 * KB);
	/* Not for hardly more. */
	pace.left = 2000000;
	assert_int_equal(rounds_next(&pace), 0);
	pace.left = 0;
	assert_int_equal(rounds_next(&pace), 0);
}

static void rounds_next_nothing_decoded_still_grows(void **state)
{
	const struct rounds_pace pace = {.total = 1000000 * KB, .left = 1000000000};

	(void)state;
	assert_true(rounds_next(&pace) > 0);
	assert_true(rounds_next(&pace) <= 8 * 64 * KB);
}

static void rounds_init_bundle_has_places_back_to_its_beginning(void **state)
{
	const struct make_bundle how = {.rounds = 8000, .rounds_per_psb = 40, .n_cpus = 2};
	struct bundle *bundle = made_open(&how);
	struct replay_part parts[2];
	struct replay *replay;
	struct rounds rounds;
	size_t size, i;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	assert_int_equal(rounds_init(&rounds, replay), 0);
	bundle_cpu(bundle, 0, &size);
	assert_int_equal(rounds.n_cpus, 2);
	assert_int_equal(rounds.bytes, 2 * size);
	assert_true(rounds.cpus[0].n > 4);
	assert_int_equal(rounds.cpus[0].places[rounds.cpus[0].n - 1].offset, 0);
	for (i = 1; i < rounds.cpus[0].n; i++) {
		assert_true(rounds.cpus[0].places[i].offset < rounds.cpus[0].places[i - 1].offset);
		assert_true(rounds.cpus[0].places[i].tsc < rounds.cpus[0].places[i - 1].tsc);
	}
	assert_true(size - rounds.cpus[0].places[0].offset <= 4096);
	assert_false(rounds_parts(&rounds, size, parts));
	assert_int_equal(parts[0].from, parts[1].from);
	assert_true(parts[0].from >= size / 2);
	assert_true(parts[0].from < size * 3 / 4);
	rounds_done(&rounds);
	replay_free(replay);
	bundle_free(bundle);
}

static void rounds_init_last_time_asks_for_no_more(void **state)
{
	const struct make_bundle how = {
		.rounds = 8000, .rounds_per_psb = 40, .last_ns = 2000 * MAKE_ROUND};
	struct bundle *bundle = made_open(&how);
	struct replay_part part;
	struct replay *replay;
	struct rounds rounds;
	size_t size;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	assert_int_equal(rounds_init(&rounds, replay), 0);
	bundle_cpu(bundle, 0, &size);
	assert_in_range(rounds.bytes, size / 4, size / 3);
	assert_true(rounds_parts(&rounds, rounds.bytes, &part));
	assert_int_equal(part.from, 0);
	rounds_done(&rounds);
	replay_free(replay);
	bundle_free(bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segment_find_any_time_is_the_last_one_before),
		cmocka_unit_test(segment_find_without_times_finds_nothing),
		cmocka_unit_test(segment_before_reaches_as_far_as_it_is_told),
		cmocka_unit_test(rounds_parts_begin_at_the_same_time_everywhere),
		cmocka_unit_test(rounds_parts_nothing_asked_for_is_the_newest_of_each),
		cmocka_unit_test(rounds_parts_all_is_all),
		cmocka_unit_test(rounds_parts_without_time_are_shares),
		cmocka_unit_test(rounds_parts_without_cpus_is_all),
		cmocka_unit_test(rounds_next_grows_with_what_is_left),
		cmocka_unit_test(rounds_next_nothing_decoded_still_grows),
		cmocka_unit_test(rounds_init_bundle_has_places_back_to_its_beginning),
		cmocka_unit_test(rounds_init_last_time_asks_for_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
