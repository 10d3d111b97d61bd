/*
 * decoder/time/estimate: from timing packets to one TSC, as libipt adds them up.
 */
#include "decoder/time/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct estimate estimate;

static void setup(const struct estimate_config *config)
{
	estimate_init(&estimate, config);
}

static struct estimate_faults take(const struct packet *p)
{
	return estimate_packet(&estimate, p);
}

#define PACKET(kind, ...) (&(const struct packet){.type = PACKET_##kind, .u = {__VA_ARGS__}})
#define TSC(v)		  PACKET(TSC, .tsc.value = (v))
#define TMA(c, f)	  PACKET(TMA, .tma = {.ctc = (c), .fc = (f)})
#define MTC(c)		  PACKET(MTC, .mtc.ctc = (c))
#define CYC(v)		  PACKET(CYC, .cyc.value = (v))
#define CBR(v)		  PACKET(CBR, .cbr.ratio = (v))
#define PSB		  PACKET(PSB, .tsc.value = 0)
#define PSBEND		  PACKET(PSBEND, .tsc.value = 0)
#define OVF		  PACKET(OVF, .tsc.value = 0)

static uint64_t tsc(void)
{
	uint64_t v = 0;

	estimate_tsc(&estimate, &v);
	return v;
}

/* The length of a cycle in 1/256 of a tick; 0: unknown. */
static uint64_t length(void)
{
	uint64_t v = 0;

	return estimate_length(&estimate, &v) == ESTIMATE_OK ? v : 0;
}

static void estimate_tsc_before_any_is_unknown(void **state)
{
	uint64_t v = 1;

	(void)state;
	setup(&(struct estimate_config){.tsc_art_num = 4, .tsc_art_den = 1});
	assert_int_equal(estimate_tsc(&estimate, &v), ESTIMATE_NO_TIME);
	take(MTC(1));
	take(MTC(3));
	/* The time that has passed since is known. */
	assert_int_equal(estimate_tsc(&estimate, &v), ESTIMATE_NO_TIME);
	assert_int_equal(v, 8);
	take(TSC(0x1000));
	assert_int_equal(estimate_tsc(&estimate, &v), ESTIMATE_OK);
	assert_int_equal(v, 0x1000);
}

static void estimate_mtc_counts_from_the_tma(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.mtc_period = 4, .tsc_art_num = 6, .tsc_art_den = 2});
	take(TSC(0x1000));
	/* An MTC between TSC and TMA says nothing. */
	take(MTC(7));
	assert_int_equal(take(TMA(0x28, 5)).point, ESTIMATE_OK);
	assert_int_equal(tsc(), 0x1000);
	take(MTC(3));
	assert_int_equal(tsc(), 0x1000 - 5 + (0x30 - 0x28) * 3);
	take(MTC(5));
	assert_int_equal(tsc(), 0x1000 - 5 + (0x50 - 0x28) * 3);
}

static void estimate_mtc_that_wraps_goes_on(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.mtc_period = 0, .tsc_art_num = 1, .tsc_art_den = 1});
	take(TSC(100));
	take(TMA(0xfe, 0));
	take(MTC(0xff));
	take(MTC(2));
	assert_int_equal(tsc(), 104);
}

static void estimate_mtc_rarer_than_tma_bits_are_completed(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.mtc_period = 12, .tsc_art_num = 1, .tsc_art_den = 1});
	take(TSC(1 << 20));
	take(TMA(0xf000, 0));
	/* The high bits were one less before the low bits wrapped. */
	take(MTC(0x21));
	assert_int_equal(tsc(), (1 << 20) + 0x2000);
}

static void estimate_tma_without_tsc_is_out_of_place(void **state)
{
	(void)state;
	setup(&(struct estimate_config){0});
	assert_int_equal(take(TMA(1, 1)).point, ESTIMATE_BAD_CONTEXT);
	take(TSC(1));
	assert_int_equal(take(TMA(1, 1)).point, ESTIMATE_OK);
	assert_int_equal(take(TMA(1, 1)).point, ESTIMATE_BAD_CONTEXT);
}

static void estimate_mtc_without_ratio_is_an_error(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.tsc_art_num = 3});
	take(TSC(1));
	take(TMA(1, 0));
	assert_int_equal(take(MTC(2)).point, ESTIMATE_BAD_CONFIG);
}

static void estimate_cyc_by_bus_ratio(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.max_nonturbo_ratio = 4});
	take(PSB);
	take(TSC(1000));
	assert_int_equal(take(CBR(0)).point, ESTIMATE_BAD_PACKET);
	take(CBR(8));
	take(PSBEND);
	assert_int_equal(length(), 128);
	take(CYC(20));
	assert_int_equal(tsc(), 1010);
	/* The CBR tells of another frequency. */
	take(CBR(2));
	assert_int_equal(length(), 512);
	take(CYC(20));
	assert_int_equal(tsc(), 1050);
}

static void estimate_cyc_without_length_is_lost(void **state)
{
	struct estimate_faults faults;

	(void)state;
	setup(&(struct estimate_config){0});
	take(TSC(1000));
	faults = take(CYC(20));
	assert_int_equal(faults.length, ESTIMATE_NO_TIME);
	assert_true(faults.uncalibrated);
	assert_int_equal(tsc(), 1000);
	assert_int_equal(estimate.lost_cyc, 1);
	take(TSC(1000));
	assert_int_equal(estimate.lost_cyc, 0);
}

static void estimate_cyc_between_mtcs_measures_cycles(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.tsc_art_num = 8, .tsc_art_den = 1});
	take(MTC(1));
	take(CYC(10));
	take(MTC(2));
	/* There was no cycle in one period, so the length is measured over both. */
	assert_int_equal(length(), 8 * 256 / 10);
	take(MTC(3));
	take(CYC(4));
	take(MTC(4));
	assert_int_equal(length(), 2 * 8 * 256 / 4);
}

static void estimate_cyc_over_several_periods_counts_the_last(void **state)
{
	(void)state;
	setup(&(struct estimate_config){
		.tsc_art_num = 8, .tsc_art_den = 1, .max_nonturbo_ratio = 1});
	take(PSB);
	take(TSC(1000));
	take(TMA(1, 0));
	take(CBR(1));
	take(PSBEND);
	take(MTC(2));
	take(MTC(3));
	assert_int_equal(tsc(), 1016);
	/* 16 of the cycles were before the MTC. */
	take(CYC(20));
	assert_int_equal(tsc(), 1020);
	/* The period before had no CYC of its own, so the 20 cycles are measured over both periods.
	 */
	take(MTC(4));
	assert_int_equal(length(), 16 * 256 / 20);
	take(CYC(10));
	assert_int_equal(tsc(), 1024 + 7);
}

static void estimate_cbr_outside_of_psb_measures_anew(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.tsc_art_num = 8, .tsc_art_den = 1});
	take(MTC(1));
	take(CYC(4));
	take(PSB);
	take(CBR(9));
	take(PSBEND);
	take(MTC(2));
	assert_int_equal(length(), 512);
	take(CYC(4));
	take(CBR(9));
	assert_int_equal(length(), 0);
	take(MTC(3));
	assert_int_equal(length(), 0);
}

static void estimate_two_tscs_of_psbs_measure_cycles(void **state)
{
	(void)state;
	setup(&(struct estimate_config){0});
	take(PSB);
	take(TSC(1000));
	take(PSBEND);
	take(CYC(50));
	/* Outside of PSB+, a TSC may be behind a loss. */
	take(TSC(1100));
	assert_int_equal(length(), 0);
	take(CYC(50));
	take(PSB);
	take(TSC(1300));
	assert_int_equal(length(), 200 * 256 / 50);
}

static void estimate_overflow_forgets_the_length_unless_kept(void **state)
{
	struct estimate_config config = {.max_nonturbo_ratio = 4};

	(void)state;
	setup(&config);
	take(CBR(4));
	take(OVF);
	assert_int_equal(length(), 0);
	config.keep_calibration = true;
	setup(&config);
	take(CBR(4));
	take(OVF);
	assert_int_equal(length(), 256);
}

static void estimate_skl168_ignores_the_first_mtc_behind_a_psb(void **state)
{
	struct estimate_config config = {
		.mtc_period = 4, .tsc_art_num = 4, .tsc_art_den = 1, .cyc_lost_at_psb = true};

	(void)state;
	setup(&config);
	take(MTC(1));
	take(PSB);
	take(PSBEND);
	take(CYC(10));
	/* More than a period has passed, so an MTC is missing, too. */
	take(MTC(3));
	assert_int_equal(length(), 0);
	take(CYC(32));
	take(MTC(4));
	assert_int_equal(length(), 2 * 256);
	config.cyc_lost_at_psb = false;
	setup(&config);
	take(MTC(1));
	take(PSB);
	take(CYC(64));
	take(MTC(3));
	assert_int_equal(length(), 2 * 256);
}

static void estimate_options_leave_things_out(void **state)
{
	struct estimate_config config = {.max_nonturbo_ratio = 4, .no_calibration = true};
	struct estimate_faults faults;

	(void)state;
	setup(&config);
	take(TSC(7));
	take(CBR(4));
	faults = take(CYC(1));
	assert_int_equal(faults.length, ESTIMATE_OK);
	assert_true(faults.uncalibrated);
	config = (struct estimate_config){.max_nonturbo_ratio = 4, .no_cyc = true};
	setup(&config);
	take(TSC(7));
	take(CBR(4));
	assert_false(take(CYC(1)).uncalibrated);
	assert_int_equal(tsc(), 7);
	assert_int_equal(length(), 256);
}

static void estimate_reset_keeps_the_configuration(void **state)
{
	(void)state;
	setup(&(struct estimate_config){.max_nonturbo_ratio = 4});
	take(TSC(7));
	take(CBR(4));
	estimate_reset(&estimate);
	assert_int_equal(tsc(), 0);
	assert_int_equal(length(), 0);
	take(CBR(8));
	assert_int_equal(length(), 128);
}

/* There is nothing to compare with, but no numbers may cause a trap. */
static void estimate_of_hostile_numbers_ends(void **state)
{
	static const uint64_t values[] = {0, 1, 0xff, UINT64_MAX >> 8, UINT64_MAX};
	const struct estimate_config config = {.mtc_period = UINT32_MAX,
					       .tsc_art_num = UINT32_MAX,
					       .tsc_art_den = 1,
					       .max_nonturbo_ratio = UINT32_MAX,
					       .cyc_lost_at_psb = true};

	(void)state;
	setup(&config);
	for (unsigned int i = 0; i < 4096; i++) {
		uint64_t v = values[i % 5];

		take(i % 3 ? PSB : PSBEND);
		take(i % 7 ? CBR((uint8_t)v) : OVF);
		take(i % 4 ? CYC(v) : TSC(v));
		take(TMA((uint16_t)(v * i), 0x1ff));
		take(MTC((uint8_t)(i * i)));
		take(CYC(values[i % 3]));
		assert_non_null(estimate_text(take(MTC((uint8_t)v)).calibration));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(estimate_tsc_before_any_is_unknown),
		cmocka_unit_test(estimate_mtc_counts_from_the_tma),
		cmocka_unit_test(estimate_mtc_that_wraps_goes_on),
		cmocka_unit_test(estimate_mtc_rarer_than_tma_bits_are_completed),
		cmocka_unit_test(estimate_tma_without_tsc_is_out_of_place),
		cmocka_unit_test(estimate_mtc_without_ratio_is_an_error),
		cmocka_unit_test(estimate_cyc_by_bus_ratio),
		cmocka_unit_test(estimate_cyc_without_length_is_lost),
		cmocka_unit_test(estimate_cyc_between_mtcs_measures_cycles),
		cmocka_unit_test(estimate_cyc_over_several_periods_counts_the_last),
		cmocka_unit_test(estimate_cbr_outside_of_psb_measures_anew),
		cmocka_unit_test(estimate_two_tscs_of_psbs_measure_cycles),
		cmocka_unit_test(estimate_overflow_forgets_the_length_unless_kept),
		cmocka_unit_test(estimate_skl168_ignores_the_first_mtc_behind_a_psb),
		cmocka_unit_test(estimate_options_leave_things_out),
		cmocka_unit_test(estimate_reset_keeps_the_configuration),
		cmocka_unit_test(estimate_of_hostile_numbers_ends),
	};

	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
