#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"

static char *shown(const struct make_bundle *how, const struct decode_options *options)
{
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;
	size_t size;

	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

static char *view_of(const struct make_bundle *how, uint32_t view, bool hash)
{
	const struct decode_options options = {.view = view, .hash = hash};

	return shown(how, &options);
}

/* The instructions that the processor would have executed, by the program's listing. */
static size_t expect_ips(unsigned rounds, uint64_t *to)
{
	size_t n = 0;
	unsigned i;

	for (i = 0; i < rounds; i++) {
		if (i > 0)
			to[n++] = MAKE_MAIN + 13;
		to[n++] = MAKE_MAIN;
		to[n++] = MAKE_LEAF;
		to[n++] = MAKE_LEAF + 2;
		to[n++] = MAKE_MAIN + 5;
		to[n++] = MAKE_MAIN + 7;
		if (i % 2 == 0) {
			to[n++] = MAKE_MAIN + 9;
			to[n++] = MAKE_MAIN + 10;
		}
		to[n++] = MAKE_MAIN + 11;
	}
	return n;
}

static void views_insns_lists_every_instruction(void **state)
{
	static uint64_t ips[1000];
	const struct make_bundle how = {.rounds = 20, .rounds_per_psb = 3};
	char *text = view_of(&how, WORKER_VIEW_INSNS, false), *at = text;
	size_t i, n = expect_ips(20, ips);

	(void)state;
	for (i = 0; i < n; i++) {
		char line[32];
		int size = snprintf(line, sizeof(line), "%llx\n", (unsigned long long)ips[i]);

		if (strncmp(at, line, (size_t)size) != 0)
			fail_msg("instruction %zu: not %s", i, line);
		at += size;
	}
	assert_string_equal(at, "");
	free(text);
}

/* A view never joins two pieces silently, also of a single thread on a single CPU. */
static void views_single_thread_has_lines_about_gaps(void **state)
{
	const struct make_bundle how = {
		.rounds = 8, .overflow = true, .aux_flags = 1 /* PERF_AUX_FLAG_TRUNCATED */};
	static const uint32_t views[] = {WORKER_VIEW_BRANCHES, WORKER_VIEW_INSNS,
					 WORKER_VIEW_EVENTS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(views); i++) {
		char *text = view_of(&how, views[i], false);
		const char *gap = strstr(text, "# gap overflow\n");

		assert_non_null(gap);
		assert_ptr_not_equal(gap, text);
		assert_true(strncmp(strchr(gap, '\n') + 1, "# recording", 11) != 0);
		assert_non_null(strstr(gap, "\n# recording aux-truncated 1\n"));
		assert_null(strstr(text, "# cpu"));
		free(text);
	}
}

static void views_insns_interrupted_was_not_executed(void **state)
{
	const struct make_bundle how = {.rounds = 1, .in_leaf = true};
	char *text = view_of(&how, WORKER_VIEW_INSNS, false);

	(void)state;
	assert_string_equal(text + strlen(text) - strlen("40020d\n400200\n400220\n"),
			    "40020d\n400200\n400220\n");
	free(text);
}

#define NOPS	10000u
#define NOPS_AT 0x10000ull

static int give_nops(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)ip;
	*ret = (struct flow_code){.bytes = userdata, .address = NOPS_AT, .size = NOPS + 1};
	return 0;
}

/* A run longer than any buffer: nothing is left out or said twice where two pieces meet. */
static void views_insns_long_run_is_whole(void **state)
{
	static const uint8_t trace[] = {
		2,    0x82,	   2,	      0x82, 2,	  0x82, 2, 0x82, 2,    0x82, 2,
		0x82, 2,	   0x82,      2,    0x82, 0x99, 1, 2,	 0x23, /* MODE.Exec, PSBEND
										*/
		0x71, 0,	   0,	      1,    0,	  0,	0,	       /* TIP.PGE 0x10000 */
		0x7d, NOPS & 0xff, NOPS >> 8, 1,    0,	  0,	0, /* FUP behind the last */
		0x01,						   /* TIP.PGD */
	};
	static uint8_t nops[NOPS + 1];
	const struct flow_config config = {.trace = trace,
					   .size = sizeof(trace),
					   .mtc_period = UINT32_MAX,
					   .code = give_nops,
					   .userdata = nops};
	struct flow_batch batch;
	struct lines l;
	struct flow *flow;
	size_t i, size;
	char *text;
	int fd;

	(void)state;
	memset(nops, 0x90, sizeof(nops));
	assert_int_equal(memfd_new("out", 0, &fd), 0);
	assert_int_equal(lines_init(&l, fd), 0);
	assert_int_equal(flow_new(&config, &flow), 0);
	while (flow_next(flow, &batch) == 0) {
		const struct replay_stretch s = {
			.items = batch.items, .n_items = batch.n_items, .flow = flow};

		assert_int_equal(views_insns(&l, &s), 0);
	}
	flow_free(flow);
	assert_int_equal(lines_flush(&l), 0);
	lines_done(&l);
	text = made_text(fd, &size);
	assert_int_equal(size, NOPS * 6);
	for (i = 0; i < NOPS; i++)
		assert_int_equal(strtoull(text + 6 * i, NULL, 16), NOPS_AT + i);
	free(text);
}

static void views_branches_lists_taken_ones(void **state)
{
	const struct make_bundle how = {.rounds = 2, .in_leaf = true};
	char *text = view_of(&how, WORKER_VIEW_BRANCHES, false);

	(void)state;
	assert_string_equal(text, "0 400200\n400200 400220\n400222 400205\n40020b 0\n"
				  "0 40020d\n40020d 400200\n400200 400220\n400222 400205\n"
				  "400207 40020b\n40020b 0\n"
				  "0 40020d\n40020d 400200\n400200 400220\n400222 0\n");
	free(text);
}

/* The branches of a single thread say whose they are, too. Offsets are of packets, so they never
 * fall. */
static void views_branches_with_places_has_offsets_and_owners(void **state)
{
	const struct make_bundle how = {.rounds = 3};
	const struct decode_options options = {.view = WORKER_VIEW_BRANCHES,
					       .show = WORKER_SHOW_TIME | WORKER_SHOW_PLACES};
	char *text = shown(&how, &options), *rest = text, *line;
	unsigned long long branch[4], offset, before = 0;
	unsigned n = 0, owners = 0;

	(void)state;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		if (*line == '#') {
			owners += strncmp(line, "# cpu ", 6) == 0;
			continue;
		}
		assert_int_equal(sscanf(line, "%llx %llx %llx %llx %llx", &branch[0], &branch[1],
					&branch[2], &branch[3], &offset),
				 5);
		assert_true(before <= offset);
		before = offset;
		n++;
	}
	assert_true(n > 9 && owners > 0 && before > 0);
	free(text);
}

/* Each round begins with a TSC of its own. */
static void views_branches_with_time_has_intervals(void **state)
{
	const struct make_bundle how = {.rounds = 3};
	const struct decode_options options = {.view = WORKER_VIEW_BRANCHES,
					       .show = WORKER_SHOW_TIME};
	char *text = shown(&how, &options), *rest = text, *line;
	unsigned long long from, to, lo, hi, before = 0;
	unsigned n = 0;

	(void)state;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		assert_int_equal(sscanf(line, "%llx %llx %llx %llx", &from, &to, &lo, &hi), 4);
		assert_true(before <= lo && lo < hi);
		before = lo;
		n++;
	}
	assert_true(n > 9);
	free(text);
}

static void views_packets_names_each_cpu(void **state)
{
	const struct make_bundle one = {.rounds = 1}, two = {.rounds = 1, .n_cpus = 2};
	char *text = view_of(&one, WORKER_VIEW_PACKETS, false);

	(void)state;
	assert_null(strstr(text, "# cpu"));
	assert_non_null(strstr(text, "psbend"));
	assert_non_null(strstr(text, "tip.pge"));
	free(text);
	text = view_of(&two, WORKER_VIEW_PACKETS, false);
	assert_memory_equal(text, "# cpu 0\n", 8);
	assert_non_null(strstr(text, "\n# cpu 1\n"));
	free(text);
}

static void views_packets_begin_at_the_first_psb(void **state)
{
	const struct make_bundle headless = {.rounds = 1, .no_psb = true};
	const struct make_bundle wrapped = {.rounds = 20, .rounds_per_psb = 5, .no_psb = true};
	char *text = view_of(&headless, WORKER_VIEW_PACKETS, false);

	(void)state;
	assert_memory_equal(text, "# no PSB at 0: ", 15);
	assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
	free(text);
	text = view_of(&wrapped, WORKER_VIEW_PACKETS, false);
	assert_memory_equal(text, "# before the first PSB at 0: ", 29);
	assert_non_null(strstr(strchr(text, '\n'), " psb"));
	assert_null(strstr(strchr(text, '\n') + 1, "#"));
	free(text);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, key, &v))
		fail_msg("no %s", key);
	return v;
}

static uint64_t number(struct json_object *o, const char *key)
{
	return json_object_get_uint64(member(o, key));
}

static void views_summary_counts(void **state)
{
	static uint64_t ips[1000];
	const struct make_bundle how = {.rounds = 20, .rounds_per_psb = 5};
	char *text = view_of(&how, WORKER_VIEW_SUMMARY, true), expected[17];
	struct json_object *o = json_tokener_parse(text);
	uint64_t hash = 0xcbf29ce484222325ull;
	size_t i, n = expect_ips(20, ips);
	int j;

	(void)state;
	assert_non_null(o);
	assert_int_equal(number(o, "instructions"), n);
	assert_int_equal(number(o, "branches"), 20 * 2 + 10 + 19 + 20 * 2);
	assert_int_equal(number(o, "bytes"), number(o, "bytesDecoded"));
	assert_int_equal(number(o, "psbs"), 4);
	assert_int_equal(number(o, "returns"), 20);
	assert_int_equal(number(o, "compressedReturns"), 20);
	assert_int_equal(number(o, "gaps"), 0);
	assert_int_equal(json_object_object_length(member(o, "errors")), 0);
	assert_string_equal(json_object_get_string(member(o, "tscFirst")), "0xf4240");
	assert_true(json_object_get_double(member(o, "coveragePercent")) == 100);
	for (i = 0; i < n; i++)
		for (j = 0; j < 8; j++)
			hash = (hash ^ ((const uint8_t *)&ips[i])[j]) * 0x100000001b3ull;
	snprintf(expected, sizeof(expected), "%016llx", (unsigned long long)hash);
	assert_string_equal(json_object_get_string(member(o, "ipHash")), expected);
	json_object_put(o);
	free(text);
}

static void views_summary_names_errors(void **state)
{
	const struct make_bundle how = {.rounds = 5, .no_image = true};
	char *text = view_of(&how, WORKER_VIEW_SUMMARY, false);
	struct json_object *o = json_tokener_parse(text);

	(void)state;
	assert_non_null(o);
	assert_true(number(member(o, "errors"), "image-missing") > 0);
	assert_false(json_object_object_get_ex(o, "ipHash", NULL));
	json_object_put(o);
	free(text);
}

static void lines_hex_writes_digits(void **state)
{
	const uint64_t values[] = {0, 1, 9, 10, 15, 16, 255, 256, 0x123456789abcdef0, UINT64_MAX};
	char expected[512] = "", *text;
	struct lines l;
	size_t i, size;
	int fd;

	(void)state;
	assert_int_equal(memfd_new("out", 0, &fd), 0);
	assert_int_equal(lines_init(&l, fd), 0);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		lines_hex(&l, values[i], '\n');
		snprintf(expected + strlen(expected), 32, "%llx\n", (unsigned long long)values[i]);
	}
	assert_int_equal(lines_flush(&l), 0);
	lines_done(&l);
	text = made_text(fd, &size);
	assert_string_equal(text, expected);
	free(text);
}

static void lines_beyond_buffer_lose_nothing(void **state)
{
	struct lines l;
	uint64_t i;
	size_t size;
	char *text, *at;
	int fd;

	(void)state;
	assert_int_equal(memfd_new("out", 0, &fd), 0);
	assert_int_equal(lines_init(&l, fd), 0);
	for (i = 0; i < LINES_BUFFER / 4; i++)
		lines_hex(&l, 0x10000 + i, '\n');
	assert_int_equal(lines_flush(&l), 0);
	lines_done(&l);
	text = at = made_text(fd, &size);
	assert_int_equal(size, LINES_BUFFER / 4 * 6);
	for (i = 0; i < LINES_BUFFER / 4; i++)
		assert_int_equal(strtoull(at + i * 6, NULL, 16), 0x10000 + i);
	free(text);
}

static void lines_write_failure_is_kept(void **state)
{
	struct lines l;

	(void)state;
	assert_int_equal(lines_init(&l, -1), 0);
	lines_text(&l, "x", 1);
	assert_int_equal(lines_flush(&l), -EBADF);
	lines_text(&l, "y", 1);
	assert_int_equal(lines_flush(&l), -EBADF);
	lines_done(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(views_insns_lists_every_instruction),
		cmocka_unit_test(views_insns_long_run_is_whole),
		cmocka_unit_test(views_single_thread_has_lines_about_gaps),
		cmocka_unit_test(views_insns_interrupted_was_not_executed),
		cmocka_unit_test(views_branches_lists_taken_ones),
		cmocka_unit_test(views_branches_with_places_has_offsets_and_owners),
		cmocka_unit_test(views_branches_with_time_has_intervals),
		cmocka_unit_test(views_packets_names_each_cpu),
		cmocka_unit_test(views_packets_begin_at_the_first_psb),
		cmocka_unit_test(views_summary_counts),
		cmocka_unit_test(views_summary_names_errors),
		cmocka_unit_test(lines_hex_writes_digits),
		cmocka_unit_test(lines_beyond_buffer_lose_nothing),
		cmocka_unit_test(lines_write_failure_is_kept),
	};

	return cmocka_run_group_tests_name("views", tests, NULL, NULL);
}
