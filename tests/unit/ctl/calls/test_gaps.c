#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/gaps.h"

struct told {
	char text[4096];
	size_t used, n;
	int result;
};

/* A call as "c BEGIN;", a gap as "THREAD/KIND BEGIN-END COUNTxCOVERED;". */
static int tell(void *userdata, const struct order_call *c)
{
	struct told *t = userdata;
	char *to = t->text + t->used;
	size_t size = sizeof(t->text) - t->used;

	t->n++;
	if (size < 100)
		return t->result;
	if (c->gap)
		t->used += (size_t)snprintf(to, size, "%u/%u %ju-%ju %jux%ju;", c->thread,
					    c->function, (uintmax_t)c->begin, (uintmax_t)c->end,
					    (uintmax_t)c->gaps, (uintmax_t)c->covered);
	else
		t->used += (size_t)snprintf(to, size, "c %ju;", (uintmax_t)c->begin);
	return t->result;
}

static struct gaps new_gaps(struct told *t, bool choose)
{
	*t = (struct told){.n = 0};
	return (struct gaps){
		.choose_of_threads = choose, .choose_of_cpus = choose, .fn = tell, .userdata = t};
}

static int gap(struct gaps *g, uint32_t thread, uint32_t kind, uint64_t begin, uint64_t end)
{
	return gaps_take(g, &(struct order_call){.gap = true,
						 .thread = thread,
						 .function = kind,
						 .begin = begin,
						 .end = end});
}

static int call(struct gaps *g, uint32_t thread, uint64_t begin, uint64_t end)
{
	return gaps_take(g, &(struct order_call){.thread = thread, .begin = begin, .end = end});
}

static void gaps_take_in_a_row_makes_one_of_each_kind_and_thread(void **state)
{
	struct told t;
	struct gaps g = new_gaps(&t, false);

	(void)state;
	call(&g, 1, 1, 5);
	for (uint64_t i = 1; i <= 1000; i++) {
		gap(&g, 1, 0, 10 * i, 10 * i + 3);
		gap(&g, 2, 0, 10 * i + 1, 10 * i + 2);
		gap(&g, 1, 7, 10 * i + 4, 10 * i + 4);
	}
	assert_int_equal(t.n, 1);
	call(&g, 1, 20000, 20001);
	gap(&g, 1, 0, 20002, 20003);
	gaps_finish(&g);
	assert_string_equal(t.text, "c 1;1/0 10-10003 1000x3000;2/0 11-10002 1000x1000;"
				    "1/7 14-10004 1000x0;c 20000;1/0 20002-20003 1x1;");
	assert_int_equal(g.n, 3001);
	assert_int_equal(g.left_out, 0);
	gaps_done(&g);
}

static void gaps_take_of_gaps_that_overlap_covers_each_time_once(void **state)
{
	struct told t;
	struct gaps g = new_gaps(&t, false);

	(void)state;
	gap(&g, 0, 0, 10, 30);
	gap(&g, 0, 0, 20, 25);
	gap(&g, 0, 0, 20, 40);
	gaps_finish(&g);
	assert_string_equal(t.text, "0/0 10-40 3x30;");
	gaps_done(&g);
}

static void gaps_take_with_a_choice_leaves_out_what_touches_no_call(void **state)
{
	struct told t;
	struct gaps g = new_gaps(&t, true);

	(void)state;
	gap(&g, 1, 0, 1, 2);
	gap(&g, 1, 0, 3, 10); /* until the call */
	call(&g, 1, 10, 20);
	gap(&g, 1, 0, 20, 22); /* from its end on */
	gap(&g, 1, 0, 23, 25);
	gap(&g, 2, 0, 15, 16); /* of another thread */
	gap(&g, 0, 0, 16, 17); /* of nobody, within it */
	gap(&g, 0, 0, 21, 22);
	call(&g, 2, 30, 40);
	gaps_finish(&g);
	assert_string_equal(t.text, "1/0 3-10 1x7;c 10;0/0 16-17 1x1;1/0 20-22 1x2;c 30;");
	assert_int_equal(g.n, 7);
	assert_int_equal(g.left_out, 4);
	gaps_done(&g);
}

static void gaps_take_with_many_kinds_tells_or_counts_all(void **state)
{
	struct told t;
	struct gaps g = new_gaps(&t, false);

	(void)state;
	for (uint32_t i = 1; i <= 3 * GAPS_MAX; i++)
		gap(&g, i, 0, i, i);
	gaps_finish(&g);
	assert_int_equal(t.n, 3 * GAPS_MAX);
	gaps_done(&g);
	g = new_gaps(&t, true);
	for (uint32_t i = 1; i <= 3 * GAPS_MAX; i++)
		gap(&g, i, 0, i, i);
	gaps_finish(&g);
	assert_int_equal(t.n, 0);
	assert_int_equal(g.left_out, 3 * GAPS_MAX);
	gaps_done(&g);
}

static void gaps_take_forwards_a_result(void **state)
{
	struct told t;
	struct gaps g = new_gaps(&t, false);

	(void)state;
	t.result = -7;
	assert_int_equal(gap(&g, 1, 0, 1, 2), 0);
	assert_int_equal(call(&g, 1, 3, 4), -7);
	assert_int_equal(t.n, 1);
	gaps_done(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gaps_take_in_a_row_makes_one_of_each_kind_and_thread),
		cmocka_unit_test(gaps_take_of_gaps_that_overlap_covers_each_time_once),
		cmocka_unit_test(gaps_take_with_a_choice_leaves_out_what_touches_no_call),
		cmocka_unit_test(gaps_take_with_many_kinds_tells_or_counts_all),
		cmocka_unit_test(gaps_take_forwards_a_result),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
