/*
 * Turns in numbers that a stranger's sideband may have, asked for by as many stretches
 * of which the trace tells no time: what takes a step for each turn would take minutes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decoder/worker/turns/turns.h"
#include "proto/base.h"

#define MANY (UINT32_C(1) << 18)

static const struct timeline_thread a = {.pid = 1, .tid = 1, .end = SPACE_NOW};
static const struct timeline_thread b = {.pid = 2, .tid = 2, .end = SPACE_NOW};

/* Turns of one unit of time each; number i is of what WHO says. */
static void make_turns(struct turns *t, const struct timeline_thread *(*who)(uint32_t i))
{
	struct turns_turn *list = calloc(MANY, sizeof(*list));

	assert_int_equal(turns_init(t, 1), 0);
	assert_non_null(list);
	for (uint32_t i = 0; i < MANY; i++)
		list[i] = (struct turns_turn){.since = i, .until = i + 1, .thread = who(i)};
	t->cpus[0].list = list;
	t->cpus[0].n = MANY;
	assert_int_equal(turns_link(t), 0);
}

static const struct turns_stretch *no_more(void *userdata, size_t i)
{
	return i == 0 ? userdata : NULL;
}

static void no_proof(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret)
{
	(void)userdata;
	(void)i;
	(void)turn;
	(void)ret;
}

/* Decides the owners of many stretches that may lie anywhere. Returns the last one's thread. */
static const struct timeline_thread *decide_many(struct turns *t)
{
	struct turns_stretch untimed = {.enter_hi = UINT64_MAX, .leave_hi = UINT64_MAX};
	struct turns_state state = {0};
	struct turns_answer answer = {0};

	for (uint32_t i = 0; i < MANY; i++) {
		const struct turns_question q = {.turns = t,
						 .state = &state,
						 .first = &untimed,
						 .stretch = no_more,
						 .proof = no_proof,
						 .userdata = &untimed};

		turns_decide(&q, &answer);
		if (!answer.same)
			state = answer.state;
	}
	return answer.thread;
}

static const struct timeline_thread *at_the_ends(uint32_t i)
{
	return i == 0 || i == MANY - 1 ? &a : NULL;
}

static void turns_decide_far_apart_links(void **state)
{
	struct turns t;

	(void)state;
	make_turns(&t, at_the_ends);
	assert_int_equal(t.cpus[0].list[1].open, MANY - 1);
	assert_int_equal(t.cpus[0].list[0].other, TURNS_NONE);
	assert_ptr_equal(decide_many(&t), &a);
	turns_done(&t);
}

static const struct timeline_thread *every_second(uint32_t i)
{
	return i % 2 == 0 ? &a : NULL;
}

static void turns_decide_crowd_of_one_is_its(void **state)
{
	struct turns t;

	(void)state;
	make_turns(&t, every_second);
	assert_ptr_equal(decide_many(&t), &a);
	turns_done(&t);
}

static const struct timeline_thread *another_at_last(uint32_t i)
{
	return i == MANY - 1 ? &b : every_second(i);
}

static void turns_decide_crowd_with_another_is_nobodys(void **state)
{
	struct turns t;

	(void)state;
	make_turns(&t, another_at_last);
	assert_int_equal(t.cpus[0].list[0].other, MANY - 1);
	assert_null(decide_many(&t));
	turns_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_decide_far_apart_links),
		cmocka_unit_test(turns_decide_crowd_of_one_is_its),
		cmocka_unit_test(turns_decide_crowd_with_another_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
