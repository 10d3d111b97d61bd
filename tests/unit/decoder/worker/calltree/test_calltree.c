#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/calltree/calltree.h"
#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/callstream.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"

/* Addresses of the program of make_bundle.h. */
#define MAIN  MAKE_MAIN
#define TAIL  (MAKE_MAIN + 7)
#define LEAF  MAKE_LEAF
#define OTHER (MAKE_MAIN + 0x14) /* code without a name, behind tail */

struct fixture {
	struct bundle *bundle;
	struct replay *replay;
	struct tally tally;
	struct lines lines;
	struct calltree *calls;
	struct decode_options options;
	struct replay_stretch stretch;
	uint64_t tsc;
	int fd;
};

static int ignore(void *userdata, const struct replay_stretch *s)
{
	(void)userdata;
	(void)s;
	return 0;
}

/* Decodes HOW, so that its contexts exist, and begins a view of calls of its thread. */
static void begin(struct fixture *f, const struct make_bundle *how)
{
	const struct replay_consumer consumer = {.stretch = ignore};

	*f = (struct fixture){.tsc = MAKE_TSC + 100};
	f->bundle = made_open(how);
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	assert_int_equal(replay_all(f->replay, &consumer), 0);
	assert_int_equal(tally_init(&f->tally, f->replay), 0);
	assert_int_equal(memfd_new("out", 0, &f->fd), 0);
	assert_int_equal(lines_init(&f->lines, f->fd), 0);
	assert_int_equal(calltree_new(&f->options, f->replay, &f->tally, &f->lines, &f->calls), 0);
	f->stretch.thread = timeline_last_thread(f->replay->timeline, MAKE_TID);
	assert_non_null(f->stretch.thread);
	assert_int_equal(contexts_intern(&f->replay->contexts,
					 timeline_space(f->replay->timeline, MAKE_PID, MAKE_TSC),
					 MAKE_TSC, 0, (struct context_versions){0},
					 &f->stretch.context),
			 0);
}

/* Ends the view, and returns its stream; freed by the caller. */
static char *end(struct fixture *f)
{
	const struct gaps none = {0};
	size_t size;

	assert_int_equal(calltree_end(f->calls, &none, 0), 0);
	calltree_freep(&f->calls);
	lines_done(&f->lines);
	tally_done(&f->tally);
	replay_free(f->replay);
	bundle_free(f->bundle);
	return made_text(f->fd, &size);
}

/* A branch of KIND at FROM, the only instruction since the branch before, to TO. */
static struct flow_item branch(enum flow_kind kind, uint64_t from, uint64_t to)
{
	return (struct flow_item){.kind = kind, .start = from, .from = from, .to = to, .insns = 1};
}

static void feed_timed(struct fixture *f, const struct flow_item *items, size_t n)
{
	const struct flow_gap gap = {.fault = FAULT_OVERFLOW};
	struct replay_stretch s = f->stretch;

	s.items = items;
	s.n_items = n;
	s.gaps = &gap;
	s.n_gaps = 1;
	assert_int_equal(calltree_stretch(f->calls, &s), 0);
}

static void feed(struct fixture *f, const struct flow_item *items, size_t n)
{
	struct flow_item timed[64];

	assert_true(n <= ARRAY_SIZE(timed));
	for (size_t i = 0; i < n; i++) {
		timed[i] = items[i];
		timed[i].tsc_lo = timed[i].tsc_hi = f->tsc++;
	}
	feed_timed(f, timed, n);
}

/* Frames of STREAM as one text: "main:call(" where main begins by a call, ")return" where the
 * innermost frame ends, "gap " at a gap. The stream keeps its rules. */
static void frames_of(char *stream, char *ret, size_t size)
{
	char names[64][64] = {"-"};
	size_t used = 0, depth = 0;
	uint64_t time = 0;
	bool ended = false;

	ret[0] = '\0';
	for (char *line = strtok(stream, "\n"); line; line = strtok(NULL, "\n")) {
		struct callstream_item item;
		int n = 0;

		assert_false(ended);
		assert_int_equal(callstream_parse(line, &item), 0);
		ended = item.kind == CALLSTREAM_END;
		if (item.kind == CALLSTREAM_FUNCTION)
			snprintf(names[item.function], sizeof(names[0]), "%s", item.name);
		if (item.kind == CALLSTREAM_BEGIN || item.kind == CALLSTREAM_FINISH) {
			assert_true(item.time >= time);
			time = item.time;
		}
		if (item.kind == CALLSTREAM_BEGIN) {
			depth++;
			n = snprintf(ret + used, size - used, "%s:%s(", names[item.function],
				     callstream_begin_name(item.begin));
		}
		if (item.kind == CALLSTREAM_FINISH) {
			assert_true(depth-- > 0);
			n = snprintf(ret + used, size - used, ")%s ",
				     callstream_end_name(item.end));
		}
		if (item.kind == CALLSTREAM_GAP)
			n = snprintf(ret + used, size - used, "gap ");
		used += (size_t)n;
		assert_true(used < size);
	}
	assert_true(ended);
	assert_int_equal(depth, 0);
}

static void check(const struct flow_item *items, size_t n, const char *want)
{
	const struct make_bundle how = {.rounds = 1};
	struct fixture f;
	char got[2048], *stream;

	begin(&f, &how);
	feed(&f, items, n);
	stream = end(&f);
	frames_of(stream, got, sizeof(got));
	assert_string_equal(got, want);
	free(stream);
}

#define CHECK(want, ...)                               \
	check((const struct flow_item[]){__VA_ARGS__}, \
	      sizeof((const struct flow_item[]){__VA_ARGS__}) / sizeof(struct flow_item), want)

#define ENABLE(to_)    ((struct flow_item){.kind = FLOW_ENABLE, .to = (to_)})
#define CALL(from, to) branch(FLOW_CALL, from, to)
#define RET(from, to)  branch(FLOW_RET, from, to)
#define JUMP(from, to) branch(FLOW_JUMP_IND, from, to)
#define SYSCALL(from)  branch(FLOW_SYSCALL, from, 0)
#define GAP(from)      branch(FLOW_GAP, from, 0)
#define ASYNC_STOP(from_) \
	((struct flow_item){.kind = FLOW_DISABLE, .flags = FLOW_ASYNC_STOP, .from = (from_)})

static void calltree_stretch_call_and_return_nest(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:call()return )return leaf:call()return )open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), CALL(LEAF, TAIL), RET(TAIL, LEAF + 2),
	      RET(LEAF + 2, MAIN + 5), CALL(MAIN + 5, LEAF), RET(LEAF, MAIN + 10));
}

static void calltree_stretch_tail_call_ends_with_its_caller(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:jump()return )left )open ", ENABLE(MAIN), CALL(MAIN, LEAF),
	      JUMP(LEAF, TAIL), RET(TAIL, MAIN + 5), JUMP(MAIN + 5, MAIN));
}

static void calltree_stretch_plt_entry_is_around_its_function(void **state)
{
	(void)state;
	CHECK("main:found(tail:call(leaf:jump(main:call()return )return )left )open ", ENABLE(MAIN),
	      CALL(MAIN, TAIL), JUMP(TAIL, LEAF), CALL(LEAF, MAIN), RET(MAIN, LEAF + 2),
	      RET(LEAF + 2, MAIN + 5), JUMP(MAIN + 5, MAIN + 6));
}

static void calltree_stretch_part_that_lies_apart_ends_with_the_jump_back(void **state)
{
	(void)state;
	CHECK("main:found(tail:jump()left )open ", ENABLE(MAIN), JUMP(MAIN, TAIL),
	      JUMP(TAIL, MAIN + 2), JUMP(MAIN + 2, MAIN + 5));
}

/* longjmp and the unwinder of exceptions both jump into the middle of a function further out. */
/* Each instance of a recursive function goes on in the part. */
static void calltree_stretch_part_that_lies_apart_may_recurse(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:jump(leaf:call(tail:jump()return )left )return )left )open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), JUMP(LEAF, TAIL + 2), CALL(TAIL + 2, LEAF),
	      JUMP(LEAF, TAIL + 2), RET(TAIL + 2, TAIL + 4), RET(TAIL + 4, MAIN + 5),
	      JUMP(MAIN + 5, MAIN + 6));
}

static void calltree_stretch_longjmp_unwinds(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:call()unwound )unwound leaf:call()return )open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), CALL(LEAF, TAIL), JUMP(TAIL, MAIN + 5),
	      CALL(MAIN + 5, LEAF), RET(LEAF, MAIN + 10));
}

/* The unwinder of exceptions is called through its PLT entry. */
static void calltree_stretch_exception_unwinds_through_jumps(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:jump()unwound )unwound )open ", ENABLE(MAIN),
	      CALL(MAIN, LEAF), JUMP(LEAF, TAIL), JUMP(TAIL, MAIN + 5), JUMP(MAIN + 5, MAIN + 6));
}

/* A return behind an outer call (a longjmp that returns) ends what lies within, too. */
static void calltree_stretch_return_behind_outer_call_unwinds(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:call()unwound )unwound )open ", ENABLE(MAIN),
	      CALL(MAIN, LEAF), CALL(LEAF, TAIL), RET(TAIL, MAIN + 5), JUMP(MAIN + 5, MAIN + 6));
}

/* Interrupted, handler, restorer, system call that ends the handler, and back. */
static void calltree_stretch_signal_handler_has_its_frame(void **state)
{
	struct flow_item restorer = branch(FLOW_SYSCALL, OTHER + 7, 0);

	(void)state;
	restorer.start = OTHER;
	restorer.insns = 2;
	CHECK("main:found(leaf:call(-:interrupt()return "
	      "tail:signal(main:call()return loop\xef\xbf\xbd\"x@0x40020f:jump(-:syscall()return )left "
	      ")return )return )open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), ASYNC_STOP(LEAF), ENABLE(TAIL), CALL(TAIL, MAIN),
	      RET(MAIN, TAIL + 2), RET(TAIL + 2, OTHER), restorer, ENABLE(LEAF),
	      RET(LEAF, MAIN + 5), JUMP(MAIN + 5, MAIN + 6));
}

static void calltree_stretch_syscall_is_a_frame_of_the_kernel(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(-:syscall()return )return -:interrupt()return )open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), SYSCALL(LEAF), ENABLE(LEAF + 2),
	      RET(LEAF + 2, MAIN + 5), ASYNC_STOP(MAIN + 5), ENABLE(MAIN + 5),
	      JUMP(MAIN + 5, MAIN + 6));
}

/* The kinds of the lines of STREAM that lie in the life of a thread, and "b" for the kernel. */
static void kinds_of(char *stream, char *ret, size_t size)
{
	size_t n = 0;

	for (char *line = strtok(stream, "\n"); line; line = strtok(NULL, "\n")) {
		struct callstream_item item;

		assert_int_equal(callstream_parse(line, &item), 0);
		assert_true(n + 1 < size);
		if (item.thread != 1 || item.kind == CALLSTREAM_THREAD)
			continue;
		ret[n++] = *line;
		if (item.begin == CALLSTREAM_SYSCALL)
			ret[n - 1] = 'b';
	}
	ret[n] = '\0';
}

static struct flow_item at(struct flow_item item, uint64_t lo, uint64_t hi)
{
	item.tsc_lo = MAKE_TSC + lo;
	item.tsc_hi = MAKE_TSC + hi;
	return item;
}

/* The thread leaves the CPU at 1750 and is back at 3800, within its first system call. That call
 * ends from LO to 3900, and the second one, at 4100, is no place for the switch. */
static void check_switch(uint64_t lo)
{
	const struct flow_item items[] = {
		at(ENABLE(MAIN), 100, 100),
		at(SYSCALL(MAIN), 1500, 1500),
		at(ENABLE(MAIN + 2), lo, 3900),
		at(CALL(MAIN + 2, LEAF), lo, 3900),
		at(RET(LEAF + 2, MAIN + 6), lo, 3900),
		at(SYSCALL(MAIN + 6), 4100, 4100),
		at(ENABLE(MAIN + 6), 4200, 4200),
	};
	struct fixture f;
	char got[64], *stream;

	begin(&f, &(struct make_bundle){.rounds = 6, .rounds_per_turn = 2});
	feed_timed(&f, items, ARRAY_SIZE(items));
	stream = end(&f);
	kinds_of(stream, got, sizeof(got));
	assert_string_equal(got, "RBbSREBEbESE");
	free(stream);
}

static void calltree_stretch_nothing_is_executed_off_the_cpu(void **state)
{
	(void)state;
	check_switch(1760);
}

static void calltree_stretch_thread_leaves_the_cpu_in_the_kernel(void **state)
{
	(void)state;
	check_switch(1600);
}

/* The trace of the CPU begins at 5000, as if it were another CPU than that of the first items: the
 * thread ran there from 3800 on, and nobody knows what it did. */
static void calltree_stretch_behind_unseen_turn_frames_are_found_again(void **state)
{
	const struct flow_item before[] = {at(ENABLE(MAIN), 100, 100),
					   at(CALL(MAIN, LEAF), 200, 200),
					   at(SYSCALL(LEAF + 2), 1500, 1500)};
	const struct flow_item behind[] = {at(ENABLE(TAIL), 8000, 8000),
					   at(SYSCALL(TAIL + 2), 8100, 8100)};
	struct fixture f;
	char got[256], *stream, *copy;

	(void)state;
	begin(&f, &(struct make_bundle){.rounds = 12, .rounds_per_turn = 2});
	f.replay->turns.cpus[0].begin = MAKE_TSC + 5000;
	feed_timed(&f, before, ARRAY_SIZE(before));
	feed_timed(&f, behind, ARRAY_SIZE(behind));
	stream = end(&f);
	copy = strdup(stream);
	assert_non_null(copy);
	kinds_of(stream, got, sizeof(got));
	assert_string_equal(got, "RBBbEEESRSRBbSREE");
	frames_of(copy, got, sizeof(got));
	assert_string_equal(got, "main:found(leaf:call(-:syscall()lost )lost )lost "
				 "tail:found(-:syscall()open )open ");
	free(stream);
	free(copy);
}

/* swapcontext: the function returns on another stack. */
static void calltree_stretch_coroutine_drops_the_stack(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call(tail:call()return )swapped )swapped "
	      "loop\xef\xbf\xbd\"x@0x40020f:found()open ",
	      ENABLE(MAIN), CALL(MAIN, LEAF), CALL(LEAF, TAIL), RET(TAIL, OTHER),
	      JUMP(OTHER, OTHER + 1));
}

static void calltree_stretch_return_below_first_frame_finds_the_caller(void **state)
{
	(void)state;
	CHECK("leaf:found()return main:found()open ", ENABLE(LEAF), RET(LEAF, MAIN + 5),
	      JUMP(MAIN + 5, MAIN + 6));
}

static void calltree_stretch_behind_gap_frames_are_found_again(void **state)
{
	(void)state;
	CHECK("main:found(leaf:call()lost )lost gap leaf:found()open ", ENABLE(MAIN),
	      CALL(MAIN, LEAF), GAP(LEAF), ENABLE(LEAF), JUMP(LEAF, LEAF + 2));
}

static void calltree_stretch_in_kernel_at_the_end_is_open(void **state)
{
	(void)state;
	CHECK("main:found(-:syscall()open )open ", ENABLE(MAIN), SYSCALL(MAIN));
}

static void calltree_stretch_of_unknown_thread_is_a_gap(void **state)
{
	const struct flow_item items[] = {ENABLE(MAIN), CALL(MAIN, LEAF), RET(LEAF, MAIN + 5)};
	const struct make_bundle how = {.rounds = 1};
	struct fixture f;
	char *stream;

	(void)state;
	begin(&f, &how);
	f.stretch.thread = NULL;
	feed(&f, items, ARRAY_SIZE(items));
	stream = end(&f);
	assert_non_null(strstr(stream, "\nG\t0\t"));
	assert_non_null(strstr(stream, "\tthread-uncertain\n"));
	assert_null(strstr(stream, "\nB\t"));
	free(stream);
}

/* Calls itself N deep and returns. Returns the number of frames and of those left out. */
static void recurse(size_t n, struct callstream_item *ret)
{
	const struct flow_item first = ENABLE(LEAF), in = CALL(LEAF, LEAF),
			       out = RET(LEAF, LEAF + 2);
	const struct make_bundle how = {.rounds = 1};
	struct fixture f;
	char *stream, *last;

	begin(&f, &how);
	feed(&f, &first, 1);
	for (size_t i = 0; i < n; i++)
		feed(&f, &in, 1);
	for (size_t i = 0; i < n; i++)
		feed(&f, &out, 1);
	stream = end(&f);
	last = strstr(stream, "\nZ\t") + 1;
	*strchr(last, '\n') = '\0';
	assert_int_equal(callstream_parse(last, ret), 0);
	*last = '\0';
	n = 0;
	for (const char *at = stream; (at = strstr(at, "\nE\t")); at++)
		n++;
	assert_int_equal(n, ret->value);
	free(stream);
}

static void calltree_stretch_deep_recursion_is_bounded(void **state)
{
	struct callstream_item last;

	(void)state;
	recurse(CALLS_MAX_DEPTH + 100, &last);
	/* Behind the return below the frames that are kept, the rest is found again, once. */
	assert_in_range(last.value, CALLS_MAX_DEPTH + 100, CALLS_MAX_DEPTH + 202);
	assert_int_equal(last.cut, 0);
	recurse(CALLTREE_MAX_DEPTH + 99, &last); /* and the first one */
	assert_int_equal(last.cut, 100);
}

/* --- Whole decodes --- */

static char *calls_of(const struct make_bundle *how)
{
	const struct decode_options options = {.view = WORKER_VIEW_CALLS};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void decode_run_calls_have_every_call(void **state)
{
	const unsigned n = 50;
	char *stream = calls_of(&(struct make_bundle){.rounds = n});

	(void)state;
	assert_int_equal(strncmp(stream, "H\t1\t", 4), 0);
	assert_int_equal(count(stream, "\tcall\n"), n);
	assert_int_equal(count(stream, "\tsyscall\n"), n);
	/* main runs into tail, which jumps back, all but the last. */
	assert_int_equal(count(stream, "\treturn\t2\n"), n);
	assert_int_equal(count(stream, "\ttrigger\n"), 1);
	free(stream);
}

/* Two threads take turns: each has its lines, and its times on the CPU around them. */
static void decode_run_calls_lie_between_switches(void **state)
{
	char *stream = calls_of(&(struct make_bundle){.rounds = 12, .rounds_per_turn = 2});
	bool on[3] = {false};
	size_t switches = 0;

	(void)state;
	assert_int_equal(count(stream, "\nT\t"), 2);
	for (char *line = strtok(stream, "\n"); line; line = strtok(NULL, "\n")) {
		struct callstream_item item;

		assert_int_equal(callstream_parse(line, &item), 0);
		assert_true(item.thread < ARRAY_SIZE(on));
		if (item.kind == CALLSTREAM_BEGIN)
			assert_true(on[item.thread]);
		if (item.kind != CALLSTREAM_ON && item.kind != CALLSTREAM_OFF)
			continue;
		assert_int_equal(item.kind == CALLSTREAM_ON, !on[item.thread]);
		on[item.thread] = !on[item.thread];
		switches++;
	}
	assert_in_range(switches, 8, 16);
	free(stream);
}

static void decode_run_calls_at_overflow_are_lost(void **state)
{
	char *stream = calls_of(&(struct make_bundle){.rounds = 8, .overflow = true});

	(void)state;
	assert_int_equal(count(stream, "\toverflow\n"), 1);
	assert_true(count(stream, "\tlost\t") > 0);
	free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calltree_stretch_call_and_return_nest),
		cmocka_unit_test(calltree_stretch_tail_call_ends_with_its_caller),
		cmocka_unit_test(calltree_stretch_plt_entry_is_around_its_function),
		cmocka_unit_test(calltree_stretch_part_that_lies_apart_ends_with_the_jump_back),
		cmocka_unit_test(calltree_stretch_part_that_lies_apart_may_recurse),
		cmocka_unit_test(calltree_stretch_longjmp_unwinds),
		cmocka_unit_test(calltree_stretch_exception_unwinds_through_jumps),
		cmocka_unit_test(calltree_stretch_return_behind_outer_call_unwinds),
		cmocka_unit_test(calltree_stretch_signal_handler_has_its_frame),
		cmocka_unit_test(calltree_stretch_syscall_is_a_frame_of_the_kernel),
		cmocka_unit_test(calltree_stretch_nothing_is_executed_off_the_cpu),
		cmocka_unit_test(calltree_stretch_thread_leaves_the_cpu_in_the_kernel),
		cmocka_unit_test(calltree_stretch_behind_unseen_turn_frames_are_found_again),
		cmocka_unit_test(calltree_stretch_coroutine_drops_the_stack),
		cmocka_unit_test(calltree_stretch_return_below_first_frame_finds_the_caller),
		cmocka_unit_test(calltree_stretch_behind_gap_frames_are_found_again),
		cmocka_unit_test(calltree_stretch_in_kernel_at_the_end_is_open),
		cmocka_unit_test(calltree_stretch_of_unknown_thread_is_a_gap),
		cmocka_unit_test(calltree_stretch_deep_recursion_is_bounded),
		cmocka_unit_test(decode_run_calls_have_every_call),
		cmocka_unit_test(decode_run_calls_lie_between_switches),
		cmocka_unit_test(decode_run_calls_at_overflow_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
