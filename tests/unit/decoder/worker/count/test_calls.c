#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/worker/count/calls.h"
#include "proto/base.h"

/* Decides the change for ITEM, and applies it as the owner of a stack does. */
static void apply(struct calls *c, const struct flow_item *item)
{
	struct calls_change change = calls_decide(c, item);
	struct calls_frame dropped;

	assert_true(change.pops <= calls_depth(c));
	while (change.pops-- > 0)
		calls_pop(c);
	if (change.pushes)
		assert_true(calls_push(c, &change.frame, &dropped) >= 0);
}

static void step(struct calls *c, uint8_t kind, uint64_t from, uint64_t to)
{
	const struct flow_item item = {.kind = kind, .from = from, .to = to};

	apply(c, &item);
}

#define MAX_STEPS  12
#define MAX_FRAMES 4

struct scenario {
	const char *name;
	struct flow_item items[MAX_STEPS];
	size_t depth;
	uint64_t frames[MAX_FRAMES]; /* innermost first */
};

#define CALL(f, t)                                    \
	{                                             \
		.kind = FLOW_CALL, .from = f, .to = t \
	}
#define CALLI(f, t)                                       \
	{                                                 \
		.kind = FLOW_CALL_IND, .from = f, .to = t \
	}
#define RET(f, t)                                    \
	{                                            \
		.kind = FLOW_RET, .from = f, .to = t \
	}
#define JUMPI(f, t)                                       \
	{                                                 \
		.kind = FLOW_JUMP_IND, .from = f, .to = t \
	}
#define ENABLE(t)                            \
	{                                    \
		.kind = FLOW_ENABLE, .to = t \
	}
#define STOP(f)                                                           \
	{                                                                 \
		.kind = FLOW_DISABLE, .from = f, .flags = FLOW_ASYNC_STOP \
	}
#define SYSCALL(f)                                                          \
	{                                                                   \
		.kind = FLOW_SYSCALL, .from = f, .insns = 3, .start = f - 9 \
	}
#define SIGRETURN(f)                                                        \
	{                                                                   \
		.kind = FLOW_SYSCALL, .from = f, .insns = 2, .start = f - 7 \
	}
#define GETPC(f)                                                                     \
	{                                                                            \
		.kind = FLOW_CALL, .from = f, .to = f + 5, .flags = FLOW_ZERO_LENGTH \
	}
#define FAR(f, t)                                    \
	{                                            \
		.kind = FLOW_FAR, .from = f, .to = t \
	}
#define ASYNC(f, t)                                    \
	{                                              \
		.kind = FLOW_ASYNC, .from = f, .to = t \
	}
#define GAP                      \
	{                        \
		.kind = FLOW_GAP \
	}

static const struct scenario scenarios[] = {
	{"call", {CALL(100, 1000), CALLI(1010, 2000)}, 2, {1010, 100}},
	{"return", {CALL(100, 1000), CALLI(1010, 2000), RET(2009, 1012)}, 1, {100}},
	{"return by 15", {CALL(50, 90), CALL(100, 1000), RET(1009, 115)}, 1, {50}},
	{"return by 16", {CALL(50, 90), CALL(100, 1000), RET(1009, 116)}, 0, {0}},
	{"getpc", {CALL(100, 1000), GETPC(1010)}, 1, {100}},
	{"longjmp",
	 {CALL(100, 1000), CALL(1010, 2000), CALL(2010, 3000), JUMPI(3010, 1015), RET(1020, 105)},
	 0,
	 {0}},
	{"longjmp over two",
	 {CALL(50, 90), CALL(100, 1000), CALL(1010, 2000), CALL(2010, 3000), RET(3010, 105)},
	 1,
	 {50}},
	{"swapcontext", {CALL(100, 1000), CALL(1010, 2000), RET(2010, 9000)}, 0, {0}},
	{"return from before the trace", {RET(2010, 9000), CALL(9010, 1000)}, 1, {9010}},
	{"syscall", {CALL(100, 1000), SYSCALL(1010), ENABLE(1012)}, 1, {100}},
	{"restarted syscall", {CALL(100, 1000), SYSCALL(1010), ENABLE(1010)}, 1, {100}},
	{"interrupt", {CALL(100, 1000), STOP(1010), ENABLE(1010)}, 1, {100}},
	{"signal", {CALL(100, 1000), STOP(1010), ENABLE(5000)}, 2, {1010, 100}},
	{"signal during syscall", {CALL(100, 1000), SYSCALL(1010), ENABLE(5000)}, 2, {1012, 100}},
	{"handler calls", {STOP(1010), ENABLE(5000), CALL(5010, 6000)}, 2, {5010, 1010}},
	{"handler returns",
	 {CALL(100, 1000), STOP(1010), ENABLE(5000), CALL(5010, 6000), RET(6001, 5015),
	  RET(5020, 7000)},
	 2,
	 {1010, 100}},
	{"sigreturn",
	 {CALL(100, 1000), STOP(1010), ENABLE(5000), RET(5020, 7000), SIGRETURN(7007),
	  ENABLE(1010)},
	 1,
	 {100}},
	{"sigreturn to a restarted syscall",
	 {CALL(100, 1000), SYSCALL(1010), ENABLE(5000), RET(5020, 7000), SIGRETURN(7007),
	  ENABLE(1010)},
	 1,
	 {100}},
	{"sigreturn of a signal before the trace",
	 {CALL(5010, 6000), RET(6001, 5015), RET(5020, 7000), SIGRETURN(7007), ENABLE(1010)},
	 0,
	 {0}},
	{"siglongjmp",
	 {CALL(100, 1000), STOP(1010), ENABLE(5000), JUMPI(5010, 1020), RET(1030, 105)},
	 0,
	 {0}},
	{"gap", {CALL(100, 1000), CALL(1010, 2000), GAP}, 0, {0}},
	{"asynchronous within the trace",
	 {CALL(100, 1000), {.kind = FLOW_ASYNC, .from = 1010, .to = 5000}},
	 2,
	 {1010, 100}},
	{"interrupt return",
	 {CALL(100, 1000),
	  {.kind = FLOW_ASYNC, .from = 1010, .to = 5000},
	  CALL(5010, 6000),
	  {.kind = FLOW_FAR, .from = 6010, .to = 1010}},
	 1,
	 {100}},
};

static void calls_decide_scenario_leaves_frames(void **state)
{
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		struct calls c;

		calls_init(&c);
		for (j = 0; j < MAX_STEPS && (s->items[j].from != 0 || s->items[j].to != 0 ||
					      s->items[j].kind == FLOW_GAP);
		     j++)
			apply(&c, &s->items[j]);
		if (calls_depth(&c) != s->depth)
			fail_msg("%s: depth %zu, not %zu", s->name, calls_depth(&c), s->depth);
		for (j = 0; j < s->depth; j++)
			if (calls_at(&c, j)->from != s->frames[j])
				fail_msg("%s: frame %zu is %zu", s->name, j,
					 (size_t)calls_at(&c, j)->from);
		calls_done(&c);
	}
}

/* From 10000 on it is the kernel. */
static const struct scenario kernel_scenarios[] = {
	{"system call",
	 {CALL(100, 1000), FAR(1010, 10000), CALL(10010, 11000)},
	 3,
	 {10010, 1010, 100}},
	{"and back",
	 {CALL(100, 1000), FAR(1010, 10000), CALL(10010, 11000), RET(11010, 10015),
	  FAR(10020, 1012)},
	 1,
	 {100}},
	{"restarted", {CALL(100, 1000), FAR(1010, 10000), FAR(10020, 1010)}, 1, {100}},
	{"back out of the middle",
	 {CALL(100, 1000), FAR(1010, 10000), CALL(10010, 11000), FAR(11020, 1012)},
	 1,
	 {100}},
	{"signal", {CALL(100, 1000), FAR(1010, 10000), FAR(10020, 5000)}, 2, {1012, 100}},
	{"interrupt",
	 {ASYNC(1010, 10000), CALL(10010, 11000), ASYNC(11010, 12000)},
	 3,
	 {11010, 10010, 1010}},
	{"interrupts end",
	 {ASYNC(1010, 10000), CALL(10010, 11000), ASYNC(11010, 12000), FAR(12010, 11010)},
	 2,
	 {10010, 1010}},
	{"int3 goes on behind it",
	 {ASYNC(1010, 10000), CALL(10010, 11000), ASYNC(11010, 12000), FAR(12010, 11015)},
	 2,
	 {10010, 1010}},
	{"interrupt and back", {CALL(100, 1000), ASYNC(1010, 10000), FAR(10010, 1010)}, 1, {100}},
	{"entry not seen", {CALL(10000, 11000), FAR(11010, 1010)}, 0, {0}},
};

static void calls_decide_in_kernel_leaves_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kernel_scenarios); i++) {
		const struct scenario *s = &kernel_scenarios[i];
		struct calls c;

		calls_init(&c);
		c.kernel_start = 10000;
		for (size_t k = 0; k < MAX_STEPS && (s->items[k].from || s->items[k].to); k++)
			apply(&c, &s->items[k]);
		if (calls_depth(&c) != s->depth)
			fail_msg("%s: depth %zu", s->name, calls_depth(&c));
		for (size_t k = 0; k < s->depth; k++)
			if (calls_at(&c, k)->from != s->frames[k])
				fail_msg("%s: frame %zu", s->name, k);
		calls_done(&c);
	}
}

static void calls_push_deep_recursion_keeps_innermost(void **state)
{
	struct calls c;
	uint64_t i, n = 3 * CALLS_MAX_DEPTH + 7;

	(void)state;
	calls_init(&c);
	for (i = 0; i < n; i++)
		step(&c, FLOW_CALL, 1000 + 100 * i, 5);
	assert_int_equal(calls_depth(&c), CALLS_MAX_DEPTH);
	assert_int_equal(calls_at(&c, 0)->from, 1000 + 100 * (n - 1));
	for (i = n; i-- > n - CALLS_MAX_DEPTH;)
		step(&c, FLOW_RET, 1, 1000 + 100 * i + 5);
	assert_int_equal(calls_depth(&c), 0);
	/* A forgotten call returns all the same. */
	step(&c, FLOW_RET, 1, 1000 + 100 * i + 5);
	assert_int_equal(calls_depth(&c), 0);
	calls_done(&c);
}

static void calls_decide_endless_signals_stay_bounded(void **state)
{
	struct calls c;
	unsigned i;

	(void)state;
	calls_init(&c);
	for (i = 1; i < 10 * CALLS_MAX_SIGNALS; i++) {
		step(&c, FLOW_ASYNC, 100000 + i, 5000);
		step(&c, FLOW_CALL, 5010, 6000);
		assert_true(c.n_signals <= CALLS_MAX_SIGNALS);
	}
	calls_done(&c);
}

static void calls_decide_unmatched_returns_in_handler_clear(void **state)
{
	struct calls c;

	(void)state;
	calls_init(&c);
	step(&c, FLOW_CALL, 100, 1000);
	step(&c, FLOW_ASYNC, 1010, 5000);
	step(&c, FLOW_RET, 5010, 7000);
	assert_int_equal(calls_depth(&c), 2);
	step(&c, FLOW_RET, 7010, 8000);
	assert_int_equal(calls_depth(&c), 0);
	calls_done(&c);
}

static void say(struct calls *c, uint64_t tsx, uint8_t flags)
{
	const struct flow_mark mark = {.kind = FLOW_MARK_TSX, .value = tsx, .flags = flags};

	calls_mark(c, &mark);
}

/* A transaction aborts two calls deep: the stack is what it was when it began. */
static void calls_decide_abort_ends_what_the_transaction_called(void **state)
{
	const struct flow_mark other = {.kind = FLOW_MARK_CBR, .value = 8};
	struct calls c;

	(void)state;
	calls_init(&c);
	step(&c, FLOW_CALL, 0x100, 0x200);
	say(&c, FLOW_TSX_BEGIN, 0);
	step(&c, FLOW_CALL, 0x210, 0x300);
	step(&c, FLOW_CALL, 0x310, 0x400);
	say(&c, FLOW_TSX_ABORT, 0);
	calls_mark(&c, &other);
	step(&c, FLOW_ASYNC, 0x404, 0x220);
	assert_int_equal(calls_depth(&c), 1);
	assert_int_equal(calls_at(&c, 0)->from, 0x100);
	/* The next one is an interrupt again. */
	step(&c, FLOW_ASYNC, 0x222, 0x500);
	assert_int_equal(calls_depth(&c), 2);
	assert_true(calls_at(&c, 0)->signal);
	calls_done(&c);
}

/* Nobody knows what a transaction called if its beginning was not seen. */
static void calls_decide_abort_of_unknown_begin_keeps_the_stack(void **state)
{
	struct calls c;

	(void)state;
	calls_init(&c);
	step(&c, FLOW_CALL, 0x100, 0x200);
	say(&c, FLOW_TSX_BEGIN, FLOW_MARK_STATUS);
	step(&c, FLOW_CALL, 0x210, 0x300);
	say(&c, FLOW_TSX_ABORT, 0);
	step(&c, FLOW_ASYNC, 0x304, 0x220);
	assert_int_equal(calls_depth(&c), 2);
	/* A committed one is over. */
	say(&c, FLOW_TSX_BEGIN, 0);
	step(&c, FLOW_CALL, 0x310, 0x400);
	say(&c, FLOW_TSX_COMMIT, 0);
	say(&c, FLOW_TSX_ABORT, 0);
	step(&c, FLOW_ASYNC, 0x404, 0x320);
	assert_int_equal(calls_depth(&c), 3);
	/* One that returned out of where it began cannot be put back. */
	say(&c, FLOW_TSX_BEGIN, 0);
	step(&c, FLOW_RET, 0x410, 0x215);
	say(&c, FLOW_TSX_ABORT, 0);
	step(&c, FLOW_ASYNC, 0x218, 0x320);
	assert_int_equal(calls_depth(&c), 1);
	calls_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_decide_scenario_leaves_frames),
		cmocka_unit_test(calls_decide_in_kernel_leaves_frames),
		cmocka_unit_test(calls_push_deep_recursion_keeps_innermost),
		cmocka_unit_test(calls_decide_endless_signals_stay_bounded),
		cmocka_unit_test(calls_decide_unmatched_returns_in_handler_clear),
		cmocka_unit_test(calls_decide_abort_ends_what_the_transaction_called),
		cmocka_unit_test(calls_decide_abort_of_unknown_begin_keeps_the_stack),
	};

	return cmocka_run_group_tests_name("calls", tests, NULL, NULL);
}
