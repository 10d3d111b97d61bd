#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"

/* clang-format off */
static const uint8_t trace[] = {
	0x77, 0x77,			/* 0: the ring's oldest end */
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, /* 2: PSB */
	0x19, 0, 0x10, 0, 0, 0, 0, 0,	/* 12: TSC 1000 */
	2, 0x23,			/* 1a: PSBEND */
	0x71, 0, 0, 1, 0, 0, 0,		/* 1c: TIP.PGE 10000 */
	0x3d, 2, 0,			/* 23: FUP 10002 */
	0x19, 0, 0x20, 0, 0, 0, 0, 0,	/* 26: TSC 2000 */
	0x01,				/* 2e: TIP.PGD */
	0x02, 0xff,			/* 2f: no packet */
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, /* 31: PSB */
	2, 0x23,			/* 41: PSBEND */
	0x31, 2, 0,			/* 43: TIP.PGE 2 */
};
/* clang-format on */

static void begin(struct track *t, bool timed)
{
	const struct estimate_config estimate = {.mtc_period = UINT32_MAX};
	const struct errata errata = {0};

	track_init(t, trace, sizeof(trace), &errata, timed ? &estimate : NULL);
}

static void track_look_finds_the_packet_and_the_next_one(void **state)
{
	struct track_pair p;
	struct track t;

	(void)state;
	begin(&t, false);
	track_look(&t, 0x1c, &p);
	assert_int_equal(p.first.type, PACKET_TIP_PGE);
	assert_int_equal(p.first.offset, 0x1c);
	assert_int_equal(p.second.type, PACKET_FUP);
	assert_int_equal(p.second.ip, 0x10002);
	/* Timing may stand between two. */
	track_look(&t, 0x23, &p);
	assert_int_equal(p.first.type, PACKET_FUP);
	assert_true(p.first.has_ip);
	assert_int_equal(p.first.ip, 0x10002);
	assert_int_equal(p.second.type, PACKET_TIP_PGD);
	assert_false(p.second.has_ip);
	/* Again at the same place. */
	track_look(&t, 0x23, &p);
	assert_int_equal(p.first.offset, 0x23);
}

static void track_look_goes_on_behind_bad_bytes(void **state)
{
	struct track_pair p;
	struct track t;

	(void)state;
	begin(&t, false);
	track_look(&t, 0x43, &p);
	assert_int_equal(p.first.type, PACKET_TIP_PGE);
	assert_int_equal(p.first.ip, 2);
	assert_int_equal(p.second.type, PACKET_PAD);
	track_look(&t, sizeof(trace), &p);
	assert_int_equal(p.first.type, PACKET_PAD);
}

static void track_psb_says_where_execution_is(void **state)
{
	static const uint8_t psbs[] = {
		2, 0x82, 2,    0x82, 2, 0x82, 2,    0x82, 2, 0x82,
		2, 0x82, 2,    0x82, 2, 0x82, 2,    0x23, /* 0: PSB, PSBEND */
		0, 0,					  /* 12: PAD */
		2, 0x82, 2,    0x82, 2, 0x82, 2,    0x82, 2, 0x82,
		2, 0x82, 2,    0x82, 2, 0x82, 0x3d, 7,	  0, /* 14: PSB, FUP 7 */
		2, 0x23, 0x3d, 9,    0,			     /* 27: PSBEND, FUP 9 */
	};
	const struct errata errata = {0};
	struct track t;
	uint64_t ip;

	(void)state;
	track_init(&t, psbs, sizeof(psbs), &errata, NULL);
	assert_false(track_psb(&t, 0x13, &ip));
	assert_true(track_psb(&t, 0x14, &ip));
	assert_int_equal(ip, 7);
	assert_false(track_psb(&t, sizeof(psbs), &ip));
}

static void track_time_is_that_of_the_packet(void **state)
{
	struct track t;
	uint64_t tsc;

	(void)state;
	begin(&t, true);
	/* The time in a PSB+ holds for its PSB. */
	assert_true(track_time(&t, 0x02, &tsc));
	assert_int_equal(tsc, 0x1000);
	assert_true(track_time(&t, 0x23, &tsc));
	assert_int_equal(tsc, 0x1000);
	assert_true(track_time(&t, 0x26, &tsc));
	assert_int_equal(tsc, 0x2000);
	/* Bad bytes are an error, behind which no time is known. */
	assert_false(track_time(&t, 0x43, &tsc));
}

static void track_time_untimed_knows_none(void **state)
{
	struct track t;
	uint64_t tsc;

	(void)state;
	begin(&t, false);
	assert_false(track_time(&t, 0x23, &tsc));
}

static void track_look_empty_trace_has_nothing(void **state)
{
	const struct errata errata = {0};
	struct track_pair p;
	struct track t;

	(void)state;
	track_init(&t, trace, 2, &errata, NULL);
	track_look(&t, 0, &p);
	assert_int_equal(p.first.type, PACKET_PAD);
	assert_int_equal(p.second.type, PACKET_PAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(track_look_finds_the_packet_and_the_next_one),
		cmocka_unit_test(track_look_goes_on_behind_bad_bytes),
		cmocka_unit_test(track_psb_says_where_execution_is),
		cmocka_unit_test(track_time_is_that_of_the_packet),
		cmocka_unit_test(track_time_untimed_knows_none),
		cmocka_unit_test(track_look_empty_trace_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
