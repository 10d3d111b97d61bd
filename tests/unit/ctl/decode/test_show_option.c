/*
 * ctl/decode/decode_option.c, raw_option.c: the options for the look of lines, and for foreign
 * sideband.
 */
#include "ctl/decode/decode_option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/decode/raw.h"

#define FIRST 1000

static struct option table[SHOW_OPTIONS_MAX];

/* Takes options as from the command line; NAMES are separated by blanks. */
static struct show_options taken(const char *names)
{
	struct show_options s = {0};
	size_t n = show_option_table(table, FIRST), i;
	char copy[256], *rest = copy, *name;

	snprintf(copy, sizeof(copy), "%s", names);
	while ((name = strsep(&rest, " ")) != NULL) {
		for (i = 0; i < n && strcmp(table[i].name, name) != 0; i++)
			;
		assert_true(i < n);
		show_option_take(&s, (size_t)(table[i].val - FIRST));
	}
	return s;
}

static void show_option_take_sets_its_bits(void **state)
{
	(void)state;
	assert_true(taken("no-pad time").show == (WORKER_SHOW_NO_PAD | WORKER_SHOW_TIME));
	assert_true(taken("stat:insn").show == (WORKER_SHOW_STAT | WORKER_SHOW_STAT_INSN));
	assert_true(taken("sb").show == WORKER_SHOW_SB_COMPACT);
	assert_true(taken("places").show == (WORKER_SHOW_TIME | WORKER_SHOW_PLACES));
	assert_true(taken("ptxed event:tick").show == (WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_TICK));
}

static void show_option_take_of_two_forms_the_last_holds(void **state)
{
	(void)state;
	assert_true(taken("sb:compact sb:verbose").show == WORKER_SHOW_SB_VERBOSE);
	assert_true(taken("sb:verbose sb:time sb:compact").show ==
		    (WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_TIME));
	assert_true(taken("insn-decoder block-decoder").show == 0);
	assert_true(taken("block-decoder insn-decoder").show == WORKER_SHOW_INSN_DECODER);
}

static void show_option_check_knows_the_views(void **state)
{
	static const struct {
		const char *names;
		enum worker_view view;
		bool good;
	} cases[] = {
		{"time", WORKER_VIEW_PACKETS, true},
		{"time", WORKER_VIEW_REPORT, false},
		{"time", WORKER_VIEW_INSNS, false},
		{"time ptxed", WORKER_VIEW_INSNS, false},
		{"time tcal", WORKER_VIEW_PACKETS, false},
		{"ptxed", WORKER_VIEW_INSNS, true},
		{"ptxed", WORKER_VIEW_PACKETS, false},
		{"event:time", WORKER_VIEW_INSNS, false},
		{"event:time ptxed", WORKER_VIEW_INSNS, true},
		{"sb:compact", WORKER_VIEW_PACKETS, true},
		{"sb:compact", WORKER_VIEW_INSNS, false},
		{"ptxed sb:compact sb:switch", WORKER_VIEW_INSNS, true},
		{"sb:switch", WORKER_VIEW_PACKETS, false},
		{"insn-decoder", WORKER_VIEW_INSNS, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct show_options s = taken(cases[i].names);

		assert_int_equal(show_option_check(&s, cases[i].view), cases[i].good);
	}
}

static bool take_pevent(struct pevent_options *p, const char *name, const char *value)
{
	struct option pevents[PEVENT_OPTIONS_MAX];
	size_t n = pevent_option_table(pevents, FIRST), i;

	for (i = 0; i < n && strcmp(pevents[i].name, name) != 0; i++)
		;
	assert_true(i < n);
	return pevent_option_take(p, (size_t)(pevents[i].val - FIRST), value);
}

static void pevent_option_take_settings_hold_for_files_behind_them(void **state)
{
	struct pevent_options p;

	(void)state;
	pevent_options_init(&p);
	assert_true(take_pevent(&p, "pevent:primary", "a"));
	assert_true(take_pevent(&p, "pevent:sample-type", "0x10086"));
	assert_true(take_pevent(&p, "pevent:time-shift", "31"));
	assert_true(take_pevent(&p, "pevent:time-mult", "7"));
	assert_true(take_pevent(&p, "pevent:secondary", "b:0x10-0x20"));
	assert_int_equal(p.n_files, 2);
	assert_string_equal(p.files[0].path, "a");
	assert_true(p.files[0].sample_type == 0 && p.files[0].time_mult == 1);
	assert_false(p.files[0].secondary);
	assert_string_equal(p.files[1].path, "b");
	assert_true(p.files[1].begin == 0x10 && p.files[1].end == 0x20);
	assert_true(p.files[1].sample_type == 0x10086 && p.files[1].time_shift == 31);
	assert_true(p.files[1].secondary && p.files[1].time_mult == 7);
	pevent_options_done(&p);
}

static void pevent_option_take_what_is_no_range_is_the_name(void **state)
{
	static const char *const names[] = {"x:", "x:y", "x:5-", "x:5-5", "x:9-3", "x:-3"};
	struct pevent_options p;

	(void)state;
	pevent_options_init(&p);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(take_pevent(&p, "pevent", names[i]));
		assert_string_equal(p.files[i].path, names[i]);
	}
	assert_true(take_pevent(&p, "pevent", "x:y:5"));
	assert_string_equal(p.files[p.n_files - 1].path, "x:y");
	assert_true(p.files[p.n_files - 1].begin == 5 && p.files[p.n_files - 1].end == 0);
	pevent_options_done(&p);
}

static void pevent_option_take_numbers_out_of_range_are_refused(void **state)
{
	struct pevent_options p;

	(void)state;
	pevent_options_init(&p);
	assert_false(take_pevent(&p, "pevent:time-shift", "64"));
	assert_false(take_pevent(&p, "pevent:time-mult", "0x100000000"));
	assert_false(take_pevent(&p, "pevent:time-zero", "x"));
	assert_true(take_pevent(&p, "pevent:kernel-start", "0xffffffff80000000"));
	assert_true(p.kernel_start == 0xffffffff80000000);
	pevent_options_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_option_take_sets_its_bits),
		cmocka_unit_test(show_option_take_of_two_forms_the_last_holds),
		cmocka_unit_test(show_option_check_knows_the_views),
		cmocka_unit_test(pevent_option_take_settings_hold_for_files_behind_them),
		cmocka_unit_test(pevent_option_take_what_is_no_range_is_the_name),
		cmocka_unit_test(pevent_option_take_numbers_out_of_range_are_refused),
	};

	return cmocka_run_group_tests_name("show_option", tests, NULL, NULL);
}
