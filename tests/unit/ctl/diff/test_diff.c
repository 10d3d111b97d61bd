/*
 * ctl/diff and its page: what differs between composed reports, and what is noise.
 */
#include "ctl/diff/diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/base/field.h"
#include "ctl/diff/noise.h"
#include "ctl/show/show.h"
#include "proto/base.h"

/* A report of one second of one CPU, of two images, with FUNCTIONS and the further keys MORE. */
static struct json_object *report(const char *build, const char *functions, const char *more)
{
	struct json_object *o;
	char *text = NULL;

	assert_true(asprintf(&text,
			     "{\"id\":\"x\",\"totals\":{\"instructions\":1000000,\"gaps\":0},"
			     "\"cpus\":[{\"cpu\":0,\"gotNSec\":1000000000}],"
			     "\"images\":[{\"path\":\"/usr/bin/web\",\"buildId\":\"%s\"},"
			     "{\"path\":\"/lib/libz.so.1.2.%s\",\"buildId\":\"z%s\"}],"
			     "\"places\":[{\"name\":\"main\",\"image\":0},"
			     "{\"name\":\"g\",\"image\":0},{\"name\":\"fresh\",\"image\":0}],"
			     "\"functions\":[%s]%s}",
			     build, build, build, functions, more) > 0);
	o = json_tokener_parse(text);
	assert_non_null(o);
	free(text);
	return o;
}

#define FUNCTION(name, image, calls, insns, nsec)                     \
	"{\"name\":\"" name "\",\"image\":" image ",\"calls\":" calls \
	",\"selfInstructions\":" insns ",\"selfNSec\":" nsec "}"
#define MAIN FUNCTION("main", "0", "1000", "900000", "400000000")

/* What differs; takes both reports. */
static struct json_object *diff_of(struct json_object *a, struct json_object *b, size_t limit)
{
	struct json_object *diff = NULL;

	assert_int_equal(diff_reports(a, b, limit, &diff), 0);
	json_object_put(a);
	json_object_put(b);
	return diff;
}

static uint64_t total(struct json_object *diff)
{
	static const char *const keys[] = {"functionsTotal", "durationsTotal", "threadsTotal",
					   "gapsTotal", "pathsTotal"};
	uint64_t sum = 0, n;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_true(field_u64(diff, keys[i], &n));
		sum += n;
	}
	return sum;
}

static void assert_function(struct json_object *diff, size_t i, const char *kind, const char *name)
{
	assert_string_equal(field_text(field_at(diff, "functions", i), "kind"), kind);
	assert_string_equal(field_text(field_at(diff, "functions", i), "name"), name);
}

/* The page about DIFF, which is taken. */
static char *page_of(struct json_object *diff)
{
	const struct show_style style = {.columns = 80};
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	show_diff(f, diff, &style);
	fclose(f);
	json_object_put(diff);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

#define DURATIONS(n, p50, p90, p99, max)                                                        \
	"{\"name\":\"handle\",\"image\":0,\"calls\":" n ",\"selfInstructions\":1000,"           \
	"\"selfNSec\":1000,\"durations\":{\"ended\":" n ",\"p50NSec\":" p50 ",\"p90NSec\":" p90 \
	",\"p99NSec\":" p99 ",\"maxNSec\":" max "}}"
#define THREAD(comm, nsec) \
	"{\"tid\":1,\"comm\":\"" comm "\",\"instructions\":5,\"cpuNSec\":" nsec "}"
#define FAST DURATIONS("2000", "10000", "20000", "40000", "90000")

static void diff_same_report_twice_finds_nothing(void **state)
{
	const char *more =
		",\"threads\":[" THREAD("web", "900000000") "],\"gapCounts\":{\"loss\":7}";
	struct json_object *diff =
		diff_of(report("a", MAIN "," FAST, more), report("a", MAIN "," FAST, more), 10);
	char *text;

	(void)state;
	assert_int_equal(total(diff), 0);
	text = page_of(diff);
	assert_has(text, "Nothing differs by more than counting noise");
	free(text);
}

static void diff_function_of_updated_file_is_the_same_one(void **state)
{
	const char *z = FUNCTION("inflate", "1", "1000", "1000", "1000000");
	struct json_object *diff = diff_of(report("3", z, ""), report("4", z, ""), 10);

	(void)state;
	assert_int_equal(total(diff), 0);
	json_object_put(diff);
}

static void diff_code_without_symbols_is_compared_only_within_one_build(void **state)
{
	const char *at_10 = FUNCTION("web@0x10", "0", "1000", "1000", "90000000");
	const char *at_20 = FUNCTION("web@0x20", "0", "1000", "1000", "90000000");
	struct json_object *diff = diff_of(report("3", at_10, ""), report("4", at_20, ""), 10);

	(void)state;
	assert_int_equal(total(diff), 0);
	json_object_put(diff);
	diff = diff_of(report("3", at_10, ""), report("3", at_20, ""), 10);
	assert_int_equal(total(diff), 2);
	json_object_put(diff);
}

static void diff_new_and_gone_functions_are_ranked_by_cost(void **state)
{
	struct json_object *diff = diff_of(
		report("a", MAIN "," FUNCTION("old", "0", "100", "900", "20000000"), ""),
		report("b", MAIN "," FUNCTION("fresh", "1", "500", "900", "80000000"), ""), 10);
	char *text;

	(void)state;
	assert_int_equal(total(diff), 2);
	assert_function(diff, 0, "new", "fresh");
	assert_function(diff, 1, "gone", "old");
	text = page_of(diff);
	assert_has(text,
		   "    +8.00 % new        fresh in libz.so.1.2.b: - -> 8.00 % of a CPU, - ->");
	assert_has(text,
		   "    -2.00 % gone       old in web: 2.00 -> - % of a CPU, 100 -> - calls/s");
	free(text);
}

static void diff_function_that_a_cut_list_may_hide_is_not_new(void **state)
{
	const char *fresh = MAIN "," FUNCTION("fresh", "1", "500", "900", "8000");
	const char *cut = ",\"cut\":[{\"what\":\"functions\",\"kept\":1,\"total\":9}]";
	struct json_object *diff = diff_of(report("a", MAIN, cut), report("a", fresh, ""), 10);

	(void)state;
	assert_int_equal(total(diff), 0);
	assert_string_equal(field_text(field_at(diff, "notes", 0), ""), "functions-cut");
	json_object_put(diff);
	diff = diff_of(report("a", MAIN, ""), report("a", fresh, ""), 10);
	assert_int_equal(total(diff), 1);
	json_object_put(diff);
}

static void diff_counts_within_noise_are_not_listed(void **state)
{
	/* Twelve more calls than none, and 30 instead of 20. */
	struct json_object *diff =
		diff_of(report("a", MAIN "," FUNCTION("f", "0", "20", "900", "2000000"), ""),
			report("a",
			       MAIN "," FUNCTION("f", "0", "30", "900", "3000000") "," FUNCTION(
				       "g", "0", "12", "900", "1000000"),
			       ""),
			10);

	(void)state;
	assert_int_equal(total(diff), 0);
	json_object_put(diff);
}

static void diff_large_share_of_few_calls_is_marked(void **state)
{
	struct json_object *diff = diff_of(
		report("a", MAIN, ""),
		report("a", MAIN "," FUNCTION("spin", "0", "1", "900", "500000000"), ""), 10);
	char *text;

	(void)state;
	assert_function(diff, 0, "new", "spin");
	assert_true(field_true(field_at(diff, "functions", 0), "fewCounts"));
	text = page_of(diff);
	assert_has(text, "few calls, may");
	free(text);
}

static void diff_slower_function_is_listed_with_its_quantiles(void **state)
{
	const char *slow = DURATIONS("2000", "10000", "20000", "4000000", "9000000");
	struct json_object *diff = diff_of(report("a", FAST, ""), report("a", slow, ""), 10), *row;
	char *text;

	(void)state;
	row = field_at(diff, "durations", 0);
	assert_int_equal(total(diff), 1);
	assert_string_equal(field_text(row, "kind"), "slower");
	assert_int_equal(field_count(row, "differ"), 1);
	assert_string_equal(field_text(field_at(row, "differ", 0), ""), "p99NSec");
	text = page_of(diff);
	assert_has(text, "slower   handle in web: median 10.0 us -> 10.0 us,");
	assert_has(text, "99 % within");
	free(text);
	diff = diff_of(report("a", slow, ""), report("a", FAST, ""), 10);
	assert_string_equal(field_text(field_at(diff, "durations", 0), "kind"), "faster");
	json_object_put(diff);
}

static void diff_slower_within_noise_is_not_listed(void **state)
{
	/* Too few calls; and one bucket of the histogram apart. */
	static const char *const pairs[][2] = {
		{DURATIONS("15", "10000", "20000", "40000", "90000"),
		 DURATIONS("15", "30000", "60000", "120000", "270000")},
		{FAST, DURATIONS("2000", "11250", "22500", "45000", "900000")},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct json_object *diff =
			diff_of(report("a", pairs[i][0], ""), report("a", pairs[i][1], ""), 10);

		assert_int_equal(total(diff), 0);
		json_object_put(diff);
	}
}

/* 2^8 ticks of a crystal of 24 MHz: 10.7 us, as TSC of 2.4 GHz (mult 2^20 / 2.4). */
#define CONFIGURED(config)                                                          \
	",\"configuration\":{\"attr\":{\"config\":\"" config "\"},\"mtcPeriod\":8," \
	"\"tscArtRatio\":{\"numerator\":200,\"denominator\":2},"                    \
	"\"clock\":{\"timeZero\":0,\"timeMult\":436907,\"timeShift\":20}}"
#define MTC_ONLY    CONFIGURED("0x22300")
#define MTC_AND_CYC CONFIGURED("0x22302")

static uint64_t durations_found(const char *a, const char *b, const char *configuration)
{
	struct json_object *diff =
		diff_of(report("a", a, configuration), report("a", b, configuration), 10);
	uint64_t n = total(diff);

	json_object_put(diff);
	return n;
}

static void diff_slower_by_a_step_of_the_time_is_not_listed(void **state)
{
	const char *none = DURATIONS("9000", "0", "0", "0", "21334");
	const char *one = DURATIONS("9000", "0", "0", "10667", "21334");
	const char *two = DURATIONS("9000", "0", "0", "24000", "32000");
	const char *three = DURATIONS("9000", "0", "0", "36000", "42000");

	(void)state;
	assert_int_equal(durations_found(none, one, MTC_ONLY), 0);
	assert_int_equal(durations_found(one, none, MTC_ONLY), 0);
	assert_int_equal(durations_found(one, two, MTC_ONLY), 0);
	assert_int_equal(durations_found(none, two, MTC_ONLY), 1);
	assert_int_equal(durations_found(one, three, MTC_ONLY), 1);
	assert_int_equal(durations_found(none, one, MTC_AND_CYC), 1);
	assert_int_equal(durations_found(none, one, ""), 1);
}

static void diff_threads_are_matched_by_name(void **state)
{
	struct json_object *diff = diff_of(
		report("a", "",
		       ",\"threads\":[" THREAD("web", "100000000") "," THREAD("x", "5") "]"),
		report("a", "",
		       ",\"threads\":[" THREAD("web", "50000000") "," THREAD(
			       "web", "50000000") "," THREAD("miner", "900000000") "]"),
		10);
	struct json_object *row = field_at(diff, "threads", 0);

	(void)state;
	/* Without functions there is no CPU time of functions, but shares are few. */
	assert_int_equal(field_count(diff, "functions"), 0);
	assert_int_equal(total(diff), 1);
	assert_string_equal(field_text(row, "comm"), "miner");
	assert_string_equal(field_text(row, "kind"), "new");
	json_object_put(diff);
}

/* Indexes into the places of report(). */
#define IN_MAIN	 "0"
#define IN_G	 "1"
#define IN_FRESH "2"
#define STACK(comm, inner) \
	"{\"tid\":1,\"comm\":\"" comm "\",\"instructions\":5,\"stack\":[" inner "," IN_MAIN "]}"

static void diff_stacks_through_functions_of_both_are_not_listed(void **state)
{
	const char *functions = MAIN "," FUNCTION("g", "0", "500", "900", "8000");
	struct json_object *diff =
		diff_of(report("a", functions, ",\"threads\":[" STACK("web", IN_MAIN) "]"),
			report("a", functions, ",\"threads\":[" STACK("web", IN_G) "]"), 10);

	(void)state;
	assert_int_equal(total(diff), 0);
	json_object_put(diff);
}

static void diff_stack_through_new_function_is_listed(void **state)
{
	const char *fresh = MAIN "," FUNCTION("fresh", "0", "500", "900", "80000000");
	struct json_object *diff =
		diff_of(report("a", MAIN, ",\"threads\":[" STACK("web", IN_MAIN) "]"),
			report("b", fresh, ",\"threads\":[" STACK("web", IN_FRESH) "]"), 10);
	struct json_object *row = field_at(diff, "paths", 0);
	char *text;

	(void)state;
	/* The function, and the stack. */
	assert_int_equal(total(diff), 2);
	assert_string_equal(field_text(row, "kind"), "new");
	assert_string_equal(field_text(row, "function"), "fresh");
	assert_int_equal(field_count(row, "frames"), 2);
	text = page_of(diff);
	assert_has(text, "  new        web: fresh <- main; threads: 0 of 1 -> 1 of 1\n");
	free(text);
}

#define TWICE(x) x "," x
#define MANY(x)	 TWICE(TWICE(TWICE(TWICE(x))))

static void diff_stack_of_many_threads_is_listed(void **state)
{
	const char *functions = MAIN "," FUNCTION("g", "0", "500", "900", "8000");
	struct json_object *diff = diff_of(
		report("a", functions, ",\"threads\":[" TWICE(MANY(STACK("web", IN_MAIN))) "]"),
		report("a", functions,
		       ",\"threads\":[" TWICE(MANY(STACK("web", IN_G))) "," MANY(
			       STACK("web", IN_MAIN)) "]"),
		10);
	struct json_object *row = field_at(diff, "paths", 0);

	(void)state;
	assert_int_equal(field_count(diff, "paths"), 1);
	assert_string_equal(field_text(row, "kind"), "new");
	assert_null(field_text(row, "function"));
	json_object_put(diff);
}

static void diff_gaps_beyond_noise_are_listed(void **state)
{
	struct json_object *diff = diff_of(report("a", "", ",\"gapCounts\":{\"loss\":1,\"x\":4}"),
					   report("a", "", ",\"gapCounts\":{\"loss\":90}"), 10);

	(void)state;
	assert_int_equal(total(diff), 1);
	assert_string_equal(field_text(field_at(diff, "gaps", 0), "kind"), "loss");
	json_object_put(diff);
}

static void diff_limit_cuts_lists_and_keeps_totals(void **state)
{
	struct json_object *diff = diff_of(
		report("a", MAIN "," FUNCTION("old", "0", "100", "900", "20000000"), ""),
		report("a", MAIN "," FUNCTION("fresh", "1", "500", "900", "80000000"), ""), 1);

	(void)state;
	assert_int_equal(field_count(diff, "functions"), 1);
	assert_int_equal(total(diff), 2);
	json_object_put(diff);
}

static void diff_older_schema_without_keys_compares_the_rest(void **state)
{
	const char *a = "{\"totals\":{\"instructions\":1000000},\"functions\":[{\"name\":\"f\","
			"\"calls\":1000,\"selfInstructions\":10000}]}";
	const char *b = "{\"totals\":{\"instructions\":1000000},\"functions\":[{\"name\":\"f\","
			"\"calls\":1000,\"selfInstructions\":90000}]}";
	struct json_object *diff = diff_of(json_tokener_parse(a), json_tokener_parse(b), 10);
	char *text;

	(void)state;
	assert_string_equal(field_text(diff, "costIs"), "instructions");
	assert_function(diff, 0, "more", "f");
	text = page_of(diff);
	assert_has(text, "+8.00 % more");
	free(text);
	text = page_of(diff_of(json_tokener_parse("{}"), json_tokener_parse("{}"), 10));
	assert_has(text, "Nothing differs");
	free(text);
}

static void diff_hostile_reports_are_shown_escaped(void **state)
{
	static const char *const hostile[] = {
		"{\"id\":\"\\u001b[2J\",\"totals\":{\"instructions\":9},\"functions\":[{\"name\":"
		"\"\\u001b]0;x\\u0007\",\"linkage\":7,\"image\":18446744073709551615,\"calls\":"
		"\"18446744073709551615\",\"selfInstructions\":\"18446744073709551615\","
		"\"selfNSec\":-1,\"durations\":[]}],\"threads\":[{\"comm\":\"\\u001b\","
		"\"instructions\":\"18446744073709551615\",\"stack\":[7,0,{}]},7],\"places\":[{\"name\":\"\\u001b\"}],\"gapCounts\":{\"\\u001b\":1},"
		"\"cpus\":[{\"gotNSec\":1}],\"images\":7,\"cut\":[7,{\"what\":7}],\"turns\":{}}",
		"{\"functions\":[{}, null, 7],\"gapCounts\":[],\"threads\":[{}],\"cpus\":[null],"
		"\"images\":[{\"path\":\".so.\",\"buildId\":\"\"}],\"turns\":[null]}",
		"{}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		for (size_t k = 0; k < ARRAY_SIZE(hostile); k++) {
			char *text = page_of(diff_of(json_tokener_parse(hostile[i]),
						     json_tokener_parse(hostile[k]), 10));

			assert_null(strchr(text, '\033'));
			free(text);
		}
}

static void noise_rate_differs_needs_sixteen_more_than_none(void **state)
{
	const struct noise_sample none = {0, 0, 1};

	(void)state;
	assert_false(noise_rate_differs(none, (struct noise_sample){16, 0, 1}));
	assert_true(noise_rate_differs(none, (struct noise_sample){17, 0, 1}));
	/* Too few, however short the window is. */
	assert_false(noise_rate_differs(none, (struct noise_sample){9, 0, 0.001}));
	/* A window too short to see any. */
	assert_false(noise_rate_differs((struct noise_sample){0, 0, 0.1},
					(struct noise_sample){100, 0, 1}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diff_same_report_twice_finds_nothing),
		cmocka_unit_test(diff_function_of_updated_file_is_the_same_one),
		cmocka_unit_test(diff_code_without_symbols_is_compared_only_within_one_build),
		cmocka_unit_test(diff_new_and_gone_functions_are_ranked_by_cost),
		cmocka_unit_test(diff_function_that_a_cut_list_may_hide_is_not_new),
		cmocka_unit_test(diff_counts_within_noise_are_not_listed),
		cmocka_unit_test(diff_large_share_of_few_calls_is_marked),
		cmocka_unit_test(diff_slower_function_is_listed_with_its_quantiles),
		cmocka_unit_test(diff_slower_within_noise_is_not_listed),
		cmocka_unit_test(diff_slower_by_a_step_of_the_time_is_not_listed),
		cmocka_unit_test(diff_threads_are_matched_by_name),
		cmocka_unit_test(diff_stacks_through_functions_of_both_are_not_listed),
		cmocka_unit_test(diff_stack_through_new_function_is_listed),
		cmocka_unit_test(diff_stack_of_many_threads_is_listed),
		cmocka_unit_test(diff_gaps_beyond_noise_are_listed),
		cmocka_unit_test(diff_limit_cuts_lists_and_keeps_totals),
		cmocka_unit_test(diff_older_schema_without_keys_compares_the_rest),
		cmocka_unit_test(diff_hostile_reports_are_shown_escaped),
		cmocka_unit_test(noise_rate_differs_needs_sixteen_more_than_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
