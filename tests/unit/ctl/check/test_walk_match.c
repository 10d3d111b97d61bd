/*
 * ctl/check/walk_match: the model's own branches are equal, whatever lies between them, and each
 * kind of change is a difference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "ctl/check/walk_match.h"

#define SEED	UINT64_C(0x4242424242424207)
#define OUTSIDE UINT64_C(0xffffffff81000000)

static struct walk_match match;
static struct walk_model model;
static struct walk_tally tally;

/* The lines of one test, which may change them. */
static struct walk_line lines[200000];
static size_t n_lines;

static int begin(void **state)
{
	(void)state;
	walk_match_init(&match, SEED, -1);
	memset(&tally, 0, sizeof(tally));
	n_lines = 0;
	return 0;
}

static void put(uint64_t from, uint64_t to)
{
	lines[n_lines] = (struct walk_line){from, to, 1000, 1010, n_lines};
	n_lines++;
}

/* Makes the lines that a trace of user code has for a branch. */
static void put_branch(const struct walk_branch *b)
{
	if (b->kind == WALK_KIND_NOT_TAKEN)
		return;
	if (b->kind != WALK_KIND_SYSCALL) {
		put(b->from, b->to);
		return;
	}
	put(b->from, 0);
	put(0, b->to);
}

/* Makes the lines of ROUNDS rounds from round FIRST on. Returns the number of branches. */
static uint64_t put_rounds(uint64_t seed, uint32_t first, unsigned rounds)
{
	struct walk_branch b;
	uint64_t n = 0;

	walk_model_init(&model, seed, first);
	while (rounds > 0) {
		walk_model_next(&model, &b);
		put_branch(&b);
		rounds -= b.from == WALK_AGAIN_AT;
		n++;
	}
	return n;
}

static void play(void)
{
	for (size_t i = 0; i < n_lines; i++)
		walk_match_line(&match, &lines[i], &tally);
}

/* The first line from START on whose branch is at FROM. */
static size_t find(uint64_t from, size_t start)
{
	while (start < n_lines && lines[start].from != from)
		start++;
	assert_true(start < n_lines);
	return start;
}

static void walk_match_models_own_are_equal(void **state)
{
	uint64_t n;

	(void)state;
	put(0x10001700, WALK_ROUND);
	n = put_rounds(SEED, 5, 300);
	play();
	assert_int_equal(tally.differences, 0);
	assert_int_equal(tally.branches, n);
	assert_int_equal(tally.rounds, 300);
	assert_int_equal(tally.skipped, 1);
	assert_true(tally.width_sum == 10 * tally.widths && tally.widths > n / 2);
}

/* The lowest byte of the seed comes from the trace. */
static void walk_match_lowest_byte_of_seed_is_read(void **state)
{
	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED ^ 0xff, 5, 3);
	play();
	assert_int_equal(tally.differences, 0);
	assert_int_equal(tally.rounds, 3);
}

/* After the first round, the lowest byte must stay the same, as one thread runs one walk. */
static void walk_match_other_walks_round_is_a_difference(void **state)
{
	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	play();
	walk_match_gap(&match);
	n_lines = 0;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED ^ 1, 5, 1);
	play();
	assert_int_equal(tally.rounds, 3);
	assert_int_equal(tally.differences, 1);
	assert_int_equal(match.first.expected.from, WALK_BIT_LOOP_AT);
}

static void walk_match_other_seed_is_a_difference(void **state)
{
	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED ^ 0x100, 5, 3);
	play();
	assert_true(tally.differences > 0);
	assert_true(match.first.known);
}

static void walk_match_begins_anywhere(void **state)
{
	static const size_t skips[] = {1, 2, 30, 81, 150, 1000};

	for (size_t i = 0; i < sizeof(skips) / sizeof(*skips); i++) {
		begin(state);
		put_rounds(SEED, UINT32_MAX - 2, 20);
		memmove(lines, lines + skips[i], (n_lines - skips[i]) * sizeof(*lines));
		n_lines -= skips[i];
		play();
		assert_int_equal(tally.differences, 0);
		assert_true(tally.rounds >= 10);
	}
}

static void walk_match_gap_then_any_round_is_equal(void **state)
{
	size_t half;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	half = n_lines - 40;
	n_lines = half;
	play();
	walk_match_gap(&match);
	n_lines = 0;
	put_rounds(SEED, 500, 3);
	play();
	assert_int_equal(tally.differences, 0);
	assert_int_equal(tally.rounds, 2 + 2);
}

static void walk_match_missing_branch_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_STEP_LOOP_AT, 0);
	memmove(lines + at, lines + at + 1, (n_lines - at - 1) * sizeof(*lines));
	n_lines--;
	play();
	assert_int_equal(tally.differences, 1);
	assert_true(match.first.expected.from == WALK_STEP_LOOP_AT);
	assert_int_equal(match.first.round, 5);
	assert_true(match.first.got.offset == at + 1);
	assert_int_equal(tally.rounds, 2);
}

static void walk_match_other_target_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_DISPATCH_AT, 0);
	lines[at].to ^= 0x10;
	play();
	assert_int_equal(tally.differences, 1);
	assert_true(match.first.got.from == WALK_DISPATCH_AT);
}

static void walk_match_other_source_is_a_difference(void **state)
{
	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	lines[find(WALK_STEP_LOOP_AT, 0)].from = WALK_STEP_END;
	play();
	assert_int_equal(tally.differences, 1);
	assert_true(match.first.got.from == WALK_STEP_END);
}

/* A system call leaves user code. */
static void walk_match_system_call_as_a_branch_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 300);
	at = find(WALK_SYSCALL_AT, 0);
	lines[at].to = WALK_SYSCALL_AT + 2;
	memmove(lines + at + 1, lines + at + 2, (n_lines - at - 2) * sizeof(*lines));
	n_lines--;
	play();
	assert_int_equal(tally.differences, 1);
	assert_true(match.first.expected.kind == WALK_KIND_SYSCALL);
}

static void walk_match_impossible_head_is_a_difference(void **state)
{
	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	lines[find(WALK_BIT_LOOP_AT, 1)].to = WALK_ZERO;
	play();
	assert_int_equal(tally.differences, 1);
	assert_int_equal(tally.rounds, 2);
}

static void walk_match_interrupt_on_the_way_is_none(void **state)
{
	size_t at, n;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_DISPATCH_AT, find(WALK_DISPATCH_AT, 0) + 1);
	n = n_lines;
	memmove(lines + at + 4, lines + at, (n - at) * sizeof(*lines));
	lines[at] = (struct walk_line){WALK_STEP + 3, 0, 0, UINT64_MAX, 0};
	lines[at + 1] = (struct walk_line){0, WALK_STEP + 3, 0, UINT64_MAX, 0};
	/* The trace also has the kernel's own branches. */
	lines[at + 2] = (struct walk_line){WALK_DISPATCH_AT, OUTSIDE, 0, UINT64_MAX, 0};
	lines[at + 3] = (struct walk_line){OUTSIDE + 7, WALK_DISPATCH_AT, 0, UINT64_MAX, 0};
	n_lines = n + 4;
	play();
	assert_int_equal(tally.differences, 0);
	assert_int_equal(tally.interrupts, 2);
	assert_int_equal(tally.rounds, 3);
}

static void walk_match_interrupt_elsewhere_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_DISPATCH_AT, find(WALK_DISPATCH_AT, 0) + 1);
	memmove(lines + at + 2, lines + at, (n_lines - at) * sizeof(*lines));
	lines[at] = (struct walk_line){WALK_LEAF, 0, 0, UINT64_MAX, 0};
	lines[at + 1] = (struct walk_line){0, WALK_LEAF, 0, UINT64_MAX, 0};
	n_lines += 2;
	play();
	assert_int_equal(tally.differences, 1);
}

/* A thread that leaves at one place and comes back at another is a difference, unless it made a
 * system call. */
static void walk_match_back_elsewhere_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_DISPATCH_AT, 0);
	memmove(lines + at + 2, lines + at, (n_lines - at) * sizeof(*lines));
	lines[at] = (struct walk_line){WALK_STEP, 0, 0, UINT64_MAX, 0};
	lines[at + 1] = (struct walk_line){0, WALK_STEP + 3, 0, UINT64_MAX, 0};
	n_lines += 2;
	play();
	assert_int_equal(tally.differences, 1);
}

/* With may_jump, parts of the walk may be in the trace of a CPU that was overwritten. */
static void walk_match_back_elsewhere_may_jump_is_none(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 3);
	at = find(WALK_DISPATCH_AT, 0);
	n_lines = at;
	put(WALK_STEP, 0);
	put(0, WALK_LEAF);
	put_rounds(SEED, 9, 2);
	match.may_jump = true;
	play();
	assert_int_equal(tally.differences, 0);
	assert_int_equal(tally.rounds, 1);
}

static void walk_match_call_without_system_call_is_a_difference(void **state)
{
	size_t at;

	(void)state;
	put(0x10001700, WALK_ROUND);
	put_rounds(SEED, 5, 300);
	at = find(WALK_SYSCALL_AT, 0);
	memmove(lines + at, lines + at + 2, (n_lines - at - 2) * sizeof(*lines));
	n_lines -= 2;
	play();
	assert_int_equal(tally.differences, 1);
	assert_true(match.first.expected.kind == WALK_KIND_SYSCALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(walk_match_models_own_are_equal, begin),
		cmocka_unit_test_setup(walk_match_lowest_byte_of_seed_is_read, begin),
		cmocka_unit_test_setup(walk_match_other_walks_round_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_other_seed_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_begins_anywhere, begin),
		cmocka_unit_test_setup(walk_match_gap_then_any_round_is_equal, begin),
		cmocka_unit_test_setup(walk_match_missing_branch_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_other_target_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_other_source_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_system_call_as_a_branch_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_impossible_head_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_interrupt_on_the_way_is_none, begin),
		cmocka_unit_test_setup(walk_match_interrupt_elsewhere_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_back_elsewhere_is_a_difference, begin),
		cmocka_unit_test_setup(walk_match_back_elsewhere_may_jump_is_none, begin),
		cmocka_unit_test_setup(walk_match_call_without_system_call_is_a_difference, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
