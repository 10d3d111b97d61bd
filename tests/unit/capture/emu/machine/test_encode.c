/*
 * capture/emu/encode: packets byte for byte, as the SDM's tables have them.
 */
#include "capture/emu/machine/encode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

#define SIZE 64u

struct fixture {
	struct encoder e;
	struct encode_state state;
	_Atomic uint64_t tnt;
	uint8_t aux[SIZE];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(f->aux, 0xee, SIZE);
	encode_init(&f->e, &f->state, &f->tnt, f->aux, SIZE);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void expect(const struct fixture *f, uint64_t from, const char *hex)
{
	char text[3 * SIZE] = "";

	for (uint64_t at = from; at < f->state.pos; at++)
		snprintf(text + 3 * (at - from), 4, "%02x%s", f->aux[at % SIZE],
			 at + 1 < f->state.pos ? " " : "");
	assert_string_equal(text, hex);
}

static void branches(struct fixture *f, const char *taken)
{
	for (; *taken != '\0'; taken++)
		encode_branch(&f->tnt, *taken == '1');
}

static void encode_tnt_up_to_six_is_short(void **state)
{
	static const struct {
		const char *taken, *bytes;
	} cases[] = {{"1", "06"}, {"0", "04"}, {"10", "0c"}, {"111111", "fe"}};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t from = f->state.pos;

		branches(f, cases[i].taken);
		encode_tnt(&f->e);
		expect(f, from, cases[i].bytes);
		assert_false(encode_tnt_pending(&f->e));
	}
}

static void encode_tnt_seven_is_long(void **state)
{
	struct fixture *f = *state;

	branches(f, "1000001");
	encode_tnt(&f->e);
	expect(f, 0, "02 a3 c1 00 00 00 00 00");
}

static void encode_tnt_fortyseven_fills_the_long_one(void **state)
{
	struct fixture *f = *state;

	for (int i = 1; i < PT_TNT64_MAX; i++)
		assert_false(encode_branch(&f->tnt, true));
	assert_true(encode_branch(&f->tnt, false));
	encode_tnt(&f->e);
	expect(f, 0, "02 a3 fe ff ff ff ff ff");
}

static void encode_tnt_none_pending_writes_nothing(void **state)
{
	struct fixture *f = *state;

	encode_tnt(&f->e);
	assert_int_equal(f->state.pos, 0);
}

static void encode_ip_takes_the_shortest_form(void **state)
{
	static const struct {
		uint8_t opcode;
		uint64_t ip;
		const char *bytes;
	} cases[] = {
		{PT_OPC_TIP, 0x401000, "6d 00 10 40 00 00 00"},
		{PT_OPC_TIP, 0x401000, "2d 00 10"},
		{PT_OPC_FUP, 0x40beef, "3d ef be"},
		{PT_OPC_TIP_PGE, 0x12345678, "51 78 56 34 12"},
		{PT_OPC_TIP, 0x92345678, "4d 78 56 34 92"},
		{PT_OPC_TIP_PGD, 0x7fff00001234, "61 34 12 00 00 ff 7f"},
		{PT_OPC_TIP, 0xffffffff81000000, "6d 00 00 00 81 ff ff"},
		{PT_OPC_TIP, 0x8000000000000001, "cd 01 00 00 00 00 00 00 80"},
		{PT_OPC_TIP, 0x8000123400000002, "8d 02 00 00 00 34 12"},
		{PT_OPC_TIP, 0, "6d 00 00 00 00 00 00"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t from = f->state.pos;

		encode_ip(&f->e, cases[i].opcode, cases[i].ip);
		expect(f, from, cases[i].bytes);
	}
}

static void encode_ip_after_psb_is_whole(void **state)
{
	struct fixture *f = *state;

	encode_ip(&f->e, PT_OPC_TIP, 0x401000);
	encode_psb(&f->e);
	encode_ip(&f->e, PT_OPC_TIP, 0x401000);
	expect(f, 7 + PT_PSB_SIZE, "6d 00 10 40 00 00 00");
}

static void encode_suppressed_has_no_payload(void **state)
{
	struct fixture *f = *state;

	encode_ip_suppressed(&f->e, PT_OPC_TIP_PGD);
	expect(f, 0, "01");
}

static void encode_cyc_extends_by_seven_bits(void **state)
{
	static const struct {
		uint64_t cycles;
		const char *bytes;
	} cases[] = {
		{0, "03"},
		{1, "0b"},
		{31, "fb"},
		{32, "07 02"},
		{0xfff, "ff fe"},
		{0x1000, "07 01 02"},
		{UINT64_MAX, "ff ff ff ff ff ff ff ff ff 0e"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t from = f->state.pos;

		encode_cyc(&f->e, cases[i].cycles);
		expect(f, from, cases[i].bytes);
	}
}

static void encode_timing_packets_have_their_layout(void **state)
{
	struct fixture *f = *state;

	encode_tsc(&f->e, 0x11223344556677);
	encode_tma(&f->e, 0xabcd, 0x1f0);
	encode_cbr(&f->e, 28);
	encode_mtc(&f->e, 0x42);
	encode_mode_exec(&f->e, PT_MODE_EXEC_CSL);
	encode_psbend(&f->e);
	expect(f, 0, "19 77 66 55 44 33 22 11 02 73 cd ab 00 f0 01 02 03 1c 00 59 42 99 01 02 23");
}

/* SDM volume 3, "Trace Packets and Data Types", at each packet's name. */
static void encode_event_packets_have_their_layout(void **state)
{
	struct fixture *f = *state;

	encode_mode_tsx(&f->e);
	encode_tracestop(&f->e);
	encode_cfe(&f->e, PT_CFE_INTR, 0xec, false);
	encode_cfe(&f->e, PT_CFE_IRET, 0, true);
	encode_evd_cr2(&f->e, 0x1122334455667788);
	expect(f, 0, "99 20 02 83 02 13 01 ec 02 13 82 00 02 53 00 88 77 66 55 44 33 22 11");
}

static void encode_power_packets_have_their_layout(void **state)
{
	struct fixture *f = *state;

	encode_pwre(&f->e, 1);
	encode_exstop(&f->e, false);
	encode_exstop(&f->e, true);
	encode_pwrx(&f->e, 1, PT_PWRX_INTERRUPT);
	expect(f, 0, "02 22 00 10 02 62 02 e2 02 a2 11 01 00 00 00");
}

static void encode_wraps_within_a_packet(void **state)
{
	struct fixture *f = *state;

	f->state.pos = SIZE - 3;
	encode_tsc(&f->e, 0x11223344556677);
	expect(f, SIZE - 3, "19 77 66 55 44 33 22 11");
	assert_int_equal(f->aux[5], 0xee);
	assert_int_equal(f->aux[SIZE - 4], 0xee);
}

static void encode_writes_nothing_behind_a_packet(void **state)
{
	struct fixture *f = *state;

	encode_ip(&f->e, PT_OPC_TIP, 0x401000);
	for (size_t i = 7; i < SIZE; i++)
		assert_int_equal(f->aux[i], 0xee);
}

static void encode_return_is_foretold_in_order(void **state)
{
	struct fixture *f = *state;

	encode_call(&f->state, 1);
	encode_call(&f->state, 2);
	assert_true(encode_return(&f->state, 2));
	assert_true(encode_return(&f->state, 1));
	assert_false(encode_return(&f->state, 1));
}

static void encode_return_elsewhere_takes_the_entry_off(void **state)
{
	struct fixture *f = *state;

	encode_call(&f->state, 1);
	encode_call(&f->state, 2);
	assert_false(encode_return(&f->state, 9));
	assert_true(encode_return(&f->state, 1));
}

static void encode_call_beyond_the_depth_loses_the_oldest(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 1; i <= PT_RET_STACK + 2; i++)
		encode_call(&f->state, i);
	for (uint64_t i = PT_RET_STACK + 2; i > 2; i--)
		assert_true(encode_return(&f->state, i));
	assert_false(encode_return(&f->state, 2));
	/* Recursion: all the same address, and still only so many. */
	for (uint64_t i = 0; i < PT_RET_STACK + 2; i++)
		encode_call(&f->state, 7);
	for (uint64_t i = 0; i < PT_RET_STACK; i++)
		assert_true(encode_return(&f->state, 7));
	assert_false(encode_return(&f->state, 7));
}

static void encode_psb_empties_the_return_stack(void **state)
{
	struct fixture *f = *state;

	encode_call(&f->state, 1);
	encode_psb(&f->e);
	assert_false(encode_return(&f->state, 1));
	expect(f, 0, "02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(encode_tnt_up_to_six_is_short),
		CASE(encode_tnt_seven_is_long),
		CASE(encode_tnt_fortyseven_fills_the_long_one),
		CASE(encode_tnt_none_pending_writes_nothing),
		CASE(encode_ip_takes_the_shortest_form),
		CASE(encode_ip_after_psb_is_whole),
		CASE(encode_suppressed_has_no_payload),
		CASE(encode_cyc_extends_by_seven_bits),
		CASE(encode_timing_packets_have_their_layout),
		CASE(encode_event_packets_have_their_layout),
		CASE(encode_power_packets_have_their_layout),
		CASE(encode_wraps_within_a_packet),
		CASE(encode_writes_nothing_behind_a_packet),
		CASE(encode_return_is_foretold_in_order),
		CASE(encode_return_elsewhere_takes_the_entry_off),
		CASE(encode_call_beyond_the_depth_loses_the_oldest),
		CASE(encode_psb_empties_the_return_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
