/*
 * proto/perf/perfdata: synthetic files of every variant, whole, cut at every byte, and with every
 * word of the header and of the records changed.
 */
#include "proto/perf/perfdata.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/make_perfdata.h"

/* Counts of a whole file. */
struct seen {
	size_t records, traces, parsed, bad, build_ids;
	uint64_t trace_bytes;
	int end;
};

static struct bytes_out made(const char *kind)
{
	struct bytes_out out;

	bytes_out_init(&out, 1 << 24);
	assert_int_equal(make_perfdata(make_perfdata_kind(kind), &out), 0);
	return out;
}

static void see_record(const struct perfdata *p, const struct perfdata_record *record,
		       struct seen *seen)
{
	struct perfdata_auxtrace trace;
	struct perfdata_pt pt;
	const uint8_t *bytes;
	struct perfrecord r;
	uint32_t kind;
	size_t size;

	seen->records++;
	if (record->type == PERFDATA_AUXTRACE) {
		assert_int_equal(perfdata_parse_auxtrace(record, &trace), 0);
		assert_int_equal(trace.size, record->trace_size);
		seen->traces++;
		seen->trace_bytes += trace.size;
	} else if (record->type == PERFDATA_AUXTRACE_INFO) {
		(void)perfdata_parse_pt(record, &pt, &kind);
	} else if (record->type == PERFDATA_COMPRESSED || record->type == PERFDATA_COMPRESSED2) {
		(void)perfdata_parse_compressed(record, &bytes, &size);
	} else if (record->type < 64) {
		bool good = perfdata_parse(p, record, &r) >= 0;

		seen->parsed += good;
		seen->bad += !good;
	}
}

/* Calls all functions on the file. No memory follows its last byte. */
static int see(const uint8_t *bytes, size_t size, struct seen *seen, struct perfdata_error *error)
{
	CLEANUP_FREE uint8_t *exact = malloc(size + 1);
	struct perfdata_build_id id;
	struct perfdata_record record;
	struct perfdata p;
	uint64_t at = 0;
	int r;

	*seen = (struct seen){0};
	memcpy(exact + 1, bytes, size);
	r = perfdata_open(exact + 1, size, &p, error);
	if (r != 0)
		return r;
	while ((r = perfdata_next(&p, &at, &record, error)) == 0)
		see_record(&p, &record, seen);
	seen->end = r;
	for (at = 0; perfdata_next_build_id(&p, &at, &id) == 0;)
		seen->build_ids++;
	for (unsigned i = 0; i < PERFDATA_FEATURES; i++)
		(void)perfdata_string(&p, i);
	perfdata_done(&p);
	return 0;
}

static void perfdata_open_every_kind_is_read_to_its_end(void **state)
{
	const char *name;

	(void)state;
	for (size_t i = 0; (name = make_perfdata_name(i)) != NULL; i++) {
		CLEANUP(bytes_out_done) struct bytes_out file = made(name);
		struct perfdata_error error;
		struct seen seen;

		assert_int_equal(see(file.data, file.size, &seen, &error), 0);
		assert_int_equal(seen.bad, 0);
		/* Nobody knows where the records of an unfinished file end: the part that perf
		 * would have written behind them is not there. */
		assert_int_equal(seen.end, PERFDATA_END);
		assert_true(seen.records > 3 || strcmp(name, "noinfo") == 0);
		assert_int_equal(seen.traces > 0, strcmp(name, "notrace") != 0);
	}
}

static void perfdata_open_plain_gives_the_fields(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file = made("buildid");
	struct perfdata_build_id id;
	struct perfdata_error error;
	struct perfdata p;
	uint64_t at = 0;

	(void)state;
	assert_int_equal(perfdata_open(file.data, file.size, &p, &error), 0);
	assert_int_equal(p.n_attrs, 1);
	assert_int_equal(p.attrs[0].type, MAKE_PMU);
	assert_int_equal(p.attrs[0].config, MAKE_CONFIG);
	assert_int_equal(p.attrs[0].layout.sample_type, MAKE_SAMPLE_TYPE);
	assert_true(p.attrs[0].layout.sample_id_all);
	assert_true(p.attrs[0].exclude_kernel && !p.attrs[0].exclude_user);
	assert_int_equal(p.n_ids, 1);
	assert_int_equal(p.ids[0].id, MAKE_FIRST_ID);
	assert_string_equal(perfdata_string(&p, PERFDATA_HOSTNAME), "synthetic");
	assert_string_equal(perfdata_string(&p, PERFDATA_CPUID), "GenuineIntel,6,94,3");
	assert_null(perfdata_string(&p, PERFDATA_OSRELEASE));
	assert_int_equal(perfdata_next_build_id(&p, &at, &id), 0);
	assert_string_equal(id.path, MAKE_PATH);
	assert_int_equal(id.size, 20);
	assert_int_equal(id.id[19], 0xab);
	assert_int_equal(perfdata_next_build_id(&p, &at, &id), PERFDATA_END);
	perfdata_done(&p);
}

static void find_info(const struct perfdata *p, struct perfdata_record *ret)
{
	struct perfdata_error error;
	uint64_t at = 0;

	do
		assert_int_equal(perfdata_next(p, &at, ret, &error), 0);
	while (ret->type != PERFDATA_AUXTRACE_INFO);
}

static void perfdata_parse_pt_gives_what_was_written(void **state)
{
	static const struct {
		const char *kind;
		int result;
		bool timeless, has_ratio;
	} cases[] = {
		{"plain", 0, false, true},	   {"old", 0, false, false},
		{"notsc", 0, true, true},	   {"notime", 0, true, true},
		{"nosampleid", 0, true, true},	   {"mixed", 0, false, true},
		{"short", -EBADMSG, false, false}, {"bts", PERFDATA_FOREIGN, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(bytes_out_done) struct bytes_out file = made(cases[i].kind);
		struct perfdata_record record;
		struct perfdata_error error;
		struct perfdata_pt pt;
		struct perfdata p;
		uint32_t kind;

		assert_int_equal(perfdata_open(file.data, file.size, &p, &error), 0);
		find_info(&p, &record);
		assert_int_equal(perfdata_parse_pt(&record, &pt, &kind), cases[i].result);
		if (cases[i].result == 0) {
			assert_int_equal(pt.pmu_type, MAKE_PMU);
			assert_int_equal(pt.time_mult, 1);
			assert_int_equal(pt.tsc_ctc_n, cases[i].has_ratio ? 100 : 0);
			assert_ptr_equal(perfdata_pt_attr(&p, &pt), &p.attrs[0]);
			assert_int_equal(perfdata_is_timeless(&p, &pt), cases[i].timeless);
		}
		perfdata_done(&p);
	}
}

static void perfdata_mtc_period_is_in_the_config(void **state)
{
	const struct perfdata_pt pt = {.mtc_bit = 0x200, .mtc_freq_bits = 0x3c000};

	(void)state;
	assert_int_equal(perfdata_mtc_period(&pt, 0x300e601), 3);
	assert_int_equal(perfdata_mtc_period(&pt, 0x3c000 | 0x200), 15);
	assert_int_equal(perfdata_mtc_period(&pt, 0xc000), UINT32_MAX);
	assert_int_equal(perfdata_mtc_period(&(struct perfdata_pt){0}, UINT64_MAX), UINT32_MAX);
}

static void perfdata_open_other_files_say_what_they_are(void **state)
{
	static const struct {
		const char *magic;
		uint64_t size;
		int result;
	} cases[] = {
		{"PERFILE2", 16, PERFDATA_PIPE},    {"2ELIFREP", 104, PERFDATA_SWAPPED},
		{"2ELIFREP", 16, PERFDATA_SWAPPED}, {"PERFFILE", 104, PERFDATA_OLD},
		{"PERFILE3", 104, PERFDATA_OTHER},  {"PERFILE2", 103, -EBADMSG},
		{"PERFILE2", 1 << 20, -EBADMSG},
	};
	CLEANUP(bytes_out_done) struct bytes_out file = made("plain");
	struct perfdata_error error;
	struct perfdata p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memcpy(file.data, cases[i].magic, 8);
		memcpy(file.data + 8, &cases[i].size, 8);
		assert_int_equal(perfdata_open(file.data, file.size, &p, &error), cases[i].result);
		assert_int_equal(perfdata_is(file.data, file.size),
				 cases[i].result != PERFDATA_OTHER);
	}
	assert_false(perfdata_is((const uint8_t *)"PERFILE", 7));
	/* A file for a pipe is known by its header alone. */
	memcpy(file.data, "PERFILE2\x10\0\0\0\0\0\0", 16);
	assert_int_equal(perfdata_open(file.data, 16, &p, &error), PERFDATA_PIPE);
}

static void perfdata_open_truncated_anywhere_is_refused(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file = made("buildid");
	struct perfdata_error error;
	struct seen seen;

	(void)state;
	for (size_t cut = 8; cut < file.size; cut++) {
		error = (struct perfdata_error){0};
		assert_int_equal(see(file.data, cut, &seen, &error), -EBADMSG);
		assert_non_null(error.what);
	}
}

static void perfdata_next_unfinished_file_is_read_as_far_as_it_goes(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file = made("unfinished");
	const size_t data = 104 + 144 + 8;
	struct perfdata_error error;
	struct seen whole, seen;
	size_t cuts = 0;

	(void)state;
	assert_int_equal(see(file.data, file.size, &whole, &error), 0);
	for (size_t cut = data; cut < file.size; cut++) {
		assert_int_equal(see(file.data, cut, &seen, &error), 0);
		assert_true(seen.records < whole.records);
		cuts += seen.end == PERFDATA_CUT;
		assert_true(seen.end == PERFDATA_CUT || seen.end == PERFDATA_END);
	}
	/* All cuts except between two records. */
	assert_int_equal(cuts, file.size - data - whole.records);
}

/* With any value in any word, nothing beyond the file is read, and reading ends. */
static void perfdata_open_changed_words_do_no_harm(void **state)
{
	static const uint64_t values[] = {0, 1, 7, 0xffff, UINT32_MAX, INT64_MAX, UINT64_MAX};
	const char *name;

	(void)state;
	for (size_t k = 0; (name = make_perfdata_name(k)) != NULL; k++) {
		CLEANUP(bytes_out_done) struct bytes_out file = made(name);
		size_t end = MIN_OF(file.size, (size_t)1200) / 8 * 8;
		struct perfdata_error error;
		struct seen seen;

		for (size_t at = 8; at < end; at += 8)
			for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
				uint64_t before;

				memcpy(&before, file.data + at, 8);
				memcpy(file.data + at, &values[i], 8);
				(void)see(file.data, file.size, &seen, &error);
				assert_true(seen.trace_bytes <= file.size);
				memcpy(file.data + at, &before, 8);
			}
	}
}

static void perfdata_open_ids_of_many_attrs_are_bounded(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file = made("mixed");
	const uint64_t section[2] = {0, file.size / 16 * 8};
	struct perfdata_error error;
	struct perfdata p;

	(void)state;
	/* Each of three attrs has ids that are half of the file. */
	for (size_t i = 0; i < 3; i++)
		memcpy(file.data + 104 + (i + 1) * 144 - 16, section, 16);
	assert_int_equal(perfdata_open(file.data, file.size, &p, &error), -EBADMSG);
	assert_int_equal(error.offset, 104 + 2 * 144);
}

static void perfdata_parse_finds_the_layout_by_id(void **state)
{
	static const char *const kinds[] = {"mixed", "ids"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(bytes_out_done) struct bytes_out file = made(kinds[i]);
		struct perfdata_record record;
		struct perfdata_error error;
		struct perfrecord r;
		struct perfdata p;
		uint64_t at = 0;
		size_t n = 0;

		assert_int_equal(perfdata_open(file.data, file.size, &p, &error), 0);
		assert_false(p.same_layout);
		while (perfdata_next(&p, &at, &record, &error) == 0) {
			if (record.type != PERF_RECORD_SWITCH_CPU_WIDE)
				continue;
			assert_int_equal(perfdata_parse(&p, &record, &r), 0);
			assert_int_equal(r.tid, MAKE_TID);
			assert_int_equal(r.id, MAKE_FIRST_ID + 2);
			assert_int_equal(r.cpu, 0);
			n++;
		}
		assert_true(n > 0);
		perfdata_done(&p);
	}
}

static void perfdata_open_layouts_without_a_common_id_are_refused(void **state)
{
	const struct make_perfdata how = {
		.mixed = true, .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
	CLEANUP(bytes_out_done) struct bytes_out file;
	struct perfdata_error error;
	struct perfdata p;

	(void)state;
	bytes_out_init(&file, 1 << 20);
	assert_int_equal(make_perfdata(&how, &file), 0);
	assert_int_equal(perfdata_open(file.data, file.size, &p, &error), -EBADMSG);
	assert_non_null(strstr(error.what, "different layouts"));
}

/* An event of CPUs has an id for each of them. */
static void perfdata_unrecorded_counts_cpus_without_switches(void **state)
{
	static const uint32_t cpus[] = {16, 8}; /* available, online */
	struct perfdata_attr attrs[] = {{.n_ids = 8}, {.switches = true, .n_ids = 2}};
	struct perfdata p = {.bytes = (const uint8_t *)cpus,
			     .size = sizeof(cpus),
			     .attrs = attrs,
			     .n_attrs = ARRAY_SIZE(attrs)};

	(void)state;
	assert_int_equal(perfdata_unrecorded(&p), UINT64_MAX);
	p.features[PERFDATA_NRCPUS].size = sizeof(cpus);
	assert_int_equal(perfdata_unrecorded(&p), 6);
	attrs[0].switches = true;
	assert_int_equal(perfdata_unrecorded(&p), 0);
	/* Of threads: one for each thread on each CPU. */
	attrs[0].n_ids = 24;
	assert_int_equal(perfdata_unrecorded(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfdata_unrecorded_counts_cpus_without_switches),
		cmocka_unit_test(perfdata_open_every_kind_is_read_to_its_end),
		cmocka_unit_test(perfdata_open_plain_gives_the_fields),
		cmocka_unit_test(perfdata_parse_pt_gives_what_was_written),
		cmocka_unit_test(perfdata_mtc_period_is_in_the_config),
		cmocka_unit_test(perfdata_open_other_files_say_what_they_are),
		cmocka_unit_test(perfdata_open_truncated_anywhere_is_refused),
		cmocka_unit_test(perfdata_next_unfinished_file_is_read_as_far_as_it_goes),
		cmocka_unit_test(perfdata_open_changed_words_do_no_harm),
		cmocka_unit_test(perfdata_open_ids_of_many_attrs_are_bounded),
		cmocka_unit_test(perfdata_parse_finds_the_layout_by_id),
		cmocka_unit_test(perfdata_open_layouts_without_a_common_id_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
