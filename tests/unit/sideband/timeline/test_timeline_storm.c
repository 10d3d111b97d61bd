/*
 * Very many forks and execs: the timeline stays within its memory and keeps the living processes.
 */
#include "sideband/timeline/timeline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/bench/storm.h"

#define MIB	(1ull << 20)
#define RECORDS 400000u

static void weather(struct storm *s, struct timeline *t, unsigned n)
{
	uint8_t bytes[STORM_MAX_SIZE];
	struct perfrecord r;

	for (unsigned i = 0; i < n; i++) {
		uint16_t size = storm_next(s, bytes);

		assert_int_equal(perfrecord_parse(bytes, size, &r), 0);
		timeline_push(t, &r, bytes, size);
	}
}

static void new_within_refuses_too_little(void **state)
{
	struct timeline *t;

	(void)state;
	assert_int_equal(timeline_new_within(MIB - 1, &t), -EINVAL);
}

static void storm_of_processes_stays_within_the_limit(void **state)
{
	static const uint64_t limits[] = {MIB, 3 * MIB, 4 * MIB, 64 * MIB};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct timeline_stats stats, later;
		struct timeline *t;
		struct storm s;

		storm_init(&s, 7);
		assert_int_equal(timeline_new_within(limits[i], &t), 0);
		timeline_get_stats(t, &stats);
		assert_in_range(stats.most_bytes, limits[i] - limits[i] / 8, limits[i]);
		weather(&s, t, RECORDS);
		timeline_get_stats(t, &stats);
		weather(&s, t, RECORDS);
		timeline_get_stats(t, &later);
		assert_true(later.folded > 0 && later.taken_bytes <= later.most_bytes);
		/* Nothing accumulates. If all living processes fit, nothing is dropped. */
		assert_true(later.processes <= STORM_DAEMONS + 200);
		assert_true(limits[i] < 3 * MIB || later.dropped == 0);
		assert_true(limits[i] < 3 * MIB || later.processes >= STORM_DAEMONS - 20);
		assert_true(later.taken_bytes <= stats.taken_bytes + MIB / 2);
		timeline_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_within_refuses_too_little),
		cmocka_unit_test(storm_of_processes_stays_within_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
