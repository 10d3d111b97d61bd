/*
 * ptsnapctl status: shows what the recorder is doing.
 */
#include "ctl/verb.h"

#include <stdio.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"

#define MAX_LINES 16

static void line(const char *name, const char *text)
{
	if (!text)
		return;
	printf("%-11s", name);
	text_puts(stdout, text, 100);
	putchar('\n');
}

static void print_recorder(struct json_object *s)
{
	uint64_t pid, uptime, uid, until, status;

	line("State", field_text(s, "state"));
	line("Version", field_text(s, "version"));
	line("Source", field_text(s, "source"));
	line("Terms", field_text(s, "terms"));
	if (field_u64(s, "pid", &pid))
		printf("%-11s%ju\n", "Pid", (uintmax_t)pid);
	if (field_u64(s, "uptimeUSec", &uptime) && uptime <= UINT64_MAX / 1000)
		printf("%-11s%s\n", "Uptime", figure_nsec(uptime * 1000).text);
	if (field_u64(s, "yielded.uid", &uid) && field_u64(s, "yielded.pid", &pid))
		printf("%-11sby uid %ju, pid %ju, until %s\n", "Yielded", (uintmax_t)uid,
		       (uintmax_t)pid,
		       field_u64(s, "yielded.untilUSec", &until) ? figure_date(until).text
								 : "`ptsnapctl yield --end'");
	if (field_u64(s, "command.pid", &pid)) {
		printf("%-11spid %ju, %s", "Command", (uintmax_t)pid,
		       field_true(s, "command.running") ? "running" : "ended");
		if (field_u64(s, "command.exitStatus", &status))
			printf(" with status %ju", (uintmax_t)status);
		putchar('\n');
	}
}

/* How the recorder traces: the attributes with which its events were opened. */
static void print_attrs(struct json_object *s)
{
	static const struct {
		const char *name, *field;
	} lines[] = {
		{"Preset", "attrs.preset"},
		{"Terms", "terms"},
		{"PT", "attrs.pt"},
		{"Sideband", "attrs.sideband"},
		{"Missing", "attrs.sidebandMissing"},
		{"Sizes", "attrs.sizesNote"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		printf("%-11s", lines[i].name);
		text_puts(stdout, field_text(s, lines[i].field), 600);
		putchar('\n');
	}
	printf("%-11s%s of trace, %s of sideband for CPU %s\n", "Rings",
	       figure_field_bytes(field_at(s, "cpus", 0), "auxBytes").text,
	       figure_field_bytes(field_at(s, "cpus", 0), "dataBytes").text,
	       figure_field_id(field_at(s, "cpus", 0), "cpu").text);
	printf("%-11s%s\n", "Clock",
	       field_true(s, "attrs.clockIsMonotonic") ? "CLOCK_MONOTONIC" : "perf's, by the TSC");
}

/* Prints what the recorder holds, and what it costs. */
static void print_contents(struct json_object *s)
{
	uint64_t pinned, cpu, dark;

	if (field_get(s, "timeline")) {
		printf("%-11s%s records, %s folded, %s dropped, %s lost, %s\n", "Timeline",
		       figure_field_count(s, "timeline.records").text,
		       figure_field_count(s, "timeline.folded").text,
		       figure_field_count(s, "timeline.dropped").text,
		       figure_field_count(s, "timeline.lost").text,
		       figure_field_bytes(s, "timeline.bytes").text);
		printf("%-11s%s, %s\n", "",
		       figure_field_things(s, "timeline.processes", "process").text,
		       figure_field_things(s, "timeline.mappings", "mapping").text);
	}
	if (field_get(s, "snapshots")) {
		printf("%-11s%s done, %s failed, %s running", "Snapshots",
		       figure_field_count(s, "snapshots.done").text,
		       figure_field_count(s, "snapshots.failed").text,
		       figure_field_count(s, "snapshots.running").text);
		if (field_u64(s, "snapshots.pinned", &pinned) && pinned > 0)
			printf(", %s pinned (%s)", figure_field_count(s, "snapshots.pinned").text,
			       figure_field_bytes(s, "snapshots.pinnedBytes").text);
		putchar('\n');
	}
	if (!field_u64(s, "self.cpuUSec", &cpu) || cpu > UINT64_MAX / 1000)
		return;
	printf("%-11s%s CPU, %s, %s records/s", "Itself", figure_nsec(cpu * 1000).text,
	       figure_field_bytes(s, "self.rssBytes").text,
	       figure_field_count(s, "self.recordsPerSecond").text);
	if (field_u64(s, "self.lastDarkNSec", &dark))
		printf(", %s dark at the last snapshot", figure_nsec(dark).text);
	putchar('\n');
}

/* Whether A and B are equal but for the CPU's number. */
static bool are_alike(struct json_object *a, struct json_object *b)
{
	static const char *const keys[] = {"state",	"why",		"node", "auxBytes",
					   "dataBytes", "instructions", "lost", "silent"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!json_object_equal(field_get(a, keys[i]), field_get(b, keys[i])))
			return false;
	return true;
}

/* One line for the CPUs FIRST to LAST, which are alike: "0-7 tracing ...". */
static void print_cpu_range(struct json_object *first, struct json_object *last)
{
	const char *why = field_text(first, "why");
	char range[2 * sizeof(struct figure) + 2];
	size_t used;

	snprintf(range, sizeof(range), "%s%s%s", figure_field_id(first, "cpu").text,
		 first == last ? "" : "-", first == last ? "" : figure_field_id(last, "cpu").text);
	printf("%-7s ", range);
	used = text_puts(stdout, field_text(first, "state"), 8);
	printf("%*s %4s %10s %10s %13s %6s\n", (int)(8 - used), "",
	       figure_field_id(first, "node").text, figure_field_bytes(first, "auxBytes").text,
	       figure_field_bytes(first, "dataBytes").text,
	       figure_field_count(first, "instructions").text,
	       figure_field_count(first, "lost").text);
	if (why) {
		printf("        ");
		text_puts(stdout, why, 300);
		putchar('\n');
	}
	if (field_true(first, "silent"))
		puts("        the trace unit writes nothing although code runs (pt-silent)");
}

/* Neighbouring CPUs that are alike share a line. */
static void print_cpus(struct json_object *s)
{
	size_t n = field_count(s, "cpus"), i = 0;

	if (n > 0)
		puts("\nCPU     STATE    NODE   AUX RING  DATA RING  INSTRUCTIONS   LOST");
	for (size_t lines = 0; i < n && lines < MAX_LINES; lines++) {
		struct json_object *cpu = field_at(s, "cpus", i), *last = cpu;

		while (++i < n && are_alike(cpu, field_at(s, "cpus", i)))
			last = field_at(s, "cpus", i);
		print_cpu_range(cpu, last);
	}
	if (i < n)
		printf("... and %zu more\n", n - i);
}

static int print_status(const struct settings *settings, struct json_object *s, bool attrs)
{
	if (!json_object_is_type(s, json_type_object))
		return say_error(EXIT_CODE_FAILURE, "the recorder's answer holds no status");
	if (json_wanted(settings)) {
		json_print(settings, attrs ? field_get(s, "attrs") : s);
		return 0;
	}
	if (attrs) {
		print_attrs(s);
		return 0;
	}
	print_recorder(s);
	print_contents(s);
	print_cpus(s);
	return 0;
}

int cmd_status(struct settings *s, int argc, char **argv)
{
	enum { OWN_ATTRS = OPTION_OWN };
	static const struct option own[] = {{"attrs", no_argument, NULL, OWN_ATTRS},
					    {NULL, 0, NULL, 0}};
	bool attrs = false;
	CLEANUP(client_freep) struct client *c = NULL;
	struct json_object *answer = NULL;
	int r;

	while ((r = option_next(s, argc, argv, own, "", true)) == OWN_ATTRS)
		attrs = true;
	if (r != OPTION_END)
		return EXIT_CODE_USAGE;
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "status takes no operand: %s", argv[optind]);
	if (s->help || s->version)
		return 0;
	r = client_open_status(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "Status", NULL, NULL, NULL, &answer);
	if (r == 0 && !s->quiet)
		r = print_status(s, field_get(answer, "status"), attrs);
	json_object_put(answer);
	return r;
}
