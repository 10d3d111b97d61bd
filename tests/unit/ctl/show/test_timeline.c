/*
 * ctl/show/timeline: events of small reports, their order, their selection, and the picture.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/show/timeline.h"
#include "proto/base.h"

static const char REPORT[] =
	"{\"cpus\":[{\"cpu\":0,\"begin\":{\"atNSec\":-8000},\"end\":{\"atNSec\":0}}],"
	"\"trigger\":{\"kind\":\"signal\",\"name\":\"a\\u001bb\"},"
	"\"turns\":["
	"{\"cpu\":0,\"pid\":1,\"tid\":2,\"comm\":\"one\",\"atNSec\":-8000,\"untilNSec\":-4000,"
	"\"certain\":true},"
	"{\"cpu\":0,\"pid\":3,\"tid\":4,\"comm\":\"two\\u001b\",\"atNSec\":-4000,"
	"\"untilNSec\":-2000,\"certain\":true},"
	"{\"cpu\":1,\"pid\":null,\"tid\":null,\"comm\":null,\"atNSec\":-8000,\"untilNSec\":-6000,"
	"\"certain\":false}],"
	"\"gaps\":[{\"kind\":\"overflow\",\"cpu\":1,\"atNSec\":-6000,\"untilNSec\":-4000,"
	"\"count\":1,\"why\":\"w\"},{\"kind\":\"late\",\"cpu\":null,\"atNSec\":null}],"
	"\"frequencies\":[{\"cpu\":0,\"atNSec\":-5000,\"mhz\":2400,\"ratio\":24}],"
	"\"ptwrites\":[{\"cpu\":0,\"pid\":1,\"tid\":2,\"atNSec\":-7000,\"payload\":\"0x12\","
	"\"place\":0}],\"places\":[{\"name\":\"f\"}],"
	"\"cut\":[{\"what\":\"turns\",\"kept\":3,\"total\":10}]}";

/* What show_timeline() prints of REPORT; freed by the caller. */
static char *text_of(const char *json, const struct show_select *select, unsigned columns,
		     bool picture)
{
	const struct show_style style = {.columns = columns};
	struct json_object *report = json_tokener_parse(json);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(report);
	assert_non_null(out);
	assert_int_equal(show_timeline(out, report, select, &style, picture), 0);
	fclose(out);
	json_object_put(report);
	return text;
}

static void check(const struct show_select *select, unsigned columns, bool picture,
		  const char *want)
{
	CLEANUP_FREE char *text = text_of(REPORT, select, columns, picture);

	assert_string_equal(text, want);
}

#define HEAD "  TRIGGER +ms CPU     TID COMM            EVENT\n"

static void show_timeline_all_events_are_in_the_order_of_time(void **state)
{
	(void)state;
	check(&(struct show_select){0}, 0, false,
	      HEAD
	      "    -0.008000   0       2 one             runs for 4.0 us\n"
	      "    -0.008000   1       - -               a thread that is not known runs for 2.0 us\n"
	      "    -0.007000   0       2 -               ptwrite 0x12 in f\n"
	      "    -0.006000   1       - -               # gap overflow of 2.0 us: w\n"
	      "    -0.005000   0       - -               frequency 2,400 MHz\n"
	      "    -0.004000   0       4 two\\x1b         runs for 2.0 us\n"
	      "     0.000000   -       - -               trigger signal a\\x1bb\n"
	      "Events without a time: 1; see `ptsnapctl gaps'.\n"
	      "The report has the newest 3 of 10 turns and other events; decode the bundle for "
	      "all.\n");
}

static void show_timeline_a_selection_has_its_events_only(void **state)
{
	const struct show_select tid = {.has_tid = true, .tid = 2, .limit = 1},
				 span = {.from = {true, false, 3500},
					 .to = {true, true, 4500},
					 .last = 1};

	(void)state;
	check(&tid, 0, false,
	      HEAD
	      "    -0.008000   0       2 one             runs for 4.0 us\n"
	      "1 of 3 events are shown.\n"
	      "Events left out because nobody knows their thread or their CPU: 4.\n"
	      "The report has the newest 3 of 10 turns and other events; decode the bundle for "
	      "all.\n");
	/* From -4.5 us to -4.5 us: the first turn and the gap last until then. */
	check(&span, 0, false,
	      HEAD
	      "    -0.006000   1       - -               # gap overflow of 2.0 us: w\n"
	      "1 of 2 events are shown.\n"
	      "Events without a time: 1; see `ptsnapctl gaps'.\n"
	      "The report has the newest 3 of 10 turns and other events; decode the bundle for "
	      "all.\n");
}

static void show_timeline_lines_fit_their_width(void **state)
{
	CLEANUP_FREE char *text = text_of(REPORT, &(struct show_select){0}, 60, false);

	(void)state;
	assert_non_null(strstr(text, "a thread that is ~\n"));
}

static void show_timeline_the_picture_has_who_ran_longest(void **state)
{
	CLEANUP_FREE char *text = text_of(REPORT, &(struct show_select){0}, 33, true);

	(void)state;
	/* 24 columns for 8 us. */
	assert_non_null(strstr(text, "\nCPU 0    AAAAAAAAAAAABBBBBB......\n"
				     "CPU 1    ??????######............\n"));
	assert_non_null(strstr(text, "\nA  one (2)  4.0 us\nB  two\\x1b (4)  2.0 us\n"));
}

static void show_timeline_an_empty_span_is_invalid(void **state)
{
	const struct show_select select = {.from = {true, true, 1}, .to = {true, true, 2}};
	struct json_object *report = json_tokener_parse(REPORT), *array = NULL;

	(void)state;
	assert_int_equal(show_timeline_json(report, &select, &array), -EINVAL);
	assert_null(array);
	json_object_put(report);
}

static void show_timeline_json_rows_say_what_they_are(void **state)
{
	struct json_object *report = json_tokener_parse(REPORT), *array = NULL, *row, *event;

	(void)state;
	assert_int_equal(show_timeline_json(report, &(struct show_select){0}, &array), 0);
	json_object_put(report);
	assert_int_equal(json_object_array_length(array), 7);
	row = json_object_array_get_idx(array, 6);
	assert_true(json_object_object_get_ex(row, "event", &event));
	assert_string_equal(json_object_get_string(event), "trigger");
	row = json_object_array_get_idx(array, 2);
	assert_true(json_object_object_get_ex(row, "payload", &event));
	assert_string_equal(json_object_get_string(event), "0x12");
	json_object_put(array);
}

static void show_timeline_strange_reports_are_no_error(void **state)
{
	static const char *const reports[] = {
		"{}",
		"{\"turns\":7,\"trigger\":[]}",
		"{\"turns\":[7,null,{}]}",
		"{\"turns\":[{\"cpu\":-1,\"atNSec\":\"-9223372036854775808\","
		"\"untilNSec\":\"9223372036854775807\",\"certain\":true,\"pid\":1,\"tid\":1},"
		"{\"cpu\":\"18446744073709551614\",\"atNSec\":1,\"untilNSec\":-1}],"
		"\"cut\":[{\"what\":3},{\"what\":\"turns\",\"kept\":9,\"total\":1}]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++)
		for (int picture = 0; picture < 2; picture++) {
			CLEANUP_FREE char *text =
				text_of(reports[i], &(struct show_select){0}, 80, picture);

			assert_non_null(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_timeline_all_events_are_in_the_order_of_time),
		cmocka_unit_test(show_timeline_a_selection_has_its_events_only),
		cmocka_unit_test(show_timeline_lines_fit_their_width),
		cmocka_unit_test(show_timeline_the_picture_has_who_ran_longest),
		cmocka_unit_test(show_timeline_an_empty_span_is_invalid),
		cmocka_unit_test(show_timeline_json_rows_say_what_they_are),
		cmocka_unit_test(show_timeline_strange_reports_are_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
