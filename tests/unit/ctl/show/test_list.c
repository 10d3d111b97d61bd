/*
 * ctl/show: lists of a report as tables: selections, limits, widths; hostile, old and empty
 * reports.
 */
#include "ctl/base/field.h"
#include "ctl/show/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

static const struct show_style NARROW = {.columns = 80};
static const struct show_style BROAD = {.columns = 160};

/* The table of list NAME of the report JSON; the caller's. */
static char *table_of(const char *json, const char *name, struct show_select select,
		      struct show_style style)
{
	struct json_object *report = json_tokener_parse(json);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_non_null(report);
	assert_non_null(show_list_find(name));
	assert_int_equal(show_list(f, report, show_list_find(name), &select, &style), 0);
	fclose(f);
	json_object_put(report);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

/* No line is longer than COLUMNS, and none ends in a blank. */
static void assert_fits(const char *text, size_t columns)
{
	while (*text != '\0') {
		const size_t n = strcspn(text, "\n");

		if (n > columns || (n > 0 && text[n - 1] == ' '))
			fail_msg("%zu columns: %.*s|", n, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static const char REPORT[] =
	"{\"totals\":{\"instructions\":10000000},"
	"\"images\":[{\"path\":\"/usr/lib/libshop.so\",\"instructions\":9999999,\"bytes\":4096,"
	"\"buildId\":\"00112233445566778899\",\"missing\":null,\"unnamedInstructions\":7},"
	"{\"path\":\"/opt/gone.so\",\"instructions\":1,\"missing\":\"deleted\"}],"
	"\"functions\":["
	"{\"name\":\"shop::checkout(int)\",\"linkage\":\"_ZN4shop8checkoutEi\",\"image\":0,"
	"\"calls\":12345,\"selfInstructions\":2500000,\"totalInstructions\":10000000,"
	"\"selfNSec\":1000000,\"durations\":{\"ended\":3,\"p50NSec\":900,\"p90NSec\":12340,"
	"\"p99NSec\":1500000,\"maxNSec\":2500000000}},"
	"{\"name\":null,\"address\":\"0x1000\",\"image\":1,\"calls\":1,\"selfInstructions\":1,"
	"\"totalInstructions\":1}],"
	"\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"web\",\"instructions\":5,\"cpuNSec\":1000,"
	"\"state\":{\"kind\":\"blocked\",\"sinceNSec\":-2000,\"cpu\":3,\"certain\":false,"
	"\"systemCall\":{\"number\":202,\"name\":\"futex\"}},"
	"\"stack\":[0,1]},"
	"{\"pid\":9,\"tid\":9,\"comm\":\"idle\",\"instructions\":0,\"state\":null,\"stack\":null}],"
	"\"processes\":[{\"pid\":7,\"ppid\":1,\"uid\":0,\"unit\":\"web.service\","
	"\"exe\":\"/usr/bin/web\",\"cmdline\":\"web --port 80\"}],"
	"\"gaps\":[{\"n\":1,\"kind\":\"overflow\",\"cpu\":0,\"atNSec\":-1234567,"
	"\"untilNSec\":-1234067,\"bytes\":16,\"place\":2,\"count\":2,\"why\":\"the CPU lost packets\"},"
	"{\"kind\":\"image-missing\",\"cpu\":null,\"atNSec\":null,\"count\":1,\"why\":\"no file\"}],"
	"\"places\":[{\"name\":\"lock_wait\",\"image\":0},{\"name\":\"serve\",\"image\":0},"
	"{\"address\":\"0x1234\"}],"
	"\"turns\":[{\"cpu\":0,\"pid\":7,\"tid\":8,\"comm\":\"web\",\"atNSec\":-3000,"
	"\"untilNSec\":-2000,\"certain\":true},"
	"{\"cpu\":0,\"pid\":null,\"tid\":null,\"comm\":null,\"atNSec\":-2000,\"untilNSec\":-1000,"
	"\"certain\":false},"
	"{\"cpu\":1,\"pid\":9,\"tid\":9,\"comm\":\"idle\",\"atNSec\":-1000,\"untilNSec\":0,"
	"\"certain\":true}],"
	"\"cut\":[{\"what\":\"functions\",\"kept\":2,\"total\":900},"
	"{\"what\":\"functionsUnlisted\",\"kept\":0,\"total\":31}]}";

static const char *const NAMES[] = {"functions", "threads", "processes", "images", "gaps", "turns"};

static void show_list_functions_have_share_durations_and_image(void **state)
{
	CLEANUP_FREE char *text = table_of(REPORT, "functions", (struct show_select){0}, NARROW);

	(void)state;
	assert_has(text, "2.50M  25.00 10.0M 12,345 900 ns 12.3us 1.5 ms  2.5 s shop::ch");
	assert_has(text, "    1   0.00     1      1      -      -      -      - 0x1000");
	assert_has(text, "gone.so");
	assert_has(text, "on a terminal of 120 columns also: SELF time");
}

static void show_list_wide_has_exact_numbers_and_all_columns(void **state)
{
	CLEANUP_FREE char *text = table_of(REPORT, "functions", (struct show_select){0}, BROAD);

	(void)state;
	assert_has(text, "2,500,000  25.00    1.0 ms       -      10,000,000        12,345");
	assert_has(text, "shop::checkout(int)");
	assert_lacks(text, "120 columns");
}

static void show_list_cut_list_says_how_many_are_missing(void **state)
{
	CLEANUP_FREE char *text = table_of(REPORT, "functions", (struct show_select){0}, NARROW);

	(void)state;
	assert_has(text, "the report has no room for all functions: it has 2 of 900\n");
	assert_has(text, "the table of functions in the decoder was full 31 times\n");
}

static void show_list_function_matches_name_or_linkage(void **state)
{
	struct show_select by_name = {.function = "shop::*"},
			   by_linkage = {.function = "_ZN4shop*"};
	CLEANUP_FREE char *name = table_of(REPORT, "functions", by_name, NARROW);
	CLEANUP_FREE char *linkage = table_of(REPORT, "functions", by_linkage, NARROW);

	(void)state;
	assert_string_equal(name, linkage);
	assert_has(name, "shop::ch");
	assert_lacks(name, "0x1000");
	assert_has(name, "1 of 2 functions match\n"
			 "1 other functions may match, but the report does not say\n");
}

static void show_list_image_matches_the_path(void **state)
{
	struct show_select select = {.image = "/opt/*"};
	CLEANUP_FREE char *functions = table_of(REPORT, "functions", select, NARROW);
	CLEANUP_FREE char *images = table_of(REPORT, "images", select, BROAD);

	(void)state;
	assert_has(functions, "0x1000");
	assert_lacks(functions, "shop::");
	assert_has(images, "/opt/gone.so");
	assert_has(images, "deleted");
	assert_lacks(images, "libshop");
}

static void show_list_threads_have_state_system_call_and_stack_top(void **state)
{
	CLEANUP_FREE char *text = table_of(REPORT, "threads", (struct show_select){0}, BROAD);

	(void)state;
	assert_has(text, "web             blocked?   futex             2.0 us    3    1.0 us");
	assert_has(text, "lock_wait");
	assert_has(text, "serve");
}

static void show_list_threads_by_function_of_the_stack(void **state)
{
	struct show_select select = {.function = "serve"};
	CLEANUP_FREE char *text = table_of(REPORT, "threads", select, NARROW);

	(void)state;
	assert_has(text, "web");
	assert_lacks(text, "idle");
	assert_has(text, "1 other threads may match");
}

static void show_list_threads_by_cpu_pid_tid_comm(void **state)
{
	const struct show_select web[] = {{.has_cpu = true, .cpu = 3},
					  {.has_pid = true, .pid = 7},
					  {.has_tid = true, .tid = 8},
					  {.comm = "w?b"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(web); i++) {
		CLEANUP_FREE char *text = table_of(REPORT, "threads", web[i], NARROW);

		assert_has(text, "web");
		assert_lacks(text, "idle");
	}
}

static void show_list_gaps_have_time_and_length(void **state)
{
	CLEANUP_FREE char *text = table_of(REPORT, "gaps", (struct show_select){0}, BROAD);

	(void)state;
	assert_has(text, "-1,234.567    500 ns       16 B           2 ");
	assert_has(text, "the CPU lost packets");
}

static void show_list_limit_of_turns_keeps_the_newest(void **state)
{
	struct show_select select = {.limit = 1};
	CLEANUP_FREE char *text = table_of(REPORT, "turns", select, NARROW);

	(void)state;
	assert_has(text, "idle");
	assert_lacks(text, "web");
	assert_has(text, "--limit left out 2 older turns\n");
}

static void show_list_limit_of_others_keeps_the_first(void **state)
{
	struct show_select select = {.limit = 1};
	CLEANUP_FREE char *text = table_of(REPORT, "threads", select, NARROW);

	(void)state;
	assert_has(text, "web");
	assert_lacks(text, "idle");
	assert_has(text, "--limit left out 1 threads\n");
}

static void show_list_uncertain_turn_is_counted_not_matched(void **state)
{
	struct show_select select = {.has_tid = true, .tid = 8};
	CLEANUP_FREE char *text = table_of(REPORT, "turns", select, NARROW);

	(void)state;
	assert_has(text, "1 of 3 turns match\n1 other turns may match");
	assert_lacks(text, "(not certain)");
}

static void show_list_missing_list_is_not_an_empty_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		CLEANUP_FREE char *none = table_of("{}", NAMES[i], (struct show_select){0}, NARROW);
		char json[64];

		assert_has(none, "the report has no list of ");
		snprintf(json, sizeof(json), "{\"%s\":[]}", NAMES[i]);
		CLEANUP_FREE char *empty =
			table_of(json, NAMES[i], (struct show_select){0}, NARROW);

		assert_has(empty, " in the report is empty\n");
	}
}

static void show_list_rows_without_keys_are_dashes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		char json[80];

		snprintf(json, sizeof(json), "{\"%s\":[{},null,7,[],\"x\"]}", NAMES[i]);
		CLEANUP_FREE char *text = table_of(json, NAMES[i], (struct show_select){0}, NARROW);

		assert_has(text, " -");
		assert_fits(text, 80);
	}
}

#define EVIL "\\u001b[2J\\u202e\\nevil"

static void show_list_hostile_names_are_escaped_and_bounded(void **state)
{
	static const char hostile[] =
		"{\"totals\":{\"instructions\":1},"
		"\"images\":[{\"path\":\"/" EVIL EVIL EVIL EVIL EVIL EVIL EVIL EVIL
		"\",\"buildId\":\"" EVIL "\",\"missing\":\"" EVIL EVIL
		"\",\"instructions\":18446744073709551615,\"bytes\":18446744073709551615,"
		"\"unnamedInstructions\":\"18446744073709551615\"}],"
		"\"functions\":[{\"name\":\"" EVIL EVIL EVIL EVIL EVIL EVIL
		"\",\"image\":0,\"calls\":18446744073709551615,"
		"\"selfInstructions\":18446744073709551615}],"
		"\"threads\":[{\"comm\":\"" EVIL "\",\"state\":{\"kind\":\"" EVIL
		"\",\"sinceNSec\":-100000000000000},\"stack\":[0]}],"
		"\"places\":[{\"name\":\"" EVIL EVIL EVIL "\"}],"
		"\"processes\":[{\"pid\":1,\"cmdline\":\"" EVIL EVIL EVIL EVIL
		"\",\"unit\":\"" EVIL EVIL "\"}],"
		"\"gaps\":[{\"kind\":\"" EVIL EVIL "\",\"why\":\"" EVIL EVIL EVIL EVIL "\"}],"
		"\"turns\":[{\"comm\":\"" EVIL EVIL EVIL EVIL "\"}]}";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		CLEANUP_FREE char *text =
			table_of(hostile, NAMES[i], (struct show_select){0}, NARROW);

		assert_lacks(text, "\033");
		assert_lacks(text, "\342\200\256");
		assert_has(text, "\\x1b");
		assert_fits(text, 80);
	}
}

static void show_list_every_list_fits_its_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		CLEANUP_FREE char *narrow =
			table_of(REPORT, NAMES[i], (struct show_select){0}, NARROW);
		CLEANUP_FREE char *broad =
			table_of(REPORT, NAMES[i], (struct show_select){0}, BROAD);

		assert_fits(narrow, 80);
		assert_fits(broad, 160);
	}
}

static void show_list_json_has_the_selected_rows_or_null(void **state)
{
	const struct show_select select = {.has_tid = true, .tid = 8};
	struct json_object *report = json_tokener_parse(REPORT), *none = json_tokener_parse("{}");
	const struct show_list *turns = show_list_find("turns");
	struct json_object *array = NULL;

	(void)state;
	assert_int_equal(show_list_json(report, turns, &select, true, &array), 0);
	assert_int_equal(json_object_array_length(array), 1);
	json_object_put(array);
	assert_int_equal(show_list_json(none, turns, &select, true, &array), 0);
	assert_null(array);
	json_object_put(report);
	json_object_put(none);
}

static void show_list_json_has_places_instead_of_indexes(void **state)
{
	struct json_object *report = json_tokener_parse(REPORT), *array = NULL;

	(void)state;
	assert_int_equal(show_list_json(report, show_list_find("threads"),
					&(struct show_select){.limit = 1}, true, &array),
			 0);
	assert_string_equal(field_text(field_at(field_at(array, "", 0), "stack", 1), "name"),
			    "serve");
	json_object_put(array);
	assert_int_equal(show_list_json(report, show_list_find("gaps"), &(struct show_select){0},
					true, &array),
			 0);
	assert_string_equal(field_text(field_at(array, "", 0), "place.address"), "0x1234");
	json_object_put(array);
	/* The report is as it was. */
	assert_true(json_object_is_type(field_at(field_at(report, "threads", 0), "stack", 1),
					json_type_int));
	json_object_put(report);
}

static void show_list_find_unknown_name_is_null(void **state)
{
	(void)state;
	assert_null(show_list_find("frobnicate"));
}

static char *histograms_of(const char *json, struct show_select select)
{
	struct json_object *report = json_tokener_parse(json);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_non_null(report);
	show_histograms(f, report, &select, &NARROW);
	fclose(f);
	json_object_put(report);
	return text;
}

static void show_histograms_has_a_line_for_each_doubling(void **state)
{
	static const char json[] =
		"{\"functions\":[{\"name\":\"handle\",\"durations\":{\"ended\":40,"
		"\"histogram\":{\"firstNSec\":76.8,\"counts\":[2,0,24,1]}}},"
		"{\"name\":\"none\"},{\"name\":\"other\\u001b\",\"durations\":{\"ended\":1,"
		"\"histogram\":{\"firstNSec\":1000,\"counts\":[1]}}}]}";
	char *text = histograms_of(json, (struct show_select){0});

	(void)state;
	assert_string_equal(
		text,
		"handle: 40 calls ended, 13 of them in no measurable time\n"
		"        FROM          TO        CALLS\n"
		"     76.8 ns      153 ns            2 ###\n"
		"      153 ns      307 ns            0\n"
		"      307 ns      614 ns           24 ##########################################\n"
		"      614 ns      1.2 us            1 #\n\n"
		"other\\x1b: 1 calls ended\n"
		"        FROM          TO        CALLS\n"
		"      1.0 us      2.0 us            1 ##########################################\n"
		"\n");
	free(text);
	text = histograms_of(json, (struct show_select){.function = "o*"});
	assert_lacks(text, "handle");
	assert_fits(text, 80);
	free(text);
	text = histograms_of(json, (struct show_select){.limit = 1});
	assert_has(text, "1 more functions; --limit shows more");
	free(text);
	text = histograms_of("{\"functions\":[{\"durations\":{\"histogram\":{\"counts\":7}}}]}",
			     (struct show_select){0});
	assert_string_equal(text, "no function of the selection has calls that took measurable "
				  "time\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_list_functions_have_share_durations_and_image),
		cmocka_unit_test(show_list_wide_has_exact_numbers_and_all_columns),
		cmocka_unit_test(show_list_cut_list_says_how_many_are_missing),
		cmocka_unit_test(show_list_function_matches_name_or_linkage),
		cmocka_unit_test(show_list_image_matches_the_path),
		cmocka_unit_test(show_list_threads_have_state_system_call_and_stack_top),
		cmocka_unit_test(show_list_threads_by_function_of_the_stack),
		cmocka_unit_test(show_list_threads_by_cpu_pid_tid_comm),
		cmocka_unit_test(show_list_gaps_have_time_and_length),
		cmocka_unit_test(show_list_limit_of_turns_keeps_the_newest),
		cmocka_unit_test(show_list_limit_of_others_keeps_the_first),
		cmocka_unit_test(show_list_uncertain_turn_is_counted_not_matched),
		cmocka_unit_test(show_list_missing_list_is_not_an_empty_one),
		cmocka_unit_test(show_list_rows_without_keys_are_dashes),
		cmocka_unit_test(show_list_hostile_names_are_escaped_and_bounded),
		cmocka_unit_test(show_list_every_list_fits_its_line),
		cmocka_unit_test(show_list_json_has_the_selected_rows_or_null),
		cmocka_unit_test(show_list_json_has_places_instead_of_indexes),
		cmocka_unit_test(show_list_find_unknown_name_is_null),
		cmocka_unit_test(show_histograms_has_a_line_for_each_doubling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
