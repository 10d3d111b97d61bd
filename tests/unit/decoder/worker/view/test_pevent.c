/*
 * decoder/worker/pevent, pevent_record: sideband as libipt's tools show it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "decoder/worker/view/pevent.h"
#include "proto/bytes.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_raw.h"

#define KERNEL 0xffffffff81000000ull
#define USER   0x400000ull

/* Two files of records with TID and TIME in their trailers, and a view of them. */
struct fixture {
	struct bytes_out files[2];
	struct manifest manifest;
	struct decode_options options;
	struct bundle *bundle;
	struct lines lines;
	struct pevent *pevent;
	int fd;
};

static struct fixture f;

static int setup(void **state)
{
	(void)state;
	f = (struct fixture){.fd = memfd_create("text", MFD_CLOEXEC)};
	for (int i = 0; i < 2; i++)
		bytes_out_init(&f.files[i], 1 << 16);
	f.options.show = WORKER_SHOW_SB_COMPACT;
	manifest_init(&f.manifest);
	return lines_init(&f.lines, f.fd);
}

static int teardown(void **state)
{
	(void)state;
	pevent_free(f.pevent);
	bundle_free(f.bundle);
	lines_done(&f.lines);
	for (int i = 0; i < 2; i++)
		bytes_out_done(&f.files[i]);
	return 0;
}

static void put_header(int file, uint32_t type, uint16_t misc, size_t body)
{
	bytes_put_u32(&f.files[file], type);
	bytes_put_u16(&f.files[file], misc);
	bytes_put_u16(&f.files[file], (uint16_t)(8 + body + 16));
}

static void put_sample(int file, uint64_t time)
{
	bytes_put_u32(&f.files[file], 0xa);
	bytes_put_u32(&f.files[file], 0xb);
	bytes_put_u64(&f.files[file], time);
}

/* A record that is two numbers: ITRACE_START, SWITCH_CPU_WIDE. */
static void put_two(int file, uint32_t type, uint16_t misc, uint32_t pid, uint64_t time)
{
	put_header(file, type, misc, 8);
	bytes_put_u32(&f.files[file], pid);
	bytes_put_u32(&f.files[file], pid + 1);
	put_sample(file, time);
}

static void put_lost(int file, uint64_t lost, uint64_t time)
{
	put_header(file, PERF_RECORD_LOST, 0, 16);
	bytes_put_u64(&f.files[file], 0x1d);
	bytes_put_u64(&f.files[file], lost);
	put_sample(file, time);
}

/* NAME with its end and padding is 16 bytes. */
static void put_mmap(int file, const char *name, uint64_t time)
{
	char text[16] = "";

	memcpy(text, name, strnlen(name, sizeof(text) - 1));
	put_header(file, PERF_RECORD_MMAP, 0, 8 + 24 + (strlen(name) + 8) / 8 * 8);
	bytes_put_u32(&f.files[file], 1);
	bytes_put_u32(&f.files[file], 2);
	bytes_put_u64(&f.files[file], 0x1000);
	bytes_put_u64(&f.files[file], 0x20);
	bytes_put_u64(&f.files[file], 0x3);
	bytes_put_block(&f.files[file], text, (strlen(name) + 8) / 8 * 8);
	put_sample(file, time);
}

/* The files so far become the bundle's; the second one is secondary. */
static void open_files(void)
{
	const struct made_file files[] = {{f.files[0].data, f.files[0].size},
					  {f.files[1].data, f.files[1].size}};

	for (int i = 0; i < 2; i++) {
		struct manifest_pevent *p = manifest_add_pevent(&f.manifest);

		assert_non_null(p);
		p->name = strdup(i == 0 ? "one" : "two");
		p->secondary = i == 1;
		p->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
		p->time_mult = 1;
	}
	f.bundle = made_raw(&f.manifest, "", 0, files);
	assert_int_equal(pevent_new(f.bundle, &f.options, &f.lines, &f.pevent), 0);
	assert_non_null(f.pevent);
}

/* Checks that the text written since the last time is EXPECTED. */
static void expect(const char *expected)
{
	char text[1024] = "";
	ssize_t n;

	assert_int_equal(lines_flush(&f.lines), 0);
	n = pread(f.fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	assert_string_equal(text, expected);
	assert_int_equal(ftruncate(f.fd, 0), 0);
	assert_int_equal(lseek(f.fd, 0, SEEK_SET), 0);
}

static void event(uint64_t tsc, int where, uint64_t ip)
{
	const struct pevent_event e = {.tsc = tsc, .where = where, .ip = ip};

	pevent_event(f.pevent, &e);
}

static void pevent_new_without_files_is_none(void **state)
{
	(void)state;
	f.bundle = made_raw(&f.manifest, "", 0, NULL);
	assert_int_equal(pevent_new(f.bundle, &f.options, &f.lines, &f.pevent), 0);
	assert_null(f.pevent);
	pevent_until(f.pevent, UINT64_MAX);
	event(1, PEVENT_NOWHERE, 0);
	expect("");
}

static void pevent_until_is_in_order_of_time(void **state)
{
	(void)state;
	put_lost(0, 1, 5);
	put_lost(0, 2, 9);
	put_lost(1, 3, 5);
	put_lost(1, 4, 7);
	put_lost(1, 5, 3); /* late: behind the one before it */
	open_files();
	pevent_until(f.pevent, 4);
	expect("");
	pevent_until(f.pevent, 5);
	expect("PERF_RECORD_LOST  1d, 1  { a/b 5 }\nPERF_RECORD_LOST  1d, 3  { a/b 5 }\n");
	pevent_until(f.pevent, UINT64_MAX);
	expect("PERF_RECORD_LOST  1d, 4  { a/b 7 }\nPERF_RECORD_LOST  1d, 5  { a/b 3 }\n"
	       "PERF_RECORD_LOST  1d, 2  { a/b 9 }\n");
}

static void pevent_until_shows_what_is_asked_for(void **state)
{
	(void)state;
	f.options.show = WORKER_SHOW_SB_VERBOSE | WORKER_SHOW_SB_OFFSET | WORKER_SHOW_SB_FILENAME |
			 WORKER_SHOW_SB_TIME;
	put_two(0, PERF_RECORD_ITRACE_START, 0, 4, 5);
	put_two(0, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 8, 6);
	open_files();
	pevent_until(f.pevent, UINT64_MAX);
	expect("one:0000000000000000  0000000000000005  PERF_RECORD_ITRACE_START\n"
	       "  pid: 4\n  tid: 5\n  pid: a\n  tid: b\n  time: 5\n"
	       "one:0000000000000020  0000000000000006  PERF_RECORD_SWITCH_CPU_WIDE.OUT\n"
	       "  next pid: 8\n  next tid: 9\n  pid: a\n  tid: b\n  time: 6\n");
}

static void pevent_until_quiet_or_without_a_form_is_silent(void **state)
{
	(void)state;
	f.options.show |= WORKER_SHOW_QUIET;
	put_lost(0, 1, 5);
	open_files();
	pevent_until(f.pevent, UINT64_MAX);
	expect("");
}

static void pevent_until_escapes_names(void **state)
{
	(void)state;
	put_mmap(0, "a\x1b[1m\xc2\x9b", 5);
	open_files();
	pevent_until(f.pevent, UINT64_MAX);
	expect("PERF_RECORD_MMAP  1/2, 1000, 20, 3, a\\x1b[1m\\xc2\\x9b  { a/b 5 }\n");
}

static void pevent_until_unknown_types_come_at_once(void **state)
{
	(void)state;
	put_lost(0, 1, 5);
	put_header(0, PERF_RECORD_KSYMBOL, 0x20, 0);
	put_sample(0, 9);
	open_files();
	pevent_until(f.pevent, 5);
	expect("PERF_RECORD_LOST  1d, 1  { a/b 5 }\nUNKNOWN (11, 20)  { }\n");
}

static void pevent_until_ends_at_what_is_no_record(void **state)
{
	(void)state;
	put_header(0, PERF_RECORD_ITRACE_START, 0, 16);
	put_two(0, PERF_RECORD_ITRACE_START, 0, 4, 5);
	put_sample(0, 0);
	put_lost(1, 1, 5);
	open_files();
	pevent_until(f.pevent, UINT64_MAX);
	expect("[one:0000000000000000 sideband error: decoder out of sync]\n"
	       "PERF_RECORD_LOST  1d, 1  { a/b 5 }\n");
}

static void pevent_event_warns_where_asked(void **state)
{
	(void)state;
	f.options.show = WORKER_SHOW_SB_WARN;
	put_lost(0, 1, 5);
	put_mmap(0, "//anon", 5);
	put_mmap(0, "[vdso]", 5);
	put_mmap(0, "/x (deleted)", 5);
	put_mmap(0, "/x", 5);
	open_files();
	event(5, PEVENT_NOWHERE, 0);
	expect("[one:0000000000000000 sideband warning: sideband lost]\n"
	       "[one:0000000000000028 sideband warning: image section lost]\n"
	       "[one:0000000000000068 sideband error: bad configuration]\n"
	       "[one:00000000000000a8 sideband warning: image section lost]\n");
}

static void pevent_event_context_waits_for_the_kernel(void **state)
{
	(void)state;
	f.options.show = WORKER_SHOW_SB_SWITCH;
	put_two(0, PERF_RECORD_ITRACE_START, 0, 1, 0);
	put_two(0, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 2, 5);
	open_files();
	event(1, PEVENT_AT, USER);
	expect("[context: pid-1]\n");
	event(5, PEVENT_AT, USER);
	expect("");
	event(6, PEVENT_ACROSS, 0);
	expect("[context: pid-2]\n");
	event(7, PEVENT_AT, KERNEL);
	expect("");
}

static void pevent_event_context_back_to_the_same_is_none(void **state)
{
	(void)state;
	f.options.show = WORKER_SHOW_SB_SWITCH;
	put_two(0, PERF_RECORD_ITRACE_START, 0, 1, 0);
	put_two(0, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 2, 5);
	put_two(0, PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, 1, 6);
	/* Another CPU's. */
	put_two(1, PERF_RECORD_ITRACE_START, 0, 3, 6);
	open_files();
	event(6, PEVENT_AT, USER);
	expect("[context: pid-1]\n");
	event(7, PEVENT_AT, KERNEL);
	expect("");
}

static void pevent_event_exec_makes_another_of_the_same(void **state)
{
	(void)state;
	f.options.show = WORKER_SHOW_SB_SWITCH;
	put_two(0, PERF_RECORD_ITRACE_START, 0, 1, 0);
	put_header(0, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, 16);
	bytes_put_u32(&f.files[0], 1);
	bytes_put_u32(&f.files[0], 1);
	bytes_put_u64(&f.files[0], 'x');
	put_sample(0, 5);
	open_files();
	event(0, PEVENT_AT, USER);
	expect("[context: pid-1]\n");
	event(5, PEVENT_LIKELY_KERNEL, 0);
	expect("[context: pid-1]\n");
}

static void pevent_event_time_is_shifted_by_the_offset(void **state)
{
	(void)state;
	put_lost(0, 1, 100);
	put_lost(0, 2, 3);
	f.files[1].size = 0;
	put_lost(1, 3, UINT64_MAX);
	open_files();
	pevent_free(f.pevent);
	((struct manifest *)(uintptr_t)bundle_manifest(f.bundle))->pevents[0].tsc_offset = 10;
	((struct manifest *)(uintptr_t)bundle_manifest(f.bundle))->pevents[1].tsc_offset =
		(uint64_t)-10;
	assert_int_equal(pevent_new(f.bundle, &f.options, &f.lines, &f.pevent), 0);
	pevent_until(f.pevent, 89);
	expect("");
	pevent_until(f.pevent, 90);
	expect("PERF_RECORD_LOST  1d, 1  { a/b 64 }\nPERF_RECORD_LOST  1d, 2  { a/b 3 }\n");
	pevent_until(f.pevent, UINT64_MAX - 1);
	expect("");
	pevent_until(f.pevent, UINT64_MAX);
	expect("PERF_RECORD_LOST  1d, 3  { a/b ffffffffffffffff }\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pevent_new_without_files_is_none),
		TEST(pevent_until_is_in_order_of_time),
		TEST(pevent_until_shows_what_is_asked_for),
		TEST(pevent_until_quiet_or_without_a_form_is_silent),
		TEST(pevent_until_escapes_names),
		TEST(pevent_until_unknown_types_come_at_once),
		TEST(pevent_until_ends_at_what_is_no_record),
		TEST(pevent_event_warns_where_asked),
		TEST(pevent_event_context_waits_for_the_kernel),
		TEST(pevent_event_context_back_to_the_same_is_none),
		TEST(pevent_event_exec_makes_another_of_the_same),
		TEST(pevent_event_time_is_shifted_by_the_offset),
	};

	return cmocka_run_group_tests_name("pevent", tests, NULL, NULL);
}
