#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/code/insn.h"
#include "decoder/worker/decode.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/perf/ptpacket.h"
#include "tests/unit/decoder/worker/made.h"

static char *lines_of(const struct replay_stretch *s)
{
	struct lines l;
	size_t size;
	int fd;

	assert_int_equal(memfd_new("out", 0, &fd), 0);
	assert_int_equal(lines_init(&l, fd), 0);
	assert_int_equal(views_events(&l, s), 0);
	assert_int_equal(lines_flush(&l), 0);
	lines_done(&l);
	return made_text(fd, &size);
}

static void views_events_items_that_are_no_branch_are_lines(void **state)
{
	static const struct flow_item items[] = {
		{.kind = FLOW_ENABLE, .to = 0x1000, .offset = 0x10, .tsc_hi = UINT64_MAX},
		{.kind = FLOW_CALL, .from = 0x1000, .to = 0x2000, .insns = 1},
		{.kind = FLOW_ASYNC,
		 .from = 0x2000,
		 .to = 0x3000,
		 .offset = 0x20,
		 .tsc_lo = 5,
		 .tsc_hi = 0x1f},
		{.kind = FLOW_SYSCALL, .from = 0x3000, .offset = 0x30, .tsc_lo = 7, .tsc_hi = 7},
		{.kind = FLOW_DISABLE,
		 .from = 0x3001,
		 .offset = 0x31,
		 .flags = FLOW_ASYNC_STOP,
		 .tsc_lo = 7,
		 .tsc_hi = UINT64_MAX},
		{.kind = FLOW_GAP, .gap = 3, .from = 0x3002, .offset = 0x40, .tsc_hi = 9},
		{.kind = FLOW_GAP, .gap = 4, .offset = 0x41, .tsc_hi = 9},
		{.kind = FLOW_END, .from = 0x3003, .offset = 0x50, .tsc_lo = 8, .tsc_hi = 9},
	};
	static const struct flow_gap gaps[] = {{.fault = FAULT_OVERFLOW},
					       {.fault = FAULT_UNMAPPED}};
	const struct replay_stretch s = {
		.items = items, .n_items = ARRAY_SIZE(items), .gaps = gaps, .first_gap = 3};
	char *text = lines_of(&s);

	(void)state;
	assert_string_equal(text, "0x10 ?-? enable ip=0x1000\n"
				  "0x20 0x5-0x1f async from=0x2000 to=0x3000\n"
				  "0x30 0x7 disable how=branch ip=0x3000\n"
				  "0x31 0x7-? disable how=async ip=0x3001\n"
				  "0x40 ?-0x9 overflow ip=0x3002\n"
				  "# gap overflow\n# gap unmapped\n"
				  "0x50 0x8-0x9 end ip=0x3003\n");
	free(text);
}

struct mark_case {
	struct flow_mark mark;
	const char *text;
};

static const struct mark_case cases[] = {
	{{.kind = FLOW_MARK_MODE, .value = INSN_MODE_16}, "mode bits=16"},
	{{.kind = FLOW_MARK_IFLAG, .value = 0}, "interrupts on=0"},
	{{.kind = FLOW_MARK_TSX, .value = FLOW_TSX_ABORT}, "transaction abort"},
	{{.kind = FLOW_MARK_PAGING, .value = 0xa000, .flags = FLOW_MARK_NON_ROOT},
	 "paging cr3=0xa000 guest=1"},
	{{.kind = FLOW_MARK_VMCS, .value = 0xb000}, "vmcs base=0xb000"},
	{{.kind = FLOW_MARK_PTWRITE, .value = 0xcafe, .size = 8}, "ptwrite value=0xcafe bytes=8"},
	{{.kind = FLOW_MARK_CBR, .value = 35}, "frequency ratio=35"},
	{{.kind = FLOW_MARK_EXSTOP}, "exstop"},
	{{.kind = FLOW_MARK_MWAIT, .value = 0x100000050}, "mwait hints=0x50 extensions=0x1"},
	{{.kind = FLOW_MARK_PWRE, .value = 0x5180}, "pwre state=6 sub=1 hardware=1"},
	{{.kind = FLOW_MARK_PWRX, .value = 0x10f}, "pwrx last=1 deepest=0 reason=interrupt"},
	{{.kind = FLOW_MARK_PWRX, .value = 0x253}, "pwrx last=6 deepest=4 reason=timer"},
	{{.kind = FLOW_MARK_MNT, .value = 1}, "mnt value=0x1"},
	{{.kind = FLOW_MARK_OFF}, "disable how=unknown"},
	{{.kind = FLOW_MARK_TRIG, .value = 3, .type = 1}, "trigger hits=0x3 multiple=1"},
	{{.kind = FLOW_MARK_PEBS, .type = 4, .id = 2, .value = 9, .size = 8},
	 "pebs type=4 id=2 value=0x9 bytes=8"},
	{{.kind = FLOW_MARK_CFE,
	  .type = PT_CFE_INTR,
	  .value = 14,
	  .flags = FLOW_MARK_CR2,
	  .evd = {0xf00}},
	 "intr vector=14 cr2=0xf00"},
	{{.kind = FLOW_MARK_CFE,
	  .type = PT_CFE_VMEXIT,
	  .flags = FLOW_MARK_VMXQ | FLOW_MARK_VMXR,
	  .evd = {0, 1, 2}},
	 "vmexit qualification=0x1 reason=0x2"},
	{{.kind = FLOW_MARK_CFE, .type = 31}, "cfe-31"},
};

static void views_events_mark_is_a_line(void **state)
{
	struct flow_item item = {.kind = FLOW_MARK, .from = 0x1000, .to = 0x1000};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct flow_mark mark = cases[i].mark;
		const struct replay_stretch s = {.items = &item, .n_items = 1, .marks = &mark};
		char expect[128], *text;

		mark.offset = 0x77;
		mark.tsc_lo = mark.tsc_hi = 3;
		text = lines_of(&s);
		snprintf(expect, sizeof(expect), "0x77 0x3 %s ip=0x1000\n", cases[i].text);
		assert_string_equal(text, expect);
		free(text);
	}
}

static void views_events_mark_has_the_address_that_its_packets_name(void **state)
{
	static const struct flow_item items[] = {{.kind = FLOW_MARK, .from = 0x1000, .mark = 7},
						 {.kind = FLOW_MARK, .mark = 8}};
	static const struct flow_mark marks[] = {
		{.kind = FLOW_MARK_EXSTOP,
		 .flags = FLOW_MARK_HAS_IP,
		 .ip = 0x2000,
		 .tsc_lo = 1,
		 .tsc_hi = 1},
		{.kind = FLOW_MARK_EXSTOP, .tsc_lo = 1, .tsc_hi = 1},
	};
	const struct replay_stretch s = {
		.items = items, .n_items = 2, .marks = marks, .first_mark = 7};
	char *text = lines_of(&s);

	(void)state;
	assert_string_equal(text, "0x0 0x1 exstop ip=0x2000\n0x0 0x1 exstop\n");
	free(text);
}

static void views_events_status_and_ticks_are_left_out(void **state)
{
	static const struct flow_item items[] = {{.kind = FLOW_MARK, .mark = 0},
						 {.kind = FLOW_MARK, .mark = 1}};
	static const struct flow_mark marks[] = {
		{.kind = FLOW_MARK_CBR, .flags = FLOW_MARK_STATUS},
		{.kind = FLOW_MARK_TICK},
	};
	const struct replay_stretch s = {.items = items, .n_items = 2, .marks = marks};
	char *text = lines_of(&s);

	(void)state;
	assert_string_equal(text, "");
	free(text);
}

static char *view_of(const struct make_bundle *how, uint32_t view)
{
	const struct decode_options options = {.view = view};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

static void decode_run_events_says_whose_they_are(void **state)
{
	const struct make_bundle how = {.rounds = 2, .rounds_per_turn = 1};
	char *text = view_of(&how, WORKER_VIEW_EVENTS);

	(void)state;
	assert_non_null(strstr(text, "# cpu 0 pid 4711 tid 4712\n"));
	assert_non_null(strstr(text, "# cpu 0 pid 4711 tid 4713\n"));
	assert_non_null(strstr(text, " enable ip=0x400200\n"));
	assert_non_null(strstr(text, " disable how=branch ip=0x40020b\n"));
	free(text);
}

/* Each run cut after its first instruction, as marks cut it. */
static int hash_cut(void *userdata, const struct replay_stretch *s)
{
	const struct flow_mark mark = {.kind = FLOW_MARK_CBR};
	uint64_t *hashes = userdata, ips[2];
	size_t i;

	hashes[0] = views_hash(hashes[0], s);
	for (i = 0; i < s->n_items; i++) {
		struct flow_item two[2] = {s->items[i], s->items[i]};
		struct replay_stretch cut = *s;

		if (two[0].insns > 1) {
			assert_int_equal(flow_run(s->flow, two[0].start, 2, ips), 2);
			two[0].kind = FLOW_MARK;
			two[0].mark = 0;
			two[0].from = two[0].to = two[1].start = ips[1];
			two[1].insns -= two[0].insns = 1;
		}
		cut.items = two[0].kind == FLOW_MARK ? two : two + 1;
		cut.n_items = two[0].kind == FLOW_MARK ? 2 : 1;
		cut.marks = &mark;
		cut.n_marks = 1;
		hashes[1] = views_hash(hashes[1], &cut);
	}
	return 0;
}

static void views_hash_marks_do_not_change_it(void **state)
{
	const struct make_bundle how = {.rounds = 20, .rounds_per_psb = 3};
	uint64_t hashes[2] = {VIEWS_HASH_BASIS, VIEWS_HASH_BASIS};
	const struct replay_consumer consumer = {.stretch = hash_cut, .userdata = hashes};
	struct bundle *bundle = made_open(&how);
	struct replay *replay;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &replay), 0);
	assert_int_equal(replay_all(replay, &consumer), 0);
	assert_true(hashes[0] != VIEWS_HASH_BASIS);
	assert_true(hashes[0] == hashes[1]);
	replay_free(replay);
	bundle_free(bundle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_events_items_that_are_no_branch_are_lines),
		cmocka_unit_test(views_events_mark_is_a_line),
		cmocka_unit_test(views_events_mark_has_the_address_that_its_packets_name),
		cmocka_unit_test(views_events_status_and_ticks_are_left_out),
		cmocka_unit_test(decode_run_events_says_whose_they_are),
		cmocka_unit_test(views_hash_marks_do_not_change_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
