/*
 * ctl/show: the page about a report, at several widths, whole, empty and hostile.
 */
#include "ctl/show/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

/* The page about the report JSON; the caller's. */
static char *page_of(const char *json, struct show_style style)
{
	struct json_object *report = json_tokener_parse(json);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_non_null(report);
	show_info(f, report, &style);
	fclose(f);
	json_object_put(report);
	return text;
}

static const struct show_style NARROW = {.columns = 80};

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static size_t longest_line(const char *text)
{
	size_t longest = 0;

	while (*text != '\0') {
		const size_t n = strcspn(text, "\n");

		longest = MAX_OF(longest, n);
		text += n + (text[n] == '\n');
	}
	return longest;
}

static const char SLOW[] =
	"{\"id\":\"x\",\"totals\":{\"instructions\":5},"
	"\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"web\",\"instructions\":5,\"cpuNSec\":1000,"
	"\"state\":{\"kind\":\"blocked\",\"sinceNSec\":-2000,\"cpu\":0,\"certain\":true,"
	"\"systemCall\":{\"number\":202,\"name\":\"futex\"}},"
	"\"stack\":[0,1]}],\"places\":[{\"name\":\"wait\"},"
	"{\"name\":\"main\",\"inlined\":[{\"name\":\"serve\"}]},"
	"{\"name\":\"handle\"},{\"name\":\"lock_wait\"},{\"name\":\"audit\"}],"
	"\"suspects\":[{\"kind\":\"slow-calls\",\"sinceNSec\":-16000000,\"pid\":7,\"tid\":8,"
	"\"place\":2,\"ended\":5990,\"p50NSec\":31000,\"slow\":6,"
	"\"slowNSec\":3000000,\"lastEndNSec\":-12000000,\"maxNSec\":4000000,"
	"\"untracedNSec\":3900000,\"inside\":[{\"place\":3,\"maxNSec\":3920000}],"
	"\"rare\":[{\"place\":4,\"ended\":6,\"maxNSec\":4100000}]}]}";

static void show_info_slow_calls_says_how_many_when_and_where(void **state)
{
	char *text = page_of(SLOW, (struct show_style){.columns = 400});

	(void)state;
	assert_has(text,
		   "! handle(): 5,990 calls, median 31.0 us; 6 took over 3.0 ms, the last ended "
		   "12.0 ms before the trigger; the slowest took 4.0 ms in thread 8 (web), "
		   "97 % of it in the kernel or blocked, 98 % of it in lock_wait; as rare and "
		   "as slow: audit(), 6 calls of up to 4.1 ms\n");
	assert_has(text, "       8 web");
	assert_has(text, "blocked for 2.0 us, in futex, executed for 1.0 us");
	assert_has(text, "wait <- serve (inlined) <- main\n");
	free(text);
}

static void show_info_slow_calls_inside_many_shows_the_innermost(void **state)
{
	char *text = page_of(
		"{\"suspects\":[{\"kind\":\"slow-calls\",\"place\":0,\"maxNSec\":100,"
		"\"inside\":[{\"place\":2,\"maxNSec\":90},{\"place\":3},{\"place\":4},"
		"{\"place\":5},{\"place\":6}]},"
		"{\"kind\":\"slow-calls\",\"place\":1,\"maxNSec\":100,"
		"\"inside\":[{\"place\":2,\"maxNSec\":90},{\"place\":4},{\"place\":5}]}],"
		"\"places\":[{\"name\":\"handle\"},{\"name\":\"other\"},{\"name\":\"a\"},{\"name\":\"b@plt\"},"
		"{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"d\"}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(text, "90 % of it in a -> ... -> d\n");
	assert_has(text, "90 % of it in a -> b -> c\n");
	free(text);
}

static void show_info_narrow_fits_80_columns(void **state)
{
	char *text = page_of(SLOW, NARROW);

	(void)state;
	assert_in_range(longest_line(text), 60, 80);
	assert_null(strchr(text, '\033'));
	free(text);
}

static void show_info_word_longer_than_a_line_is_divided(void **state)
{
	char json[600], name[400];
	char *text;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(json, sizeof(json), "{\"processes\":[{\"pid\":1,\"cmdline\":\"%s\"}]}", name);
	text = page_of(json, NARROW);
	assert_in_range(longest_line(text), 70, 80);
	free(text);
}

/* Who reads the page must not know of `decode' to learn what would give names. */
static void show_info_says_what_has_no_names_and_what_would_give_them(void **state)
{
	char *text = page_of("{\"totals\":{\"instructions\":1000},\"images\":["
			     "{\"path\":\"/usr/bin/a\",\"instructions\":300,"
			     "\"unnamedInstructions\":200},"
			     "{\"path\":\"/x/libjvm.so\",\"instructions\":9,"
			     "\"unnamedInstructions\":0},"
			     "{\"path\":\"//anon\",\"instructions\":600,"
			     "\"unnamedInstructions\":600}]}",
			     NARROW);

	(void)state;
	assert_has(text, "\n\nUnnamed   20 % of the instructions: a 20 %\n"
			 "          symbols: ");
	assert_has(text, "\nHint      perf's agent libperf-jvmti.so");
	assert_in_range(longest_line(text), 1, 80);
	free(text);
	text = page_of("{\"totals\":{\"instructions\":1000}}", NARROW);
	assert_null(strstr(text, "Unnamed"));
	assert_null(strstr(text, "Hint"));
	free(text);
}

struct told {
	size_t n;
	struct show_suspect last;
	char text[200], function[40];
};

static int keep(void *userdata, const struct show_suspect *s)
{
	struct told *t = userdata;

	t->n++;
	t->last = *s;
	snprintf(t->text, sizeof(t->text), "%s", s->text);
	snprintf(t->function, sizeof(t->function), "%s", s->function);
	return t->n == 2 ? 7 : 0;
}

/* What the last suspect of LIST, JSON, becomes. */
static int tell(const char *list, struct told *t)
{
	struct json_object *report = json_tokener_parse(list);
	int r;

	assert_non_null(report);
	*t = (struct told){0};
	r = show_each_suspect(report, keep, t);
	json_object_put(report);
	return r;
}

static void show_each_suspect_slow_call_has_its_own_time(void **state)
{
	struct told t;

	(void)state;
	assert_int_equal(
		tell("{\"suspects\":[{\"kind\":\"slow-calls\",\"sinceNSec\":-9000,\"tid\":8,"
		     "\"maxNSec\":4000,\"place\":0}],\"places\":[{\"name\":\"f\\u001b\"}]}",
		     &t),
		0);
	assert_int_equal(t.n, 1);
	assert_true(t.last.has_time);
	assert_int_equal(t.last.since_ns, -9000);
	assert_int_equal(t.last.until_ns, -5000);
	assert_int_equal(t.last.tid, 8);
	assert_int_equal(t.last.cpu, SHOW_NONE);
	assert_string_equal(t.function, "f\x1b");
	assert_non_null(strstr(t.text, "f\\x1b(): "));
}

static void show_occasion_is_one_line_of_what_is_known(void **state)
{
	struct json_object *report = json_tokener_parse(
		"{\"host\":{\"hostname\":\"a\\u001b\"},\"trigger\":{\"kind\":\"signal\","
		"\"name\":\"SIGUSR2\",\"reason\":\"x\\ny\",\"sender\":{\"pid\":7}}}");
	char *text = NULL;

	(void)state;
	assert_non_null(report);
	assert_int_equal(show_occasion(report, &text), 0);
	assert_non_null(strstr(text, "host a\\x1b, "));
	assert_non_null(strstr(text, ", trigger: signal, SIGUSR2, \"x\\x0ay\", by pid 7"));
	assert_null(strchr(text, '\n'));
	free(text);
	json_object_put(report);
}

static void show_each_suspect_others_last_until_the_trigger(void **state)
{
	struct told t;

	(void)state;
	assert_int_equal(
		tell("{\"suspects\":[{\"kind\":\"deadlock\",\"sinceNSec\":-50,\"tids\":[4,5]}]}",
		     &t),
		0);
	assert_int_equal(t.last.until_ns, 0);
	assert_int_equal(t.last.tid, 4);
	assert_int_equal(
		tell("{\"suspects\":[{\"kind\":\"gap\",\"sinceNSec\":-50,\"untilNSec\":-20,\"cpu\":1}]}",
		     &t),
		0);
	assert_int_equal(t.last.until_ns, -20);
	assert_int_equal(t.last.cpu, 1);
	assert_int_equal(tell("{\"suspects\":[{\"kind\":\"crash\",\"sinceNSec\":-50}]}", &t), 0);
	assert_int_equal(t.last.until_ns, -50);
	assert_int_equal(tell("{\"suspects\":[{\"kind\":\"wait\",\"sinceNSec\":null}]}", &t), 0);
	assert_false(t.last.has_time);
}

static void show_each_suspect_function_is_that_of_its_place(void **state)
{
	static const char *const cases[][2] = {
		{"{\"suspects\":[{\"kind\":\"crash\",\"place\":0}],"
		 "\"places\":[{\"address\":\"0x9\",\"name\":\"f\",\"offset\":33}]}",
		 "f"},
		{"{\"suspects\":[{\"kind\":\"slow-calls\",\"place\":0}],"
		 "\"places\":[{\"name\":\"gzip+0x34f0\"}]}",
		 "gzip+0x34f0"},
		{"{\"suspects\":[{\"kind\":\"crash\",\"place\":0}],"
		 "\"places\":[{\"address\":\"0x9\"}]}",
		 ""},
		{"{\"suspects\":[{\"kind\":\"crash\",\"place\":5}]}", ""},
	};
	struct told t;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(tell(cases[i][0], &t), 0);
		assert_string_equal(t.function, cases[i][1]);
	}
}

/* A name of C++ has its parameters already. */
static void show_each_suspect_function_has_parentheses_once(void **state)
{
	struct told t;

	(void)state;
	assert_int_equal(tell("{\"suspects\":[{\"kind\":\"slow-calls\",\"place\":0}],"
			      "\"places\":[{\"name\":\"f\"}]}",
			      &t),
			 0);
	assert_ptr_equal(strstr(t.text, "f(): "), t.text);
	assert_int_equal(tell("{\"suspects\":[{\"kind\":\"slow-calls\",\"place\":0}],"
			      "\"places\":[{\"name\":\"Cart::add(int)\"}]}",
			      &t),
			 0);
	assert_ptr_equal(strstr(t.text, "Cart::add(int): "), t.text);
}

static void show_each_suspect_strange_list_is_no_error(void **state)
{
	struct told t;

	(void)state;
	assert_int_equal(tell("{}", &t), SHOW_NO_SUSPECTS);
	assert_int_equal(tell("{\"suspects\":[]}", &t), 0);
	assert_int_equal(t.n, 0);
	assert_int_equal(tell("{\"suspects\":[1,{},{}]}", &t), 7);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.text, "unknown");
	assert_int_equal(
		tell("{\"suspects\":[{\"kind\":\"slow-calls\",\"sinceNSec\":9223372036854775807,"
		     "\"maxNSec\":9223372036854775807}]}",
		     &t),
		0);
	assert_false(t.last.has_time);
}

static void show_info_no_suspects_says_so(void **state)
{
	char *text = page_of("{\"suspects\":[]}", NARROW);

	(void)state;
	assert_has(text, "nothing, by the rules in ptsnap-report(5)");
	free(text);
	text = page_of("{}", NARROW);
	assert_has(text, "made by an older ptsnap");
	free(text);
}

static void show_info_window_without_code_says_what_the_rings_have(void **state)
{
	char *text = page_of(
		"{\"totals\":{\"instructions\":0},\"suspects\":[],"
		"\"window\":{\"askedNSec\":50000000,\"ringsSinceNSec\":-511000000},"
		"\"threads\":[{\"tid\":8,\"state\":{\"kind\":\"blocked\",\"sinceNSec\":-400000000}},"
		"{\"tid\":9,\"comm\":\"b\",\"state\":{\"kind\":\"blocked\",\"sinceNSec\":-83000000}}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(
		text,
		"\n\n  In the 50.0 ms before the trigger no traced thread ran. The rings go back "
		"511.0 ms. The last to run was thread 9 (b), until 83.0 ms before the "
		"trigger.\n");
	free(text);
}

static void show_info_deadlock_shows_where_each_thread_waits(void **state)
{
	char *text = page_of(
		"{\"threads\":[{\"tid\":8,\"stack\":[0,1]},{\"tid\":9,\"stack\":[0,2]}],"
		"\"places\":[{\"name\":\"lock\"},{\"name\":\"rent\"},{\"name\":\"wages\"}],"
		"\"suspects\":[{\"kind\":\"deadlock\",\"sinceNSec\":-1000000,\"pid\":7,\"tid\":8,"
		"\"tids\":[8,9],\"waiting\":2}]}",
		(struct show_style){.columns = 400, .utf8 = true, .color = true});

	(void)state;
	assert_has(text,
		   "\033[1;31m!\033[0m deadlock: each thread of process 7 waits, 2 for a lock, "
		   "for 1.0 ms; thread 8 in lock \u2190 rent; thread 9 in lock \u2190 wages\n");
	free(text);
}

static void show_info_deadlock_of_a_cycle_says_who_holds_which_lock(void **state)
{
	char *text = page_of(
		"{\"threads\":[{\"tid\":8,\"stack\":[0,1]},{\"tid\":9,\"stack\":[0,2]}],"
		"\"places\":[{\"name\":\"lock\"},{\"name\":\"rent\"},{\"name\":\"wages\"}],"
		"\"suspects\":[{\"kind\":\"deadlock\",\"sinceNSec\":-1000000,\"pid\":7,\"tid\":8,"
		"\"tids\":[8,9],\"waiting\":2,\"cycle\":true}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(text,
		   "! deadlock: 2 threads of process 7 wait for each other's locks, for 1.0 ms; "
		   "thread 8, for a lock of thread 9, in lock <- rent; "
		   "thread 9, for a lock of thread 8, in lock <- wages\n");
	free(text);
}

static void show_info_lock_wait_says_what_the_owner_does(void **state)
{
	char *text = page_of(
		"{\"threads\":[{\"tid\":8,\"stack\":[0]},{\"tid\":9,\"comm\":\"io\",\"stack\":[1]}],"
		"\"places\":[{\"name\":\"lock\"},{\"name\":\"fsync\"}],"
		"\"suspects\":[{\"kind\":\"lock-wait\",\"sinceNSec\":-20000000,\"pid\":7,\"tid\":8,"
		"\"ownerTid\":9}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(text,
		   "has waited 20.0 ms for a lock, in lock; thread 9 (io) holds it, and is in "
		   "fsync\n");
	free(text);
}

static void show_info_cpu_wait_names_who_had_the_cpu(void **state)
{
	char *text =
		page_of("{\"suspects\":[{\"kind\":\"cpu-wait\",\"sinceNSec\":-250000000,\"pid\":7,"
			"\"tid\":8,\"waitedNSec\":125000000,\"byPid\":9,\"byTid\":10,"
			"\"byNSec\":120000000}],\"threads\":["
			"{\"pid\":7,\"tid\":8,\"comm\":\"server\"},{\"pid\":9,\"tid\":10,"
			"\"comm\":\"encoder\",\"stack\":[0,1]}],"
			"\"places\":[{\"name\":\"work\"},{\"name\":\"encode\"}]}",
			(struct show_style){.columns = 400});

	(void)state;
	assert_has(text,
		   "! thread 8 (server) could have run, and waited for a CPU for 125.0 ms of "
		   "the last 250.0 ms; 96 % of it process 9 had the CPU: thread 10 (encoder), "
		   "last seen in work <- encode\n");
	free(text);
}

static void show_info_contention_names_the_callers(void **state)
{
	char *text = page_of(
		"{\"suspects\":[{\"kind\":\"contention\",\"sinceNSec\":-250000000,\"pid\":7,"
		"\"tid\":8,\"place\":0,\"slow\":64,\"waitedNSec\":282000000,"
		"\"executedNSec\":226000000,\"maxNSec\":20000000,\"callers\":["
		"{\"place\":1},{\"place\":2},{\"place\":3}]}],"
		"\"places\":[{\"name\":\"lll_wait\"},{\"name\":\"malloc\"},"
		"{\"name\":\"malloc@plt\"},{\"name\":\"answer\"}],"
		"\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"server\"}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(text,
		   "! contention: 64 calls waited for a lock in lll_wait(), for 282.0 ms or more "
		   "together, while all code executed for 226.0 ms; the longest took 20.0 ms in "
		   "thread 8 (server), called by malloc <- answer\n");
	free(text);
}

static void show_info_crash_says_whether_the_signal_came_from_outside(void **state)
{
	char *text = page_of("{\"suspects\":[{\"kind\":\"crash\",\"sinceNSec\":-2000000,\"pid\":7,"
			     "\"tid\":8,\"place\":0,\"fromOutside\":true}],"
			     "\"places\":[{\"name\":\"work\",\"offset\":8}],"
			     "\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"server\"}]}",
			     (struct show_style){.columns = 400});

	(void)state;
	assert_has(text, "! crash: process 7 was killed by a signal from outside 2.0 ms before the "
			 "trigger: thread 8 (server) was at work");
	free(text);
}

static void show_info_stuck_call_says_what_it_waits_in(void **state)
{
	char *text = page_of(
		"{\"suspects\":[{\"kind\":\"stuck-call\",\"sinceNSec\":-250000000,\"pid\":7,"
		"\"tid\":8,\"place\":1,\"systemCall\":{\"number\":45,\"name\":\"recvfrom\"},"
		"\"ended\":400,\"maxNSec\":3100000}],"
		"\"places\":[{\"name\":\"recv\"},{\"name\":\"query\"},{\"name\":\"pay\"}],"
		"\"threads\":[{\"pid\":7,\"tid\":8,\"comm\":\"client\",\"stack\":[0,1,2]}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(
		text,
		"! query() has not returned for 250.0 ms in thread 8 (client): it sent something "
		"and waits for the answer in recvfrom; its 400 calls before took 3.1 ms at most, "
		"called from pay\n");
	free(text);
}

static void show_info_equal_waits_are_one_line(void **state)
{
	char *text = page_of(
		"{\"suspects\":[{\"kind\":\"lock-wait\",\"pid\":7,\"place\":1,\"tid\":8,\"sinceNSec\":-15000000,\"ownerTid\":12},"
		"{\"kind\":\"lock-wait\",\"pid\":7,\"place\":1,\"tid\":9,\"sinceNSec\":-40000000,\"ownerTid\":12},"
		"{\"kind\":\"lock-wait\",\"pid\":7,\"place\":1,\"tid\":10,\"sinceNSec\":-20000000,\"ownerTid\":12},"
		"{\"kind\":\"lock-wait\",\"pid\":7,\"place\":1,\"tid\":11,\"sinceNSec\":-30000000}],"
		"\"threads\":[{\"tid\":8,\"comm\":\"web\",\"stack\":[0,1,2]},{\"tid\":9,\"comm\":\"web\",\"stack\":[0,1,3]},"
		"{\"tid\":10,\"comm\":\"web\",\"stack\":[0,1,2]},{\"tid\":11,\"comm\":\"web\",\"stack\":[0,1]},"
		"{\"tid\":12,\"comm\":\"web\",\"stack\":[4]}],"
		"\"places\":[{\"name\":\"lock\"},{\"name\":\"rent\"},{\"name\":\"one\"},"
		"{\"name\":\"two\"},{\"name\":\"keep\"}]}",
		(struct show_style){.columns = 400});

	(void)state;
	assert_has(text, "\n! 3 threads of process 7 have waited up to 40.0 ms for a lock, in "
			 "lock <- rent <- ...; thread 12 (web) holds it, and is in keep\n"
			 "! thread 11 (web) has waited 30.0 ms for a lock, in lock <- rent\n\n");
	free(text);
}

/* 20 processes, each with five threads that wait for a lock. */
static void show_info_of_a_crowd_is_a_page(void **state)
{
	char *json = NULL, *text;
	size_t size = 0, lines = 0;
	FILE *f = open_memstream(&json, &size);

	(void)state;
	assert_non_null(f);
	fputs("{\"totals\":{\"instructions\":5},\"places\":[{\"name\":\"pthread_mutex_lock\"},"
	      "{\"name\":\"account_take\"},{\"name\":\"handle_request\"},{\"name\":\"main\"}],"
	      "\"threads\":[{\"tid\":99}",
	      f);
	for (unsigned i = 0; i < 100; i++)
		fprintf(f,
			",{\"pid\":%u,\"tid\":%u,\"comm\":\"server\",\"stack\":[0,1,2,3],"
			"\"state\":{\"kind\":\"blocked\",\"sinceNSec\":-9000000,\"certain\":true}}",
			100 + i / 5 * 5, 100 + i);
	fputs("],\"suspects\":[{\"kind\":\"late-function\",\"place\":1}", f);
	for (unsigned i = 0; i < 100; i++)
		if (i % 5 != 0)
			fprintf(f,
				",{\"kind\":\"lock-wait\",\"pid\":%u,\"tid\":%u,\"place\":1,"
				"\"sinceNSec\":-9000000,\"ownerTid\":%u}",
				100 + i / 5 * 5, 100 + i, 100 + i / 5 * 5);
	fputs("],\"functions\":[{},{},{},{},{},{},{}]}", f);
	fclose(f);
	text = page_of(json, NARROW);
	for (const char *c = text; *c != '\0'; c++)
		lines += *c == '\n';
	assert_has(text, "! 4 or more threads of process 100 have waited up to 9.0 ms");
	if (lines > 45)
		fail_msg("%zu lines:\n%s", lines, text);
	free(text);
	free(json);
}

/* Whatever is missing or has another type, and whatever a stranger wrote. */
static void show_info_hostile_report_is_shown_escaped(void **state)
{
	static const char *const kinds[] = {
		"crash", "deadlock", "long-call",	  "slow-calls",	   "lock-wait",
		"wait",	 "runnable", "ran-until-trigger", "late-function", "frequency",
		"gap",	 "cpu-wait", "contention",	  "stuck-call",	   "\\u001b[31mnew"};
	static const char *const rest[] = {
		"",
		",\"place\":0,\"tid\":8,\"byTid\":8,\"tids\":[8,\"x\",null],\"inside\":[3],\"callers\":[3,{}],"
		"\"rare\":[[]],\"sinceNSec\":\"9e9\"",
		",\"tid\":\"y\",\"tids\":{},\"inside\":{},\"ended\":-1,\"systemCall\":7"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t k = 0; k < ARRAY_SIZE(rest); k++) {
			char json[512];
			char *text;

			snprintf(
				json, sizeof(json),
				"{\"suspects\":[{\"kind\":\"%s\"%s}],\"gapCounts\":{\"\\u001b\":1},"
				"\"threads\":[{\"tid\":8,\"comm\":\"\\u001b[2J\",\"stack\":[0,1,{}],"
				"\"state\":{\"kind\":\"\\u001b\"}}],\"functions\":[{}],"
				"\"places\":[{\"name\":\"\\u001b]0;x\"},7],\"cut\":[7]}",
				kinds[i], rest[k]);
			text = page_of(json, NARROW);
			assert_null(strchr(text, '\033'));
			free(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(show_info_slow_calls_says_how_many_when_and_where),
		cmocka_unit_test(show_info_slow_calls_inside_many_shows_the_innermost),
		cmocka_unit_test(show_info_narrow_fits_80_columns),
		cmocka_unit_test(show_info_word_longer_than_a_line_is_divided),
		cmocka_unit_test(show_info_says_what_has_no_names_and_what_would_give_them),
		cmocka_unit_test(show_each_suspect_slow_call_has_its_own_time),
		cmocka_unit_test(show_occasion_is_one_line_of_what_is_known),
		cmocka_unit_test(show_each_suspect_others_last_until_the_trigger),
		cmocka_unit_test(show_each_suspect_function_is_that_of_its_place),
		cmocka_unit_test(show_each_suspect_function_has_parentheses_once),
		cmocka_unit_test(show_each_suspect_strange_list_is_no_error),
		cmocka_unit_test(show_info_no_suspects_says_so),
		cmocka_unit_test(show_info_window_without_code_says_what_the_rings_have),
		cmocka_unit_test(show_info_deadlock_shows_where_each_thread_waits),
		cmocka_unit_test(show_info_deadlock_of_a_cycle_says_who_holds_which_lock),
		cmocka_unit_test(show_info_lock_wait_says_what_the_owner_does),
		cmocka_unit_test(show_info_cpu_wait_names_who_had_the_cpu),
		cmocka_unit_test(show_info_contention_names_the_callers),
		cmocka_unit_test(show_info_crash_says_whether_the_signal_came_from_outside),
		cmocka_unit_test(show_info_stuck_call_says_what_it_waits_in),
		cmocka_unit_test(show_info_equal_waits_are_one_line),
		cmocka_unit_test(show_info_of_a_crowd_is_a_page),
		cmocka_unit_test(show_info_hostile_report_is_shown_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
