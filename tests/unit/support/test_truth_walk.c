/*
 * The reader of truth directories, on files made byte by byte.
 */
#include "tests/support/truth_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "capture/emu/plugin/truth.h"
#include "proto/base.h"

#define BLOCK(id, ip) TRUTH_BLOCK, id, ip, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 3, 2, 0x66, 0x90
#define U64(v)	      (v) & 0xff, (v) >> 8 & 0xff, 0, 0, 0, 0, 0, 0
#define ENTER(cpu, t) TRUTH_ENTER, cpu, 0, 0, 0, U64(t), U64(0)
#define PSB(t)	      TRUTH_PSB, U64(t), U64(0), 1
#define STOP(t)	      TRUTH_STOP, U64(t), U64(0), 2, 0, 0, 0

struct file {
	const char *name;
	uint8_t bytes[160];
};

/* The addresses are below 256: 16 (1 byte) and 17 (3 bytes), ... */
static const struct file two_threads[] = {
	{"10.10",
	 {BLOCK(16, 0x10), BLOCK(17, 0x20), ENTER(0, 100), 16, TRUTH_AGAIN, 2, PSB(150), 17,
	  ENTER(1, 200), 16, STOP(250), ENTER(0, 300), 17, TRUTH_END, 15}},
	{"10.11",
	 {BLOCK(16, 0x40), ENTER(1, 120), 16, BLOCK(16, 0x50), ENTER(1, 400), TRUTH_PARTIAL, 16, 1,
	  0, 16}},
};

static char directory[64];
static char said[512];

static void on_begin(void *userdata, struct truth_thread who)
{
	(void)userdata;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "<%" PRIu32 ".%" PRIu32 ">",
		 who.pid, who.tid);
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	(void)userdata;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "(%" PRIu32 "@%" PRIu64 ")", cpu,
		 tsc);
}

static void on_run(void *userdata, const struct truth_event *e)
{
	(void)userdata;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%" PRIx64 "x%ux%" PRIu64 " ",
		 e->block->ip, e->n, e->times);
}

static void write_file(const struct file *f)
{
	char path[128];
	FILE *to;

	snprintf(path, sizeof(path), "%s/%s", directory, f->name);
	to = fopen(path, "we");
	assert_non_null(to);
	assert_int_equal(fwrite(TRUTH_MAGIC, 1, 8, to), 8);
	assert_int_equal(fwrite(f->bytes, 1, sizeof(f->bytes), to), sizeof(f->bytes));
	assert_int_equal(fclose(to), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/test_truth_walk.XXXXXX");
	assert_non_null(mkdtemp(directory));
	said[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"10.10", "10.11", "12.12", "10.10.", "notes"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

static int walk(const struct truth_span *spans, size_t n)
{
	const struct truth_visitor v = {.begin = on_begin, .stretch = on_stretch, .run = on_run};
	char *bad;
	int r = truth_walk(directory, spans, n, &v, &bad);

	assert_int_equal(r < 0, bad != NULL);
	free(bad);
	return r;
}

static void truth_walk_windows_holds_their_stretches(void **state)
{
	static const struct {
		struct truth_span spans[2];
		size_t n;
		const char *expected;
	} cases[] = {
		{{{0, 0, 0}},
		 0,
		 "<10.10>(0@100)10x2x1 10x2x2 20x2x1 (1@200)10x2x1 (0@300)20x2x1 "
		 "<10.11>(1@120)40x2x1 (1@400)50x1x1 50x2x1 "},
		/* From a PSB in the middle of a stretch. */
		{{{0, 150, 300}}, 1, "<10.10>(0@150)20x2x1 (0@300)20x2x1 <10.11>"},
		/* From a PSB that was not in user code. */
		{{{0, 151, 299}}, 1, "<10.10><10.11>"},
		{{{1, 120, 200}}, 1, "<10.10>(1@200)10x2x1 <10.11>(1@120)40x2x1 "},
		{{{1, 121, 400}, {0, 300, 300}},
		 2,
		 "<10.10>(1@200)10x2x1 (0@300)20x2x1 <10.11>(1@400)50x1x1 50x2x1 "},
	};

	(void)state;
	write_file(&two_threads[1]);
	write_file(&two_threads[0]);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		said[0] = '\0';
		assert_int_equal(walk(cases[i].spans, cases[i].n), 0);
		assert_string_equal(said, cases[i].expected);
	}
}

static void truth_walk_stretch_without_enter_is_outside(void **state)
{
	static const struct file f = {"12.12", {BLOCK(16, 0x10), 16, ENTER(0, 5), 16}};

	(void)state;
	write_file(&f);
	assert_int_equal(walk(NULL, 0), 0);
	assert_string_equal(said, "<12.12>(0@5)10x2x1 ");
}

static void truth_walk_damaged_file_is_refused(void **state)
{
	static const struct file bad[] = {
		{"12.12", {ENTER(0, 5), 16}},			 /* not defined */
		{"12.12", {BLOCK(17, 1), 16}},			 /* not defined, a higher one is */
		{"12.12", {15}},				 /* no such item */
		{"12.12", {BLOCK(16, 1), TRUTH_PARTIAL, 16, 3}}, /* more than it has */
		{"12.12", {TRUTH_BLOCK, 16, U64(0), 255, 255, 1}},  /* lengths beyond the end */
		{"12.12", {TRUTH_BLOCK, 16, U64(0), 1, 0, 1, 255}}, /* so is an instruction */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		write_file(&bad[i]);
		assert_int_equal(walk(NULL, 0), -EBADMSG);
	}
}

static void truth_walk_other_files_are_left_alone(void **state)
{
	static const struct file notes = {"notes", {15}}, more = {"10.10.", {15}};

	(void)state;
	write_file(&notes);
	write_file(&more);
	assert_int_equal(walk(NULL, 0), 0);
	assert_string_equal(said, "");
}

static void truth_span_parse_text_is_checked(void **state)
{
	struct truth_span s;

	(void)state;
	assert_int_equal(truth_span_parse("3:1f:0xff", &s), 0);
	assert_int_equal(s.cpu, 3);
	assert_int_equal(s.from, 0x1f);
	assert_int_equal(s.stop, 0xff);
	assert_int_equal(truth_span_parse("3:1f", &s), -EINVAL);
	assert_int_equal(truth_span_parse("3:1f:2,", &s), -EINVAL);
}

static void truth_hash_addresses_gives_fnv1a(void **state)
{
	static const uint8_t lengths[] = {1, 2};
	const struct truth_block_def block = {.ip = 0x4000a1b2c3, .n = 2, .length = lengths};
	const struct truth_event e = {.block = &block, .n = 2, .times = 1};

	(void)state;
	/* Over 16 bytes, the lowest of each address first. */
	assert_true(truth_hash(TRUTH_FNV_BASIS, &e) == 0xd55eb8cf87fb195eull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(truth_walk_windows_holds_their_stretches, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(truth_walk_stretch_without_enter_is_outside, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(truth_walk_damaged_file_is_refused, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(truth_walk_other_files_are_left_alone, set_up,
						tear_down),
		cmocka_unit_test(truth_span_parse_text_is_checked),
		cmocka_unit_test(truth_hash_addresses_gives_fnv1a),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
