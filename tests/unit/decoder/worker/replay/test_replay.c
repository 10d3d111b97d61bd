#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/replay/replay_private.h"
#include "decoder/worker/replay/segment.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"

struct seen {
	uint64_t insns;
	uint64_t faults[FAULT_N_];
	uint64_t bytes_skipped;
	uint32_t pid, tid;
	int result; /* to give back */
};

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct seen *seen = userdata;
	size_t i;

	for (i = 0; i < s->n_items; i++)
		seen->insns += s->items[i].insns;
	for (i = 0; i < s->n_gaps; i++)
		seen->faults[s->gaps[i].fault]++;
	if (s->thread != NULL) {
		seen->pid = s->thread->pid;
		seen->tid = s->thread->tid;
	}
	return seen->result;
}

static int replay_made(const struct make_bundle *how, struct seen *seen)
{
	struct bundle *bundle = made_open(how);
	const struct replay_consumer consumer = {.stretch = on_stretch, .userdata = seen};
	struct flow_stats stats;
	struct replay *replay;
	size_t i;
	int r = 0;

	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	for (i = 0; i < replay->manifest->n_cpus && r == 0; i++)
		r = replay_cpu(replay, i, &consumer, &stats);
	replay_free(replay);
	bundle_free(bundle);
	return r;
}

static uint64_t total_faults(const struct seen *seen)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < FAULT_N_; i++)
		sum += i == FAULT_HEAD ? 0 : seen->faults[i];
	return sum;
}

static void replay_cpu_loop_gives_every_instruction(void **state)
{
	const struct make_bundle ways[] = {
		{.rounds = 100},
		{.rounds = 100, .plain_returns = true},
		{.rounds = 100, .rounds_per_psb = 7},
		{.rounds = 1},
		{.rounds = 5000, .rounds_per_psb = 64},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		struct seen seen = {0};

		assert_int_equal(replay_made(&ways[i], &seen), 0);
		assert_int_equal(seen.insns, make_bundle_insns(ways[i].rounds));
		assert_int_equal(total_faults(&seen), 0);
		assert_int_equal(seen.pid, MAKE_PID);
		assert_int_equal(seen.tid, MAKE_TID);
	}
}

static void replay_cpu_several_gives_each(void **state)
{
	const struct make_bundle how = {.rounds = 10, .n_cpus = 3};
	struct seen seen = {0};

	(void)state;
	assert_int_equal(replay_made(&how, &seen), 0);
	assert_int_equal(seen.insns, 3 * make_bundle_insns(10));
}

/* The replays of all CPUs in the order of the list (they begin at the same time), and which are
 * done. */
#define CPUS 3u

static struct {
	struct cpu_replay *list[CPUS];
	bool done[CPUS];
	size_t n;
	unsigned ties;
	bool looked_at;
} replays;

int __real_cpu_replay_step(struct cpu_replay *c, uint64_t limit);
int __wrap_cpu_replay_step(struct cpu_replay *c, uint64_t limit);

/* How far C may go: to where those behind it in the list are, and not to where those before it are.
 */
static uint64_t right_limit(const struct cpu_replay *c)
{
	uint64_t limit = UINT64_MAX, own = cpu_replay_at(c);
	bool behind = false;

	for (size_t i = 0; i < replays.n; i++) {
		uint64_t at = cpu_replay_at(replays.list[i]);

		if (replays.list[i] == c) {
			behind = true;
			continue;
		}
		if (replays.done[i])
			continue;
		replays.ties += at == own;
		assert_true(at > own || (at == own && behind));
		limit = MIN_OF(limit, behind ? at : at - 1);
	}
	return limit;
}

int __wrap_cpu_replay_step(struct cpu_replay *c, uint64_t limit)
{
	size_t i = 0;
	int r;

	if (!replays.looked_at)
		return __real_cpu_replay_step(c, limit);
	while (i < replays.n && replays.list[i] != c)
		i++;
	if (i == replays.n && replays.n < CPUS)
		replays.list[replays.n++] = c;
	if (replays.n == CPUS)
		assert_int_equal(limit, right_limit(c));
	r = __real_cpu_replay_step(c, limit);
	replays.done[i] = r == CPU_REPLAY_DONE;
	return r;
}

/* However many there are, and wherever their batches end, ties are decided alike. */
static void replay_all_at_one_time_goes_on_with_the_first(void **state)
{
	const struct make_bundle how = {.rounds = 40, .rounds_per_psb = 4, .n_cpus = CPUS};
	struct seen seen = {0};
	const struct replay_consumer consumer = {.stretch = on_stretch, .userdata = &seen};
	struct bundle *bundle = made_open(&how);
	struct replay *replay;

	(void)state;
	replays.looked_at = true;
	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	assert_int_equal(replay_all(replay, &consumer), 0);
	replays.looked_at = false;
	assert_int_equal(replays.n, CPUS);
	assert_true(replays.ties > 3);
	assert_int_equal(seen.insns, CPUS * make_bundle_insns(40));
	replay_free(replay);
	bundle_free(bundle);
}

static void replay_cpu_last_time_begins_at_psb_before(void **state)
{
	/* 15 rounds back lies between the PSBs of rounds 80 and 90. */
	const struct make_bundle ways[] = {
		{.rounds = 100, .rounds_per_psb = 10, .last_ns = 15 * MAKE_ROUND},
		/* The time counts back from the trigger, not from a stop that came late. */
		{.rounds = 100,
		 .rounds_per_psb = 10,
		 .last_ns = 3 * MAKE_ROUND,
		 .stop_late = 12 * MAKE_ROUND},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		struct seen seen = {0};

		assert_int_equal(replay_made(&ways[i], &seen), 0);
		assert_int_equal(seen.insns, 20 * (7 + 9) / 2);
		assert_int_equal(total_faults(&seen), 0);
	}
}

static void replay_cpu_what_is_missing_is_a_gap(void **state)
{
	const struct {
		struct make_bundle how;
		enum fault fault;
	} cases[] = {
		{{.rounds = 5, .no_sideband = true}, FAULT_NO_SPACE},
		{{.rounds = 5, .no_image = true}, FAULT_IMAGE_MISSING},
		/* Another file than the one that was mapped. */
		{{.rounds = 5, .build_id = "00112233445566778899aabbccddeeff00112233"},
		 FAULT_IMAGE_MISMATCH},
		{{.rounds = 5, .no_psb = true}, FAULT_NO_PSB},
		{{.rounds = 0}, FAULT_EMPTY},
		{{.rounds = 10, .overflow = true}, FAULT_OVERFLOW},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct seen seen = {0};

		assert_int_equal(replay_made(&cases[i].how, &seen), 0);
		if (seen.faults[cases[i].fault] == 0)
			fail_msg("no gap \"%s\"", fault_name(cases[i].fault));
	}
}

static void replay_cpu_consumer_result_ends_it(void **state)
{
	const struct make_bundle how = {.rounds = 100};
	struct seen seen = {.result = -ENOSPC};

	(void)state;
	assert_int_equal(replay_made(&how, &seen), -ENOSPC);
}

static void segment_window_finds_last_psb_not_after(void **state)
{
	const struct make_bundle how = {.rounds = 100, .rounds_per_psb = 10};
	const struct {
		uint64_t tsc, expected;
	} cases[] = {
		{MAKE_TSC - 1, 0},
		{MAKE_TSC, MAKE_TSC},
		{MAKE_TSC + 10 * MAKE_ROUND - 1, MAKE_TSC},
		{MAKE_TSC + 10 * MAKE_ROUND, MAKE_TSC + 10 * MAKE_ROUND},
		{UINT64_MAX, MAKE_TSC + 90 * MAKE_ROUND},
	};
	struct bytes_out out;
	size_t i;

	(void)state;
	bytes_out_init(&out, 1 << 20);
	make_trace(&how, &out);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(segment_window(out.data, out.size, cases[i].tsc),
				 cases[i].expected);
	assert_int_equal(segment_window(out.data, 20, UINT64_MAX), 0);
	assert_int_equal(segment_window(out.data, 0, UINT64_MAX), 0);
	bytes_out_done(&out);
}

static void tscmap_converts_both_ways(void **state)
{
	const struct tscmap map = {.known = true, .shift = 10, .mult = 341, .zero = 5000};
	const struct tscmap none = {0};
	const struct tscmap huge = {.known = true, .shift = 0, .mult = UINT32_MAX, .zero = 1};

	(void)state;
	assert_int_equal(tscmap_ns(&map, 3000000), 5000 + 3000000ull * 341 / 1024);
	assert_in_range(tscmap_tsc(&map, tscmap_ns(&map, 3000000)), 3000000 - 4, 3000000);
	assert_int_equal(tscmap_span(&map, 1024), 341);
	assert_true(tscmap_ns(&none, 1) == MANIFEST_ABSENT);
	assert_true(tscmap_tsc(&none, 1) == MANIFEST_ABSENT);
	assert_true(tscmap_ns(&huge, UINT64_MAX) == MANIFEST_ABSENT);
}

/* TSC packets have 56 bits, and the TSC of a host that is up for long has more. */
static void tscmap_long_up_takes_the_nearest_tsc(void **state)
{
	const uint64_t wrap = UINT64_C(1) << 56, zero = UINT64_C(7) << 50;
	struct manifest m;
	struct tscmap map;

	(void)state;
	manifest_init(&m);
	m.have_clock = true;
	m.time_mult = 341;
	m.time_shift = 10;
	m.time_zero = zero;
	/* The snapshot is taken a little after the third wrap. */
	m.perf_ns = zero + (uint64_t)((unsigned __int128)(3 * wrap + 5000) * 341 / 1024);
	tscmap_init(&map, &m);
	for (int64_t ticks = -9000; ticks < 9000; ticks += 300) {
		const uint64_t whole = 3 * wrap + 1 + (uint64_t)ticks;
		const uint64_t ns = zero + (uint64_t)((unsigned __int128)whole * 341 / 1024);

		assert_int_equal(tscmap_ns(&map, whole & (wrap - 1)), ns);
		assert_in_range((whole - tscmap_tsc(&map, ns)) & (wrap - 1), 0, 4);
	}
	/* What is not known to be later than anything is no later than anything. */
	assert_int_equal(tscmap_ns(&map, 0), zero);
	assert_int_equal(tscmap_not_before(&map, 0), 0);
	/* Nothing was before the TSC began to count. */
	m.perf_ns = zero + 1000;
	tscmap_init(&map, &m);
	assert_int_equal(tscmap_ns(&map, wrap - 1), zero + tscmap_span(&map, wrap - 1));
	manifest_done(&m);
}

static void segment_find_over_the_wrap_goes_by_time(void **state)
{
	const uint64_t wrap = UINT64_C(1) << 56;
	static const uint8_t psb[] =
		"\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";
	uint8_t trace[6 * 26];
	struct segment_psb place;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		uint8_t *at = trace + i * 26;
		uint64_t tsc = (wrap - 250 + i * 100) & (wrap - 1);

		memcpy(at, psb, 16);
		at[16] = 0x19;
		for (size_t k = 0; k < 7; k++)
			at[17 + k] = (uint8_t)(tsc >> 8 * k);
		memcpy(at + 24, "\x02\x23", 2);
	}
	assert_true(segment_find(trace, sizeof(trace), wrap - 100, &place));
	assert_int_equal(place.offset, 26);
	assert_true(segment_find(trace, sizeof(trace), 60, &place));
	assert_int_equal(place.offset, 3 * 26);
	assert_int_equal(segment_window(trace, sizeof(trace), 200), 150);
	assert_ptr_equal(sync_find_tsc(trace, trace + sizeof(trace), 40), trace + 3 * 26);
	assert_false(segment_find(trace, sizeof(trace), wrap - 300, &place));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_cpu_loop_gives_every_instruction),
		cmocka_unit_test(replay_cpu_several_gives_each),
		cmocka_unit_test(replay_all_at_one_time_goes_on_with_the_first),
		cmocka_unit_test(replay_cpu_last_time_begins_at_psb_before),
		cmocka_unit_test(replay_cpu_what_is_missing_is_a_gap),
		cmocka_unit_test(replay_cpu_consumer_result_ends_it),
		cmocka_unit_test(segment_window_finds_last_psb_not_after),
		cmocka_unit_test(tscmap_converts_both_ways),
		cmocka_unit_test(tscmap_long_up_takes_the_nearest_tsc),
		cmocka_unit_test(segment_find_over_the_wrap_goes_by_time),
	};

	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
