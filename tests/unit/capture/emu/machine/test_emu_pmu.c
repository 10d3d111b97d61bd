/*
 * capture/emu/pmu: which packets come when, on the virtual clock.
 */
#include "capture/emu/machine/pmu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/capture/emu_ring.h"

#define BASE EMURING_VIRTUAL_BASE
/* Period 2^4 CTC ticks of 4 TSC ticks: one MTC every 64. */
#define MTC64 (RING_MTC | 4ull << 14)

static struct emuring *ring;
static struct emupmu pmu;

static void begin(uint64_t config)
{
	ring = emu_ring_new(config);
	emupmu_init(&pmu, ring, 0);
}

static int tear_down(void **state)
{
	(void)state;
	emu_ring_free(ring);
	ring = NULL;
	return 0;
}

static uint64_t here(void)
{
	return emuring_cpu_at(ring, 0)->aux_pos;
}

/* TICKS later the machine looks at the clock. */
static void pass(uint64_t ticks)
{
	emu_ring_pass(ring, ticks);
	emupmu_now(&pmu);
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
	pass(10);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	pass(5);
	encode_branch(pmu.encoder.tnt, true);
	emupmu_tip(&pmu, 0x402000);
	pass(100);
	emupmu_tip(&pmu, 0x403000);
	emupmu_leave(&pmu);
	assert_string_equal(emu_ring_text(ring, from),
			    "CYC(5) TNT(1) TIP(2000) CYC(100) TIP(3000) PGD");
}

static void cyc_before_a_tnt_is_the_time_of_its_first_branch(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	pass(7);
	encode_branch(pmu.encoder.tnt, true);
	pass(20);
	encode_branch(pmu.encoder.tnt, false);
	pass(3);
	emupmu_tip(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "CYC(7) TNT(10) CYC(23) TIP(2000)");
}

static void cyc_does_not_count_while_tracing_is_off(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	emupmu_stop(&pmu, 0x401001);
	from = here();
	emu_ring_pass(ring, 1000);
	emupmu_start(&pmu);
	pass(4);
	emupmu_enter(&pmu, 0x401001);
	assert_string_equal(emu_ring_text(ring, from),
			    "TSC(1000001000) CBR(10) MODE CYC(4) PGE(401001)");
}

static void cyc_below_the_threshold_is_left_out(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | RING_CYC | 5ull << 19); /* 16 cycles */
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	pass(15);
	emupmu_tip(&pmu, 0x402000);
	pass(1);
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
	pass(70);
	emupmu_tip(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "CYC(64) MTC(41) CYC(6) TIP(2000)");
}

/* Whoever looks at the clock, for a record or a packet: what was due stands before all that comes
 * at that time. */
static void now_writes_the_mtcs_that_are_due(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	encode_branch(pmu.encoder.tnt, true);
	pass(130);
	encode_branch(pmu.encoder.tnt, false);
	emupmu_tip(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "TNT(1) MTC(41) MTC(42) TNT(0) TIP(2000)");
}

static void now_while_tracing_is_off_writes_nothing(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	from = here();
	pass(1000);
	assert_int_equal(here(), from);
}

/* The clock stands still between two looks, however long they are apart. */
static void packets_between_two_looks_have_one_time(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emu_ring_pass(ring, 100);
	emupmu_tip(&pmu, 0x402000);
	pass(0);
	emupmu_tip(&pmu, 0x403000);
	assert_string_equal(emu_ring_text(ring, from), "TIP(2000) MTC(41) TIP(3000)");
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

/* Overflows each 64 bytes; the first is over at the next opportunity, each further one lets one
 * more pass. */
static uint64_t begin_overflow(void)
{
	uint64_t from;

	begin(RING_BRANCH | RING_TSC | MTC64);
	pmu.overflow_bytes = 64;
	pmu.s->overflow_at = 32;
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	emupmu_tip(&pmu, 0x402000);
	emupmu_tip(&pmu, 0x7fff00401000);
	emupmu_tip(&pmu, 0x402000);
	from = here();
	assert_true(from >= 32);
	encode_call(&pmu.s->encode, 0x402005);
	emupmu_service(&pmu, 0x402000);
	return from;
}

static void overflow_resolved_in_user_code_has_a_fup(void **state)
{
	uint64_t from = begin_overflow();

	(void)state;
	encode_branch(pmu.encoder.tnt, true);
	emupmu_tip(&pmu, 0x403000);
	emu_ring_pass(ring, 200);
	assert_int_equal(here(), from);
	emupmu_service(&pmu, 0x404000);
	encode_branch(pmu.encoder.tnt, false);
	emupmu_tip(&pmu, 0x404010);
	/* The whole IP, the time anew, the MTCs between lost, and no compressed return. */
	assert_string_equal(
		emu_ring_text(ring, from),
		"OVF TSC(1000000200) TMA(45746,0) CBR(10) FUP(404000) TNT(0) TIP(404010)");
	assert_false(encode_return(&pmu.s->encode, 0x402005));
}

static void overflow_resolved_in_the_kernel_has_none(void **state)
{
	uint64_t from = begin_overflow();

	(void)state;
	emupmu_leave(&pmu);
	emupmu_service(&pmu, 0);
	emupmu_enter(&pmu, 0x405000);
	assert_string_equal(emu_ring_text(ring, from),
			    "OVF TSC(1000000000) TMA(45696,0) CBR(10) MODE PGE(405000)");
}

static void overflow_pending_at_a_stop_is_resolved_there(void **state)
{
	uint64_t from = begin_overflow();

	(void)state;
	emupmu_stop(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "OVF TSC(1000000000) TMA(45696,0) CBR(10)");
}

static void leave_empties_the_return_stack(void **state)
{
	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	encode_call(&pmu.s->encode, 0x401005);
	emupmu_leave(&pmu);
	emupmu_enter(&pmu, 0x402000);
	assert_false(encode_return(&pmu.s->encode, 0x401005));
}

static void killed_in_a_block_interrupts_it(void **state)
{
	uint64_t from, before;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	from = here();
	emupmu_enter(&pmu, 0x401000);
	encode_branch(pmu.encoder.tnt, true);
	before = here();
	emupmu_killed(&pmu, 0x401010);
	/* The last IP is not trusted: TNT 1, FUP 1 + 6, PGD 1 byte. */
	assert_int_equal(here() - before, 9);
	assert_string_equal(emu_ring_text(ring, from), "MODE PGE(401000) TNT(1) FUP(401010) PGD");
	emupmu_killed(&pmu, 0x401010);
	assert_string_equal(emu_ring_text(ring, from), "MODE PGE(401000) TNT(1) FUP(401010) PGD");
}

/* A bare PSB is no synchronization point. */
static void killed_within_a_psb_forgets_it(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC);
	emupmu_start(&pmu);
	from = here();
	emupmu_enter(&pmu, 0x401000);
	emupmu_leave(&pmu);
	pmu.s->psb_pos = pmu.s->encode.pos + 1;
	encode_psb(&pmu.encoder);
	emupmu_killed(&pmu, 0);
	emupmu_enter(&pmu, 0x402000);
	assert_string_equal(emu_ring_text(ring, from), "MODE PGE(401000) PGD PGE(402000)");
	/* A PSB+ that is whole stays. */
	pmu.s->psb_at = pmu.s->encode.pos;
	from = here();
	emupmu_service(&pmu, 0x402000);
	emupmu_killed(&pmu, 0x402000);
	assert_true(strstr(emu_ring_text(ring, from), "PSB") != NULL);
}

/* The ring must not fill with MTCs alone while the emulator is held up in user code. */
static void service_after_a_long_time_in_user_code_writes_psbs_between_mtcs(void **state)
{
	uint64_t from;
	const char *text;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	emu_ring_pass(ring, 64 * 1500);
	emupmu_service(&pmu, 0x401002);
	assert_true(here() - from > 3000);
	text = strstr(emu_ring_text(ring, from), "PSB ");
	assert_non_null(text);
	assert_non_null(strstr(text, "MODE FUP(401002) PSBEND MTC("));
}

/* As far as the traced program can tell its CPU did something else. */
static void service_after_the_host_took_its_cpu_away_has_an_interrupt(void **state)
{
	uint64_t from;

	(void)state;
	begin(RING_BRANCH | RING_TSC | MTC64);
	pmu.held_up = 100;
	emupmu_start(&pmu);
	emupmu_enter(&pmu, 0x401000);
	from = here();
	encode_branch(pmu.encoder.tnt, true);
	emu_ring_pass(ring, 100);
	emupmu_service(&pmu, 0x401002);
	assert_string_equal(emu_ring_text(ring, from), "TNT(1) MTC(41)");
	emu_ring_pass(ring, 101);
	emupmu_service(&pmu, 0x401004);
	emupmu_enter(&pmu, 0x401004);
	assert_string_equal(emu_ring_text(ring, from),
			    "TNT(1) MTC(41) FUP(1004) PGD MTC(42) MTC(43) PGE(1004)");
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
		CASE(cyc_before_a_tnt_is_the_time_of_its_first_branch),
		CASE(cyc_does_not_count_while_tracing_is_off),
		CASE(cyc_below_the_threshold_is_left_out),
		CASE(cyc_with_mtc_is_exact_at_the_mtc),
		CASE(now_writes_the_mtcs_that_are_due),
		CASE(now_while_tracing_is_off_writes_nothing),
		CASE(packets_between_two_looks_have_one_time),
		CASE(stop_in_user_code_and_restart_leave_no_loose_ends),
		CASE(without_branch_only_time_is_written),
		CASE(overflow_resolved_in_user_code_has_a_fup),
		CASE(overflow_resolved_in_the_kernel_has_none),
		CASE(overflow_pending_at_a_stop_is_resolved_there),
		CASE(leave_empties_the_return_stack),
		CASE(service_after_the_host_took_its_cpu_away_has_an_interrupt),
		CASE(service_after_a_long_time_in_user_code_writes_psbs_between_mtcs),
		CASE(killed_in_a_block_interrupts_it),
		CASE(killed_within_a_psb_forgets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
