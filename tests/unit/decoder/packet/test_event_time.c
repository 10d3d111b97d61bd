/*
 * decoder/packet/event_time: bytes that are there twice or in a wrong order are doubted, and work
 * stays linear.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/packet/event.h"
#include "proto/base.h"

struct trace {
	uint8_t bytes[65536];
	size_t size;
};

static void put(struct trace *t, const void *bytes, size_t n)
{
	assert_true(t->size + n <= sizeof(t->bytes));
	memcpy(t->bytes + t->size, bytes, n);
	t->size += n;
}

static void put_tsc(struct trace *t, uint64_t tsc)
{
	uint8_t bytes[8] = {0x19};

	for (unsigned int i = 1; i < 8; i++)
		bytes[i] = (uint8_t)(tsc >> 8 * (i - 1));
	put(t, bytes, sizeof(bytes));
}

/* PSB+ while tracing is on, and two decisions. */
static void put_segment(struct trace *t, uint64_t tsc, bool guest)
{
	for (unsigned int i = 0; i < 8; i++)
		put(t, "\x02\x82", 2);
	put_tsc(t, tsc);
	if (guest)
		put(t, "\x02\x43\x01\x00\x00\x00\x00\x00", 8);
	put(t, "\x3d\x00\x10\x02\x23\x0e", 6);
}

/* The events of T as text: "psb", "tnt" and, for a gap, "FROM+BYTES FAULT". */
static void check(const struct trace *t, const char *expected)
{
	struct errata none = {0};
	char text[4096] = "";
	struct event_reader r;
	struct event e;
	size_t n = 0;

	event_reader_init(&r, t->bytes, t->size, 0, t->size, none);
	for (event_next(&r, &e); e.kind != EVENT_END; event_next(&r, &e)) {
		assert_true(n < sizeof(text) - 64);
		if (e.kind == EVENT_PSB)
			n += (size_t)sprintf(text + n, "psb ");
		else if (e.kind == EVENT_TNT)
			n += (size_t)sprintf(text + n, "tnt ");
		else if (e.kind == EVENT_BAD)
			n += (size_t)sprintf(text + n, "%zu+%zu %s ", (size_t)e.offset,
					     (size_t)(e.end - e.offset), fault_name(e.fault));
	}
	assert_string_equal(text, expected);
}

static void time_that_rises_is_no_fault(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	put_tsc(&t, 0x2800);
	put_segment(&t, 0x3000, false);
	check(&t, "psb tnt psb tnt psb tnt ");
}

/* The copy begins somewhere in the third segment. Its own third PSB is where time goes on. */
static void bytes_that_are_there_twice_are_claimed_once(void **state)
{
	struct trace t = {0};

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		put_segment(&t, i << 12, false);
	for (uint64_t i = 2; i <= 4; i++)
		put_segment(&t, i << 12, false);
	check(&t, "psb tnt psb tnt 60+60 time-backwards psb tnt psb tnt ");
}

/* Behind the first of two copies of a PSB+ come bytes of the segment before it. */
static void a_psb_that_is_there_twice_begins_doubt(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	for (unsigned int i = 0; i < 40; i++)
		put(&t, "\x0e", 1);
	put_segment(&t, 0x2000, false);
	for (unsigned int i = 0; i < 10; i++)
		put(&t, "\x0e", 1);
	put_segment(&t, 0x2000, false);
	put(&t, "\x0e", 1);
	put_segment(&t, 0x3000, false);
	check(&t,
	      "psb tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt "
	      "tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt "
	      "70+40 time-backwards psb tnt tnt psb tnt ");
}

/* The copy begins within the TSC of the third PSB+, so bytes of the copy are taken for a time: LAST
 * is the highest of them. */
static void check_cut_tsc(uint8_t last)
{
	const uint8_t bytes[] = {0x19, 0x00, 0x30, 0x00, 0x00, 0x0e, 0x0e, last, 0x0e};
	struct trace t = {0};

	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	for (unsigned int i = 0; i < 8; i++)
		put(&t, "\x02\x82", 2);
	put(&t, bytes, sizeof(bytes));
	put_segment(&t, 0x1800, false);
	put_segment(&t, 0x2000, false);
	put_segment(&t, 0x3000, false);
	put_segment(&t, 0x4000, false);
	check(&t, "psb tnt psb tnt 60+85 time-backwards psb tnt psb tnt ");
}

static void a_psb_with_a_cut_time_is_claimed_once(void **state)
{
	(void)state;
	check_cut_tsc(0x0e);
	check_cut_tsc(0x82);
}

/* The copy begins before the TSC of the third PSB+. */
static void a_psb_that_is_cut_before_its_time_is_not_claimed(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	for (unsigned int i = 0; i < 8; i++)
		put(&t, "\x02\x82", 2);
	put(&t, "\x02\x23\x0e\x0e", 4);
	put_segment(&t, 0x1800, false);
	put_segment(&t, 0x2000, false);
	put_segment(&t, 0x3000, false);
	check(&t, "psb tnt psb tnt 60+80 time-backwards psb tnt ");
}

static void a_segment_that_is_there_twice_is_claimed_once(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	for (unsigned int copies = 0; copies < 2; copies++) {
		put_segment(&t, 0x2000, false);
		for (unsigned int i = 0; i < 64; i++)
			put(&t, "\x0e", 1);
	}
	put_segment(&t, 0x3000, false);
	check(&t,
	      "psb tnt 30+94 time-backwards psb tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt "
	      "tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt "
	      "tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt "
	      "tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt tnt psb tnt ");
}

static void old_bytes_behind_new_ones_are_doubted_to_the_end(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x5000, false);
	put_segment(&t, 0x6000, false);
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	check(&t, "psb tnt 30+90 time-backwards ");
}

static void one_wrong_tsc_costs_one_segment(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x901000, false);
	put_segment(&t, 0x2000, false);
	put_segment(&t, 0x3000, false);
	check(&t, "psb tnt 30+30 time-backwards psb tnt psb tnt ");
}

static void an_early_tsc_outside_of_psb_is_doubted_up_to_the_next_psb(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x1000, false);
	put_tsc(&t, 0x1800);
	put(&t, "\x0e", 1);
	put_tsc(&t, 0x1700);
	put(&t, "\x0e", 1);
	put_segment(&t, 0x2000, false);
	check(&t, "psb tnt tnt 39+9 time-backwards psb tnt ");
}

static void a_wrap_of_56_bits_is_no_fault(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, UINT64_C(0xfffffffffff000), false);
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	put_tsc(&t, 0x2100);
	check(&t, "psb tnt psb tnt psb tnt ");
}

static void the_time_of_a_virtual_machine_is_not_compared(void **state)
{
	struct trace t = {0};

	(void)state;
	put_segment(&t, 0x5000, false);
	put_segment(&t, 0x1000, true);
	put_tsc(&t, 0x900);
	check(&t, "psb tnt psb tnt ");
}

/* Behind the middle everything is old: nothing there may be claimed by a reader that begins there.
 */
static void a_reader_that_begins_within_knows_what_was_before(void **state)
{
	struct errata none = {0};
	struct trace t = {0};
	struct event_reader r;
	struct event e;
	size_t half;

	(void)state;
	put_segment(&t, 0x5000, false);
	put_segment(&t, 0x6000, false);
	half = t.size;
	put_segment(&t, 0x1000, false);
	put_segment(&t, 0x2000, false);
	event_reader_init(&r, t.bytes, t.size, half, t.size, none);
	event_note_before(&r, t.bytes + half);
	event_next(&r, &e);
	assert_int_equal(e.kind, EVENT_BAD);
	assert_int_equal(e.fault, FAULT_TIME_BACKWARDS);
	assert_int_equal(e.end, t.size);
}

/* Each second TSC is wrong, and each of these is earlier than the last wrong one: without a limit,
 * every search would go to the end. */
static void searches_that_find_nothing_are_limited(void **state)
{
	struct errata none = {0};
	struct trace t = {0};
	struct event_reader r;
	struct event e;
	unsigned int gaps = 0;

	(void)state;
	for (uint64_t i = 0; i < 500; i++) {
		put_segment(&t, 0x1000 + i, false);
		put_tsc(&t, 0x900000 - i);
	}
	event_reader_init(&r, t.bytes, t.size, 0, t.size, none);
	do {
		event_next(&r, &e);
		gaps += e.kind == EVENT_BAD;
	} while (e.kind != EVENT_END);
	assert_in_range(gaps, 2, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_that_rises_is_no_fault),
		cmocka_unit_test(bytes_that_are_there_twice_are_claimed_once),
		cmocka_unit_test(a_psb_that_is_there_twice_begins_doubt),
		cmocka_unit_test(a_psb_with_a_cut_time_is_claimed_once),
		cmocka_unit_test(a_psb_that_is_cut_before_its_time_is_not_claimed),
		cmocka_unit_test(a_segment_that_is_there_twice_is_claimed_once),
		cmocka_unit_test(old_bytes_behind_new_ones_are_doubted_to_the_end),
		cmocka_unit_test(one_wrong_tsc_costs_one_segment),
		cmocka_unit_test(an_early_tsc_outside_of_psb_is_doubted_up_to_the_next_psb),
		cmocka_unit_test(a_wrap_of_56_bits_is_no_fault),
		cmocka_unit_test(the_time_of_a_virtual_machine_is_not_compared),
		cmocka_unit_test(a_reader_that_begins_within_knows_what_was_before),
		cmocka_unit_test(searches_that_find_nothing_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
