/*
 * Traces that no processor writes, found by comparison with libipt (tests/oracle/diff_ipt).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"

#define PSB                                                                                       \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
		0x82
#define PSBEND	 0x02, 0x23
#define MODE_64	 0x99, 0x01
#define MODE_32	 0x99, 0x02
#define FUP_1000 0x7d, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00
#define TIP(low) 0x2d, low, 0x10

struct code {
	const uint8_t *bytes; /* at 1000 */
	size_t size;
	uint32_t model; /* of the processor, family 6; 0: unknown */
};

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct code *c = userdata;

	(void)context;
	*ret = (struct flow_code){.bytes = c->bytes, .address = 0x1000, .size = c->size};
	return ip - 0x1000 < c->size ? 0 : FAULT_UNMAPPED;
}

static uint64_t count_instructions(const uint8_t *trace, size_t size, struct code *code,
				   size_t *ret_gaps)
{
	const struct flow_config config = {.trace = trace,
					   .size = size,
					   .mtc_period = UINT32_MAX,
					   .cpu_family = code->model != 0 ? 6 : 0,
					   .cpu_model = code->model,
					   .code = give_code,
					   .userdata = code};
	struct flow_batch batch;
	uint64_t instructions;
	struct flow *f;

	assert_int_equal(flow_new(&config, &f), 0);
	*ret_gaps = 0;
	while (flow_next(f, &batch) == 0)
		*ret_gaps += batch.n_gaps;
	instructions = flow_get_stats(f)->instructions;
	flow_free(f);
	return instructions;
}

/* Only far branches change the mode; where a near one does, its target is other code all the same.
 */
static void flow_near_branch_with_other_mode_is_other_code(void **state)
{
	/* jmp *%rax; 1002: mov %rdi,%rdx (32 bit: dec %eax; mov %edi,%edx); jmp *%rax */
	static const uint8_t bytes[] = {0xff, 0xe0, 0x48, 0x89, 0xfa, 0xff, 0xe0};
	static const uint8_t trace[] = {PSB,	   MODE_64,   FUP_1000, PSBEND,	  TIP(0x02),
					TIP(0x02), TIP(0x02), MODE_32,	TIP(0x02)};
	struct code code = {bytes, sizeof(bytes), 0};
	size_t gaps;

	(void)state;
	assert_int_equal(count_instructions(trace, sizeof(trace), &code, &gaps), 1 + 2 + 2 + 2 + 3);
	assert_int_equal(gaps, 0);
}

/* A run is code of one mode. */
static void flow_mode_changed_without_branch_is_gap(void **state)
{
	/* nop; 1001: inc %eax (64 bit: a prefix of what follows); nop; jmp *%rax */
	static const uint8_t bytes[] = {0x90, 0x40, 0x90, 0xff, 0xe0};
	static const uint8_t trace[] = {PSB, MODE_64, FUP_1000, PSBEND, MODE_32, 0x3d, 0x01, 0x10};
	struct code code = {bytes, sizeof(bytes), 0};
	size_t gaps;

	(void)state;
	assert_int_equal(count_instructions(trace, sizeof(trace), &code, &gaps), 1 + 3);
	assert_int_equal(gaps, 1);
}

/* Erratum BDM64 is about the packet of a branch directly before the abort; without one the abort's
 * place must be come to as any other. */
static void flow_abort_elsewhere_without_branch_is_gap(void **state)
{
	/* nop; 1001: mov $0x90,%al; 1003: nop; nop; jmp *%rax */
	static const uint8_t bytes[] = {0x90, 0xb0, 0x90, 0x90, 0x90, 0xff, 0xe0};
	static const uint8_t trace[] = {
		PSB,  MODE_64, FUP_1000, PSBEND, 0x99, 0x21, 0x3d, 0x01,    0x10,     0x99,   0x22,
		0x3d, 0x02,    0x10,	 0x2d,	 0x04, 0x10, PSB,  MODE_64, FUP_1000, PSBEND,
	};
	struct code code = {bytes, sizeof(bytes), 0x3d};
	size_t gaps;

	(void)state;
	assert_int_equal(count_instructions(trace, sizeof(trace), &code, &gaps), 4 + 5);
	assert_int_equal(gaps, 1);
}

/* Erratum BDM64: straight code leads to where the abort was, so the branch's packet was right. */
static void flow_abort_behind_mov_cr3_is_come_to(void **state)
{
	/* je 1005; 1002: mov %rax,%cr3; 1005: nop; jmp *%rax */
	static const uint8_t bytes[] = {0x74, 0x03, 0x0f, 0x22, 0xd8, 0x90, 0xff, 0xe0};
	static const uint8_t trace[] = {PSB,  MODE_64, FUP_1000, PSBEND, 0x04,	   0x99,
					0x22, 0x3d,    0x05,	 0x10,	 TIP(0x06)};
	struct code code = {bytes, sizeof(bytes), 0x3d};
	size_t gaps;

	(void)state;
	assert_int_equal(count_instructions(trace, sizeof(trace), &code, &gaps), 2 + 1);
	assert_int_equal(gaps, 0);
}

/* Real processors write this one: the PSB+ behind the overflow has the FUP that the overflow needs,
 * so the next is an asynchronous branch's. */
static void flow_async_branch_behind_overflow_and_psb_is_one(void **state)
{
	static const uint8_t bytes[] = {0x90, 0x90, 0x90, 0x90};
	static const uint8_t trace[] = {PSB,	 MODE_64,  FUP_1000, PSBEND, 0x02, 0xf3, PSB,
					MODE_64, FUP_1000, PSBEND,   0x3d,   0x01, 0x10, 0x01};
	struct code code = {bytes, sizeof(bytes), 0};
	size_t gaps;

	(void)state;
	assert_int_equal(count_instructions(trace, sizeof(trace), &code, &gaps), 1);
	assert_int_equal(gaps, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_near_branch_with_other_mode_is_other_code),
		cmocka_unit_test(flow_mode_changed_without_branch_is_gap),
		cmocka_unit_test(flow_abort_elsewhere_without_branch_is_gap),
		cmocka_unit_test(flow_abort_behind_mov_cr3_is_come_to),
		cmocka_unit_test(flow_async_branch_behind_overflow_and_psb_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
