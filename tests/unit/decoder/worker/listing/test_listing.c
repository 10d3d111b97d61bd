/*
 * decoder/worker/listing: small snapshots as execution streams.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/execstream.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"

/* The stream of HOW; freed by the caller. */
static char *stream_of(const struct make_bundle *how, enum worker_view view, uint64_t show)
{
	const struct decode_options options = {
		.view = view, .show = WORKER_SHOW_STREAM | show, .threads = 1};
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "test"};
	uint64_t faults;
	size_t size;

	assert_true(decode_options_are_sound(&options));
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, &options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, &size);
}

/* What a stream says, after its rules were checked. */
struct seen {
	uint64_t branches, insns, gaps, recording, places, kinds[EXECSTREAM_BRANCHES_N];
	char first[4096]; /* the first lines, without definitions and times */
};

static void add_line(struct seen *seen, const struct execstream_item *item,
		     const struct execstream_item *places)
{
	size_t used = strlen(seen->first);
	char *to = seen->first + used;
	size_t room = sizeof(seen->first) - used;

	if (room < 512)
		return;
	if (item->kind == EXECSTREAM_INSN)
		snprintf(to, room, "%llx %s %s\n", (unsigned long long)places[item->place].address,
			 places[item->place].bytes, places[item->place].text);
	else if (item->kind == EXECSTREAM_BRANCH)
		snprintf(to, room, "%s %llx %llx\n", execstream_branch_name(item->branch),
			 (unsigned long long)places[item->from].address,
			 (unsigned long long)places[item->to].address);
	else
		snprintf(to, room, "# %s\n", item->name);
}

static void read_stream(char *stream, struct seen *seen)
{
	static struct execstream_item places[EXECSTREAM_PLACES + 1];
	bool context = false, when = false, ended = false;
	uint32_t functions = 0;

	*seen = (struct seen){0};
	memset(places, 0, sizeof(places));
	for (char *line = strtok(stream, "\n"); line; line = strtok(NULL, "\n")) {
		struct execstream_item item;

		assert_false(ended);
		assert_int_equal(execstream_parse(line, &item), 0);
		context |= item.kind == EXECSTREAM_CONTEXT;
		when |= item.kind == EXECSTREAM_WHEN;
		if (item.kind == EXECSTREAM_FUNCTION)
			assert_int_equal(item.function, ++functions);
		if (item.kind == EXECSTREAM_PLACE) {
			assert_true(item.function <= functions);
			places[item.place] = item;
			seen->places++;
		}
		seen->branches += item.kind == EXECSTREAM_BRANCH;
		seen->insns += item.kind == EXECSTREAM_INSN;
		seen->gaps += item.kind == EXECSTREAM_GAP;
		seen->recording += item.kind == EXECSTREAM_RECORDING;
		if (item.kind == EXECSTREAM_BRANCH)
			seen->kinds[item.branch]++;
		if (item.kind == EXECSTREAM_BRANCH || item.kind == EXECSTREAM_INSN ||
		    item.kind == EXECSTREAM_GAP) {
			assert_true(context && when);
			assert_true(item.place == 0 || places[item.place].address != 0);
			add_line(seen, &item, places);
		}
		if (item.kind != EXECSTREAM_END)
			continue;
		ended = true;
		assert_int_equal(item.branches, seen->branches);
		assert_int_equal(item.insns, seen->insns);
		assert_int_equal(item.gaps, seen->gaps);
	}
	assert_true(ended);
}

static void check(const struct make_bundle *how, enum worker_view view, uint64_t show,
		  struct seen *seen)
{
	char *stream = stream_of(how, view, show);

	assert_memory_equal(stream, "H\t", 2);
	read_stream(stream, seen);
	free(stream);
}

static void listing_branches_have_their_kinds(void **state)
{
	const struct make_bundle how = {.rounds = 10};
	struct seen seen;

	(void)state;
	check(&how, WORKER_VIEW_BRANCHES, 0, &seen);
	assert_int_equal(seen.insns, 0);
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.kinds[EXECSTREAM_ENABLE], 10);
	assert_int_equal(seen.kinds[EXECSTREAM_CALL], 10);
	assert_int_equal(seen.kinds[EXECSTREAM_RET], 10);
	assert_int_equal(seen.kinds[EXECSTREAM_COND], 5);
	assert_int_equal(seen.kinds[EXECSTREAM_JUMP], 9);
	assert_int_equal(seen.kinds[EXECSTREAM_SYSCALL], 10);
	assert_int_equal(seen.branches, 54);
	assert_memory_equal(seen.first, "enable 0 400200\ncall 400200 400220\nret 400222 400205\n",
			    strlen("enable 0 400200\ncall 400200 400220\nret 400222 400205\n"));
}

static void listing_instructions_have_bytes_and_text(void **state)
{
	static const char want[] = "400200 e81b000000 call 0x400220\n400220 ffc1 inc %ecx\n"
				   "400222 c3 ret\n400205 85c0 test %eax, %eax\n";
	static const char intel[] = "400200 e81b000000 call 0x400220\n400220 ffc1 inc ecx\n";
	const struct make_bundle how = {.rounds = 3000};
	struct seen seen;

	(void)state;
	check(&how, WORKER_VIEW_INSNS, 0, &seen);
	assert_int_equal(seen.branches, 0);
	assert_int_equal(seen.insns, make_bundle_insns(3000));
	/* Each place is defined once: there is room for all. */
	assert_int_equal(seen.places, 9);
	assert_memory_equal(seen.first, want, strlen(want));
	check(&how, WORKER_VIEW_INSNS, WORKER_SHOW_INTEL, &seen);
	assert_memory_equal(seen.first, intel, strlen(intel));
}

static void listing_gaps_stand_in_their_places(void **state)
{
	const struct make_bundle how = {.rounds = 4, .overflow = true};
	struct seen seen;

	(void)state;
	check(&how, WORKER_VIEW_BRANCHES, 0, &seen);
	assert_int_equal(seen.gaps, 1);
	assert_non_null(strstr(seen.first, "\nsyscall 40020b 0\n# overflow\nenable 0 40020d\n"));
	check(&how, WORKER_VIEW_INSNS, 0, &seen);
	assert_int_equal(seen.gaps, 1);
	assert_non_null(strstr(seen.first, "\n# overflow\n40020d "));
}

static void listing_missing_code_is_a_gap(void **state)
{
	const struct make_bundle how = {.rounds = 5, .no_image = true};
	struct seen seen;

	(void)state;
	check(&how, WORKER_VIEW_INSNS, 0, &seen);
	assert_int_equal(seen.insns, 0);
	assert_true(seen.gaps > 0);
}

static void decode_options_a_listing_goes_with_no_other_format(void **state)
{
	struct decode_options o = {.view = WORKER_VIEW_INSNS, .show = WORKER_SHOW_STREAM};

	(void)state;
	o.lines = 1;
	assert_true(decode_options_are_sound(&o));
	o.show |= WORKER_SHOW_PTXED;
	assert_false(decode_options_are_sound(&o));
	o = (struct decode_options){
		.view = WORKER_VIEW_BRANCHES, .show = WORKER_SHOW_STREAM, .skim = WORKER_SKIM_TIP};
	assert_false(decode_options_are_sound(&o));
	o = (struct decode_options){.view = WORKER_VIEW_BRANCHES, .lines = 1};
	assert_false(decode_options_are_sound(&o));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listing_branches_have_their_kinds),
		cmocka_unit_test(listing_instructions_have_bytes_and_text),
		cmocka_unit_test(listing_gaps_stand_in_their_places),
		cmocka_unit_test(listing_missing_code_is_a_gap),
		cmocka_unit_test(decode_options_a_listing_goes_with_no_other_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
