/*
 * decoder/worker/view/views_packets.c: the text of ptdump.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/view/views.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_raw.h"

#define PSB 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82

/* clang-format off */
static const uint8_t trace[] = {
	0x00,			/* a head */
	PSB,			/* 1 */
	0x19, 0, 0x10, 0, 0, 0, 0, 0, /* 11: TSC 1000 */
	0x99, 0x01,		/* 19: MODE.Exec, 64 bits */
	2, 0x23,		/* 1b: PSBEND */
	0x71, 0, 0, 1, 0, 0, 0,	/* 1d: TIP.PGE 10000 */
	0x3d, 2, 0,		/* 24: FUP 10002 */
	0x01,			/* 27: TIP.PGD */
	2, 0x3,	0x20, 0,	/* 28: CBR 20 */
	0x03,			/* 2c: CYC 0 */
	0x00, 			/* 2d: PAD */
	2, 0xff,		/* 2e: no packet */
	0x06,
	PSB,			/* 31 */
	2, 0x23,		/* 41 */
	0x71, 0, 0,		/* 43: cut off */
};
/* clang-format on */

/* The text that the view writes; freed by the caller. */
static char *view_of(const char *source, const void *bytes, size_t size,
		     const struct decode_options *options)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	struct manifest m;
	struct bundle *bundle;
	struct lines lines;

	manifest_init(&m);
	m.source = strdup(source);
	bundle = made_raw(&m, bytes, size, NULL);
	assert_int_equal(lines_init(&lines, fd), 0);
	if (options->gap != 0)
		assert_int_equal(views_packets_before(bundle, options, 0, options->gap,
						      FAULT_OVERFLOW, &lines),
				 0);
	else
		assert_int_equal(views_packets(bundle, options, &lines), 0);
	lines_done(&lines);
	bundle_free(bundle);
	return made_text(fd, &size);
}

static void expect(const char *source, uint64_t show, const char *expected)
{
	const struct decode_options options = {.show = show};
	char *text = view_of(source, trace, sizeof(trace), &options);

	assert_string_equal(text, expected);
	free(text);
}

static void views_packets_raw_is_all_that_ptdump_writes(void **state)
{
	(void)state;
	expect("raw", 0,
	       "0000000000000001  psb\n"
	       "0000000000000011  tsc        1000\n"
	       "0000000000000019  mode.exec  cs.l\n"
	       "000000000000001b  psbend\n"
	       "000000000000001d  tip.pge    3: 0000000000010000\n"
	       "0000000000000024  fup        1: ????????????0002\n"
	       "0000000000000027  tip.pgd    0: ????????????????\n"
	       "0000000000000028  cbr        20\n"
	       "000000000000002c  cyc        0\n"
	       "000000000000002d  pad\n"
	       "[2e: error decoding packet: unknown opcode]\n"
	       "0000000000000031  psb\n"
	       "0000000000000041  psbend\n");
}

static void views_packets_of_a_recording_tells_what_is_left_out(void **state)
{
	(void)state;
	expect("emulated", WORKER_SHOW_NO_TIMING | WORKER_SHOW_NO_PAD | WORKER_SHOW_NO_OFFSET,
	       "# before the first PSB at 0: 1 bytes skipped\n"
	       "psb\n"
	       "mode.exec  cs.l\n"
	       "psbend\n"
	       "tip.pge    3: 0000000000010000\n"
	       "fup        1: ????????????0002\n"
	       "tip.pgd    0: ????????????????\n"
	       "[2e: error decoding packet: unknown opcode]\n"
	       "psb\n"
	       "psbend\n"
	       "# truncated packet at 67: 3 bytes skipped\n");
}

static void views_packets_options_add_columns(void **state)
{
	(void)state;
	expect("raw",
	       WORKER_SHOW_LASTIP | WORKER_SHOW_EXEC_MODE | WORKER_SHOW_TIME |
		       WORKER_SHOW_NO_OFFSET,
	       "psb\n"
	       "tsc        1000                      tsc  0000000000001000\n"
	       "mode.exec  cs.l                      em   64-bit\n"
	       "psbend\n"
	       "tip.pge    3: 0000000000010000       ip   0000000000010000\n"
	       "fup        1: ????????????0002       ip   0000000000010002\n"
	       "tip.pgd    0: ????????????????       ip   <suppressed>\n"
	       "cbr        20\n"
	       "[2c: calibration error: no timing information]\n"
	       "[2c: error updating time: no calibration]\n"
	       "cyc        0                         tsc  0000000000001000\n"
	       "pad\n"
	       "[2e: error decoding packet: unknown opcode]\n"
	       "psb\n"
	       "psbend\n");
}

static void views_packets_raw_bytes_have_their_column(void **state)
{
	static const uint8_t bytes[] = {PSB, 2, 0x23};
	const struct decode_options options = {.show = WORKER_SHOW_RAW};
	char *text = view_of("raw", bytes, sizeof(bytes), &options);

	(void)state;
	assert_string_equal(text, "0000000000000000  02820282028202820282028202820282  psb\n"
				  "0000000000000010  0223                              psbend\n");
	free(text);
}

static void views_packets_no_sync_begins_with_the_first_byte(void **state)
{
	const struct decode_options options = {.show = WORKER_SHOW_NO_SYNC};
	char *text = view_of("raw", trace, 20, &options);

	(void)state;
	assert_string_equal(text, "0000000000000000  pad\n0000000000000001  psb\n");
	free(text);
}

static void views_packets_psb_that_a_packet_swallowed_is_found(void **state)
{
	/* A MNT whose payload is the first half of a PSB, then what is no packet. */
	static const uint8_t bytes[] = {PSB, 2, 0xc3, 0x88, PSB, 2, 0x23};
	const struct decode_options options = {.show = WORKER_SHOW_NO_OFFSET};
	char *text = view_of("raw", bytes, sizeof(bytes), &options);

	(void)state;
	assert_string_equal(text, "psb\nmnt        8202820282028202\n"
				  "[1b: error decoding packet: unknown packet]\n"
				  "psb\npsbend\n");
	free(text);
}

static void views_packets_before_begin_within_16_kib(void **state)
{
	static uint8_t bytes[64 << 10];
	static const uint8_t psb[] = {PSB};
	const struct decode_options options = {.gap = 40000};
	char *text;

	(void)state;
	memset(bytes, 0x06, sizeof(bytes));
	memcpy(bytes + 16, psb, sizeof(psb));
	memcpy(bytes + 20000, psb, sizeof(psb));
	bytes[40000] = 0x04;
	text = view_of("raw", bytes, sizeof(bytes), &options);
	/* 40000 - 16384 is 5c40. */
	assert_memory_equal(text, "0000000000005c40  tnt.8      !\n", 30);
	assert_string_equal(strstr(text, "#"), "# gap overflow\n0000000000009c40  tnt.8      .\n");
	free(text);
}

static void views_packets_before_without_psb_is_the_gap_alone(void **state)
{
	static const uint8_t bytes[100];
	const struct decode_options options = {.gap = 50};
	char *text = view_of("raw", bytes, sizeof(bytes), &options);

	(void)state;
	assert_string_equal(text, "# gap overflow\n");
	free(text);
}

/* 0 and *ret_text, to be freed by the caller; else what decode_run said. */
static int decode_gap(const struct make_bundle *how, uint64_t gap, char **ret_text)
{
	const struct decode_options options = {.view = WORKER_VIEW_PACKETS, .gap = gap};
	struct decode_sink sink = {.fd = memfd_create("text", MFD_CLOEXEC), .version = "0"};
	struct bundle *bundle = made_open(how);
	uint64_t faults;
	size_t size;
	int r = decode_run(bundle, &options, &sink, &faults);

	bundle_free(bundle);
	*ret_text = made_text(sink.fd, &size);
	return r;
}

static void decode_run_gap_of_the_report_is_found(void **state)
{
	const struct make_bundle how = {.rounds = 4, .overflow = true};
	char *text, *end;

	(void)state;
	assert_int_equal(decode_gap(&how, 1, &text), 0);
	assert_memory_equal(text, "0000000000000000  psb\n", 22);
	end = strstr(text, "# gap overflow\n");
	assert_non_null(end);
	assert_non_null(strstr(end, "  ovf\n"));
	assert_ptr_equal(strstr(end, "  ovf\n") + 6, text + strlen(text));
	free(text);
	assert_int_equal(decode_gap(&how, 1000, &text), -ENODATA);
	free(text);
}

static void views_packets_unknown_cpu_is_said(void **state)
{
	const struct decode_options options = {.show = 0};
	int fd = memfd_create("text", MFD_CLOEXEC);
	struct bundle *bundle;
	struct lines lines;
	struct manifest m;
	size_t size;
	char *text;

	(void)state;
	manifest_init(&m);
	m.have_cpu = true;
	bundle = made_raw(&m, trace, 0, NULL);
	assert_int_equal(lines_init(&lines, fd), 0);
	assert_int_equal(views_packets(bundle, &options, &lines), 0);
	lines_done(&lines);
	bundle_free(bundle);
	text = made_text(fd, &size);
	assert_string_equal(text, "[0: failed to determine errata: unknown cpu]\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_packets_raw_is_all_that_ptdump_writes),
		cmocka_unit_test(views_packets_of_a_recording_tells_what_is_left_out),
		cmocka_unit_test(views_packets_options_add_columns),
		cmocka_unit_test(views_packets_raw_bytes_have_their_column),
		cmocka_unit_test(views_packets_no_sync_begins_with_the_first_byte),
		cmocka_unit_test(views_packets_psb_that_a_packet_swallowed_is_found),
		cmocka_unit_test(views_packets_before_begin_within_16_kib),
		cmocka_unit_test(views_packets_before_without_psb_is_the_gap_alone),
		cmocka_unit_test(decode_run_gap_of_the_report_is_found),
		cmocka_unit_test(views_packets_unknown_cpu_is_said),
	};

	return cmocka_run_group_tests_name("views_packets", tests, NULL, NULL);
}
