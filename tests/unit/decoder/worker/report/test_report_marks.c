#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/report/report.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/perf/ptpacket.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"

/* A decoded loop, to which marks are added by hand. */
struct fixture {
	struct bundle *bundle;
	struct decode d;
	struct decode_cpu cpu;
	struct manifest manifest; /* the bundle's, to be changed */
	struct replay_stretch s;
};

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct fixture *f = userdata;

	f->s.context = s->context;
	f->s.thread = s->thread;
	return tally_stretch(&f->d.tally, s);
}

static void begin(struct fixture *f)
{
	const struct make_bundle how = {.rounds = 20};
	const struct replay_consumer consumer = {
		.stretch = on_stretch, .userdata = f, .stats = &f->cpu.stats};

	*f = (struct fixture){0};
	f->bundle = made_open(&how);
	f->d.cpus = &f->cpu;
	gaps_init(&f->d.gaps);
	assert_int_equal(replay_new(f->bundle, NULL, &f->d.replay), 0);
	assert_int_equal(tally_init(&f->d.tally, f->d.replay), 0);
	assert_int_equal(marks_init(&f->d.marks, 1), 0);
	assert_int_equal(replay_all(f->d.replay, &consumer), 0);
	f->manifest = *f->d.replay->manifest;
	f->d.replay->manifest = &f->manifest;
}

/* MARK of the loop's thread while it was traced. */
static void add(struct fixture *f, struct flow_mark mark)
{
	const struct flow_item item = {.kind = FLOW_MARK, .to = MAKE_LEAF};

	f->s.items = &item;
	f->s.n_items = 1;
	f->s.marks = &mark;
	f->s.n_marks = 1;
	if (mark.tsc_lo == 0) {
		mark.tsc_lo = MAKE_TSC + 500;
		mark.tsc_hi = MAKE_TSC + 600;
	}
	assert_int_equal(marks_stretch(&f->d.marks, &f->s, &f->d.tally.current->transactions), 0);
}

static struct json_object *end(struct fixture *f, uint64_t limit)
{
	const struct decode_options options = {.report_limit = limit};
	struct json_object *o;
	size_t size;
	char *text;
	int fd;

	tally_end(&f->d.tally);
	marks_end(&f->d.marks);
	assert_int_equal(memfd_new("out", 0, &fd), 0);
	assert_int_equal(report_write(&f->d, &options, "t", fd), 0);
	text = made_text(fd, &size);
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(text);
	assert_true(limit == 0 || size <= limit);
	tally_done(&f->d.tally);
	gaps_done(&f->d.gaps);
	marks_done(&f->d.marks);
	replay_free(f->d.replay);
	bundle_free(f->bundle);
	return o;
}

static void report_write_without_marks_has_empty_lists(void **state)
{
	static const char *const lists[] = {"ptwrites", "frequencies", "power", "interrupts",
					    "aborts",	"errata",      "cut"};
	struct json_object *o;
	struct fixture f;
	size_t i;

	(void)state;
	begin(&f);
	f.d.marks.counts[MARKS_ASYNC_DISABLE] = 0;
	o = end(&f, 0);
	for (i = 0; i < ARRAY_SIZE(lists); i++)
		assert_int_equal(length_at(o, lists[i]), 0);
	assert_int_equal(json_object_object_length(at(o, "eventCounts")), 0);
	assert_null(at(o, "cpus/0/frequency"));
	assert_null(at(o, "threads/0/transactions"));
	json_object_put(o);
}

static void report_write_ptwrite_says_what_where_when(void **state)
{
	struct json_object *o;
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, (struct flow_mark){.kind = FLOW_MARK_PTWRITE,
				   .value = 0xfedcba9876543210,
				   .size = 8,
				   .ip = MAKE_LEAF + 2,
				   .flags = FLOW_MARK_HAS_IP});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_PTWRITE,
				   .value = 7,
				   .size = 4,
				   .tsc_lo = MAKE_TSC + 700,
				   .tsc_hi = UINT64_MAX});
	o = end(&f, 0);
	assert_int_equal(number_at(o, "eventCounts/ptwrite"), 2);
	assert_int_equal(length_at(o, "ptwrites"), 2);
	assert_string_equal(text_at(o, "ptwrites/0/payload"), "0xfedcba9876543210");
	assert_int_equal(number_at(o, "ptwrites/0/size"), 8);
	assert_int_equal(number_at(o, "ptwrites/0/cpu"), 0);
	assert_int_equal(number_at(o, "ptwrites/0/pid"), MAKE_PID);
	assert_int_equal(number_at(o, "ptwrites/0/tid"), MAKE_TID);
	assert_int_equal(json_object_get_int64(at(o, "ptwrites/0/atNSec")), 500 - 20000);
	assert_int_equal(number_at(o, "ptwrites/0/uncertainNSec"), 100);
	assert_string_equal(text_at(o, "ptwrites/0/tsc"), "0xf4434");
	assert_string_equal(text_at(place_of(o, "ptwrites/0/place"), "address"), "0x400222");
	assert_string_equal(text_at(place_of(o, "ptwrites/0/place"), "name"), "leaf");
	assert_int_equal(number_at(place_of(o, "ptwrites/0/place"), "offset"), 2);
	assert_string_equal(text_at(o, "ptwrites/1/payload"), "0x7");
	assert_null(at(o, "ptwrites/1/place"));
	assert_null(at(o, "ptwrites/1/uncertainNSec"));
	json_object_put(o);
}

/* TSC runs at 1 GHz here: with a greatest ratio of 8 the bus has 125 MHz. */
static void report_write_frequency_is_in_mhz(void **state)
{
	static const struct {
		const char *source;
		uint32_t nonturbo;
		bool clock;
		int64_t mhz, percent; /* negative: null */
	} cases[] = {
		{"intel_pt", 8, true, 1500, 150},     {"intel_pt", 0, true, 1200, -1},
		{"raw", 24, false, 1200, 50},	      {"emulated", 0, true, -1, -1},
		{"emulated", 10, true, 1200, 120},    {"emulated", 24, false, -1, 50},
		{"intel_pt", UINT32_MAX, true, 0, 0},
	};
	struct json_object *o;
	struct fixture f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char *source = strdup(cases[i].source);

		begin(&f);
		f.manifest.source = source;
		f.manifest.max_nonturbo_ratio = cases[i].nonturbo;
		f.d.replay->clock.known = cases[i].clock;
		add(&f, (struct flow_mark){.kind = FLOW_MARK_CBR, .value = 10});
		add(&f, (struct flow_mark){.kind = FLOW_MARK_CBR, .value = 12});
		o = end(&f, 0);
		free(source);
		assert_int_equal(number_at(o, "frequencies/1/ratio"), 12);
		assert_int_equal(number_at(o, "cpus/0/frequency/lowestRatio"), 10);
		assert_int_equal(number_at(o, "cpus/0/frequency/highestRatio"), 12);
		assert_int_equal(number_at(o, "cpus/0/frequency/changes"), 1);
		if (cases[i].mhz < 0)
			assert_null(at(o, "frequencies/1/mhz"));
		else
			assert_int_equal(number_at(o, "frequencies/1/mhz"), cases[i].mhz);
		if (cases[i].mhz > 0)
			assert_int_equal(number_at(o, "cpus/0/frequency/highestMhz"), cases[i].mhz);
		if (cases[i].percent < 0)
			assert_null(at(o, "frequencies/1/percentOfNominal"));
		else
			assert_true(
				json_object_get_double(at(o, "frequencies/1/percentOfNominal")) ==
				(double)cases[i].percent);
		json_object_put(o);
	}
}

/* A function that executed 40,000 instructions in 20,000 ticks. */
static void report_write_ipc_needs_cycles_and_one_speed(void **state)
{
	static const struct {
		uint64_t config;
		uint32_t nonturbo, before, ratio;
		uint64_t insns;
		double ipc; /* negative: there is none */
	} cases[] = {
		{PT_CONFIG_PT | PT_CONFIG_CYC, 8, 10, 10, 40000, 1.6},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 10, 10, 10, 40000, 2.0},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 20, 20, 22, 40000, 1.9},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 20, 20, 23, 40000, -1},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 10, 10, 10, 9999, -1},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 0, 10, 10, 40000, -1},
		{PT_CONFIG_PT | PT_CONFIG_CYC, 10, 0, 0, 40000, -1},
		{PT_CONFIG_PT, 10, 10, 10, 40000, -1},
		{MANIFEST_ABSENT, 10, 10, 10, 40000, -1},
	};
	struct json_object *o, *ipc;
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct function *leaf;

		begin(&f);
		leaf = &f.d.tally.functions.list[f.d.tally.functions.n - 1];
		leaf->self_insns = cases[i].insns;
		leaf->self_ticks = 20000;
		f.manifest.pt_config = cases[i].config;
		f.manifest.max_nonturbo_ratio = cases[i].nonturbo;
		if (cases[i].ratio != 0) {
			add(&f,
			    (struct flow_mark){.kind = FLOW_MARK_CBR, .value = cases[i].before});
			add(&f, (struct flow_mark){.kind = FLOW_MARK_CBR, .value = cases[i].ratio});
		}
		o = end(&f, 0);
		assert_int_equal(number_at(o, "functions/0/selfInstructions"), cases[i].insns);
		if (json_object_object_get_ex(at(o, "functions/0"), "instructionsPerCycle", &ipc))
			assert_true(json_object_get_double(ipc) == cases[i].ipc);
		else
			assert_true(cases[i].ipc < 0);
		assert_false(json_object_object_get_ex(at(o, "functions/1"), "instructionsPerCycle",
						       &ipc));
		json_object_put(o);
	}
}

static void report_write_power_is_decoded(void **state)
{
	struct json_object *o;
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, (struct flow_mark){.kind = FLOW_MARK_MWAIT,
				   .value = 0x100000052,
				   .ip = MAKE_MAIN,
				   .flags = FLOW_MARK_HAS_IP});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_PWRE, .value = 0x5180});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_EXSTOP});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_PWRX, .value = 0x425});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_PWRX, .value = 0x3f0});
	o = end(&f, 0);
	assert_string_equal(text_at(o, "power/0/kind"), "mwait");
	assert_string_equal(text_at(o, "power/0/hints"), "0x52");
	assert_string_equal(text_at(o, "power/0/extensions"), "0x1");
	assert_int_equal(number_at(o, "power/0/targetCState"), 6);
	assert_int_equal(number_at(o, "power/0/targetSubCState"), 2);
	assert_string_equal(text_at(place_of(o, "power/0/place"), "name"), "main");
	assert_string_equal(text_at(o, "power/1/kind"), "pwre");
	assert_int_equal(number_at(o, "power/1/resolvedThreadCState"), 6);
	assert_int_equal(number_at(o, "power/1/resolvedThreadSubCState"), 1);
	assert_true(json_object_get_boolean(at(o, "power/1/hw")));
	assert_string_equal(text_at(o, "power/2/kind"), "exstop");
	assert_string_equal(text_at(o, "power/3/kind"), "pwrx");
	assert_int_equal(number_at(o, "power/3/lastCoreCState"), 3);
	assert_int_equal(number_at(o, "power/3/deepestCoreCState"), 6);
	assert_string_equal(text_at(o, "power/3/wakeReason"), "store-to-monitored-address");
	assert_int_equal(number_at(o, "power/4/lastCoreCState"), 0);
	assert_null(at(o, "power/4/wakeReason"));
	json_object_put(o);
}

static void report_write_transactions_are_counted_by_thread(void **state)
{
	static const uint8_t said[] = {FLOW_TSX_BEGIN, FLOW_TSX_COMMIT, FLOW_TSX_BEGIN,
				       FLOW_TSX_ABORT};
	struct json_object *o;
	struct fixture f;
	size_t i;

	(void)state;
	begin(&f);
	for (i = 0; i < ARRAY_SIZE(said); i++)
		add(&f, (struct flow_mark){.kind = FLOW_MARK_TSX,
					   .value = said[i],
					   .ip = MAKE_LEAF,
					   .flags = FLOW_MARK_HAS_IP});
	o = end(&f, 0);
	assert_int_equal(number_at(o, "threads/0/transactions/begun"), 2);
	assert_int_equal(number_at(o, "threads/0/transactions/committed"), 1);
	assert_int_equal(number_at(o, "threads/0/transactions/aborted"), 1);
	assert_int_equal(length_at(o, "aborts"), 1);
	assert_string_equal(text_at(place_of(o, "aborts/0/place"), "name"), "leaf");
	assert_int_equal(number_at(o, "aborts/0/tid"), MAKE_TID);
	json_object_put(o);
}

static void report_write_interrupts_are_named(void **state)
{
	struct json_object *o;
	struct fixture f;

	(void)state;
	begin(&f);
	add(&f, (struct flow_mark){.kind = FLOW_MARK_CFE,
				   .type = 1,
				   .value = 14,
				   .ip = MAKE_MAIN + 2,
				   .evd = {0xdeadbeef, 1, 2},
				   .flags = FLOW_MARK_HAS_IP | FLOW_MARK_CR2});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_CFE, .type = 2});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_CFE,
				   .type = 8,
				   .evd = {0, 0x10, 0x30},
				   .flags = FLOW_MARK_VMXQ | FLOW_MARK_VMXR});
	add(&f, (struct flow_mark){.kind = FLOW_MARK_CFE, .type = 31, .value = 3});
	o = end(&f, 0);
	assert_int_equal(number_at(o, "eventCounts/interrupt"), 4);
	assert_string_equal(text_at(o, "interrupts/0/kind"), "INTR");
	assert_int_equal(number_at(o, "interrupts/0/vector"), 14);
	assert_string_equal(text_at(o, "interrupts/0/cr2"), "0xdeadbeef");
	assert_null(at(o, "interrupts/0/vmExitReason"));
	assert_string_equal(text_at(place_of(o, "interrupts/0/place"), "name"), "main");
	assert_int_equal(number_at(place_of(o, "interrupts/0/place"), "offset"), 2);
	assert_string_equal(text_at(o, "interrupts/1/kind"), "IRET");
	assert_null(at(o, "interrupts/1/vector"));
	assert_null(at(o, "interrupts/1/cr2"));
	assert_string_equal(text_at(o, "interrupts/2/vmExitQualification"), "0x10");
	assert_string_equal(text_at(o, "interrupts/2/vmExitReason"), "0x30");
	assert_null(at(o, "interrupts/3/kind"));
	assert_int_equal(number_at(o, "interrupts/3/type"), 31);
	assert_int_equal(number_at(o, "interrupts/3/vector"), 3);
	json_object_put(o);
}

/* The errata are the recorded processor's; of an unknown one nothing is said. */
static void report_write_errata_are_those_of_the_cpu(void **state)
{
	static const struct {
		bool have, intel;
		uint32_t model;
		const char *name;
	} cases[] = {
		{true, true, 0x4f, "BDM70"}, {true, true, 0x5c, "APL12"}, {true, false, 0x4f, NULL},
		{false, true, 0x4f, NULL},   {true, true, 0x3c, NULL},
	};
	struct json_object *o;
	struct fixture f;
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		bool found = false;

		begin(&f);
		f.manifest.have_cpu = cases[i].have;
		f.manifest.cpu_intel = cases[i].intel;
		f.manifest.cpu_family = 6;
		f.manifest.cpu_model = cases[i].model;
		o = end(&f, 0);
		for (j = 0; j < length_at(o, "errata"); j++)
			found |= cases[i].name != NULL &&
				 strcmp(json_object_get_string(
						json_object_array_get_idx(at(o, "errata"), j)),
					cases[i].name) == 0;
		assert_int_equal(found, cases[i].name != NULL);
		if (cases[i].name == NULL)
			assert_int_equal(length_at(o, "errata"), 0);
		json_object_put(o);
	}
}

static void report_write_gaps_are_numbered(void **state)
{
	struct gap gap = gaps_blank(FAULT_OVERFLOW);
	struct json_object *o;
	struct fixture f;

	(void)state;
	begin(&f);
	assert_int_equal(gaps_add(&f.d.gaps, &gap, NULL), 0);
	assert_int_equal(gaps_add(&f.d.gaps, &gap, NULL), 0);
	o = end(&f, 0);
	assert_int_equal(number_at(o, "gaps/0/n"), 1);
	assert_int_equal(number_at(o, "gaps/1/n"), 2);
	json_object_put(o);
}

/* Many PTWRITEs: the newest are kept, what is left out is said, and functions keep their room. */
static void report_write_limit_keeps_the_newest_ptwrites(void **state)
{
	enum { N = MARKS_MAX + 100 };
	struct json_object *o, *cut;
	struct fixture f;
	uint64_t i;
	size_t kept;

	(void)state;
	begin(&f);
	for (i = 0; i < N; i++)
		add(&f, (struct flow_mark){.kind = FLOW_MARK_PTWRITE,
					   .value = i,
					   .size = 8,
					   .tsc_lo = MAKE_TSC + i,
					   .tsc_hi = MAKE_TSC + i});
	o = end(&f, 200000);
	kept = length_at(o, "ptwrites");
	assert_in_range(kept, 400, 200000 / 50);
	for (i = 0; i < kept; i++)
		assert_int_equal(strtoull(text_at(json_object_array_get_idx(at(o, "ptwrites"), i),
						  "payload"),
					  NULL, 16),
				 N - kept + i);
	assert_int_equal(length_at(o, "cut"), 1);
	cut = json_object_array_get_idx(at(o, "cut"), 0);
	assert_string_equal(text_at(cut, "what"), "ptwrites");
	assert_int_equal(number_at(cut, "kept"), kept);
	assert_int_equal(number_at(cut, "total"), N);
	assert_int_equal(length_at(o, "functions"), 3);
	json_object_put(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_write_without_marks_has_empty_lists),
		cmocka_unit_test(report_write_ptwrite_says_what_where_when),
		cmocka_unit_test(report_write_frequency_is_in_mhz),
		cmocka_unit_test(report_write_ipc_needs_cycles_and_one_speed),
		cmocka_unit_test(report_write_power_is_decoded),
		cmocka_unit_test(report_write_transactions_are_counted_by_thread),
		cmocka_unit_test(report_write_interrupts_are_named),
		cmocka_unit_test(report_write_errata_are_those_of_the_cpu),
		cmocka_unit_test(report_write_gaps_are_numbered),
		cmocka_unit_test(report_write_limit_keeps_the_newest_ptwrites),
	};

	return cmocka_run_group_tests_name("report marks", tests, NULL, NULL);
}
