/*
 * Several threads: what comes out is what one thread gives, and they do their part. Each trace is
 * decoded twice: as threads happen to run, and so that what they do does not depend on that. For
 * the latter ahead_take() is wrapped.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/flow/flow.h"
#include "decoder/hot/ahead.h"
#include "proto/base.h"
#include "tests/support/flow_look.h"

#define ADDRESS	    0x1000u
#define SIZE	    20u
#define FIRST_PIECE 16u
#define TRACE_MAX   (1u << 20)
#define ITEMS_MAX   (1u << 20)
#define PORTION	    4096u
#define ASKED_MAX   (1u << 16)
#define SYSCALL_LOW 0x10 /* of its address */

/* 1000: jne 1004; nop; nop; 1004: call 100c; jmp *%rax; nop; 100c: jne 100f; nop; ret; 1010:
 * syscall; jmp 1000. The next program has one instruction less at 1002, the last one at 100c:
 * syscall; nop; ret. */
#define PROGRAM_DEEP 2u
static const uint8_t programs[3][SIZE] = {
	{0x75, 0x02, 0x90, 0x90, 0xe8, 0x03, 0x00, 0x00, 0x00, 0xff,
	 0xe0, 0x90, 0x75, 0x01, 0x90, 0xc3, 0x0f, 0x05, 0xeb, 0xec},
	{0x75, 0x02, 0x66, 0x90, 0xe8, 0x03, 0x00, 0x00, 0x00, 0xff,
	 0xe0, 0x90, 0x75, 0x01, 0x90, 0xc3, 0x0f, 0x05, 0xeb, 0xec},
	{0x75, 0x02, 0x90, 0x90, 0xe8, 0x03, 0x00, 0x00, 0x00, 0xff,
	 0xe0, 0x90, 0x0f, 0x05, 0x90, 0xc3, 0x90, 0x90, 0x90, 0x90},
};

/* A trace, and what it is decoded with. */
struct fixture {
	uint8_t trace[TRACE_MAX];
	size_t size;
	uint32_t random;
	bool deep, pieces;    /* which program; its system call is a piece of its own */
	uint64_t other_every; /* the context is another one from one such offset to the next */
	uint32_t batch_items;
	struct flow *flow;
	pthread_t caller;
	bool stranger; /* another thread asked for code */
	/* The results of decoding. */
	struct flow_item *items;
	size_t n_items, n_gaps;
	/* The offsets at which the decoder asked whose code it is, each with the number of its
	 * batch among the batches that asked. */
	uint64_t *asked;
	size_t n_asked, n_groups;
	bool asks;
	uint64_t n_steps, taken;
	struct flow_stats stats;
};

/* --- Traces --- */

static void put(struct fixture *x, const void *bytes, size_t n)
{
	assert_true(x->size + n <= TRACE_MAX);
	memcpy(x->trace + x->size, bytes, n);
	x->size += n;
}

static uint32_t next_random(struct fixture *x)
{
	x->random = x->random * 1103515245u + 12345u;
	return x->random >> 16;
}

static void put_psb(struct fixture *x)
{
	static const uint8_t psb[] = {
		0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
		0x02, 0x82, 0x99, 0x01, 0x7d, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x02, 0x23,
	};

	put(x, psb, sizeof(psb));
}

/* A decision, a call, a decision, a compressed return, and an indirect jump. */
static void put_round(struct fixture *x, bool to_syscall)
{
	const uint8_t tnt = (uint8_t)(0x10 | (next_random(x) & 3) << 2 | 2);
	const uint8_t tip[] = {0x2d, to_syscall ? SYSCALL_LOW : 0x00, 0x10};
	/* TIP.PGD without an IP; TIP.PGE behind the system call. */
	static const uint8_t away[] = {0x01, 0x31, 0x12, 0x10};

	put(x, &tnt, 1);
	put(x, tip, sizeof(tip));
	if (to_syscall)
		put(x, away, sizeof(away));
}

/* A decision, a call, a system call in the callee, a compressed return, and an indirect jump. */
static void put_deep_round(struct fixture *x)
{
	const uint8_t round[] = {(uint8_t)(0x04 | (next_random(x) & 1) << 1),
				 0x01,
				 0x31,
				 0x0e,
				 0x10,
				 0x06,
				 0x2d,
				 0x00,
				 0x10};

	put(x, round, sizeof(round));
}

/* ROUNDS of them, with a PSB every so many and a system call every so many (0: none). */
static void put_rounds(struct fixture *x, size_t rounds, size_t psb_every, size_t syscall_every)
{
	for (size_t i = 0; i < rounds; i++) {
		if (i == 0 || (psb_every != 0 && i % psb_every == 0))
			put_psb(x);
		put_round(x, syscall_every != 0 && i % syscall_every == syscall_every - 1);
		/* Where a PSB comes execution is at 1000. */
		if (syscall_every != 0 && i % syscall_every == syscall_every - 1)
			put_round(x, false);
	}
}

/* --- Decoding --- */

/* The other threads go as far as they can before the walk asks what they have. */
static bool settle;

const struct ahead_piece *__real_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit);
const struct ahead_piece *__wrap_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit);

const struct ahead_piece *__wrap_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit)
{
	if (settle)
		ahead_settle(t);
	return __real_ahead_take(t, pos, context, ret_limit);
}

static uint64_t give_context(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi)
{
	struct fixture *x = userdata;

	(void)ip, (void)lo, (void)hi;
	x->stranger |= !pthread_equal(pthread_self(), x->caller);
	if (!flow_asked_again(x->flow)) {
		x->n_groups += !x->asks;
		x->asks = true;
		assert_true(x->n_asked < ASKED_MAX);
		x->asked[x->n_asked++] = (uint64_t)x->n_groups << 32 | flow_asked_at(x->flow);
	}
	return x->other_every != 0 ? flow_asked_at(x->flow) / x->other_every % 2 : 0;
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	struct fixture *x = userdata;
	const uint8_t *program = programs[x->deep ? PROGRAM_DEEP : context];
	uint64_t first = x->pieces ? FIRST_PIECE : SIZE;
	bool low = ip < ADDRESS + first;

	x->stranger |= !pthread_equal(pthread_self(), x->caller);
	*ret = (struct flow_code){.bytes = low ? program : program + first,
				  .address = low ? ADDRESS : ADDRESS + first,
				  .size = low ? first : SIZE - first};
	return ip - ADDRESS < SIZE ? 0 : FAULT_UNMAPPED;
}

static struct flow_config config_of(struct fixture *x, uint32_t threads)
{
	return (struct flow_config){.trace = x->trace,
				    .size = x->size,
				    .mtc_period = UINT32_MAX,
				    .code = give_code,
				    .context = give_context,
				    .userdata = x,
				    .steps = true,
				    .threads = threads,
				    .thread_bytes = 64,
				    .batch_items = x->batch_items};
}

static void keep_batch(struct fixture *x, const struct flow_batch *b)
{
	for (size_t i = 0; i < b->n_items; i++) {
		struct flow_position position = {0};
		size_t n;

		assert_true(x->n_items + PORTION < ITEMS_MAX);
		if (b->items[i].kind != FLOW_STEPS) {
			x->items[x->n_items++] = b->items[i];
			continue;
		}
		x->n_steps += b->walks[b->items[i].walk].n;
		while ((n = flow_expand(x->flow, b, b->items[i].walk, &position,
					x->items + x->n_items, PORTION)) > 0)
			x->n_items += n;
		flow_look_count(x->flow, b, b->items[i].walk);
	}
	x->n_gaps += b->n_gaps;
}

static void begin(struct fixture *x, uint32_t threads)
{
	struct flow_config config = config_of(x, threads);

	x->items = calloc(ITEMS_MAX, sizeof(x->items[0]));
	x->asked = calloc(ASKED_MAX, sizeof(x->asked[0]));
	assert_non_null(x->items);
	assert_non_null(x->asked);
	x->n_items = x->n_gaps = x->n_steps = 0;
	x->n_asked = x->n_groups = 0;
	x->caller = pthread_self();
	assert_int_equal(flow_new(&config, &x->flow), 0);
}

static void decode(struct fixture *x, uint32_t threads)
{
	struct flow_batch batch;

	begin(x, threads);
	for (x->asks = false; flow_next(x->flow, &batch) == 0; x->asks = false)
		keep_batch(x, &batch);
	x->taken = flow_look_settle(x->flow);
	x->stats = *flow_get_stats(x->flow);
	flow_free(x->flow);
	assert_false(x->stranger);
}

static void assert_equal(struct fixture *one, struct fixture *more, uint32_t threads)
{
	memcpy(more, one, offsetof(struct fixture, flow));
	decode(more, threads);
	assert_int_equal(more->n_items, one->n_items);
	assert_memory_equal(more->items, one->items, one->n_items * sizeof(one->items[0]));
	assert_int_equal(more->n_gaps, one->n_gaps);
	assert_memory_equal(&more->stats, &one->stats, sizeof(one->stats));
	assert_int_equal(more->n_asked, one->n_asked);
	assert_memory_equal(more->asked, one->asked, one->n_asked * sizeof(one->asked[0]));
	free(more->items);
	free(more->asked);
}

static void assert_as_one(struct fixture *one, struct fixture *more, uint32_t threads)
{
	settle = false;
	assert_equal(one, more, threads);
	settle = true;
	assert_equal(one, more, threads);
}

static int make(void **state)
{
	struct fixture *x = calloc(2, sizeof(*x));

	if (x == NULL)
		return -1;
	x->random = 1;
	x->batch_items = 1;
	*state = x;
	return 0;
}

static int drop(void **state)
{
	struct fixture *x = *state;

	free(x[0].items);
	free(x[0].asked);
	free(x);
	return 0;
}

/* --- Tests --- */

static void flow_several_threads_give_what_one_gives(void **state)
{
	struct fixture *x = *state;

	put_rounds(x, 40000, 50, 0);
	decode(x, 1);
	assert_int_equal(x[0].n_gaps, 0);
	assert_int_equal(x[0].taken, 0);
	for (uint32_t threads = 2; threads <= 8; threads++) {
		assert_as_one(&x[0], &x[1], threads);
		assert_true(x[1].taken > 0);
	}
}

static void flow_threads_go_on_behind_system_call(void **state)
{
	struct fixture *x = *state;

	put_rounds(x, 40000, 500, 20);
	decode(x, 1);
	assert_int_equal(x[0].n_gaps, 0);
	assert_as_one(&x[0], &x[1], 2);
	assert_true(x[1].taken > 0);
}

static void flow_threads_keep_returns_behind_system_call(void **state)
{
	struct fixture *x = *state;

	x->deep = true;
	for (size_t i = 0; i < 4000; i++) {
		if (i % 8 == 0)
			put_psb(x);
		put_deep_round(x);
	}
	decode(x, 1);
	assert_int_equal(x[0].n_gaps, 0);
	assert_as_one(&x[0], &x[1], 2);
	assert_true(x[1].taken > 0);
}

/* Batches of a different size, but the same questions in each that asks. */
static void flow_threads_ask_together_what_one_asks(void **state)
{
	struct fixture *x = *state;

	for (size_t i = 0; i < 200; i++)
		put_rounds(x, 1 + next_random(x) % 400, 50, 1 + next_random(x) % 300);
	for (size_t i = 0; i < 2; i++) {
		x->batch_items = i == 0 ? 1 : 0;
		decode(x, 1);
		assert_in_range(x[0].n_groups, 2, x[0].n_asked / 2);
		for (uint32_t threads = 2; threads <= 4; threads++)
			assert_as_one(&x[0], &x[1], threads);
		assert_true(x[1].taken > 0);
		if (i == 0) {
			free(x[0].items);
			free(x[0].asked);
		}
	}
}

/* In a batch with so many questions, and so much between them, that it has to grow. */
static void flow_batch_that_asks_grows(void **state)
{
	struct fixture *x = *state;
	struct flow_batch batch;
	size_t most = 0;

	put_rounds(x, 4000, 0, 1);
	begin(x, 2);
	while (flow_next(x->flow, &batch) == 0) {
		keep_batch(x, &batch);
		most = MAX_OF(most, batch.n_items);
	}
	flow_free(x->flow);
	assert_in_range(most, 100, 2048);
	assert_int_equal(x->n_gaps, 0);
}

/* The code of system calls comes late. */
static void flow_threads_do_not_ask_for_code(void **state)
{
	struct fixture *x = *state;

	x->pieces = true;
	put_rounds(x, 20000, 50, 0);
	put_rounds(x, 20000, 50, 10);
	decode(x, 1);
	assert_int_equal(x[0].n_gaps, 0);
	assert_as_one(&x[0], &x[1], 2);
}

static void flow_threads_with_other_code_at_same_address_are_not_taken(void **state)
{
	struct fixture *x = *state;

	put_rounds(x, 40000, 20, 7);
	x->other_every = 3000;
	decode(x, 1);
	assert_int_equal(x[0].n_gaps, 0);
	assert_as_one(&x[0], &x[1], 2);
	assert_as_one(&x[0], &x[1], 3);
}

static void flow_threads_without_psbs_are_not_needed(void **state)
{
	struct fixture *x = *state;

	put_rounds(x, 30000, 0, 0);
	decode(x, 1);
	assert_as_one(&x[0], &x[1], 3);
	assert_int_equal(x[1].taken, 0);
}

static void flow_threads_with_segments_too_large_give_what_one_gives(void **state)
{
	struct fixture *x = *state;

	put_rounds(x, 120000, 60000, 0);
	decode(x, 1);
	assert_as_one(&x[0], &x[1], 3);
	assert_true(x[1].taken > 0);
}

/* A PSB in the middle of a packet: no walk comes there. */
static void flow_threads_misled_by_false_psb_are_not_taken(void **state)
{
	static const uint8_t ptw[] = {0x02, 0x32, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
	struct fixture *x = *state;

	for (size_t i = 0; i < 200; i++) {
		put_rounds(x, 20, 10, 0);
		put(x, ptw, sizeof(ptw));
		put(x, ptw, sizeof(ptw));
	}
	decode(x, 1);
	assert_as_one(&x[0], &x[1], 3);
}

static void flow_free_before_end_ends_threads(void **state)
{
	struct fixture *x = *state;
	struct flow_batch batch;

	put_rounds(x, 40000, 50, 0);
	for (size_t i = 0; i < 20; i++) {
		begin(x, 4);
		for (size_t n = 0; n < i && flow_next(x->flow, &batch) == 0; n++)
			;
		flow_free(x->flow);
		free(x->items);
		free(x->asked);
	}
	x->items = NULL;
	x->asked = NULL;
}

static void flow_that_shares_has_threads_in_common(void **state)
{
	struct fixture *x = *state;
	struct flow_config config;
	struct flow_batch batch;
	struct flow *keeper;

	put_rounds(x, 40000, 50, 0);
	decode(x, 1);
	memcpy(&x[1], &x[0], offsetof(struct fixture, flow));
	config = config_of(&x[1], 3);
	x[1].caller = pthread_self();
	assert_int_equal(flow_new(&config, &keeper), 0);
	config.share = keeper;
	for (size_t i = 0; i < 3; i++) {
		struct flow *other;

		begin(&x[1], 3);
		flow_free(x[1].flow);
		assert_int_equal(flow_new(&config, &x[1].flow), 0);
		assert_int_equal(flow_new(&config, &other), 0);
		while (flow_next(x[1].flow, &batch) == 0) {
			keep_batch(&x[1], &batch);
			flow_next(other, &batch);
		}
		assert_int_equal(x[1].n_items, x[0].n_items);
		assert_memory_equal(x[1].items, x[0].items, x[0].n_items * sizeof(x[0].items[0]));
		free(x[1].items);
		free(x[1].asked);
		flow_free(x[1].flow);
		flow_free(other);
	}
	flow_free(keeper);
}

static void ahead_count_cpus_is_not_zero(void **state)
{
	(void)state;
	assert_true(ahead_count_cpus() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
		TEST(flow_several_threads_give_what_one_gives),
		TEST(flow_threads_go_on_behind_system_call),
		TEST(flow_threads_ask_together_what_one_asks),
		TEST(flow_batch_that_asks_grows),
		TEST(flow_threads_keep_returns_behind_system_call),
		TEST(flow_threads_do_not_ask_for_code),
		TEST(flow_threads_with_other_code_at_same_address_are_not_taken),
		TEST(flow_threads_without_psbs_are_not_needed),
		TEST(flow_threads_with_segments_too_large_give_what_one_gives),
		TEST(flow_threads_misled_by_false_psb_are_not_taken),
		TEST(flow_free_before_end_ends_threads),
		TEST(flow_that_shares_has_threads_in_common),
		cmocka_unit_test(ahead_count_cpus_is_not_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
