#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/count/decoded.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "proto/base.h"
#include "tests/unit/decoder/worker/made.h"

struct fixture {
	struct bundle *bundle;
	struct replay *replay;
	struct tally tally;
};

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	return tally_stretch(userdata, s);
}

/* The fault and the time of the gap that HEAD's next stretch has before it. */
static enum fault head_fault;
static uint64_t head_tsc;

static int on_stretch_behind_gap(void *userdata, const struct replay_stretch *s)
{
	const struct flow_gap gap = {.fault = head_fault};
	const struct flow_item item = {.kind = FLOW_GAP, .tsc_lo = head_tsc, .tsc_hi = head_tsc};
	struct replay_stretch before = *s;
	int r = 0;

	if (head_tsc != 0) {
		before.items = &item;
		before.gaps = &gap;
		before.n_items = before.n_gaps = 1;
		before.first_gap = 0;
		r = tally_stretch(userdata, &before);
	}
	head_tsc = 0;
	return r < 0 ? r : tally_stretch(userdata, s);
}

/* Each run cut after its first instruction, as marks cut it. */
static int on_cut_stretch(void *userdata, const struct replay_stretch *s)
{
	const struct flow_mark mark = {.kind = FLOW_MARK_CBR};
	struct replay_stretch cut = *s;
	uint64_t ips[2];
	size_t i;
	int r = 0;

	cut.marks = &mark;
	for (i = 0; i < s->n_items && r == 0; i++) {
		struct flow_item two[2] = {s->items[i], s->items[i]};

		cut.items = two + 1;
		cut.n_items = 1;
		if (two[0].insns > 1) {
			assert_int_equal(flow_run(s->flow, two[0].start, 2, ips), 2);
			two[0].kind = FLOW_MARK;
			two[0].mark = 0;
			two[0].from = two[0].to = two[1].start = ips[1];
			two[0].insns = 1;
			two[1].insns--;
			cut.items = two;
			cut.n_items = 2;
			cut.n_marks = 1;
		}
		r = tally_stretch(userdata, &cut);
	}
	return r;
}

static void count_as(struct fixture *f, const struct make_bundle *how,
		     int (*stretch)(void *userdata, const struct replay_stretch *s))
{
	const struct replay_consumer consumer = {.stretch = stretch, .userdata = &f->tally};

	f->bundle = made_open(how);
	assert_int_equal(replay_new(f->bundle, NULL, &f->replay), 0);
	assert_int_equal(tally_init(&f->tally, f->replay), 0);
	assert_int_equal(replay_all(f->replay, &consumer), 0);
	tally_end(&f->tally);
}

static void count(struct fixture *f, const struct make_bundle *how)
{
	count_as(f, how, on_stretch);
}

static void done(struct fixture *f)
{
	tally_done(&f->tally);
	replay_free(f->replay);
	bundle_free(f->bundle);
}

static const struct function *find_function(const struct fixture *f, const char *name)
{
	size_t i;

	for (i = 1; i < f->tally.functions.n; i++) {
		const struct function *fn = &f->tally.functions.list[i];

		if (fn->name != NULL && strcmp(fn->name, name) == 0)
			return fn;
	}
	fail_msg("no function %s", name);
	return NULL;
}

static const struct tally_counters *the_counters(const struct fixture *f)
{
	const struct tally_counters *found = NULL;
	size_t i;

	for (i = 0; i < f->tally.n_threads; i++)
		if (f->tally.threads[i]->insns > 0) {
			assert_null(found);
			found = f->tally.threads[i];
		}
	assert_non_null(found);
	return found;
}

static void tally_stretch_counts_functions(void **state)
{
	const unsigned n = 50;
	const struct make_bundle how = {.rounds = n, .rounds_per_psb = 8};
	const struct function *fn;
	struct fixture f;

	(void)state;
	count(&f, &how);
	fn = find_function(&f, "leaf");
	assert_int_equal(fn->calls, n);
	assert_int_equal(fn->self_insns, 2 * n);
	assert_int_equal(fn->total_insns, 2 * n);
	assert_int_equal(fn->address, MAKE_LEAF);
	/* Called by tail's jump, all but the first; runs into tail in the middle of a run, and ends
	 * with the jump back. */
	fn = find_function(&f, "main");
	assert_int_equal(fn->calls, n - 1);
	assert_int_equal(fn->self_insns, 2 * n);
	assert_int_equal(fn->total_insns, make_bundle_insns(n));
	fn = find_function(&f, "tail");
	assert_int_equal(fn->calls, 0);
	assert_int_equal(fn->self_insns, make_bundle_insns(n) - 4 * n);
	assert_int_equal(fn->total_insns, fn->self_insns);
	done(&f);
}

/* Between tail and leaf lies code that the file has no name for. */
static void functions_find_code_without_a_name_has_that_of_the_perf_map(void **state)
{
	static const char map[] = "400212 4 made\n400220 2 other_leaf\n400100 2 not_code\n";
	const struct make_bundle how = {.rounds = 2};
	struct functions_span span;
	struct fixture f;

	(void)state;
	count(&f, &how);
	assert_int_equal(symbols_add_map(f.replay->symbols, MAKE_PID, map, strlen(map)), 0);
	assert_int_equal(functions_find(&f.tally.functions, 1, 0x400210, &span), 0);
	assert_null(f.tally.functions.list[span.function].name);
	assert_true(span.lo <= 0x400210 && span.hi == 0x400212);
	assert_int_equal(functions_find(&f.tally.functions, 1, 0x400213, &span), 0);
	assert_string_equal(f.tally.functions.list[span.function].name, "made");
	assert_int_equal(f.tally.functions.list[span.function].address, 0x400212);
	assert_true(span.lo == 0x400212 && span.hi == 0x400216);
	assert_int_equal(functions_find(&f.tally.functions, 1, 0x400218, &span), 0);
	assert_null(f.tally.functions.list[span.function].name);
	assert_true(span.lo == 0x400216 && span.hi == MAKE_LEAF);
	assert_int_equal(functions_find(&f.tally.functions, 1, MAKE_LEAF, &span), 0);
	assert_string_equal(f.tally.functions.list[span.function].name, "leaf");
	done(&f);
}

/* Functions within others, and between them. */
static void functions_find_span_is_of_one_function(void **state)
{
	const struct make_bundle how = {.wild = 7, .rounds = 2};
	struct functions_span span, other;
	size_t inner = 0;
	struct fixture f;
	uint64_t at, to;

	(void)state;
	count(&f, &how);
	for (at = MAKE_MAIN; at < MAKE_MAIN + 0x300; at++) {
		assert_int_equal(functions_find(&f.tally.functions, 1, at, &span), 0);
		assert_true(span.lo <= at && at < span.hi && span.entry <= span.lo);
		inner += span.entry < span.lo;
		for (to = MAX_OF(span.lo, MAKE_BASE); to < MIN_OF(span.hi, MAKE_MAIN + 0x300);
		     to++) {
			assert_int_equal(functions_find(&f.tally.functions, 1, to, &other), 0);
			assert_int_equal(other.function, span.function);
			assert_int_equal(other.lo, span.lo);
			assert_int_equal(other.hi, span.hi);
			assert_int_equal(other.entry, span.entry);
		}
	}
	assert_true(inner > 0);
	done(&f);
}

static void tally_stretch_counts_thread(void **state)
{
	const unsigned n = 50;
	const struct make_bundle how = {.rounds = n};
	const struct tally_counters *counters;
	struct fixture f;

	(void)state;
	count(&f, &how);
	counters = the_counters(&f);
	assert_int_equal(counters->thread->tid, MAKE_TID);
	assert_int_equal(counters->insns, make_bundle_insns(n));
	/* call, ret; je every other round; jmp but in the first. */
	assert_int_equal(counters->branches, 2 * n + n / 2 + n - 1 + 2 * n /* enabled, left */);
	/* Half of the time is in the kernel: that is not counted. */
	assert_in_range(counters->ticks, n * MAKE_ROUND / 4, n * MAKE_ROUND * 3 / 4);
	assert_int_equal(counters->ip, MAKE_MAIN + 11);
	/* main, which ran into tail. */
	assert_int_equal(calls_depth(&counters->calls), 1);
	assert_true(calls_at(&counters->calls, 0)->from == CALLS_JUMP);
	done(&f);
}

static void tally_stretch_marks_change_nothing(void **state)
{
	const struct make_bundle how = {.rounds = 50, .rounds_per_psb = 8, .in_leaf = true};
	const struct tally_counters *a, *b;
	struct fixture whole, cut;
	size_t i;

	(void)state;
	count(&whole, &how);
	count_as(&cut, &how, on_cut_stretch);
	a = the_counters(&whole);
	b = the_counters(&cut);
	assert_int_equal(a->insns, b->insns);
	assert_int_equal(a->branches, b->branches);
	assert_int_equal(a->ticks, b->ticks);
	assert_int_equal(a->ip, b->ip);
	assert_int_equal(a->n_last, b->n_last);
	assert_memory_equal(a->last, b->last, sizeof(a->last));
	assert_int_equal(whole.tally.functions.n, cut.tally.functions.n);
	for (i = 1; i < whole.tally.functions.n; i++) {
		const struct function *f = &whole.tally.functions.list[i];
		const struct function *g = &cut.tally.functions.list[i];

		assert_int_equal(f->calls, g->calls);
		assert_int_equal(f->self_insns, g->self_insns);
		assert_int_equal(f->total_insns, g->total_insns);
		assert_int_equal(f->self_ticks, g->self_ticks);
	}
	done(&whole);
	done(&cut);
}

static uint64_t lost_behind(enum fault fault)
{
	const struct make_bundle how = {.rounds = 10};
	struct fixture f;
	uint64_t lost;

	head_fault = fault;
	head_tsc = 1;
	count_as(&f, &how, on_stretch_behind_gap);
	lost = f.tally.cpus[0].lost_ticks;
	done(&f);
	return lost;
}

/* Bytes before the first PSB have no time that could have been decoded. */
static void tally_stretch_behind_the_head_has_lost_no_time(void **state)
{
	(void)state;
	assert_true(lost_behind(FAULT_OVERFLOW) > 0);
	assert_int_equal(lost_behind(FAULT_HEAD), 0);
}

static void tally_stretch_remembers_last_branches(void **state)
{
	const struct make_bundle how = {.rounds = 50};
	const struct tally_counters *counters;
	const struct tally_branch *b;
	struct fixture f;

	(void)state;
	count(&f, &how);
	counters = the_counters(&f);
	b = &counters->last[(counters->n_last - 1) % REPORT_LAST_BRANCHES];
	assert_int_equal(b->kind, FLOW_SYSCALL);
	assert_int_equal(b->from, MAKE_MAIN + 11);
	b = &counters->last[(counters->n_last - 2) % REPORT_LAST_BRANCHES];
	assert_int_equal(b->kind, FLOW_COND);
	assert_int_equal(b->from, MAKE_MAIN + 7);
	assert_int_equal(b->to, MAKE_MAIN + 11);
	b = &counters->last[(counters->n_last - 3) % REPORT_LAST_BRANCHES];
	assert_int_equal(b->kind, FLOW_RET);
	assert_true(b->tsc_lo >= MAKE_TSC && b->tsc_lo <= b->tsc_hi);
	done(&f);
}

static void tally_stretch_interrupted_keeps_stack(void **state)
{
	const struct make_bundle how = {.rounds = 3, .in_leaf = true};
	const struct tally_counters *counters;
	struct fixture f;

	(void)state;
	count(&f, &how);
	counters = the_counters(&f);
	assert_int_equal(counters->insns, make_bundle_insns(3) + 3);
	assert_int_equal(counters->ip, MAKE_LEAF + 2);
	assert_int_equal(calls_depth(&counters->calls), 1);
	assert_int_equal(calls_at(&counters->calls, 0)->from, MAKE_MAIN);
	/* Open activations were closed at the end. */
	assert_int_equal(find_function(&f, "main")->total_insns, make_bundle_insns(3) + 3);
	assert_int_equal(find_function(&f, "leaf")->total_insns, 3 * 2 + 1);
	done(&f);
}

/* A thread that moves takes its stack along: there is one set of counters. */
static void tally_stretch_two_cpus_are_one_thread(void **state)
{
	const struct make_bundle how = {.rounds = 4, .n_cpus = 2};
	struct fixture f;

	(void)state;
	count(&f, &how);
	assert_int_equal(the_counters(&f)->insns, 2 * make_bundle_insns(4));
	assert_int_equal(find_function(&f, "leaf")->calls, 2 * 4);
	assert_int_equal(find_function(&f, "main")->total_insns, 2 * make_bundle_insns(4));
	assert_int_equal(find_function(&f, "leaf")->active, 0);
	done(&f);
}

/* A thread calling itself N deep, then returning: recursion counts once. */
static void tally_stretch_recursion_counts_once(void **state)
{
	enum { N = 6000 };
	const struct make_bundle how = {.rounds = 0};
	struct flow_item *items = calloc(2 * N + 1, sizeof(*items));
	struct replay_stretch s = {.items = items, .n_items = 2 * N + 1};
	struct image_code code;
	struct fixture f;
	size_t i;

	(void)state;
	assert_non_null(items);
	count(&f, &how);
	assert_int_equal(contexts_intern(&f.replay->contexts,
					 timeline_space(f.replay->timeline, MAKE_PID, MAKE_TSC),
					 MAKE_TSC, 0, (struct context_versions){0}, &s.context),
			 0);
	assert_int_equal(s.context, 1);
	assert_int_equal(replay_find(f.replay, 1, MAKE_LEAF, &code), 0);
	items[0] = (struct flow_item){.kind = FLOW_ENABLE, .to = MAKE_LEAF, .tsc_hi = UINT64_MAX};
	for (i = 1; i <= 2 * N; i++)
		items[i] = (struct flow_item){
			.kind = i <= N ? FLOW_CALL : FLOW_RET,
			.start = MAKE_LEAF,
			.from = MAKE_LEAF,
			.to = MAKE_LEAF + (i <= N ? 0 : 2),
			.insns = 1,
			.tsc_hi = UINT64_MAX,
		};
	assert_int_equal(tally_stretch(&f.tally, &s), 0);
	tally_end(&f.tally);
	assert_int_equal(find_function(&f, "leaf")->self_insns, 2 * N);
	assert_int_equal(find_function(&f, "leaf")->total_insns, 2 * N);
	assert_int_equal(find_function(&f, "leaf")->calls, N);
	free(items);
	done(&f);
}

static void gaps_add_beyond_limit_still_counts(void **state)
{
	struct gap gap = gaps_blank(FAULT_LOOP);
	struct gaps g;
	unsigned i;

	(void)state;
	gaps_init(&g);
	for (i = 0; i < GAPS_MAX + 5; i++)
		assert_int_equal(gaps_add(&g, &gap, i % 2 ? "why" : NULL), 0);
	assert_int_equal(g.n, GAPS_MAX);
	assert_int_equal(g.counts[FAULT_LOOP], GAPS_MAX + 5);
	gaps_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tally_stretch_counts_functions),
		cmocka_unit_test(functions_find_code_without_a_name_has_that_of_the_perf_map),
		cmocka_unit_test(functions_find_span_is_of_one_function),
		cmocka_unit_test(tally_stretch_counts_thread),
		cmocka_unit_test(tally_stretch_marks_change_nothing),
		cmocka_unit_test(tally_stretch_behind_the_head_has_lost_no_time),
		cmocka_unit_test(tally_stretch_remembers_last_branches),
		cmocka_unit_test(tally_stretch_interrupted_keeps_stack),
		cmocka_unit_test(tally_stretch_two_cpus_are_one_thread),
		cmocka_unit_test(tally_stretch_recursion_counts_once),
		cmocka_unit_test(gaps_add_beyond_limit_still_counts),
	};

	return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
