#include "decoder/time/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TSC(n)	     "\x19" n "\x00\x00\x00\x00\x00"
#define TMA(ctc, fc) "\x02\x73" ctc "\x00" fc "\x00"
#define CBR(r)	     "\x02\x03" r "\x00"
#define TNT	     "\x06"
#define TIP	     "\x2d\x01\x02"
#define PSB	     "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define PSBEND	     "\x02\x23"
#define OVF	     "\x02\xf3"
#define FUP	     "\x7d\x01\x02\x03\x04\x00\x00"
#define PGE	     "\x31\x01\x02"
#define PGD	     "\x01"
#define MTC(n)	     "\x59" n
#define CYC16	     "\x83"
#define CYC8	     "\x43"

#define NO_MTC ((struct timing_config){.mtc_period = UINT32_MAX})
/* There is an MTC every 8 CTC ticks of 100 TSC ticks each. */
#define MTC_800 ((struct timing_config){.mtc_period = 3, .tsc_art_num = 100, .tsc_art_den = 1})
#define CYC_64	((struct timing_config){.mtc_period = UINT32_MAX, .max_nonturbo_ratio = 64})
/* With MTCs and CYCs: an MTC every 64 TSC ticks. */
#define BOTH                     \
	((struct timing_config){ \
		.mtc_period = 4, .max_nonturbo_ratio = 64, .tsc_art_num = 4, .tsc_art_den = 1})

struct expected {
	uint64_t offset, lo, hi;
};

static struct timing *new_timing(const char *bytes, size_t size, struct timing_config config)
{
	struct timing *t = malloc(sizeof(*t));

	timing_init(t, (const uint8_t *)bytes, size, 0, &config);
	return t;
}

static void check(struct timing *t, const struct expected *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t lo, hi;

		timing_at(t, e[i].offset, &lo, &hi);
		assert_int_equal(lo, e[i].lo);
		assert_int_equal(hi, e[i].hi);
	}
	free(t);
}

static void timing_at_without_packets_is_unknown(void **state)
{
	static const struct expected e[] = {{0, 0, UINT64_MAX}, {1, 0, UINT64_MAX}};

	(void)state;
	check(new_timing(TNT TNT, 2, NO_MTC), e, 2);
}

static void timing_at_between_two_tscs_is_their_interval(void **state)
{
	static const char bytes[] = TNT TSC("\x00\x10") TNT TNT TSC("\x00\x20") TNT;
	static const struct expected e[] = {{0, 0, 0x1000},
					    {9, 0x1000, 0x2000},
					    {10, 0x1000, 0x2000},
					    {19, 0x2000, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, NO_MTC), e, 4);
}

/* TSC 0x1000 is 0x10 TSC ticks behind CTC 0x0013. MTCs come every 8 CTC ticks, of 100 TSC ticks. */
static void timing_at_mtc_counts_from_tma(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\x13\x00", "\x10") TNT "\x59\x03" TNT "\x59\x04" TNT;
	/* CTC 0x18 is 5 ticks later: 0x1000 - 0x10 + 500; then 800 more. */
	static const struct expected e[] = {{15, 4096, 4096 - 16 + 501},
					    {18, 4096 - 16 + 500, 4096 - 16 + 1301},
					    {21, 4096 - 16 + 1300, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 3);
}

static void timing_at_mtc_wraps_at_256(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\xf8\x07", "\x00") "\x59\x00" TNT "\x59\x02";
	/* CTC 0x7f8 to 0x800: 8 ticks; then 16. */
	static const struct expected e[] = {{17, 4096 + 800, 4096 + 2401}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 1);
}

static void timing_at_mtc_without_tma_or_ratio_gives_nothing(void **state)
{
	static const char bytes[] = TSC("\x00\x10") "\x59\x03" TNT "\x59\x04" TNT;
	static const struct expected e[] = {{10, 4096, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 1);
}

/* With ratio 31 of 64, a cycle takes at least 2 TSC ticks and at most 65/31. CYC 8 may count from
 * before the TSC, so it comes at once or up to 8 cycles later. CYC 16 follows. */
static void timing_at_cyc_bounds_from_both_sides(void **state)
{
	static const char bytes[] =
		CBR("\x1f") TSC("\x00\x10") "\x43" TNT "\x83" TNT "\x83" TSC("\x00\x11") TNT;
	static const struct expected e[] = {
		{13, 4096, 4096 + 20 + 37}, /* a distance of 16 cycles may be almost 17 */
		{15, 4096 + 30, 4096 + 20 + 71},
		{25, 4096 + 256, UINT64_MAX},
	};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, CYC_64), e, 3);
}

static void timing_at_overflow_ends_the_mtc_chain(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TMA("\x13\x00", "\x10") "\x02\xf3\x59\x03" TNT;
	static const struct expected e[] = {{19, 4096, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 1);
}

/* Erratum SKD007: the bytes of a CYC hold the first byte of an OVF. */
static void timing_at_overflow_behind_a_cyc_that_is_none_ends_the_mtc_chain(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\x13\x00", "\x10") "\x07\x02\xf3\x59\x03" TNT;
	static const struct expected e[] = {{20, 4096, UINT64_MAX}};
	struct timing_config config = MTC_800;

	(void)state;
	config.quirks = PACKET_SKD007;
	check(new_timing(bytes, sizeof(bytes) - 1, config), e, 1);
}

static void timing_at_many_cycs_stays_within_its_memory(void **state)
{
	size_t n = 8 + 5000 + 8;
	char *bytes = malloc(n);
	uint64_t lo, hi;
	struct timing *t;

	(void)state;
	memset(bytes, 0x0b, n);
	memcpy(bytes, TSC("\x00\x10"), 8);
	memcpy(bytes + n - 8, TSC("\x00\x20"), 8);
	t = new_timing(bytes, n, CYC_64);
	for (size_t i = 0; i < n; i += 7) {
		timing_at(t, i, &lo, &hi);
		assert_true(lo <= hi);
		if (i > 8 && i < n - 8)
			assert_true(lo >= 0x1000 && hi <= 0x2000);
	}
	free(t);
	free(bytes);
}

static void timing_at_behind_the_last_packet_ends_at_the_stop(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TNT TSC("\x00\x20") TNT;
	static const struct expected e[] = {{8, 0x1000, 0x2000}, {17, 0x2000, 0x2345}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1,
			 (struct timing_config){.mtc_period = UINT32_MAX, .end_tsc = 0x2345}),
	      e, 2);
}

/* The true time is after the first TSC, but the second TSC is earlier: the time is unknown. */
static void timing_at_tsc_that_jumps_back_knows_nothing_between(void **state)
{
	static const char bytes[] = TSC("\x00\x20") TNT TSC("\x00\x10") TNT TSC("\x00\x18");
	static const struct expected e[] = {{8, 0, UINT64_MAX}, {17, 0x1000, 0x1800}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, NO_MTC), e, 2);
}

/* The chain counts 800 ticks for the MTC, but the next TSC comes after 256. */
static void timing_at_mtcs_that_overtake_the_next_tsc_are_not_used(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TMA("\x10\x00", "\x00") TNT MTC("\x03")
		TNT TSC("\x00\x11") TMA("\x10\x00", "\x00") TNT MTC("\x03") TNT;
	static const struct expected e[] = {{15, 0x1000, 0x1100},
					    {18, 0x1000, 0x1100},
					    {34, 0x1100, 0x1100 + 801},
					    {37, 0x1100 + 800, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 4);
}

static void timing_at_mtcs_that_were_lost_are_counted(void **state)
{
	static const char bytes[] =
		TSC("\x00\x10") TMA("\x10\x00", "\x00") MTC("\x03") TNT MTC("\x02") TNT;
	/* 255 periods later. */
	static const struct expected e[] = {{17, 4096 + 800, 4096 + 256 * 800 + 1},
					    {20, 4096 + 256 * 800, UINT64_MAX}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 2);
}

/* The CYC is halfway: 32 cycles, as 16 and 16, between anchors that are 64 ticks apart. */
static void timing_at_cyc_between_anchors_with_cycs_is_known(void **state)
{
	static const char bytes[] = CBR("\x20") CYC8 PSB TSC("\x00\x10") TMA("\x00\x04", "\x00")
		FUP PSBEND TNT CYC16 TIP CYC16 MTC("\x41") TNT;
	struct timing *t = new_timing(bytes, sizeof(bytes) - 1, BOTH);
	uint64_t lo, hi;

	(void)state;
	timing_at(t, 45, &lo, &hi);
	assert_int_equal(lo, 4096);
	assert_in_range(hi, 4096 + 32, 4096 + 37);
	timing_at(t, 47, &lo, &hi);
	assert_in_range(lo, 4096 + 27, 4096 + 32);
	assert_in_range(hi, 4096 + 32, 4096 + 37);
	free(t);
}

/* The CYC tells the time of the TIP, but of a TNT only the time of its first branch. */
static void timing_at_tnt_behind_a_cyc_lasts_up_to_the_next_one(void **state)
{
	static const char bytes[] = CBR("\x20") CYC8 PSB TSC("\x00\x10") TMA("\x00\x04", "\x00")
		FUP PSBEND CYC8 TNT CYC16 TIP CYC8 MTC("\x41") TNT;
	struct timing *t = new_timing(bytes, sizeof(bytes) - 1, BOTH);
	uint64_t lo, hi;

	(void)state;
	timing_at(t, 46, &lo, &hi);
	assert_in_range(lo, 4096 + 11, 4096 + 16);
	assert_in_range(hi, 4096 + 48, 4096 + 53);
	timing_at(t, 48, &lo, &hi);
	assert_in_range(lo, 4096 + 43, 4096 + 48);
	assert_in_range(hi, 4096 + 48, 4096 + 53);
	free(t);
}

/* If the ratio changes, it is unknown how many cycles had which length. */
static void timing_at_cyc_where_the_ratio_changes_is_bound_by_the_faster(void **state)
{
	static const char bytes[] = CBR("\x1f") CYC8 PSB TSC("\x00\x10") TMA("\x00\x04", "\x00")
		FUP PSBEND CYC16 TIP CBR("\x3f") CYC16 MTC("\x41") TNT;
	static const struct expected e[] = {{46, 4096 + 15, 4096 + 65 - 15}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, BOTH), e, 1);
}

/* A TSC outside of a PSB says that the clock had stopped. Up to there the clock had the CBR's
 * speed. */
static void timing_at_cyc_before_a_stop_is_bound_by_the_ratio(void **state)
{
	static const char bytes[] =
		CBR("\x1f") CYC8 PSB TSC("\x00\x10") FUP PSBEND CYC16 TIP CYC16 TSC("\x00\x20") TNT;
	static const struct expected e[] = {{39, 4096 + 30, 4096 + 37}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, CYC_64), e, 1);
}

/* 128 cycles took 256 ticks, so 16 cycles take about 32, however long the clock then stood. After
 * the stop, the first count may begin before the stop. */
static void timing_at_cyc_before_a_stop_is_bound_by_the_speed(void **state)
{
	static const char bytes[] =
		CYC8 PSB TSC("\x00\x10") CBR("\x1f") FUP PSBEND "\x07\x08" PSB TSC("\x00\x11")
			CBR("\x1f") FUP PSBEND CYC16 TIP TSC("\x00\x30") CYC8 CYC16 TIP;
	static const struct expected e[] = {{78, 0x1100 + 30, 0x1100 + 36},
					    {91, 0x3000 + 30, 0x3000 + 56}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, CYC_64), e, 2);
}

/* Tracing goes off, and on again 0x800 ticks later: the counter stood still and began anew. The
 * PSB+ was written while tracing was off, or directly behind TIP.PGE. */
static void timing_at_cyc_behind_tracing_that_was_off_knows_the_speed(void **state)
{
	static const char within[] = CYC8 PSB TSC("\x00\x10") CBR("\x1f") FUP PSBEND
		"\x07\x08" PSB TSC("\x00\x11") CBR("\x1f") FUP PSBEND CYC16 PGD PSB TSC("\x00\x19")
			CBR("\x1f") PSBEND PGE TNT "\x07\x08" PSB TSC("\x00\x1a") CBR("\x1f")
				FUP PSBEND CYC16 TIP TSC("\x00\x30");
	static const char behind[] = CYC8 PSB TSC("\x00\x10") CBR("\x1f") FUP PSBEND
		"\x07\x08" PSB TSC("\x00\x11") CBR("\x1f")
			FUP PSBEND CYC16 PGD PGE PSB TSC("\x00\x19") CBR("\x1f") FUP PSBEND TNT
		"\x07\x08" PSB TSC("\x00\x1a") CBR("\x1f") FUP PSBEND CYC16 TIP TSC("\x00\x30");
	static const struct expected at_within[] = {
		{sizeof(within) - 12, 0x1a00 + 30, 0x1a00 + 36}};
	static const struct expected at_behind[] = {
		{sizeof(behind) - 12, 0x1a00 + 30, 0x1a00 + 36}};

	(void)state;
	check(new_timing(within, sizeof(within) - 1, CYC_64), at_within, 1);
	check(new_timing(behind, sizeof(behind) - 1, CYC_64), at_behind, 1);
}

/* The CYC before the PSB may not be the last one. Without the erratum it is. */
static void timing_at_skl168_trusts_no_cyc_across_a_psb(void **state)
{
	static const char bytes[] = CYC8 PSB TSC("\x00\x10") CBR("\x1f")
		FUP PSBEND CYC16 TIP CYC16 PSB TSC("\x00\x11") CBR("\x1f") FUP PSBEND TNT;
	struct timing_config config = CYC_64;
	static const struct expected with[] = {{39, 4096, 4096 + 256 - 30}};
	uint64_t lo, hi;
	struct timing *t = new_timing(bytes, sizeof(bytes) - 1, config);

	(void)state;
	timing_at(t, 39, &lo, &hi);
	free(t);
	assert_in_range(lo, 4096 + 30, 4096 + 130);
	config.skl168 = true;
	check(new_timing(bytes, sizeof(bytes) - 1, config), with, 1);
}

/* The packet from which the CYC counts is lost, but was before the TSC. The next CYC is exact
 * again. */
static void timing_at_first_cyc_behind_an_overflow_comes_no_later_than_it_counts(void **state)
{
	static const char bytes[] = CBR("\x1f") CYC8 TSC("\x00\x10") OVF TSC("\x00\x20")
		CYC16 TIP CYC16 TIP TSC("\x00\x21") TNT;
	static const struct expected e[] = {{24, 8192, 8192 + 41}, {28, 8192 + 30, 8192 + 74}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, CYC_64), e, 2);
}

/* Less than 256 periods are missing; otherwise the next TSC would be much later. */
static void timing_at_mtcs_behind_an_overflow_that_the_next_tsc_confirms_count(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TMA("\x10\x00", "\x00") MTC("\x03")
		OVF TNT MTC("\x06") TNT TSC("\x00\x20");
	static const struct expected e[] = {{19, 4896, 7297}, {22, 7296, 8192}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, MTC_800), e, 2);
}

static void timing_at_mtcs_behind_a_long_overflow_do_not_count(void **state)
{
	static const char bytes[] = TSC("\x00\x10") TMA("\x00\x04", "\x00") MTC("\x41")
		OVF TNT MTC("\x43") TNT TSC("\x00\x90");
	static const struct expected e[] = {{19, 4160, 0x9000}, {22, 4160, 0x9000}};

	(void)state;
	check(new_timing(bytes, sizeof(bytes) - 1, BOTH), e, 2);
}

/* There are more cycles than the ratio allows, so the ratio is wrong and no longer used. */
static void timing_at_ratio_that_the_anchors_refute_is_forgotten(void **state)
{
	static const char bytes[] = CBR("\x01") CYC8 PSB TSC("\x00\x10") TMA("\x00\x04", "\x00")
		FUP PSBEND CYC16 TIP CYC16 MTC("\x41") TNT;
	struct timing *t = new_timing(bytes, sizeof(bytes) - 1, BOTH);
	uint64_t lo, hi;

	(void)state;
	timing_at(t, 46, &lo, &hi);
	assert_true(t->ratio_wrong);
	assert_in_range(lo, 4096 + 27, 4096 + 32);
	assert_in_range(hi, 4096 + 32, 4096 + 37);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timing_at_without_packets_is_unknown),
		cmocka_unit_test(timing_at_between_two_tscs_is_their_interval),
		cmocka_unit_test(timing_at_mtc_counts_from_tma),
		cmocka_unit_test(timing_at_mtc_wraps_at_256),
		cmocka_unit_test(timing_at_mtc_without_tma_or_ratio_gives_nothing),
		cmocka_unit_test(timing_at_cyc_bounds_from_both_sides),
		cmocka_unit_test(timing_at_overflow_ends_the_mtc_chain),
		cmocka_unit_test(timing_at_overflow_behind_a_cyc_that_is_none_ends_the_mtc_chain),
		cmocka_unit_test(timing_at_many_cycs_stays_within_its_memory),
		cmocka_unit_test(timing_at_behind_the_last_packet_ends_at_the_stop),
		cmocka_unit_test(timing_at_tsc_that_jumps_back_knows_nothing_between),
		cmocka_unit_test(timing_at_mtcs_that_overtake_the_next_tsc_are_not_used),
		cmocka_unit_test(timing_at_mtcs_that_were_lost_are_counted),
		cmocka_unit_test(timing_at_cyc_between_anchors_with_cycs_is_known),
		cmocka_unit_test(timing_at_tnt_behind_a_cyc_lasts_up_to_the_next_one),
		cmocka_unit_test(timing_at_cyc_where_the_ratio_changes_is_bound_by_the_faster),
		cmocka_unit_test(timing_at_cyc_before_a_stop_is_bound_by_the_ratio),
		cmocka_unit_test(timing_at_cyc_before_a_stop_is_bound_by_the_speed),
		cmocka_unit_test(timing_at_cyc_behind_tracing_that_was_off_knows_the_speed),
		cmocka_unit_test(timing_at_skl168_trusts_no_cyc_across_a_psb),
		cmocka_unit_test(
			timing_at_first_cyc_behind_an_overflow_comes_no_later_than_it_counts),
		cmocka_unit_test(
			timing_at_mtcs_behind_an_overflow_that_the_next_tsc_confirms_count),
		cmocka_unit_test(timing_at_mtcs_behind_a_long_overflow_do_not_count),
		cmocka_unit_test(timing_at_ratio_that_the_anchors_refute_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
