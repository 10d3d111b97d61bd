/*
 * capture/emu/pmu: which packets come when, on the virtual clock.
 */
#include "capture/emu/pmu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/capture/emu_ring.h"

#define BASE EMURING_VIRTUAL_BASE
/* Period 2^4 CTC ticks of 4 TSC ticks: one MTC every 64. */
#define MTC64 (RING_MTC | 4ull << 14)

static struct emuring_head *ring;
static struct emupmu pmu;

static void begin(uint64_t config)
{
	ring = emu_ring_new(config);
	emupmu_init(&pmu, ring, 0);
}

static int tear_down(void **state)
{
	(void)state;
	free(ring);
	ring = NULL;
	return 0;
}

static uint64_t here(void)
{
	return emuring_cpu_at(ring, 0)->aux_pos;
}

static void start_first_time_writes_psb_without_fup(void **state)
{
	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	assert_string_equal(emu_ring_text(ring, 0),
			    "PSB TSC(1000000000) TMA(45696,0) CBR(10) PSBEND");
}

static void tma_counts_tsc_ticks_since_the_ctc_tick(void **state)
{
	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emu_ring_pass(ring, 7);
	emupmu_start(&pmu);
	assert_string_equal(emu_ring_text(ring, 0),
			    "PSB TSC(1000000007) TMA(45697,3) CBR(10) PSBEND");
}

static void enter_after_psb_in_kernel_tells_the_mode_once(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	from = here();
	emupmu_enter(&pmu, 0x401000);
	emupmu_leave(&pmu);
	emupmu_enter(&pmu, 0x401002);
	assert_string_equal(emu_ring_text(ring, from), "MODE PGE(401000) PGD PGE(401002)");
}

static void interrupt_writes_pending_branches_then_fup_then_pgd(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	encode_branch(pmu.encoder.tnt, true);
	encode_branch(pmu.encoder.tnt, false);
	emupmu_interrupt(&pmu, 0x401008);
	assert_string_equal(emu_ring_text(ring, from), "TNT(10) FUP(1008) PGD");
}

static void interrupt_at_address_zero_has_a_fup(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emupmu_interrupt(&pmu, 0);
	assert_string_equal(emu_ring_text(ring, from), "FUP(0) PGD");
}

static void tip_writes_pending_branches_first(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	encode_branch(pmu.encoder.tnt, true);
	emupmu_tip(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "TNT(1) TIP(2000)");
}

static void service_writes_psb_with_fup_when_due(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	pmu.budget = 5;
	while (pmu.budget != 0)
		emupmu_tip(&pmu, 0x402000);
	assert_true(here() >= 2048 && here() < 2048 + 64);
	encode_call(&pmu.s->encode, 0x401005);
	encode_branch(pmu.encoder.tnt, true);
	from = here();
	emu_ring_pass(ring, 5);
	emupmu_service(&pmu, 0x402010);
	assert_string_equal(emu_ring_text(ring, from),
			    "TNT(1) PSB TSC(1000000005) CBR(10) MODE FUP(402010) PSBEND");
	assert_false(encode_return(&pmu.s->encode, 0x401005));
	from = here();
	emupmu_service(&pmu, 0x402010);
	assert_int_equal(here(), from);
}

static void mtc_comes_for_every_period_with_branches_before_it(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	encode_branch(pmu.encoder.tnt, true);
	emu_ring_pass(ring, 200);
	emupmu_service(&pmu, 0x401000);
	/* BASE = 15625000 * 64. */
	assert_string_equal(emu_ring_text(ring, from), "TNT(1) MTC(41) MTC(42) MTC(43)");
}

static void mtc_goes_on_in_the_kernel_and_makes_psbs(void **state)
{
	const char *text;
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	emupmu_leave(&pmu);
	from = here();
	emu_ring_pass(ring, 64 * 1200);
	emupmu_service(&pmu, 0);
	text = strstr(emu_ring_text(ring, from), "PSB");
	assert_non_null(text);
	assert_non_null(strstr(text, "CBR(10) PSBEND MTC"));
	assert_null(strstr(text, "FUP"));
	/* A decoder that begins there does not know the mode. */
	from = here();
	emupmu_enter(&pmu, 0x401002);
	assert_string_equal(emu_ring_text(ring, from), "MODE PGE(401002)");
}

static void mtc_after_a_very_long_time_fills_the_ring_once(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	from = here();
	emu_ring_pass(ring, 1ull << 28);
	emupmu_service(&pmu, 0);
	assert_true(here() - from >= RING_AUX);
	assert_true(here() - from < RING_AUX + 256);
}

static void cyc_precedes_packets_and_counts_since_the_last(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC);
	emupmu_start(&pmu);
	emu_ring_pass(ring, 10);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emu_ring_pass(ring, 5);
	encode_branch(pmu.encoder.tnt, true);
	emupmu_tip(&pmu, 0x402000);
	emu_ring_pass(ring, 100);
	emupmu_tip(&pmu, 0x403000);
	emupmu_leave(&pmu);
	assert_string_equal(emu_ring_text(ring, from),
			    "CYC(5) TNT(1) TIP(2000) CYC(100) TIP(3000) PGD");
}

static void cyc_below_the_threshold_is_left_out(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC | 5ull << 19); /* 16 cycles */
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emu_ring_pass(ring, 15);
	emupmu_tip(&pmu, 0x402000);
	emu_ring_pass(ring, 1);
	emupmu_tip(&pmu, 0x403000);
	assert_string_equal(emu_ring_text(ring, from), "TIP(2000) CYC(16) TIP(3000)");
}

static void cyc_with_mtc_is_exact_at_the_mtc(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emu_ring_pass(ring, 70);
	emupmu_tip(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "CYC(64) MTC(41) CYC(6) TIP(2000)");
}

static void stop_in_user_code_and_restart_leave_no_loose_ends(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	encode_call(&pmu.s->encode, 0x401005);
	from = here();
	emupmu_stop(&pmu, 0x401001);
	assert_string_equal(emu_ring_text(ring, from), "FUP(1001) PGD");
	from = here();
	emu_ring_pass(ring, 1000);
	emupmu_enter(&pmu, 0x401001);
	emupmu_service(&pmu, 0x401001);
	assert_int_equal(here(), from);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401001);
	/* No PSB, no MTC of the time between, the first IP whole, no compressed return. */
	assert_string_equal(emu_ring_text(ring, from),
			    "TSC(1000001000) TMA(45946,0) CBR(10) MODE PGE(401001)");
	assert_false(encode_return(&pmu.s->encode, 0x401005));
}

static void without_branch_only_time_is_written(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_TSC | MTC64);
	emupmu_start(&pmu);
	from = here();
	emupmu_enter(&pmu, 0x401000);
	for (int i = 0; i < 100; i++)
		if (encode_branch(pmu.encoder.tnt, true))
			emupmu_tnt_full(&pmu);
	emupmu_tip(&pmu, 0x402000);
	emu_ring_pass(ring, 64);
	emupmu_interrupt(&pmu, 0x401000);
	emupmu_service(&pmu, 0);
	assert_string_equal(emu_ring_text(ring, from), "MTC(41)");
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(start_first_time_writes_psb_without_fup),
		CASE(tma_counts_tsc_ticks_since_the_ctc_tick),
		CASE(enter_after_psb_in_kernel_tells_the_mode_once),
		CASE(interrupt_writes_pending_branches_then_fup_then_pgd),
		CASE(interrupt_at_address_zero_has_a_fup),
		CASE(tip_writes_pending_branches_first),
		CASE(service_writes_psb_with_fup_when_due),
		CASE(mtc_comes_for_every_period_with_branches_before_it),
		CASE(mtc_goes_on_in_the_kernel_and_makes_psbs),
		CASE(mtc_after_a_very_long_time_fills_the_ring_once),
		CASE(cyc_precedes_packets_and_counts_since_the_last),
		CASE(cyc_below_the_threshold_is_left_out),
		CASE(cyc_with_mtc_is_exact_at_the_mtc),
		CASE(stop_in_user_code_and_restart_leave_no_loose_ends),
		CASE(without_branch_only_time_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
