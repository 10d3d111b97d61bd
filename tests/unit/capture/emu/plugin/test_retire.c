/*
 * capture/emu/code and retire: from translated blocks to packets, without an emulator.
 */
#include "capture/emu/plugin/retire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/capture/emu_ring.h"

struct fixture {
	struct emuring *ring;
	struct emupmu pmu;
	struct code *code;
	struct retire retire;
	struct retire_signal signal; /* what look answers */
	int jumps;
	uint64_t from;
};

static struct retire_signal look(void *userdata)
{
	struct fixture *f = userdata;

	return f->signal;
}

static void service(void *userdata, uint64_t ip)
{
	(void)userdata;
	(void)ip;
}

static void on_jump(void *userdata)
{
	struct fixture *f = userdata;

	f->jumps++;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->ring = emu_ring_new(RING_BRANCH | RING_TSC);
	f->code = code_new();
	assert_non_null(f->code);
	emupmu_init(&f->pmu, f->ring, 0);
	retire_init(&f->retire, NULL);
	retire_attach(&f->retire, &f->pmu, 0);
	f->retire.look = look;
	f->retire.service = service;
	f->retire.on_jump = on_jump;
	f->retire.userdata = f;
	emupmu_start(&f->pmu);
	f->pmu.budget = 1000000;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	code_free(f->code);
	emu_ring_free(f->ring);
	free(f);
	return 0;
}

/* A block of N one-byte instructions at IP and a last one with these BYTES. */
static struct block *block(struct fixture *f, uint64_t ip, unsigned int n, const char *bytes,
			   size_t size)
{
	struct code_block in = {.ip = ip, .n = n + 1, .last_bytes = (const uint8_t *)bytes};
	struct block *b;
	bool known;

	memset(in.length, 1, n);
	in.length[n] = (uint8_t)size;
	b = code_add(f->code, &in, &known);
	assert_non_null(b);
	assert_true(known);
	return b;
}
#define BLOCK(f, ip, n, bytes) block(f, ip, n, bytes, sizeof(bytes) - 1)

/* From the kernel to A, then to B; gives the packets of the way from A to B, with what is pending.
 */
static const char *way(struct fixture *f, struct block *a, struct block *b)
{
	encode_tnt(&f->pmu.encoder);
	f->retire.prev = &f->retire.none;
	retire_before(&f->retire, a, false);
	emupmu_publish(&f->pmu);
	f->from = f->pmu.cpu->aux_pos;
	retire_before(&f->retire, b, false);
	encode_tnt(&f->pmu.encoder);
	emupmu_publish(&f->pmu);
	return emu_ring_text(f->ring, f->from);
}

#define JE_UP	 "\x74\xf0"		/* je .-14 */
#define JMP_DOWN "\xeb\x10"		/* jmp .+18 */
#define CALL	 "\xe8\x10\x00\x00\x00" /* call .+21 */
#define CALL_0	 "\xe8\x00\x00\x00\x00"
#define CALL_RAX "\xff\xd0"
#define JMP_RAX	 "\xff\xe0"
#define RET	 "\xc3"
#define NOP	 "\x90"
#define SYSCALL	 "\x0f\x05"
#define INT3	 "\xcc"
#define MOVSB	 "\xf3\xa4"

static void code_add_tells_the_kind_of_the_last_instruction(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum block_kind kind;
		int64_t target; /* relative to the instruction; 0: none */
	} cases[] = {
		{NOP, 1, BLOCK_PLAIN, 1},
		{JE_UP, 2, BLOCK_COND, -14},
		{"\x0f\x85\x00\x01\x00\x00", 6, BLOCK_COND, 0x106},
		{"\xe2\xfe", 2, BLOCK_COND, 0}, /* loop . */
		{"\xe3\x02", 2, BLOCK_COND, 4}, /* jrcxz */
		{JMP_DOWN, 2, BLOCK_JMP, 18},
		{CALL, 5, BLOCK_CALL, 21},
		{CALL_0, 5, BLOCK_JMP, 5},
		{CALL_RAX, 2, BLOCK_CALL_IND, 2},
		{"\xff\x15\x00\x00\x00\x00", 6, BLOCK_CALL_IND, 6},
		{JMP_RAX, 2, BLOCK_JMP_IND, 2},
		{"\x3e\xff\xe0", 3, BLOCK_JMP_IND, 3},
		{RET, 1, BLOCK_RET, 1},
		{"\xf3\xc3", 2, BLOCK_RET, 2},
		{"\xc2\x08\x00", 3, BLOCK_RET, 3},
		{"\xcb", 1, BLOCK_FAR, 1},
		{"\x48\xcf", 2, BLOCK_FAR, 2},
		{"\xff\x18", 2, BLOCK_FAR, 2}, /* call far [rax] */
		{SYSCALL, 2, BLOCK_KERNEL, 2},
		{INT3, 1, BLOCK_KERNEL, 1},
		{"\xcd\x80", 2, BLOCK_KERNEL, 2},
		{MOVSB, 2, BLOCK_REP, 2},
		{"\xf2\xae", 2, BLOCK_REP, 2},
		{"\xa4", 1, BLOCK_PLAIN, 1},
		{"\x0f\x0b", 2, BLOCK_PLAIN, 2},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ip = 0x10000 + 0x100 * i;
		struct block *b = block(f, ip, 3, cases[i].bytes, cases[i].size);

		assert_int_equal(b->kind, cases[i].kind);
		assert_int_equal(b->last, ip + 3);
		assert_int_equal(b->next, ip + 3 + cases[i].size);
		assert_int_equal(b->target, ip + 3 + (uint64_t)cases[i].target);
	}
}

static void code_add_drops_an_instruction_cut_by_the_page(void **state)
{
	struct fixture *f = *state;
	struct block *b = block(f, 0x10ffc, 2, "\xe8\x10", 2);

	assert_int_equal(b->n, 2);
	assert_int_equal(b->kind, BLOCK_PLAIN);
	assert_int_equal(b->next, 0x10ffe);
	assert_int_equal(b->target, 0x10ffe);
}

static void code_add_twice_gives_the_same_block(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, CALL);

	assert_ptr_equal(BLOCK(f, 0x1000, 2, CALL), b);
	assert_ptr_not_equal(BLOCK(f, 0x1000, 3, CALL), b);
}

static void block_index_finds_boundaries_only(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, CALL);

	assert_int_equal(block_index(b, 0x1000), 0);
	assert_int_equal(block_index(b, 0x1002), 2);
	assert_int_equal(block_index(b, 0x1003), -1);
	assert_int_equal(block_index(b, 0x1007), -1);
	assert_int_equal(block_index(b, 0xfff), -1);
}

static void step_conditional_branches_become_tnt(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1010, 4, JE_UP);

	assert_string_equal(way(f, b, BLOCK(f, 0x1006, 2, NOP)), "TNT(1)");
	assert_string_equal(way(f, b, BLOCK(f, 0x1016, 2, NOP)), "TNT(0)");
}

static void step_direct_ways_are_silent(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(way(f, BLOCK(f, 0x1000, 0, JMP_DOWN), BLOCK(f, 0x1012, 1, NOP)), "");
	assert_string_equal(way(f, BLOCK(f, 0x1014, 1, NOP), BLOCK(f, 0x1016, 0, CALL)), "");
	assert_string_equal(way(f, BLOCK(f, 0x1016, 0, CALL), BLOCK(f, 0x102b, 1, RET)), "");
	assert_int_equal(f->jumps, 0);
}

static void step_return_to_the_call_is_compressed_elsewhere_is_not(void **state)
{
	struct fixture *f = *state;
	struct block *call = BLOCK(f, 0x1000, 0, CALL), *callee = BLOCK(f, 0x1015, 1, RET);

	assert_string_equal(way(f, call, callee), "");
	assert_string_equal(way(f, callee, BLOCK(f, 0x1005, 0, CALL_RAX)), "TNT(1)");
	assert_string_equal(way(f, BLOCK(f, 0x1005, 0, CALL_RAX), callee), "TIP(1015)");
	f->from = f->pmu.cpu->aux_pos;
	retire_before(&f->retire, BLOCK(f, 0x5000, 1, NOP), false);
	assert_string_equal(emu_ring_text(f->ring, f->from), "TIP(5000)");
}

static void step_without_compression_every_return_is_a_tip(void **state)
{
	struct fixture *f = *state;

	f->retire.retcomp = false;
	assert_string_equal(way(f, BLOCK(f, 0x1000, 0, CALL), BLOCK(f, 0x1015, 1, RET)), "");
	assert_string_equal(way(f, BLOCK(f, 0x1015, 1, RET), BLOCK(f, 0x1005, 0, NOP)),
			    "TIP(1005)");
}

static void step_repeated_instruction_entered_anew_is_silent(void **state)
{
	struct fixture *f = *state;
	struct block *first = BLOCK(f, 0x1000, 2, MOVSB), *round = BLOCK(f, 0x1002, 0, MOVSB);

	assert_string_equal(way(f, first, round), "");
	assert_string_equal(way(f, round, round), "");
	assert_string_equal(way(f, round, BLOCK(f, 0x1004, 0, NOP)), "");
	assert_int_equal(f->jumps, 0);
}

static void step_repeated_single_instruction_is_no_branch(void **state)
{
	struct fixture *f = *state;
	/* je back to its own block's second instruction; QEMU runs that one alone. */
	struct block *b = BLOCK(f, 0x1000, 3, "\x74\xfc"), *single = BLOCK(f, 0x1001, 0, NOP);

	assert_int_equal(b->target, 0x1001);
	assert_string_equal(way(f, b, single), "");
	assert_string_equal(way(f, single, BLOCK(f, 0x1002, 1, "\x74\xfc")), "");
	assert_int_equal(f->jumps, 0);
}

static struct block *handler(struct fixture *f, uint64_t ip)
{
	code_add_handler(f->code, ip);
	return BLOCK(f, ip, 3, RET);
}

static void step_signal_between_blocks_tells_both_ways(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1010, 4, JE_UP), *h = handler(f, 0x7000);

	f->signal = (struct retire_signal){.entered = true, .rsp = 0x100, .ip = 0x1006};
	assert_string_equal(way(f, b, h), "TNT(1) FUP(1006) PGD PGE(7000)");
	assert_int_equal(f->jumps, 0);
}

static void step_fault_within_a_block_breaks_it_off(void **state)
{
	struct fixture *f = *state;
	/* The branch leads to the very instruction that faults. */
	struct block *b = BLOCK(f, 0x1000, 3, "\x74\xfc"), *h = handler(f, 0x7000);

	f->signal =
		(struct retire_signal){.entered = true, .rsp = 0x100, .ip = 0x1001, .fault = true};
	assert_string_equal(way(f, b, h), "FUP(1001) PGD PGE(7000)");
}

static void step_breakpoint_is_no_interrupt(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, INT3), *h = handler(f, 0x7000);

	f->signal =
		(struct retire_signal){.entered = true, .rsp = 0x100, .ip = 0x1003, .fault = true};
	assert_string_equal(way(f, b, h), "PGD PGE(7000)");
}

static void step_handler_called_as_a_function_is_a_call(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, CALL_RAX), *h = handler(f, 0x7000);

	assert_string_equal(way(f, b, h), "TIP(7000)");
}

static void step_loop_to_the_handlers_begin_is_no_second_signal(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, NOP), *h;

	code_add_handler(f->code, 0x7000);
	h = BLOCK(f, 0x7000, 0, "\x74\xfe");
	f->signal = (struct retire_signal){.entered = true, .rsp = 0x100, .ip = 0x1003};
	retire_before(&f->retire, b, false);
	retire_before(&f->retire, h, false);
	assert_string_equal(way(f, h, h), "TNT(1)");
}

static void step_jump_to_the_handlers_begin_is_no_second_signal(void **state)
{
	struct fixture *f = *state;
	struct block *b = BLOCK(f, 0x1000, 2, NOP), *h;

	code_add_handler(f->code, 0x7000);
	h = BLOCK(f, 0x7000, 1, JMP_RAX);
	f->signal = (struct retire_signal){.entered = true, .rsp = 0x100, .ip = 0x1003};
	assert_string_equal(way(f, b, h), "FUP(1003) PGD PGE(7000)");
	f->from = f->pmu.cpu->aux_pos;
	retire_before(&f->retire, h, false);
	assert_string_equal(emu_ring_text(f->ring, f->from), "TIP(7000)");
	/* After rt_sigreturn the same frame can come again. */
	retire_frame_gone(&f->retire);
	f->from = f->pmu.cpu->aux_pos;
	retire_before(&f->retire, h, false);
	assert_string_equal(emu_ring_text(f->ring, f->from), "TIP(1003) FUP(1003) PGD PGE(7000)");
}

static void leave_and_return_are_pgd_and_pge(void **state)
{
	struct fixture *f = *state;

	retire_before(&f->retire, BLOCK(f, 0x1000, 2, SYSCALL), false);
	f->from = f->pmu.cpu->aux_pos;
	retire_leave(&f->retire);
	retire_before(&f->retire, BLOCK(f, 0x1004, 2, NOP), false);
	assert_string_equal(emu_ring_text(f->ring, f->from), "PGD PGE(1004)");
}

static void step_unexplained_way_is_told_as_an_interrupt(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(way(f, BLOCK(f, 0x1000, 2, NOP), BLOCK(f, 0x9000, 2, NOP)),
			    "FUP(1002) PGD PGE(9000)");
	assert_int_equal(f->jumps, 1);
}

static void step_counts_instructions(void **state)
{
	struct fixture *f = *state;

	retire_before(&f->retire, BLOCK(f, 0x1000, 2, NOP), false);
	retire_before(&f->retire, BLOCK(f, 0x1003, 4, NOP), false);
	assert_int_equal(f->pmu.cpu->instructions, 8);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(code_add_tells_the_kind_of_the_last_instruction),
		CASE(code_add_drops_an_instruction_cut_by_the_page),
		CASE(code_add_twice_gives_the_same_block),
		CASE(block_index_finds_boundaries_only),
		CASE(step_conditional_branches_become_tnt),
		CASE(step_direct_ways_are_silent),
		CASE(step_return_to_the_call_is_compressed_elsewhere_is_not),
		CASE(step_without_compression_every_return_is_a_tip),
		CASE(step_repeated_instruction_entered_anew_is_silent),
		CASE(step_repeated_single_instruction_is_no_branch),
		CASE(step_signal_between_blocks_tells_both_ways),
		CASE(step_fault_within_a_block_breaks_it_off),
		CASE(step_breakpoint_is_no_interrupt),
		CASE(step_handler_called_as_a_function_is_a_call),
		CASE(step_loop_to_the_handlers_begin_is_no_second_signal),
		CASE(step_jump_to_the_handlers_begin_is_no_second_signal),
		CASE(leave_and_return_are_pgd_and_pge),
		CASE(step_unexplained_way_is_told_as_an_interrupt),
		CASE(step_counts_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
