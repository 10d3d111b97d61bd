#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/order.h"
#include "proto/base.h"

struct told {
	const struct order *order;
	char text[4096];
	size_t used, n;
};

/* "NAME@DEPTH took+-uncertain off;" */
static int tell(void *userdata, const struct order_call *call)
{
	struct told *t = userdata;
	uint64_t uncertain, took = order_duration(call, &uncertain);

	t->n++;
	if (t->used + 100 < sizeof(t->text))
		t->used += (size_t)snprintf(
			t->text + t->used, sizeof(t->text) - t->used, "%s@%u %ju+-%ju off %ju%s;",
			call->gap	 ? t->order->gaps[call->function]
			: call->function ? order_function(t->order, call->function)->name
					 : "-",
			call->depth, (uintmax_t)took, (uintmax_t)uncertain, (uintmax_t)call->off,
			call->running ? " running" : "");
	return 0;
}

static void begin(struct order *o, struct told *t)
{
	static const char *const names[] = {"f", "g", "h"};

	order_init(o);
	*t = (struct told){.order = o};
	o->fn = tell;
	o->userdata = t;
	assert_int_equal(order_take(o, &(struct callstream_item){.kind = CALLSTREAM_HEAD}), 0);
	for (uint32_t i = 1; i <= 2; i++)
		assert_int_equal(order_take(o, &(struct callstream_item){.kind = CALLSTREAM_THREAD,
									 .thread = i,
									 .name = "t"}),
				 0);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(
			order_take(o, &(struct callstream_item){.kind = CALLSTREAM_FUNCTION,
								.function = i,
								.name = names[i - 1],
								.image = ""}),
			0);
}

static void take(struct order *o, enum callstream_kind kind, uint32_t thread, uint64_t time,
		 uint32_t function)
{
	assert_int_equal(order_take(o, &(struct callstream_item){.kind = kind,
								 .thread = thread,
								 .time = time,
								 .width = 2,
								 .function = function,
								 .name = "lost"}),
			 0);
}

#define B(thread, time, function) take(&o, CALLSTREAM_BEGIN, thread, time, function)
#define E(thread, time)		  take(&o, CALLSTREAM_FINISH, thread, time, 0)
#define END()			  take(&o, CALLSTREAM_END, 0, 0, 0)

static void order_take_tells_calls_in_order_of_their_begins(void **state)
{
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	B(1, 10, 1);
	B(2, 12, 3);
	B(1, 20, 2);
	E(1, 30);
	E(2, 35);
	assert_string_equal(t.text, "");
	E(1, 50);
	END();
	assert_string_equal(t.text, "f@0 40+-2 off 0;h@0 23+-2 off 0;g@1 10+-2 off 0;");
	order_done(&o);
}

static void order_take_time_without_a_cpu_is_told_apart(void **state)
{
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	take(&o, CALLSTREAM_ON, 1, 5, 0);
	B(1, 10, 1);
	B(1, 20, 2);
	take(&o, CALLSTREAM_OFF, 1, 30, 0);
	take(&o, CALLSTREAM_ON, 1, 70, 0);
	E(1, 80);
	B(1, 82, 3);
	E(1, 84);
	E(1, 90);
	END();
	assert_string_equal(t.text, "f@0 80+-2 off 40;g@1 60+-2 off 40;h@1 2+-2 off 0;");
	order_done(&o);
}

static void order_take_leaves_out_short_and_deep_calls(void **state)
{
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	o.longer_than = 10;
	o.depth = 2;
	B(1, 10, 1);
	for (uint64_t i = 0; i < 5; i++) {
		B(1, 20 + 10 * i, 2);
		E(1, 22 + 10 * i);
	}
	assert_int_equal(o.tail - o.head, 1);
	B(1, 80, 2);
	B(1, 81, 3);
	E(1, 95);
	E(1, 96);
	take(&o, CALLSTREAM_GAP, 1, 97, 0);
	E(1, 100);
	END();
	assert_string_equal(t.text, "f@0 90+-2 off 0;g@1 16+-2 off 0;lost@0 2+-0 off 0;");
	order_done(&o);
}

/* A call that contains more than can wait is told before its end, and memory is bounded. */
static void order_take_endless_call_is_told_while_it_runs(void **state)
{
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	B(1, 10, 1);
	for (uint64_t i = 0; i < 2 * ORDER_MAX; i++) {
		B(1, 20 + 4 * i, 2);
		E(1, 22 + 4 * i);
	}
	E(1, 100 + 8 * ORDER_MAX);
	END();
	assert_int_equal(t.n, 2 * ORDER_MAX + 1);
	assert_int_equal(o.running, 1);
	assert_true(o.capacity <= ORDER_MAX);
	assert_non_null(strstr(t.text, " running;g@1 "));
	order_done(&o);
}

static int refuse(void *userdata, const struct order_call *call)
{
	(void)userdata;
	(void)call;
	return 77;
}

static void order_take_result_of_the_reader_ends_it(void **state)
{
	const struct callstream_item end = {.kind = CALLSTREAM_FINISH, .thread = 1, .time = 20};
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	o.fn = refuse;
	B(1, 10, 1);
	assert_int_equal(order_take(&o, &end), 77);
	order_done(&o);
}

static void order_take_names_beyond_the_limit_are_counted(void **state)
{
	const struct callstream_item late = {
		.kind = CALLSTREAM_FUNCTION, .function = 4, .name = "late", .image = "/late"};
	const struct callstream_item far = {.kind = CALLSTREAM_FUNCTION,
					    .function = ORDER_MAX_FUNCTIONS,
					    .name = "far",
					    .image = ""};
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	o.names_max = o.names_used + 2;
	assert_int_equal(order_take(&o, &late), 0);
	assert_int_equal(order_take(&o, &far), 0);
	assert_int_equal(o.nameless, 2);
	B(1, 10, 4);
	B(1, 20, 1);
	E(1, 30);
	E(1, 50);
	B(1, 60, ORDER_MAX_FUNCTIONS);
	E(1, 70);
	END();
	assert_string_equal(t.text, ORDER_NAMELESS "@0 40+-2 off 0;f@1 10+-2 off 0;" ORDER_NAMELESS
						   "@0 10+-2 off 0;");
	assert_string_equal(order_function(&o, 4)->image, "");
	order_done(&o);
}

static void order_take_threads_beyond_the_limit_are_left_out(void **state)
{
	const struct callstream_item thread = {
		.kind = CALLSTREAM_THREAD, .thread = ORDER_MAX_THREADS, .name = "t"};
	struct order o;
	struct told t;

	(void)state;
	begin(&o, &t);
	assert_int_equal(order_take(&o, &thread), 0);
	take(&o, CALLSTREAM_ON, ORDER_MAX_THREADS, 5, 0);
	B(ORDER_MAX_THREADS, 10, 1);
	E(ORDER_MAX_THREADS, 20);
	take(&o, CALLSTREAM_OFF, ORDER_MAX_THREADS, 25, 0);
	END();
	assert_int_equal(o.threads_left_out, 1);
	assert_int_equal(t.n, 0);
	assert_string_equal(order_thread(&o, ORDER_MAX_THREADS)->name, ORDER_NAMELESS);
	order_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_take_tells_calls_in_order_of_their_begins),
		cmocka_unit_test(order_take_time_without_a_cpu_is_told_apart),
		cmocka_unit_test(order_take_leaves_out_short_and_deep_calls),
		cmocka_unit_test(order_take_endless_call_is_told_while_it_runs),
		cmocka_unit_test(order_take_names_beyond_the_limit_are_counted),
		cmocka_unit_test(order_take_threads_beyond_the_limit_are_left_out),
		cmocka_unit_test(order_take_result_of_the_reader_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
