/*
 * How long calls took: the histogram beside a sorted list, and instances of functions out of the
 * hard cases of control flow, given as branches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/durations.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"

#define N 20000u

/* --- The histogram --- */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A number below 2^BITS whose size is as random as its digits. */
static uint64_t some(uint64_t *seed, unsigned bits)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> (64 - 1 - (*seed >> 8) % bits);
}

static void quantile_is_that_of_a_sorted_list_or_an_eighth_more(void **state)
{
	static const unsigned permilles[] = {0, 1, 250, 500, 900, 990, 999, 1000};
	uint64_t *took = calloc(N, sizeof(*took)), seed = 7;

	(void)state;
	for (unsigned bits = 1; bits <= 44; bits++) {
		struct durations_list list = {0};
		uint32_t number = 0;

		for (size_t i = 0; i < N; i++) {
			took[i] = some(&seed, bits);
			if (took[i] > 0)
				assert_int_equal(durations_add(&list, &number,
							       &(struct durations_call){
								       .ticks = took[i], .tsc = i}),
						 0);
		}
		qsort(took, N, sizeof(*took), compare);
		for (size_t i = 0; i < ARRAY_SIZE(permilles) && number > 0; i++) {
			size_t rank = (N * permilles[i] + 999) / 1000;
			uint64_t is = took[rank > 0 ? rank - 1 : 0];
			uint64_t q = durations_quantile(&list.list[0], N, permilles[i]);

			if (rank == 0)
				is = 0;
			assert_true(q >= is && q <= is + is / 8);
		}
		assert_int_equal(list.list[0].max, took[N - 1]);
		durations_done(&list);
	}
	free(took);
}

static void octaves_have_each_call_once(void **state)
{
	struct durations_list list = {0};
	uint64_t wanted[DURATIONS_OCTAVES] = {0}, seed = 5;
	uint32_t number = 0;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		const uint64_t took = some(&seed, 44) + 1;

		wanted[63 - __builtin_clzll(took)]++;
		assert_int_equal(durations_add(&list, &number,
					       &(struct durations_call){.ticks = took, .tsc = 1}),
				 0);
	}
	/* Longer than the histogram. */
	wanted[DURATIONS_OCTAVES - 1]++;
	assert_int_equal(durations_add(&list, &number,
				       &(struct durations_call){.ticks = UINT64_MAX, .tsc = 1}),
			 0);
	for (unsigned i = 0; i < DURATIONS_OCTAVES; i++)
		assert_int_equal(durations_octave(&list.list[0], i), wanted[i]);
	durations_done(&list);
}

static void add_beyond_the_limit_is_counted(void **state)
{
	struct durations_list list = {0};
	uint32_t number;

	(void)state;
	for (unsigned i = 0; i < DURATIONS_MAX + 3; i++) {
		number = 0;
		assert_int_equal(durations_add(&list, &number,
					       &(struct durations_call){.ticks = 1, .tsc = 1}),
				 0);
		assert_int_equal(number, i < DURATIONS_MAX ? i + 1 : 0);
	}
	assert_int_equal(list.refused, 3);
	number = 1;
	assert_int_equal(durations_add(&list, &number,
				       &(struct durations_call){.ticks = UINT64_MAX, .tsc = 1}),
			 0);
	assert_int_equal(list.list[0].n, 2);
	durations_done(&list);
}

/* --- Instances --- */

/* The made program has main, tail directly behind it, and leaf apart (make_bundle.h). */
#define MAIN MAKE_MAIN
#define TAIL (MAKE_BASE + 0x207)
#define LEAF MAKE_LEAF

struct branch {
	uint8_t kind;
	uint64_t from, to;
	uint64_t tsc;
};

struct expected {
	uint64_t calls, unended;
	uint64_t took; /* the longest call, in ticks; 0: none took time */
	uint64_t left; /* calls that ended with what they had jumped to */
};

struct story {
	const char *name;
	struct branch branches[12];
	struct expected main, tail, leaf;
	size_t depth; /* at the end, without jumps */
};

static const struct story stories[] = {
	{.name = "a call and its return",
	 .branches = {{FLOW_CALL, MAIN, LEAF, 100}, {FLOW_RET, LEAF + 2, MAIN + 5, 170}},
	 .leaf = {1, 0, 70}},
	{.name = "a call within a call, of which the outer one lasts longer",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_RET, LEAF + 2, TAIL + 2, 130},
		      {FLOW_RET, TAIL + 3, MAIN + 5, 200}},
	 .tail = {1, 0, 100},
	 .leaf = {1, 0, 10}},
	{.name = "a tail call, which ends together with its caller",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_JUMP, TAIL + 3, LEAF, 140},
		      {FLOW_RET, LEAF + 2, MAIN + 5, 200}},
	 .tail = {1, 0, 100, 1},
	 .leaf = {1, 0, 60}},
	{.name = "a part that lies apart: a jump there and back into the middle",
	 .branches = {{FLOW_CALL, MAIN, LEAF, 100},
		      {FLOW_JUMP, LEAF, TAIL, 110},
		      {FLOW_JUMP, TAIL + 3, LEAF + 2, 150},
		      {FLOW_RET, LEAF + 2, MAIN + 5, 180}},
	 .tail = {1, 0, 40},
	 .leaf = {1, 0, 80}},
	{.name = "two functions that jump to each other's beginning are entered each time",
	 .branches = {{FLOW_CALL, MAIN, LEAF, 100},
		      {FLOW_JUMP, LEAF, TAIL, 110},
		      {FLOW_JUMP, TAIL, LEAF, 150},
		      {FLOW_JUMP, LEAF, TAIL, 155},
		      {FLOW_RET, TAIL + 3, MAIN + 5, 180}},
	 .tail = {2, 0, 40},
	 .leaf = {2, 0, 50, 2}},
	{.name = "longjmp: a jump into the middle of a caller ends all that was called",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_JUMP_IND, LEAF + 2, MAIN + 5, 160},
		      {FLOW_CALL, MAIN, LEAF, 200},
		      {FLOW_RET, LEAF + 2, MAIN + 5, 203}},
	 .tail = {1, 0, 60},
	 .leaf = {2, 0, 40}},
	{.name = "a return over several frames ends all of them",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_RET, LEAF + 2, MAIN + 5, 160}},
	 .tail = {1, 0, 60},
	 .leaf = {1, 0, 40}},
	{.name = "a return to another stack: nobody knows where the callers end",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_RET, LEAF + 2, MAKE_BASE + 0x300, 160}},
	 .tail = {1, 1, 0},
	 .leaf = {1, 0, 40}},
	{.name = "a gap: nobody knows where the calls end",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_COND, LEAF, LEAF + 2, 130},
		      {FLOW_GAP, 0, 0, 160},
		      {FLOW_ENABLE, 0, MAIN, 180}},
	 .tail = {1, 1, 0},
	 .leaf = {1, 1, 0}},
	{.name = "the end of the trace",
	 .branches = {{FLOW_CALL, MAIN, TAIL, 100},
		      {FLOW_CALL, TAIL, LEAF, 120},
		      {FLOW_COND, LEAF, LEAF + 2, 130}},
	 .tail = {1, 1, 0},
	 .leaf = {1, 1, 0},
	 .depth = 2},
	{.name = "a system call within a call belongs to the call, and is off",
	 .branches = {{FLOW_CALL, MAIN, LEAF, 100},
		      {FLOW_SYSCALL, LEAF, 0, 110},
		      {FLOW_ENABLE, 0, LEAF + 2, 190},
		      {FLOW_RET, LEAF + 2, MAIN + 5, 200}},
	 .leaf = {1, 0, 100}},
};

struct fixture {
	struct bundle *bundle;
	struct replay *replay;
	struct tally tally;
	struct replay_stretch s;
};

static int ignore(void *userdata, const struct replay_stretch *s)
{
	(void)userdata;
	(void)s;
	return 0;
}

static void begin(struct fixture *f)
{
	const struct make_bundle how = {.rounds = 1};
	const struct replay_consumer consumer = {.stretch = ignore};

	*f = (struct fixture){.bundle = made_open(&how)};
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	assert_int_equal(tally_init(&f->tally, f->replay), 0);
	assert_int_equal(replay_all(f->replay, &consumer), 0);
	assert_int_equal(contexts_intern(&f->replay->contexts,
					 timeline_space(f->replay->timeline, MAKE_PID, MAKE_TSC),
					 MAKE_TSC, MAKE_TSC, (struct context_versions){0},
					 &f->s.context),
			 0);
	f->s.goes_on = true;
}

static void done(struct fixture *f)
{
	tally_done(&f->tally);
	replay_free(f->replay);
	bundle_free(f->bundle);
}

/* Each run between two branches is one instruction at its end, and one at its beginning. */
static void tell(struct fixture *f, const struct branch *branches, size_t n)
{
	static const struct flow_gap gap = {.fault = FAULT_OVERFLOW};
	struct flow_item items[2 * ARRAY_SIZE(stories[0].branches) + 1] = {
		{.kind = FLOW_ENABLE, .to = MAIN, .tsc_lo = 50, .tsc_hi = 50}};
	struct replay_stretch s = f->s;
	uint64_t start = MAIN;

	for (size_t i = 0; i < n; i++) {
		const struct branch *b = &branches[i];

		items[i + 1] = (struct flow_item){
			.kind = b->kind,
			.start = b->from != 0 ? start : 0,
			.from = b->from,
			.to = b->to,
			.insns = b->from != 0,
			.tsc_lo = b->tsc,
			.tsc_hi = b->tsc,
		};
		start = b->to;
	}
	s.items = items;
	s.n_items = n + 1;
	s.gaps = &gap;
	assert_int_equal(tally_stretch(&f->tally, &s), 0);
}

static void check(const struct fixture *f, const char *story, const char *name,
		  const struct expected *e)
{
	const struct functions *functions = &f->tally.functions;

	for (size_t i = 1; i < functions->n; i++) {
		const struct function *fn = &functions->list[i];
		uint64_t took =
			fn->durations ? functions->durations.list[fn->durations - 1].max : 0;

		if (!fn->name || strcmp(fn->name, name) != 0)
			continue;
		if (fn->calls != e->calls || fn->unended != e->unended || took != e->took)
			fail_msg("%s: %s: %zu calls, %zu without an end, the longest %zu", story,
				 name, (size_t)fn->calls, (size_t)fn->unended, (size_t)took);
		if (fn->left != e->left)
			fail_msg("%s: %s: %zu calls were left", story, name, (size_t)fn->left);
		if (fn->active != 0)
			fail_msg("%s: %s is active", story, name);
		return;
	}
	assert_int_equal(e->calls, 0);
}

static void instances_of_each_story_are_as_they_were(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
		const struct story *s = &stories[i];
		size_t n = 0, depth = 0;
		struct fixture f;

		begin(&f);
		while (n < ARRAY_SIZE(s->branches) && s->branches[n].tsc != 0)
			n++;
		tell(&f, s->branches, n);
		for (size_t j = 0; j < calls_depth(&f.tally.current->calls); j++)
			depth += calls_at(&f.tally.current->calls, j)->from != CALLS_JUMP;
		tally_end(&f.tally);
		check(&f, s->name, "main", &s->main);
		check(&f, s->name, "tail", &s->tail);
		check(&f, s->name, "leaf", &s->leaf);
		if (depth != s->depth)
			fail_msg("%s: depth %zu", s->name, depth);
		done(&f);
	}
}

/* The last story: 80 of 100 ticks were not traced. */
static void instance_knows_how_long_it_was_off(void **state)
{
	const struct story *s = &stories[ARRAY_SIZE(stories) - 1];
	struct fixture f;

	(void)state;
	begin(&f);
	tell(&f, s->branches, 4);
	assert_int_equal(f.tally.functions.durations.n, 1);
	assert_int_equal(f.tally.functions.durations.list[0].off, 80);
	assert_int_equal(f.tally.functions.durations.list[0].max_off, 80);
	assert_int_equal(f.tally.functions.durations.list[0].max_tsc, 100);
	done(&f);
}

/* A wait is no part of how slow a call was. */
static void durations_slower_call_that_waited_counts_as_if_it_had_not(void **state)
{
	const struct durations_call calls[] = {
		{.ticks = 100, .tsc = 10},
		{.ticks = 9000, .waited = 8950, .tsc = 200},
		{.ticks = 5000, .waited = 10, .tsc = 20000, .off = 7},
		{.ticks = 3, .waited = 3, .tsc = 30000},
	};
	struct durations_list list = {0};
	uint32_t number = 0;
	uint64_t last;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		assert_int_equal(durations_add(&list, &number, &calls[i]), 0);
	assert_int_equal(durations_slower(&list.list[0], 12, &last), 1);
	assert_int_equal(last, 25000);
	assert_int_equal(durations_slower(&list.list[0], 5, &last), 3);
	assert_int_equal(durations_slower(&list.list[0], 13, &last), 0);
	assert_int_equal(last, 0);
	assert_int_equal(list.list[0].slowest.ticks, 4990);
	assert_int_equal(list.list[0].slowest.off, 7);
	assert_int_equal(list.list[0].max, 9000);
	durations_done(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantile_is_that_of_a_sorted_list_or_an_eighth_more),
		cmocka_unit_test(octaves_have_each_call_once),
		cmocka_unit_test(add_beyond_the_limit_is_counted),
		cmocka_unit_test(instances_of_each_story_are_as_they_were),
		cmocka_unit_test(instance_knows_how_long_it_was_off),
		cmocka_unit_test(durations_slower_call_that_waited_counts_as_if_it_had_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
