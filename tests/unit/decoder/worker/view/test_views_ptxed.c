#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/perf/ptpacket.h"
#include "proto/worker.h"
#include "tests/unit/decoder/worker/made.h"

#define CODE	0x10000ull
#define NO_CODE UINT64_MAX

/* clang-format off */
static const uint8_t trace[] = {
	2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, /* 0: PSB */
	0x19, 0, 0x10, 0, 0, 0, 0, 0,	/* 10: TSC 1000 */
	2, 0x23,			/* 18: PSBEND */
	0x71, 0, 0, 1, 0, 0, 0,		/* 1a: TIP.PGE 10000 */
	0x3d, 2, 0,			/* 21: FUP 10002 */
	0x01,				/* 24: TIP.PGD */
	0x31, 2, 0,			/* 25: TIP.PGE 10002 */
	0x21, 8, 0,			/* 28: TIP.PGD 10008 */
	2, 0xf3,			/* 2b: OVF */
	0x3d, 4, 0,			/* 2d: FUP 10004 */
	0x3d, 6, 0,			/* 30: FUP 10006 */
	0x2d, 9, 0,			/* 33: TIP 10009 */
	2, 0xf3,			/* 36: OVF */
	0x31, 1, 0,			/* 38: TIP.PGE 10001 */
};
/* clang-format on */

struct fixture {
	struct replay replay;
	struct manifest manifest;
	struct lines lines;
	struct flow *flow;
	struct views_ptxed v;
	int fd;
};

static int give_nops(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	static const uint8_t nops[] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
				       0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3};

	(void)context;
	(void)userdata;
	if (ip < CODE || ip >= CODE + sizeof(nops))
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = nops, .address = CODE, .size = sizeof(nops)};
	return 0;
}

/* The test says what a stretch looks like; the flow is there for the code. */
static void begin(struct fixture *f, uint64_t show)
{
	const struct flow_config config = {
		.trace = trace, .size = sizeof(trace), .mtc_period = UINT32_MAX, .code = give_nops};
	const struct estimate_config estimate = {.mtc_period = UINT32_MAX};
	const struct errata errata = {0};
	struct flow_batch batch;

	*f = (struct fixture){0};
	manifest_init(&f->manifest);
	f->replay.manifest = &f->manifest;
	assert_int_equal(contexts_init(&f->replay.contexts), 0);
	assert_int_equal(memfd_new("out", 0, &f->fd), 0);
	assert_int_equal(lines_init(&f->lines, f->fd), 0);
	assert_int_equal(flow_new(&config, &f->flow), 0);
	flow_next(f->flow, &batch);
	f->v = (struct views_ptxed){.replay = &f->replay, .lines = &f->lines, .show = show};
	track_init(&f->v.track, trace, sizeof(trace), &errata, &estimate);
}

static void give(struct fixture *f, const struct flow_item *items, size_t n,
		 const struct flow_gap *gaps, const struct flow_mark *marks)
{
	const struct replay_stretch s = {
		.items = items, .n_items = n, .gaps = gaps, .marks = marks, .flow = f->flow};

	assert_int_equal(views_ptxed_stretch(&f->v, &s), 0);
}

static void end(struct fixture *f, const char *expect)
{
	size_t size;
	char *text;

	assert_int_equal(lines_flush(&f->lines), 0);
	text = made_text(f->fd, &size);
	assert_string_equal(text, expect);
	free(text);
	lines_done(&f->lines);
	flow_free(f->flow);
	contexts_done(&f->replay.contexts);
	manifest_done(&f->manifest);
}

static void views_ptxed_stretch_run_is_addresses_of_16_digits(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_JUMP, .start = CODE, .insns = 2, .from = CODE + 1, .to = CODE + 4},
		{.kind = FLOW_RET,
		 .start = CODE + 4,
		 .insns = 1,
		 .from = CODE + 4,
		 .to = CODE,
		 .flags = FLOW_IN_TX},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, items, ARRAY_SIZE(items), NULL, NULL);
	end(&f, "0000000000010000\n0000000000010001\n? 0000000000010004\n");
}

static void views_ptxed_stretch_enabled_where_it_was_disabled_is_resumed(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_ENABLE, .to = CODE, .offset = 0x1a},
		{.kind = FLOW_DISABLE,
		 .start = CODE,
		 .insns = 2,
		 .from = CODE + 2,
		 .offset = 0x21,
		 .flags = FLOW_ASYNC_STOP},
		{.kind = FLOW_ENABLE, .to = CODE + 2, .offset = 0x25},
		{.kind = FLOW_DISABLE,
		 .start = CODE + 2,
		 .insns = 1,
		 .from = CODE + 2,
		 .offset = 0x28},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_IP);
	give(&f, items, ARRAY_SIZE(items), NULL, NULL);
	views_ptxed_end(&f.v);
	end(&f, "[enabled, ip: 0000000000010000]\n0000000000010000\n0000000000010001\n"
		"[disabled, at: 0000000000010002]\n[resumed, ip: 0000000000010002]\n"
		"0000000000010002\n[disabled, ip: 0000000000010008]\n");
}

static void views_ptxed_stretch_going_on_has_no_line(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_ENABLE, .to = CODE, .offset = 0, .flags = FLOW_GOES_ON},
		{.kind = FLOW_DISABLE, .from = CODE, .offset = 0, .flags = FLOW_ASYNC_STOP},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, items, ARRAY_SIZE(items), NULL, NULL);
	end(&f, "");
}

static void views_ptxed_stretch_overflow_has_the_address_of_its_fup(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_GAP, .offset = 0x2b, .gap = 0},
		{.kind = FLOW_ENABLE, .to = CODE + 4, .offset = 0x2b, .flags = FLOW_GOES_ON},
		{.kind = FLOW_GAP, .offset = 0x36, .gap = 1},
		{.kind = FLOW_ENABLE, .to = CODE + 1, .offset = 0x38},
	};
	const struct flow_gap gaps[] = {{.fault = FAULT_OVERFLOW, .offset = 0x2b},
					{.fault = FAULT_OVERFLOW, .offset = 0x36}};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_IP);
	give(&f, items, ARRAY_SIZE(items), gaps, NULL);
	end(&f, "[overflow, ip: 0000000000010004]\n[overflow]\n[enabled, ip: 0000000000010001]\n");
}

static void views_ptxed_stretch_gaps_have_libipts_words(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_GAP, .gap = 0}, {.kind = FLOW_GAP, .gap = 1},
		{.kind = FLOW_GAP, .gap = 2}, {.kind = FLOW_GAP, .gap = 3},
		{.kind = FLOW_GAP, .gap = 4}, {.kind = FLOW_GAP, .gap = 5, .from = CODE}};
	const struct flow_gap gaps[] = {{.fault = FAULT_HEAD},
					{.fault = FAULT_TIP_UNEXPECTED, .address = 1, .read = 2},
					{.fault = FAULT_STATUS, .address = 3, .read = 0x4f},
					{.fault = FAULT_TRACESTOP},
					{.fault = FAULT_BAD_PACKET, .offset = 0x38, .read = 0x38},
					{.fault = FAULT_TRUNCATED}};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED | WORKER_SHOW_RESYNC_ON_ERROR);
	give(&f, items, ARRAY_SIZE(items), gaps, NULL);
	end(&f, "0000000000000001\n[2, 1: error: trace stream does not match query]\n"
		"[4f, 3: error: bad status update]\n[4f, 3: resync error: bad status update]\n"
		"[stopped]\n[38, 0: error: unknown packet]\n[end of trace]\n");
}

static void views_ptxed_stretch_end_is_said(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_END, .start = CODE, .insns = 1, .from = CODE + 1},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, items, ARRAY_SIZE(items), NULL, NULL);
	end(&f, "0000000000010000\n[end of trace]\n");
}

/* The mark comes in another batch. */
static void views_ptxed_stretch_marks_of_a_branch_stand_before_disabled(void **state)
{
	const struct flow_item off = {
		.kind = FLOW_DISABLE, .start = CODE, .insns = 1, .from = CODE, .offset = 0x28};
	const struct flow_item items[] = {{.kind = FLOW_MARK, .mark = 0, .offset = 0x28},
					  {.kind = FLOW_MARK, .mark = 1, .offset = 0x2b}};
	const struct flow_mark marks[] = {
		{.kind = FLOW_MARK_PAGING, .value = 0xa000, .flags = FLOW_MARK_OF_BRANCH},
		{.kind = FLOW_MARK_CBR, .value = 8},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, &off, 1, NULL, NULL);
	give(&f, items, ARRAY_SIZE(items), NULL, marks);
	end(&f, "0000000000010000\n[paging, cr3: 000000000000a000]\n[disabled]\n[cbr: 8]\n");
}

static void views_ptxed_stretch_error_before_the_first_block_has_no_address(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_ENABLE, .to = CODE, .flags = FLOW_GOES_ON},
		{.kind = FLOW_GAP, .gap = 0, .from = CODE},
		{.kind = FLOW_ENABLE, .to = CODE, .flags = FLOW_GOES_ON},
		{.kind = FLOW_GAP, .gap = 0, .start = CODE, .insns = 1, .from = CODE + 1},
	};
	const struct flow_gap gap = {
		.fault = FAULT_PACKET_UNEXPECTED, .address = CODE, .read = 0x26};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, items, ARRAY_SIZE(items), &gap, NULL);
	end(&f, "[26, 0: error: unexpected packet context]\n0000000000010000\n"
		"[26, 10000: error: unexpected packet context]\n");
}

struct mark_case {
	struct flow_mark mark;
	const char *text;
};

static void views_ptxed_mark_says_what_ptxed_says(void **state)
{
	static const struct mark_case cases[] = {
		{{.kind = FLOW_MARK_MODE, .value = INSN_MODE_32}, "exec mode: 32-bit"},
		{{.kind = FLOW_MARK_IFLAG, .value = 1}, "interrupts enabled"},
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_BEGIN}, "begin transaction"},
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_COMMIT}, "committed"},
		{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_ABORT}, "aborted"},
		{{.kind = FLOW_MARK_PAGING, .value = 0xa000, .flags = FLOW_MARK_NON_ROOT},
		 "paging, cr3: 000000000000a000, nr"},
		{{.kind = FLOW_MARK_VMCS, .value = 0xb000}, "vmcs, base: 000000000000b000"},
		{{.kind = FLOW_MARK_PTWRITE, .value = 0xabcd}, "ptwrite: abcd"},
		{{.kind = FLOW_MARK_CBR, .value = 0x1f}, "cbr: 1f"},
		{{.kind = FLOW_MARK_EXSTOP, .flags = FLOW_MARK_HAS_IP, .ip = 5},
		 "exstop, ip: 0000000000000005"},
		{{.kind = FLOW_MARK_MWAIT, .value = 0x100000050}, "mwait 50 1"},
		{{.kind = FLOW_MARK_PWRE, .value = 0x0008}, "pwre c1.1 hw"},
		{{.kind = FLOW_MARK_PWRE, .value = 0x5f00}, "pwre c6.0"},
		{{.kind = FLOW_MARK_PWRX, .value = 0x155}, "pwrx int: c6 (c6)"},
		{{.kind = FLOW_MARK_PWRX, .value = 0xc0f}, "pwrx st: hw: c1 (c0)"},
		{{.kind = FLOW_MARK_MNT, .value = 0xa000}, "mnt: a000"},
		{{.kind = FLOW_MARK_TRIG, .value = 7, .type = 1}, "trig 07, mult"},
		{{.kind = FLOW_MARK_OFF}, "disabled"},
		{{.kind = FLOW_MARK_TICK}, "tick"},
		{{.kind = FLOW_MARK_CFE,
		  .type = PT_CFE_INTR,
		  .value = 14,
		  .flags = FLOW_MARK_CR2 | FLOW_MARK_HAS_IP,
		  .evd = {0xf00},
		  .ip = 9},
		 "interrupt 14, cr2: 0000000000000f00, ip: 0000000000000009"},
		{{.kind = FLOW_MARK_CFE,
		  .type = PT_CFE_VMEXIT_INTR,
		  .value = 14,
		  .flags = FLOW_MARK_VMXQ | FLOW_MARK_VMXR,
		  .evd = {0, 1, 2}},
		 "vmexit, intr: 14, vmxr: 0000000000000002, vmxq: 0000000000000001"},
		{{.kind = FLOW_MARK_CFE, .type = PT_CFE_VMEXIT}, "vmexit"},
		{{.kind = FLOW_MARK_CFE, .type = PT_CFE_SIPI, .value = 0xce}, "sipi: ce"},
		{{.kind = FLOW_MARK_CFE, .type = PT_CFE_SWINTR, .value = 128}, "swintr 128"},
		{{.kind = FLOW_MARK_CFE, .type = PT_CFE_UINTR, .value = 4}, "uintr 4"},
		{{.kind = FLOW_MARK_CFE, .type = PT_CFE_SYSCALL}, "syscall"},
	};
	struct lines l;
	size_t i, size;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text;
		int fd;

		assert_int_equal(memfd_new("out", 0, &fd), 0);
		assert_int_equal(lines_init(&l, fd), 0);
		assert_true(views_ptxed_knows(&cases[i].mark));
		views_ptxed_mark(&l, &cases[i].mark, true);
		assert_int_equal(lines_flush(&l), 0);
		lines_done(&l);
		text = made_text(fd, &size);
		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

static void views_ptxed_knows_nothing_of_others(void **state)
{
	const struct flow_mark pebs = {.kind = FLOW_MARK_PEBS};
	const struct flow_mark reserved = {.kind = FLOW_MARK_CFE, .type = 31};

	(void)state;
	assert_false(views_ptxed_knows(&pebs));
	assert_false(views_ptxed_knows(&reserved));
}

static void views_ptxed_stretch_marks_only_what_was_asked_for(void **state)
{
	static const struct flow_item items[] = {{.kind = FLOW_MARK, .mark = 0, .offset = 0x1a},
						 {.kind = FLOW_MARK, .mark = 1, .offset = 0x1a},
						 {.kind = FLOW_MARK, .mark = 2, .offset = 0x1a},
						 {.kind = FLOW_MARK, .mark = 3, .offset = 0x1a}};
	static const struct flow_mark marks[] = {
		{.kind = FLOW_MARK_TICK, .offset = 0x1a},
		{.kind = FLOW_MARK_IFLAG, .offset = 0x1a},
		{.kind = FLOW_MARK_PAGING, .offset = 0x1a, .flags = FLOW_MARK_STATUS},
		{.kind = FLOW_MARK_CBR, .value = 8, .offset = 0x1a},
	};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED);
	give(&f, items, ARRAY_SIZE(items), NULL, marks);
	end(&f, "[cbr: 8]\n");
	begin(&f, WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_TICK | WORKER_SHOW_EVENT_IFLAGS |
			  WORKER_SHOW_EVENT_TIME);
	give(&f, items, ARRAY_SIZE(items), NULL, marks);
	end(&f, "[0000000000001000  tick]\n[0000000000001000  interrupts disabled]\n"
		"[0000000000001000  cbr: 8]\n");
}

static void views_ptxed_end_quiet_has_errors_and_statistics_only(void **state)
{
	const struct flow_item items[] = {
		{.kind = FLOW_JUMP, .start = CODE, .insns = 2, .from = CODE + 1, .to = CODE + 4},
		{.kind = FLOW_DISABLE, .from = CODE + 4, .offset = 0x21, .flags = FLOW_ASYNC_STOP},
		{.kind = FLOW_GAP, .gap = 0},
	};
	const struct flow_gap gaps[] = {{.fault = FAULT_RET_EMPTY, .address = 1, .read = 2}};
	struct fixture f;

	(void)state;
	begin(&f, WORKER_SHOW_PTXED | WORKER_SHOW_QUIET | WORKER_SHOW_STAT | WORKER_SHOW_STAT_INSN);
	give(&f, items, ARRAY_SIZE(items), gaps, NULL);
	views_ptxed_end(&f.v);
	end(&f, "[2, 1: error: compressed return without call]\ninsn: 2.\n");
}

static char *view_of(const struct make_bundle *how, uint64_t show)
{
	const struct decode_options options = {.view = WORKER_VIEW_INSNS, .show = show};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

/* call, ret, and je whether it is taken or not; the direct jump and call only when that is asked
 * for. */
static void decode_run_ptxed_blocks_end_at_branches(void **state)
{
	const struct make_bundle how = {.rounds = 1};
	uint64_t show = WORKER_SHOW_PTXED | WORKER_SHOW_BLOCKS;
	char *text;

	(void)state;
	text = view_of(&how, show);
	assert_string_equal(text, "[enabled]\n[block]\n0000000000400200\n0000000000400220\n"
				  "0000000000400222\n[block]\n0000000000400205\n"
				  "0000000000400207\n[block]\n0000000000400209\n"
				  "000000000040020a\n000000000040020b\n[disabled]\n");
	free(text);
	text = view_of(&how, show | WORKER_SHOW_END_ON_CALL | WORKER_SHOW_STAT);
	assert_string_equal(text, "[enabled]\n[block 1]\n0000000000400200\n[block 2]\n"
				  "0000000000400220\n0000000000400222\n[block 3]\n"
				  "0000000000400205\n0000000000400207\n[block 4]\n"
				  "0000000000400209\n000000000040020a\n000000000040020b\n"
				  "[disabled]\ninsn: 8.\nblocks:\t4.\n");
	free(text);
}

/* The kernel goes back to behind the system call. */
static void decode_run_ptxed_behind_a_call_is_resumed(void **state)
{
	const struct make_bundle how = {.rounds = 2};
	char *text = view_of(&how, WORKER_SHOW_PTXED);

	(void)state;
	assert_non_null(
		strstr(text, "000000000040020b\n[disabled]\n[resumed]\n000000000040020d\n"));
	free(text);
}

static void decode_run_ptxed_lines_stand_below_their_thread(void **state)
{
	const struct make_bundle how = {.rounds = 2, .rounds_per_turn = 1};
	char *text = view_of(&how, WORKER_SHOW_PTXED);

	(void)state;
	assert_non_null(strstr(text, "000000000040020b\n[disabled]\n# cpu 0 pid 4711 tid 4713\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_ptxed_stretch_run_is_addresses_of_16_digits),
		cmocka_unit_test(views_ptxed_stretch_enabled_where_it_was_disabled_is_resumed),
		cmocka_unit_test(views_ptxed_stretch_going_on_has_no_line),
		cmocka_unit_test(views_ptxed_stretch_overflow_has_the_address_of_its_fup),
		cmocka_unit_test(views_ptxed_stretch_gaps_have_libipts_words),
		cmocka_unit_test(views_ptxed_stretch_end_is_said),
		cmocka_unit_test(views_ptxed_stretch_marks_of_a_branch_stand_before_disabled),
		cmocka_unit_test(views_ptxed_stretch_error_before_the_first_block_has_no_address),
		cmocka_unit_test(views_ptxed_mark_says_what_ptxed_says),
		cmocka_unit_test(views_ptxed_knows_nothing_of_others),
		cmocka_unit_test(views_ptxed_stretch_marks_only_what_was_asked_for),
		cmocka_unit_test(views_ptxed_end_quiet_has_errors_and_statistics_only),
		cmocka_unit_test(decode_run_ptxed_blocks_end_at_branches),
		cmocka_unit_test(decode_run_ptxed_behind_a_call_is_resumed),
		cmocka_unit_test(decode_run_ptxed_lines_stand_below_their_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
