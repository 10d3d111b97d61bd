/*
 * ctl/show: reports made by hand, whole, empty and hostile.
 */
#include "ctl/show/show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

/* Returns the text that show_report() prints; the caller's. */
static char *shown(struct json_object *report)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	show_report(f, report);
	fclose(f);
	json_object_put(report);
	return text;
}

static char *shown_text(const char *json)
{
	struct json_object *report = json_tokener_parse(json);

	assert_non_null(report);
	return shown(report);
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static const char WHOLE[] =
	"{\"schemaVersion\":\"2.0\",\"generator\":{\"name\":\"ptsnap-decode\",\"version\":\"0.9\"},"
	"\"id\":\"5abc\",\"host\":{\"hostname\":\"web1\",\"kernel\":\"6.1.0\",\"machine\":\"x86_64\","
	"\"bootId\":\"x\",\"cpu\":{\"vendor\":\"GenuineIntel\",\"family\":6,\"model\":85,"
	"\"stepping\":4,\"name\":\"Xeon\"}},"
	"\"trigger\":{\"kind\":\"control\",\"name\":null,\"reason\":\"too slow\","
	"\"sender\":{\"pid\":4711,\"uid\":1000},\"realtimeUSec\":1700000000000000},"
	"\"configuration\":{\"source\":\"emulated\",\"attr\":{\"terms\":\"tsc,mtc\","
	"\"excludeKernel\":true},\"returnCompression\":true},"
	"\"cpus\":[{\"cpu\":0,\"gotBytes\":4194304,\"gotNSec\":12300000,\"instructions\":1234567,"
	"\"coveragePercent\":99.996,\"darkNSec\":1500,\"lostRecords\":0}],"
	"\"coverage\":{\"percent\":99.996,\"bytes\":4194304,\"bytesDecoded\":4194100,"
	"\"nsec\":12300000,\"nsecDecoded\":12299000},"
	"\"totals\":{\"instructions\":\"12345678901234567\",\"branches\":234567,\"gaps\":3},"
	"\"gapCounts\":{\"overflow\":2,\"no-image\":1},"
	"\"gaps\":[{\"kind\":\"overflow\",\"cpu\":0,\"bytes\":20,\"place\":6,"
	"\"why\":\"buffer full\"}],"
	"\"processes\":[{\"pid\":12345,\"cmdline\":\"gzip -9 file\",\"exe\":\"/usr/bin/gzip\"}],"
	"\"threads\":[{\"pid\":12345,\"tid\":12346,\"comm\":\"gzip\",\"instructions\":1234567,"
	"\"branches\":234567,\"cpuNSec\":null,"
	"\"lastBranches\":[{\"from\":0,\"to\":1,\"kind\":\"cond\"},"
	"{\"from\":2,\"to\":3,\"kind\":\"call\"}],\"stack\":[4,5]}],"
	"\"functions\":[{\"name\":\"longest_match\",\"image\":0,\"address\":\"0x401200\","
	"\"calls\":10,\"selfInstructions\":1000000,\"totalInstructions\":1100000,"
	"\"file\":\"/src/deflate.c\",\"line\":1200}],"
	"\"places\":[{\"address\":\"0x1\"},{\"address\":\"0x2\"},{\"address\":\"0x3\",\"name\":\"main\","
	"\"offset\":18,\"file\":\"/src/gzip.c\",\"line\":9,\"inlined\":["
	"{\"name\":\"in\",\"file\":\"/src/in.c\",\"line\":7}]},"
	"{\"address\":\"0x4\",\"name\":\"deflate\",\"offset\":0},"
	"{\"address\":\"0x401234\",\"name\":\"longest_match\",\"image\":0,\"function\":0,"
	"\"offset\":52,\"file\":\"/src/deflate.c\",\"line\":1290,\"inlined\":["
	"{\"name\":\"match<char, void (*)(std::string const&, unsigned long long)>\","
	"\"linkage\":\"_Z5match\",\"file\":\"/src/inline.h\",\"line\":33}]},"
	"{\"address\":\"0x401100\",\"image\":0},{\"address\":\"0x401000\"}],"
	"\"images\":[{\"path\":\"/usr/bin/gzip\"}],"
	"\"cut\":[{\"what\":\"functions\",\"kept\":1,\"total\":900}]}";

static void report_whole_shows_everything(void **state)
{
	CLEANUP_FREE char *text = shown_text(WHOLE);
	static const char *const parts[] = {
		"5abc (schema 2.0, ptsnap-decode 0.9)",
		"web1, 6.1.0, x86_64, Xeon (6/85/4)",
		"control, \"too slow\", by pid 4711 uid 1000, 2023-11-1",
		"emulated, tsc,mtc, user space only, compressed returns",
		"12345 gzip -9 file",
		"99.99 %: 4.0 MiB of 4.0 MiB, 12.3 ms of 12.3 ms",
		"12,345,678,901,234,567 instructions, 234,567 branches, 3 gaps",
		"overflow 2, no-image 1",
		"functions 1 of 900",
		"1.5 us",
		"of thread 12346",
		"\n                         match<...> (inlined) at /src/inline.h:33\n"
		"  #0  0x401234           longest_match+0x34  gzip at /src/deflate.c:1290\n",
		"#1  0x401100           -  gzip\n",
		"call      main+0x12                      -> deflate                        "
		"at in.c:7 -> -\n",
		"cond      0x1                            -> 0x2",
		"1,000,000     1,100,000         10 longest_match                        gzip "
		"at deflate.c:1200\n",
		"buffer full",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		assert_has(text, parts[i]);
	assert_true(count_lines(text) >= 25 && count_lines(text) <= 45);
}

static void report_of_code_that_may_have_changed_has_no_plain_percentage(void **state)
{
	CLEANUP_FREE char *text = shown_text(
		"{\"coverage\":{\"percent\":100.0,\"bytes\":1024,\"bytesDecoded\":1024,"
		"\"nsec\":1000,\"nsecDecoded\":1000,\"exactPercent\":99.64,"
		"\"instructionsExact\":162878,"
		"\"mayHaveChanged\":{\"memory\":580,\"sh\\u001bred\":7}},"
		"\"cpus\":[{\"cpu\":0,\"coveragePercent\":100.0,\"exactPercent\":99.64}]}");

	(void)state;
	assert_has(text, "Coverage  100.00 %, exact 99.64 %: 1.0 KiB of 1.0 KiB");
	assert_has(text, "Not exact memory 580, sh");
	assert_has(text, " instructions, of code that may not be the code that ran");
	assert_has(text, "  100.00 %    99.64 %");
	assert_null(strchr(text, '\x1b'));
}

static void report_of_exact_code_has_a_plain_percentage(void **state)
{
	CLEANUP_FREE char *text =
		shown_text("{\"coverage\":{\"percent\":100.0,\"exactPercent\":100.0,"
			   "\"instructionsExact\":7,\"mayHaveChanged\":{}}}");

	(void)state;
	assert_has(text, "Coverage  100.00 %: ");
	assert_null(strstr(text, "Not exact"));
}

#define IMAGE(path, insns, unnamed) \
	"{\"path\":\"" path "\",\"instructions\":" insns ",\"unnamedInstructions\":" unnamed "}"
#define UNNAMED(images) "{\"totals\":{\"instructions\":1000},\"images\":[" images "]}"

static void report_with_files_without_symbols_names_those_with_most(void **state)
{
	CLEANUP_FREE char *text = shown_text(UNNAMED(IMAGE("/usr/bin/a", "100", "20") "," IMAGE(
		"/usr/bin/b\\u001b", "300",
		"200") "," IMAGE("/c", "30",
				 "30") "," IMAGE("/d", "10",
						 "10") "," IMAGE("/e", "500",
								 "0") "," IMAGE("[kernel.kallsyms]",
										"60", "60")));

	(void)state;
	assert_has(text, "Unnamed   26 % of the instructions: b");
	assert_has(text, " 20 %, c 3 %, a 2 %, 1 more\n");
	assert_has(text, "debug packages, or `ptsnapctl decode --debuginfod'\n");
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(text, "Hint"));
}

static void report_with_few_instructions_without_a_name_does_not_say_so(void **state)
{
	CLEANUP_FREE char *text = shown_text(
		UNNAMED(IMAGE("/usr/bin/a", "900", "9") "," IMAGE("/usr/bin/b", "100", "0")));

	(void)state;
	assert_null(strstr(text, "Unnamed"));
}

static void report_of_an_interpreter_says_what_names_its_functions(void **state)
{
	static const struct {
		const char *json, *hint;
	} cases[] = {
		{UNNAMED(IMAGE("/usr/bin/python3.13", "100", "0")), "`python3 -X perf'"},
		{UNNAMED(IMAGE("/usr/bin/python3.13", "99", "0")), NULL},
		{UNNAMED(IMAGE("/usr/bin/python3.13", "900", "0") "," IMAGE("//anon", "9", "0")),
		 NULL},
		{UNNAMED(IMAGE("/usr/bin/node", "9", "0") "," IMAGE("//anon", "900", "900")),
		 "`node --perf-prof'"},
		{UNNAMED(IMAGE("/usr/bin/node", "100", "0") "," IMAGE("/x/jit-12.dump", "900",
								      "9")),
		 NULL},
		{UNNAMED(IMAGE("/x/libcoreclr.so", "9", "0") "," IMAGE("//anon", "900", "900")),
		 "`DOTNET_PerfMapEnabled=1'"},
		{UNNAMED(IMAGE("/x/libjvm.so", "9", "0") "," IMAGE("[anon:jit]", "900", "900")),
		 "libperf-jvmti.so"},
		{UNNAMED(IMAGE("/usr/bin/perl", "900", "0")), NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *text = shown_text(cases[i].json);

		if (cases[i].hint)
			assert_has(text, cases[i].hint);
		else
			assert_null(strstr(text, "Hint"));
	}
}

static void report_with_a_jitdump_of_another_clock_says_so(void **state)
{
	CLEANUP_FREE char *text = shown_text(
		UNNAMED("{\"path\":\"/x/jit-1\\u001b.dump\",\"jitdump\":{\"times\":false}}"));
	CLEANUP_FREE char *other =
		shown_text(UNNAMED("{\"path\":\"/x/jit-1.dump\",\"jitdump\":{\"times\":true}}"));

	(void)state;
	assert_has(text, "dump gives names only: its clock is not that of the trace\n");
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(other, "Hint"));
}

static void report_without_trace_says_so_in_one_line(void **state)
{
	CLEANUP_FREE char *text = shown_text(
		"{\"trace\":{\"degraded\":true,\"why\":\"no Intel PT here\\n\\u001b[1m\"},"
		"\"configuration\":{\"source\":\"intel_pt\",\"attr\":{\"excludeKernel\":true},"
		"\"returnCompression\":true},"
		"\"cpus\":[{\"cpu\":0,\"state\":\"no-pt\",\"why\":\"no Intel PT here\"}]}");

	(void)state;
	assert_has(text, "\ndegraded: no trace: no Intel PT here");
	assert_has(text, "Source    intel_pt, nothing was traced\n");
	assert_null(strstr(text, "\x1b"));
	/* The sentence is printed once. */
	assert_null(strstr(text, "Untraced"));
	assert_null(strstr(text, "Freeze"));
}

static void report_with_some_cpus_untraced_names_them(void **state)
{
	CLEANUP_FREE char *text = shown_text(
		"{\"trace\":{\"degraded\":false,\"why\":null,\"sizesNote\":\"4 MiB instead of 8\"},"
		"\"cpus\":[{\"cpu\":0,\"state\":\"tracing\",\"why\":null,\"skewNSec\":0,"
		"\"darkNSec\":1500000},"
		"{\"cpu\":1,\"state\":\"busy\",\"why\":\"perf (pid 7) has it\"},"
		"{\"cpu\":2,\"state\":\"tracing\",\"skewNSec\":2500,\"darkNSec\":1200000}],"
		"\"turns\":[{\"cpu\":1,\"pid\":7,\"tid\":7,\"comm\":\"sh\",\"atNSec\":-4000,"
		"\"untilNSec\":-3000,\"certain\":true}]}");

	(void)state;
	assert_null(strstr(text, "degraded"));
	assert_has(text, "Untraced  CPU 1: busy, perf (pid 7) has it\n");
	assert_has(text, "Rings     4 MiB instead of 8\n");
	/* For the other CPUs, threads are known from the first turn to the trigger. */
	assert_has(text, "25.0 % sh/7");
	assert_has(text, "Freeze    all CPUs stopped within 2.5 us, dark for 1.5 ms at most\n");
}

#define TURN(cpu, tid, comm, from, until)                                                   \
	"{\"cpu\":" cpu ",\"pid\":1,\"tid\":" tid ",\"comm\":\"" comm "\",\"atNSec\":" from \
	",\"untilNSec\":" until ",\"certain\":true}"

#define WINDOW "\"begin\":{\"atNSec\":-1000},\"end\":{\"atNSec\":0}"

static const char MACHINE[] =
	"{\"cpus\":[{\"cpu\":0," WINDOW "},{\"cpu\":1," WINDOW "},{\"cpu\":2}],"
	"\"threads\":[{\"pid\":1,\"tid\":7},{\"pid\":1,\"tid\":8},{\"pid\":1,\"tid\":9}],"
	"\"turns\":[" TURN("0", "7", "sh", "-1000", "-800") "," TURN(
		"1", "8", "a", "-1000",
		"-1") "," TURN("0", "8", "ls", "-800",
			       "-300") ","
				       "{\"cpu\":0,\"pid\":null,\"tid\":null,\"comm\":null,\"atNSec\":-300,"
				       "\"untilNSec\":-250,\"certain\":false}," TURN(
					       "0", "7", "ls", "-200", "-100") "],"
									       "\"cut\":[]}";

static void report_of_many_cpus_shows_who_ran(void **state)
{
	CLEANUP_FREE char *text = shown_text(MACHINE);

	(void)state;
	assert_has(text, "CPU   TURNS LAST THREAD            THREADS BY SHARE OF THE TIME\n");
	/* A thread is shown with its last name; idle time belongs to no share. */
	assert_has(text, "  0       4 ls/7                   "
			 "50.0 % ls/8, 30.0 % ls/7, 5.0 % uncertain\n");
	assert_has(text, "  1       1 a/8                    99.9 % a/8\n");
	assert_has(text, "  2       0 -\n");
	assert_has(text, "8 -                            -             -          -  0-1\n");
	assert_has(text, "7 -                            -             -          -  0\n");
	assert_has(text, "9 -                            -             -          -  -\n");
}

/* The time of turns that were cut is not idle time. */
static void report_with_cut_turns_shows_shares_of_the_rest(void **state)
{
	struct json_object *report = json_tokener_parse(MACHINE);
	CLEANUP_FREE char *text = NULL;

	(void)state;
	json_object_array_del_idx(json_object_object_get(report, "turns"), 0, 2);
	json_object_object_add(
		report, "cut",
		json_tokener_parse("[{\"what\":\"turns\",\"kept\":3,\"total\":5000}]"));
	text = shown(report);
	assert_has(text, "(newest 3 of 5,000 turns)");
	assert_has(text, "62.5 % ls/8, 12.5 % ls/7, 6.2 % uncertain\n");
}

static void report_of_one_thread_on_one_cpu_does_not_say_who_ran(void **state)
{
	CLEANUP_FREE char *text =
		shown_text("{\"cpus\":[{\"cpu\":0}],\"threads\":[{\"tid\":7}],\"turns\":[" TURN(
			"0", "7", "sh", "-1000", "-800") "]}");

	(void)state;
	assert_null(strstr(text, "THREADS BY"));
}

static void report_cpus_of_a_thread_are_ranges(void **state)
{
	struct json_object *report =
		json_tokener_parse("{\"cpus\":[{},{}],\"threads\":[{\"tid\":7}],\"turns\":[]}");
	static const int cpus[] = {0, 1, 2, 5, 7, 8, 4095, 100000};
	CLEANUP_FREE char *text = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		struct json_object *turn = json_tokener_parse("{\"tid\":7}");

		json_object_object_add(turn, "cpu", json_object_new_int(cpus[i]));
		json_object_array_add(json_object_object_get(report, "turns"), turn);
	}
	text = shown(report);
	assert_has(text, "  0-2,5,7-8,4095\n");
}

/* A gap in a program that could not be followed names the program. */
static void report_gaps_show_one_of_each_kind_whole(void **state)
{
	static const char why[] = "/usr/lib/a/long/way/to/a/place/where/programs/live/sudo: "
				  "set-user-ID program, runs without the recorder";
	struct json_object *report = json_tokener_parse("{\"gaps\":[]}");
	CLEANUP_FREE char *text = NULL;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct json_object *gap = json_object_new_object();

		json_object_object_add(
			gap, "kind", json_object_new_string(i < 49 ? "overflow" : "untraced-exec"));
		json_object_object_add(gap, "why", json_object_new_string(i < 49 ? "x" : why));
		json_object_array_add(json_object_object_get(report, "gaps"), gap);
	}
	text = shown(report);
	assert_has(text, why);
	assert_has(text, "... and 48 more");
}

static const char EVENTS[] =
	"{\"errata\":[\"BDM70\",\"SKD007\"],"
	"\"cpus\":[{\"cpu\":0,\"frequency\":{\"lowestRatio\":8,\"highestRatio\":20,"
	"\"lowestMhz\":800,\"highestMhz\":2000,\"changes\":3}},{\"cpu\":1,\"frequency\":null},"
	"{\"cpu\":2,\"frequency\":{\"lowestRatio\":12,\"highestRatio\":36,"
	"\"lowestMhz\":1200,\"highestMhz\":3600,\"changes\":1}}],"
	"\"eventCounts\":{\"ptwrite\":1234,\"interrupt\":45,\"transaction-begin\":12,"
	"\"transaction-commit\":10,\"transaction-abort\":2,\"exstop\":7,\"pwre\":6,\"pwrx\":5,"
	"\"mwait\":4},"
	"\"ptwrites\":[{\"payload\":\"0x1\"},{\"cpu\":0,\"tid\":4711,\"payload\":\"0x1234\","
	"\"place\":0}],"
	"\"interrupts\":[{\"cpu\":2,\"tid\":null,\"kind\":\"INTR\",\"vector\":14,"
	"\"cr2\":\"0xdead\",\"place\":1}],"
	"\"aborts\":[{\"place\":2}],\"places\":[{\"address\":\"0x401012\",\"name\":\"main\",\"offset\":18},"
	"{\"address\":\"0x401020\"},{\"name\":\"lock\"}],"
	"\"power\":[{\"kind\":\"pwrx\",\"deepestCoreCState\":6},{\"kind\":\"pwrx\","
	"\"deepestCoreCState\":1}]}";

static void report_events_are_a_line_each(void **state)
{
	CLEANUP_FREE char *text = shown_text(EVENTS);

	(void)state;
	assert_has(text, "\nErrata    BDM70, SKD007\n");
	assert_has(text, "\nPTWRITE   1,234 values, the last 0x1234 at main+0x12 "
			 "(CPU 0, thread 4711)\n");
	assert_has(text, "\nFrequency 800 to 3,600 MHz, 4 changes\n");
	assert_has(text, "\nTSX       12 begun, 10 committed, 2 aborted, the last at lock\n");
	assert_has(text, "\nInterrupt 45, the last INTR 14 of 0xdead at 0x401020 (CPU 2)\n");
	assert_has(text, "\nPower     stopped 7 times, MWAIT 4, C-state entered 6, left 5, "
			 "deepest C6\n");
}

static void report_frequency_without_bus_clock_is_a_ratio(void **state)
{
	CLEANUP_FREE char *text =
		shown_text("{\"cpus\":[{\"frequency\":{\"lowestRatio\":8,\"highestRatio\":20,"
			   "\"lowestMhz\":null,\"highestMhz\":null,\"changes\":1}}]}");

	(void)state;
	assert_has(text, "\nFrequency ratio 8 to 20, 1 change\n");
}

/* A frequency that never changes has no line. */
static void report_without_events_has_no_lines_for_them(void **state)
{
	static const char *const labels[] = {"Errata", "PTWRITE",   "Frequency",
					     "TSX",    "Interrupt", "Power"};
	CLEANUP_FREE char *text =
		shown_text("{\"errata\":[],\"eventCounts\":{\"mode\":1},\"ptwrites\":[],"
			   "\"cpus\":[{\"frequency\":{\"lowestRatio\":8,\"highestRatio\":8,"
			   "\"lowestMhz\":800,\"highestMhz\":800,\"changes\":0}}]}");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		assert_null(strstr(text, labels[i]));
}

static void report_gaps_are_numbered_and_say_how_to_see_more(void **state)
{
	static const char hint[] = "--view=packets --gap=N BUNDLE\n";
	CLEANUP_FREE char *text =
		shown_text("{\"gaps\":[{\"n\":1,\"kind\":\"untraced-exec\",\"offset\":null},"
			   "{\"n\":2,\"kind\":\"overflow\",\"offset\":4096}]}");
	CLEANUP_FREE char *recorded =
		shown_text("{\"gaps\":[{\"n\":1,\"kind\":\"untraced-exec\",\"offset\":null}]}");

	(void)state;
	assert_has(text, "\n    1 untraced-exec ");
	assert_has(text, "\n    2 overflow ");
	assert_has(text, hint);
	/* A gap outside of the trace has no packets before it. */
	assert_null(strstr(recorded, hint));
}

/* Adds N copies of ELEMENT as the array NAME. */
static void fill(struct json_object *owner, const char *name, const char *element, int n)
{
	struct json_object *array = json_object_new_array();

	while (n--)
		json_object_array_add(array, json_tokener_parse(element));
	json_object_object_add(owner, name, array);
}

static void report_large_stays_a_page(void **state)
{
	struct json_object *report = json_tokener_parse(WHOLE);
	struct json_object *threads = json_object_object_get(report, "threads");
	struct json_object *thread = json_object_array_get_idx(threads, 0);
	CLEANUP_FREE char *text = NULL;

	(void)state;
	fill(report, "places",
	     "{\"address\":\"0x1\",\"inlined\":[{\"name\":\"a\"},{\"name\":\"b\"}]}", 1);
	fill(thread, "stack", "0", 5000);
	fill(thread, "lastBranches", "{\"from\":0}", 64);
	for (int i = 0; i < 500; i++)
		json_object_array_add(threads, json_tokener_parse("{\"tid\":1}"));
	fill(report, "functions", "{\"name\":\"f\"}", 5000);
	fill(report, "gaps", "{\"kind\":\"x\"}", 5000);
	fill(report, "cpus", "{\"cpu\":1}", 256);
	fill(report, "processes", "{\"pid\":1}", 300);
	fill(report, "cut", "{\"what\":\"x\"}", 300);
	fill(report, "turns", TURN("1", "1", "x", "1", "2"), 10000);
	text = shown(report);
	assert_has(text, "... and 4994 more");
	assert_has(text, "... and 252 more");
	assert_has(text, "... 60 before");
	assert_has(text, "... and 2 more inlined");
	assert_true(count_lines(text) <= 74);
}

static void report_odd_types_are_tolerated(void **state)
{
	static const char *const reports[] = {
		"{}",
		"{\"id\":1,\"host\":[],\"trigger\":\"x\",\"configuration\":null,\"cpus\":{},"
		"\"coverage\":{\"percent\":\"x\",\"bytes\":-1},\"totals\":5,\"gapCounts\":[],"
		"\"gaps\":[1,null,\"x\"],\"processes\":[null],\"threads\":[[],null,7],"
		"\"functions\":[{\"name\":{},\"image\":99999999999999999999}],\"images\":7,"
		"\"cut\":[null]}",
		"{\"threads\":[{\"stack\":[null,1,-1,9,{},\"x\"],\"lastBranches\":[[],{},"
		"{\"from\":0,\"to\":1},{\"from\":-1,\"to\":\"1\"}]}],\"places\":[null,{\"name\":7,\"offset\":1}],"
		"\"functions\":[{\"image\":-1},{\"image\":3}],\"images\":[{\"path\":5}],"
		"\"coverage\":{\"percent\":1e300},\"cpus\":[{\"coveragePercent\":-5}]}",
		"{\"trigger\":{\"realtimeUSec\":18446744073709551614}}",
		"{\"cpus\":[null,{\"cpu\":-1},{\"cpu\":0},{\"cpu\":0,\"begin\":{\"atNSec\":"
		"-9223372036854775808},\"end\":{\"atNSec\":9223372036854775807}}],"
		"\"threads\":[{\"tid\":1}],\"turns\":[null,1,[],{},{\"cpu\":0},"
		"{\"cpu\":0,\"tid\":1,\"certain\":true,\"atNSec\":-9223372036854775808,"
		"\"untilNSec\":9223372036854775807},{\"cpu\":0,\"tid\":-1,\"certain\":1},"
		"{\"cpu\":99999999999,\"tid\":1,\"comm\":7,\"atNSec\":\"-x\","
		"\"untilNSec\":\"\"}],\"cut\":[{\"what\":\"turns\"}]}",
		"{\"images\":[{\"path\":\"/\"}],\"functions\":[{\"image\":0}]}",
		"{\"errata\":[null,7,{}],\"eventCounts\":{\"ptwrite\":1,\"interrupt\":-1,"
		"\"transaction-abort\":3,\"pwrx\":\"x\",\"mwait\":1},\"ptwrites\":[[]],"
		"\"aborts\":[null],\"interrupts\":{},\"power\":[7,{\"deepestCoreCState\":\"y\"}],"
		"\"cpus\":[{\"frequency\":7},{\"frequency\":{\"lowestRatio\":9,\"highestRatio\":1,"
		"\"changes\":18446744073709551615}}],\"gaps\":[{\"n\":\"x\"}]}",
		"{\"eventCounts\":[1],\"errata\":\"x\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		CLEANUP_FREE char *text = shown_text(reports[i]);

		assert_has(text, "Report");
	}
}

/* Replaces every string of the report by TEXT. */
static void poison(struct json_object *o, const char *text, size_t size)
{
	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; i < json_object_array_length(o); i++)
			poison(json_object_array_get_idx(o, i), text, size);
	if (json_object_is_type(o, json_type_string))
		json_object_set_string_len(o, text, (int)size);
	if (!json_object_is_type(o, json_type_object))
		return;
	json_object_object_foreach(o, key, value)
	{
		(void)key;
		poison(value, text, size);
	}
}

static void report_hostile_strings_are_escaped(void **state)
{
	static const char *const texts[] = {
		"\033[2J\033]0;title\007",
		"a\nb\rc\td\be",
		"\xff\xfe\x80",
		"\xc2\x9b"
		"31m",
		"\xe2\x80\xae"
		"evil",
		"\xed\xa0\x80",
		"\xc0\xaf\xf8\x88\x80",
		"\x7f\x01%s%n",
		"\xf3\xa0\x81\x81",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_object *report = json_tokener_parse(WHOLE);
		struct json_object *events = json_tokener_parse(EVENTS);
		CLEANUP_FREE char *text = NULL;

		json_object_object_add(report, "turns",
				       json_tokener_parse("[" TURN("0", "7", "x", "1", "2") "]"));
		json_object_array_add(json_object_object_get(report, "threads"),
				      json_tokener_parse("{\"tid\":7}"));
		json_object_object_foreach(events, key, value)
		{
			json_object_object_add(report, key, json_object_get(value));
		}
		json_object_object_add(json_object_object_get(report, "gapCounts"), texts[i],
				       json_object_new_int(1));
		json_object_put(events);
		poison(report, texts[i], strlen(texts[i]));
		text = shown(report);
		for (const char *c = text; *c; c++)
			assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
	}
}

static void report_long_strings_are_cut(void **state)
{
	struct json_object *report = json_tokener_parse(WHOLE);
	CLEANUP_FREE char *text = NULL;
	char word[3000];

	(void)state;
	memset(word, 'x', sizeof(word));
	poison(report, word, sizeof(word));
	text = shown(report);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") < 260);
	assert_has(text, "x~");
}

static void report_with_a_deadline_says_what_was_decoded(void **state)
{
	static const struct {
		const char *decoded, *line;
	} cases[] = {
		{"\"deadlineNSec\":50000000,\"complete\":false,\"sinceNSec\":-12000000,"
		 "\"traceSinceNSec\":-340000000,\"untilNSec\":0,\"bytes\":4096,"
		 "\"traceBytes\":1048576,\"lastStretches\":12,\"lastStretchesLeft\":3",
		 "Window    the last 12.0 ms of 340.0 ms decoded (deadline 50.0 ms), and the last "
		 "stretch of 12 threads before; 3 more threads were not looked for\n"},
		{"\"deadlineNSec\":50000000,\"complete\":false,\"sinceNSec\":null,"
		 "\"traceSinceNSec\":-340000000,\"untilNSec\":0,\"bytes\":4096,"
		 "\"traceBytes\":1048576,\"lastStretches\":0,\"lastStretchesLeft\":0",
		 "Window    the newest 4.0 KiB of 1.0 MiB decoded (deadline 50.0 ms)\n"},
		{"\"deadlineNSec\":0,\"complete\":false,\"bytes\":0,\"traceBytes\":1048576",
		 "Window    nothing decoded (deadline 0 ns)\n"},
		{"\"deadlineNSec\":1000000000,\"complete\":true,\"bytes\":1048576",
		 "Window    the whole trace decoded (deadline 1.0 s)\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *text = NULL;
		char report[512];

		snprintf(report, sizeof(report), "{\"id\":\"x\",\"decoded\":{%s}}",
			 cases[i].decoded);
		text = shown_text(report);
		assert_has(text, cases[i].line);
	}
}

static void report_without_names_says_so(void **state)
{
	CLEANUP_FREE char *with = shown_text("{\"id\":\"x\"}");
	CLEANUP_FREE char *text = shown_text("{\"id\":\"x\",\"namesLeftOut\":true}");

	(void)state;
	assert_has(text, "Names     left out, because the decoder failed with symbol tables\n");
	assert_null(strstr(with, "Names"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_without_names_says_so),
		cmocka_unit_test(report_with_a_deadline_says_what_was_decoded),
		cmocka_unit_test(report_whole_shows_everything),
		cmocka_unit_test(report_of_code_that_may_have_changed_has_no_plain_percentage),
		cmocka_unit_test(report_of_exact_code_has_a_plain_percentage),
		cmocka_unit_test(report_with_files_without_symbols_names_those_with_most),
		cmocka_unit_test(report_with_few_instructions_without_a_name_does_not_say_so),
		cmocka_unit_test(report_of_an_interpreter_says_what_names_its_functions),
		cmocka_unit_test(report_with_a_jitdump_of_another_clock_says_so),
		cmocka_unit_test(report_without_trace_says_so_in_one_line),
		cmocka_unit_test(report_with_some_cpus_untraced_names_them),
		cmocka_unit_test(report_of_many_cpus_shows_who_ran),
		cmocka_unit_test(report_with_cut_turns_shows_shares_of_the_rest),
		cmocka_unit_test(report_of_one_thread_on_one_cpu_does_not_say_who_ran),
		cmocka_unit_test(report_cpus_of_a_thread_are_ranges),
		cmocka_unit_test(report_gaps_show_one_of_each_kind_whole),
		cmocka_unit_test(report_events_are_a_line_each),
		cmocka_unit_test(report_frequency_without_bus_clock_is_a_ratio),
		cmocka_unit_test(report_without_events_has_no_lines_for_them),
		cmocka_unit_test(report_gaps_are_numbered_and_say_how_to_see_more),
		cmocka_unit_test(report_large_stays_a_page),
		cmocka_unit_test(report_odd_types_are_tolerated),
		cmocka_unit_test(report_hostile_strings_are_escaped),
		cmocka_unit_test(report_long_strings_are_cut),
	};

	return cmocka_run_group_tests_name("show", tests, NULL, NULL);
}
