/*
 * Walks of steps come to the same as their items: whole snapshots, counted both ways.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/steps.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"

struct fixture {
	struct bundle *bundle;
	struct replay *replay;
	struct tally tally;
	struct flow_stats stats[2];
	size_t walks;
};

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct fixture *f = userdata;

	for (size_t i = 0; i < s->n_items; i++)
		f->walks += s->items[i].kind == FLOW_STEPS;
	return tally_stretch(&f->tally, s);
}

static void count(struct fixture *f, const struct make_bundle *how, const char *map, bool steps)
{
	const struct replay_consumer consumer = {
		.stretch = on_stretch, .userdata = f, .stats = f->stats};

	*f = (struct fixture){.bundle = made_open(how)};
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	if (map != NULL)
		assert_int_equal(symbols_add_map(f->replay->symbols, MAKE_PID, map, strlen(map)),
				 0);
	f->replay->flow.steps = steps;
	f->replay->flow.marks = true;
	assert_int_equal(tally_init(&f->tally, f->replay), 0);
	assert_int_equal(replay_all(f->replay, &consumer), 0);
}

static void done(struct fixture *f)
{
	tally_done(&f->tally);
	replay_free(f->replay);
	bundle_free(f->bundle);
}

static void assert_same_branches(const struct tally_branch *a, const struct tally_branch *b)
{
	assert_int_equal(a->from, b->from);
	assert_int_equal(a->to, b->to);
	assert_int_equal(a->tsc_lo, b->tsc_lo);
	assert_int_equal(a->tsc_hi, b->tsc_hi);
	assert_int_equal(a->context, b->context);
	assert_int_equal(a->kind, b->kind);
}

/* Threads are of each one's own timeline, which are the same. */
static void assert_same_counters(const struct tally_counters *a, const struct tally_counters *b)
{
	size_t i;

	assert_true((a->thread == NULL) == (b->thread == NULL));
	if (a->thread != NULL)
		assert_int_equal(a->thread->tid, b->thread->tid);
	assert_int_equal(a->insns, b->insns);
	assert_int_equal(a->branches, b->branches);
	assert_int_equal(a->ticks, b->ticks);
	assert_int_equal(a->last_tsc, b->last_tsc);
	assert_int_equal(a->traced, b->traced);
	assert_int_equal(a->ip, b->ip);
	assert_int_equal(a->context, b->context);
	assert_int_equal(a->function, b->function);
	assert_memory_equal(&a->begin, &b->begin, sizeof(a->begin));
	assert_int_equal(a->called, b->called);
	assert_int_equal(a->cut, b->cut);
	assert_int_equal(a->n_last, b->n_last);
	for (i = 0; i < MIN_OF(a->n_last, (uint64_t)REPORT_LAST_BRANCHES); i++)
		assert_same_branches(&a->last[i], &b->last[i]);
	assert_int_equal(a->calls.last_return, b->calls.last_return);
	assert_int_equal(a->calls.stopped, b->calls.stopped);
	assert_int_equal(a->calls.n_signals, b->calls.n_signals);
	assert_int_equal(calls_depth(&a->calls), calls_depth(&b->calls));
	for (i = 0; i < calls_depth(&a->calls); i++) {
		assert_int_equal(calls_at(&a->calls, i)->from, calls_at(&b->calls, i)->from);
		assert_int_equal(calls_at(&a->calls, i)->function,
				 calls_at(&b->calls, i)->function);
		assert_memory_equal(&calls_at(&a->calls, i)->begin, &calls_at(&b->calls, i)->begin,
				    sizeof(struct calls_begin));
	}
}

static const struct durations *durations_of(const struct fixture *f,
					    const struct function *function)
{
	return function->durations ? &f->tally.functions.durations.list[function->durations - 1]
				   : NULL;
}

static void assert_same_durations(const struct durations *a, const struct durations *b)
{
	assert_int_equal(!a, !b);
	if (!a)
		return;
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->off, b->off);
	assert_int_equal(a->max, b->max);
	assert_int_equal(a->max_tsc, b->max_tsc);
	assert_int_equal(a->max_off, b->max_off);
	assert_memory_equal(a->counts, b->counts, sizeof(a->counts));
}

static void assert_same_functions(const struct function *a, const struct function *b)
{
	assert_int_equal(a->image, b->image);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->calls, b->calls);
	assert_int_equal(a->self_insns, b->self_insns);
	assert_int_equal(a->total_insns, b->total_insns);
	assert_int_equal(a->self_ticks, b->self_ticks);
	assert_int_equal(a->total_ticks, b->total_ticks);
	assert_int_equal(a->active, b->active);
	assert_int_equal(a->unended, b->unended);
	assert_int_equal(a->left, b->left);
	assert_true(a->left <= a->calls - a->unended);
	/* A call took no time, or is in the histogram, or has no end. */
	assert_true(a->unended <= a->calls);
}

static void assert_same(struct fixture *a, struct fixture *b)
{
	size_t i, n = a->replay->manifest->n_cpus;

	assert_int_equal(a->tally.n_threads, b->tally.n_threads);
	for (i = 0; i < a->tally.n_threads; i++)
		assert_same_counters(a->tally.threads[i], b->tally.threads[i]);
	tally_end(&a->tally);
	tally_end(&b->tally);
	assert_int_equal(a->tally.functions.n, b->tally.functions.n);
	for (i = 0; i < a->tally.functions.n; i++) {
		const struct function *x = &a->tally.functions.list[i];
		const struct function *y = &b->tally.functions.list[i];

		assert_same_functions(x, y);
		assert_same_durations(durations_of(a, x), durations_of(b, y));
	}
	assert_memory_equal(a->tally.cpus, b->tally.cpus, n * sizeof(*a->tally.cpus));
	for (i = 0; i < n; i++) {
		assert_int_equal(a->stats[i].instructions, b->stats[i].instructions);
		assert_int_equal(a->stats[i].branches, b->stats[i].branches);
	}
}

static void check_with_map(const struct make_bundle *how, const char *map)
{
	struct fixture items, steps;

	count(&items, how, map, false);
	count(&steps, how, map, true);
	assert_int_equal(items.walks, 0);
	/* The steps at a trace's end are not worth a walk. */
	assert_true(steps.walks > 0 || how->rounds < 10);
	assert_same(&items, &steps);
	done(&items);
	done(&steps);
}

static void check(const struct make_bundle *how)
{
	check_with_map(how, NULL);
}

/* One piece of a round lies in two functions, one decision ends none. */
static void tally_walk_rounds_come_to_their_items(void **state)
{
	unsigned n;

	(void)state;
	for (n = 1; n < 40; n++)
		check(&(struct make_bundle){.rounds = n});
	check(&(struct make_bundle){.rounds = 3000, .rounds_per_psb = 100});
}

static void tally_walk_returns_by_target_come_to_their_items(void **state)
{
	(void)state;
	check(&(struct make_bundle){.rounds = 200, .plain_returns = true});
}

static void tally_walk_interrupted_comes_to_its_items(void **state)
{
	(void)state;
	check(&(struct make_bundle){.rounds = 50, .rounds_per_psb = 8, .in_leaf = true});
}

static void tally_walk_threads_and_cpus_come_to_their_items(void **state)
{
	(void)state;
	check(&(struct make_bundle){.rounds = 40, .n_cpus = 2});
	check(&(struct make_bundle){.rounds = 90, .rounds_per_turn = 7});
}

static void tally_walk_beside_gaps_comes_to_its_items(void **state)
{
	(void)state;
	check(&(struct make_bundle){.rounds = 60, .overflow = true, .rounds_per_psb = 5});
}

static void tally_walk_with_the_kernel_comes_to_its_items(void **state)
{
	(void)state;
	check(&(struct make_bundle){.rounds = 60, .kernel = true});
}

static void tally_walk_with_a_perf_map_comes_to_its_items(void **state)
{
	(void)state;
	check_with_map(&(struct make_bundle){.rounds = 60}, "400209 2 two_nops\n400220 9 x\n");
}

/* Random programs: tail calls, functions that run into each other, symbols within others, returns
 * over several frames, times in the midst of all that. */
static void tally_walk_wild_programs_come_to_their_items(void **state)
{
	uint32_t seed;

	(void)state;
	for (seed = 1; seed <= 60; seed++)
		check(&(struct make_bundle){.wild = seed, .rounds = 40});
	check(&(struct make_bundle){.wild = seed, .rounds = 900, .rounds_per_turn = 3});
	/* In one batch a CPU: both are said to have had the thread at the same time. */
	check(&(struct make_bundle){.wild = seed + 1, .rounds = 8, .n_cpus = 2});
}

static int on_counted_stretch(void *userdata, const struct replay_stretch *s)
{
	return steps_count_stretch(userdata, s);
}

static void steps_count_stretch_comes_to_what_items_do(void **state)
{
	const struct make_bundle how = {.wild = 11, .rounds = 200};
	struct steps_count counts = {0};
	struct fixture items, sums;
	const struct replay_consumer consumer = {
		.stretch = on_counted_stretch, .userdata = &counts, .stats = sums.stats};

	(void)state;
	count(&items, &how, NULL, false);
	sums = (struct fixture){.bundle = made_open(&how)};
	assert_int_equal(replay_new(sums.bundle, NULL, &sums.replay), 0);
	sums.replay->flow.steps = true;
	assert_int_equal(replay_all(sums.replay, &consumer), 0);
	assert_true(counts.table.n_nodes > 0);
	assert_int_equal(items.stats[0].instructions, sums.stats[0].instructions);
	assert_int_equal(items.stats[0].branches, sums.stats[0].branches);
	steps_count_done(&counts);
	replay_free(sums.replay);
	bundle_free(sums.bundle);
	done(&items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tally_walk_rounds_come_to_their_items),
		cmocka_unit_test(tally_walk_returns_by_target_come_to_their_items),
		cmocka_unit_test(tally_walk_interrupted_comes_to_its_items),
		cmocka_unit_test(tally_walk_threads_and_cpus_come_to_their_items),
		cmocka_unit_test(tally_walk_beside_gaps_comes_to_its_items),
		cmocka_unit_test(tally_walk_with_the_kernel_comes_to_its_items),
		cmocka_unit_test(tally_walk_with_a_perf_map_comes_to_its_items),
		cmocka_unit_test(tally_walk_wild_programs_come_to_their_items),
		cmocka_unit_test(steps_count_stretch_comes_to_what_items_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
