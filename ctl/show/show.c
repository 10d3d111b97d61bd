/*
 * The summary of a report: what happened, how much of the trace is known, and where the threads
 * were.
 */
#include "ctl/show/show.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"

#define MAX_PROCESSES 2
#define MAX_KINDS     5
#define MAX_UNTRACED  4

void show_label(FILE *out, const char *name)
{
	fprintf(out, "%-10s", name);
}

/* ", TEXT", or nothing when the report has no TEXT. */
static void append_field(FILE *out, struct json_object *o, const char *path)
{
	const char *text = field_text(o, path);

	if (!text)
		return;
	fputs(", ", out);
	text_puts(out, text, 48);
}

/* "LABEL TEXT" in a line of its own, or nothing when the report has no TEXT. */
static void show_line(FILE *out, const char *label, struct json_object *o, const char *path,
		      size_t columns)
{
	const char *text = field_text(o, path);

	if (!text)
		return;
	show_label(out, label);
	text_puts(out, text, columns);
	fputc('\n', out);
}

static void show_report_and_host(FILE *out, struct json_object *r)
{
	uint64_t family, model, stepping = 0;

	show_label(out, "Report");
	text_puts(out, field_text(r, "id"), 48);
	fputs(" (schema ", out);
	text_puts(out, field_text(r, "schemaVersion"), 12);
	append_field(out, r, "generator.name");
	fputs(" ", out);
	text_puts(out, field_text(r, "generator.version"), 20);
	fputs(")\n", out);

	show_label(out, "Host");
	text_puts(out, field_text(r, "host.hostname"), 48);
	append_field(out, r, "host.kernel");
	append_field(out, r, "host.machine");
	append_field(out, r, "host.cpu.name");
	if (field_u64(r, "host.cpu.family", &family) && field_u64(r, "host.cpu.model", &model)) {
		field_u64(r, "host.cpu.stepping", &stepping);
		fprintf(out, " (%ju/%ju/%ju)", (uintmax_t)family, (uintmax_t)model,
			(uintmax_t)stepping);
	}
	fputc('\n', out);
}

void show_trigger_kind(FILE *out, struct json_object *report)
{
	const char *kind = field_text(report, "trigger.kind");

	/* A perf.data or raw trace. */
	if (kind && strcmp(kind, "offline") == 0)
		kind = "none, the file ends";
	text_puts(out, kind, 24);
}

static void show_trigger(FILE *out, struct json_object *r)
{
	const char *reason = field_text(r, "trigger.reason");
	uint64_t pid, uid;

	show_label(out, "Trigger");
	show_trigger_kind(out, r);
	append_field(out, r, "trigger.name");
	if (reason) {
		fputs(", \"", out);
		text_puts(out, reason, 60);
		fputc('"', out);
	}
	if (field_u64(r, "trigger.sender.pid", &pid))
		fprintf(out, ", by pid %ju", (uintmax_t)pid);
	if (field_u64(r, "trigger.sender.uid", &uid))
		fprintf(out, " uid %ju", (uintmax_t)uid);
	append_field(out, r, "trigger.unit");
	fprintf(out, ", %s\n", figure_field_date(r, "trigger.realtimeUSec").text);
	show_line(out, "Core dump", r, "trigger.coredump", 160);
	if (!field_u64(r, "onlyUid", &uid))
		return;
	show_label(out, "Only");
	fprintf(out, "what certainly belongs to uid %ju\n", (uintmax_t)uid);
}

static void show_source(FILE *out, struct json_object *r)
{
	show_label(out, "Source");
	text_puts(out, field_text(r, "configuration.source"), 24);
	if (field_true(r, "trace.degraded")) {
		fputs(", nothing was traced\n", out);
		return;
	}
	append_field(out, r, "configuration.attr.terms");
	if (field_get(r, "configuration.attr.excludeKernel"))
		fputs(field_true(r, "configuration.attr.excludeKernel") ? ", user space only"
									: ", user and kernel",
		      out);
	if (field_true(r, "configuration.returnCompression"))
		fputs(", compressed returns", out);
	fputc('\n', out);
}

/* CPUs that were not traced, and why. */
static void show_untraced(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cpus"), untraced = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *cpu = field_at(r, "cpus", i);

		if (!field_text(cpu, "why") || untraced++ >= MAX_UNTRACED)
			continue;
		show_label(out, "Untraced");
		fprintf(out, "CPU %s: ", figure_field_id(cpu, "cpu").text);
		text_puts(out, field_text(cpu, "state"), 24);
		fputs(", ", out);
		text_puts(out, field_text(cpu, "why"), 120);
		fputc('\n', out);
	}
	if (untraced > MAX_UNTRACED)
		fprintf(out, "%-10sand %zu more CPUs\n", "", untraced - MAX_UNTRACED);
}

/* The greatest FIELD of all CPUs; false when no CPU has FIELD. */
static bool worst_of(struct json_object *r, const char *field, uint64_t *ret)
{
	size_t n = field_count(r, "cpus");
	bool found = false;
	uint64_t v;

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		if (!field_u64(field_at(r, "cpus", i), field, &v))
			continue;
		*ret = v > *ret ? v : *ret;
		found = true;
	}
	return found;
}

static void show_recording(FILE *out, struct json_object *r)
{
	uint64_t skew, dark;

	show_source(out, r);
	if (field_true(r, "trace.degraded")) {
		fputs("degraded: no trace: ", out);
		text_puts(out, field_text(r, "trace.why"), 160);
		fputc('\n', out);
	} else {
		show_untraced(out, r);
	}
	show_line(out, "Rings", r, "trace.sizesNote", 120);
	if (worst_of(r, "skewNSec", &skew) && worst_of(r, "darkNSec", &dark)) {
		show_label(out, "Freeze");
		fprintf(out, "all CPUs stopped within %s, dark for %s at most\n",
			figure_nsec(skew).text, figure_nsec(dark).text);
	}
}

static void show_processes(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "processes");

	for (size_t i = 0; i < n && i < MAX_PROCESSES; i++) {
		struct json_object *p = field_at(r, "processes", i);
		const char *command = field_text(p, "cmdline");

		show_label(out, "Process");
		fprintf(out, "%s ", figure_field_id(p, "pid").text);
		text_puts(out, command ? command : field_text(p, "exe"), 70);
		fputc('\n', out);
	}
	if (n > MAX_PROCESSES)
		fprintf(out, "%-10sand %zu more\n", "", n - MAX_PROCESSES);
}

/* The time from field AT to the end of what was decoded. */
static bool span_to_end(struct json_object *r, const char *at, uint64_t *ret)
{
	int64_t begin, end;

	if (!field_i64(r, at, &begin) || !field_i64(r, "decoded.untilNSec", &end) || begin > end)
		return false;
	*ret = (uint64_t)end - (uint64_t)begin;
	return true;
}

/* Shows which part of the trace a decode with a deadline covers. */
static void show_window(FILE *out, struct json_object *r)
{
	uint64_t part, whole, bytes = 0, threads;

	if (!field_get(r, "decoded"))
		return;
	show_label(out, "Window");
	if (field_true(r, "decoded.complete"))
		fputs("the whole trace", out);
	else if (!field_u64(r, "decoded.bytes", &bytes) || bytes == 0)
		fputs("nothing", out);
	else if (span_to_end(r, "decoded.sinceNSec", &part) &&
		 span_to_end(r, "decoded.traceSinceNSec", &whole))
		fprintf(out, "the last %s of %s", figure_nsec(part).text, figure_nsec(whole).text);
	else
		fprintf(out, "the newest %s of %s", figure_bytes(bytes).text,
			figure_field_bytes(r, "decoded.traceBytes").text);
	fprintf(out, " decoded (deadline %s)", figure_field_nsec(r, "decoded.deadlineNSec").text);
	if (field_u64(r, "decoded.lastStretches", &threads) && threads > 0)
		fprintf(out, ", and the last stretch of %s threads before",
			figure_field_count(r, "decoded.lastStretches").text);
	if (field_u64(r, "decoded.lastStretchesLeft", &threads) && threads > 0)
		fprintf(out, "; %s more threads were not looked for",
			figure_field_count(r, "decoded.lastStretchesLeft").text);
	fputc('\n', out);
}

/* Code that may have been other code when it ran is no part of what was decoded for certain. */
static void show_changed(FILE *out, struct json_object *r)
{
	struct json_object *changed = field_get(r, "coverage.mayHaveChanged");
	size_t n = 0;

	if (!json_object_is_type(changed, json_type_object) ||
	    json_object_object_length(changed) < 1)
		return;
	show_label(out, "Not exact");
	json_object_object_foreach(changed, kind, count)
	{
		if (n++ >= MAX_KINDS)
			continue;
		fputs(n > 1 ? ", " : "", out);
		text_puts(out, kind, 24);
		fprintf(out, " %s", figure_field_count(count, "").text);
	}
	fputs(" instructions, of code that may not be the code that ran\n", out);
}

/* Says of how much the coverage is no share. That only user code is traced is the default. */
static void show_filters(FILE *out, struct json_object *r)
{
	static const struct {
		const char *name, *text;
	} filters[] = {
		{"kernel", "only the kernel's code"},
		{"tasks", "only the tasks that were asked for"},
		{"addresses", "only some addresses"},
		{"addressSpace", "only one address space"},
		{"betweenEvents", "only while other events did not pause the trace"},
	};
	size_t n = field_count(r, "configuration.filters");
	const char *separator = "";

	for (size_t i = 0; i < n; i++) {
		const char *name = json_object_get_string(field_at(r, "configuration.filters", i));

		for (size_t k = 0; k < ARRAY_SIZE(filters); k++) {
			if (!name || strcmp(name, filters[k].name) != 0)
				continue;
			if (*separator == '\0')
				show_label(out, "Traced");
			fprintf(out, "%s%s", separator, filters[k].text);
			separator = ", ";
		}
	}
	if (*separator != '\0')
		fputs("; the coverage is no share of what else ran\n", out);
}

static void show_coverage(FILE *out, struct json_object *r)
{
	double exact;
	uint64_t uid;

	/* The decoder ran out of time or memory, or crashed, while it loaded symbol tables. */
	if (field_true(r, "namesLeftOut")) {
		show_label(out, "Names");
		fputs("left out, because the decoder failed with symbol tables\n", out);
	}
	/* A report for one user does not tell how much of the whole trace was decoded. */
	if (!field_u64(r, "onlyUid", &uid)) {
		const char *contents = field_text(r, "configuration.contents");

		show_label(out, "Coverage");
		if (contents && strcmp(contents, "events") == 0)
			fputs("events only, recorded without branches", out);
		else
			fprintf(out, "%s", figure_field_percent(r, "coverage.percent").text);
		if (field_double(r, "coverage.exactPercent", &exact) && exact < 100)
			fprintf(out, ", exact %s",
				figure_field_percent(r, "coverage.exactPercent").text);
		fprintf(out, ": %s of %s, %s of %s\n",
			figure_field_bytes(r, "coverage.bytesDecoded").text,
			figure_field_bytes(r, "coverage.bytes").text,
			figure_field_nsec(r, "coverage.nsecDecoded").text,
			figure_field_nsec(r, "coverage.nsec").text);
	}
	show_filters(out, r);
	show_label(out, "Decoded");
	fprintf(out, "%s, %s, %s\n",
		figure_field_things(r, "totals.instructions", "instruction").text,
		figure_field_things(r, "totals.branches", "branch").text,
		figure_field_things(r, "totals.gaps", "gap").text);
	show_changed(out, r);
}

/* Shows how much depends on a rule that the trace does not tell. */
static void show_returns(FILE *out, struct json_object *r)
{
	uint64_t n;

	if (!field_u64(r, "returnStack.undecided", &n) || n == 0)
		return;
	show_label(out, "Doubt");
	fprintf(out,
		"%s returns, and at least %s branches, depend on which returns pop the return stack\n",
		figure_field_count(r, "returnStack.undecided").text,
		figure_field_count(r, "returnStack.undecidedBranches").text);
}

static void show_gap_counts(FILE *out, struct json_object *r)
{
	struct json_object *counts = field_get(r, "gapCounts");
	size_t n = 0;

	if (!json_object_is_type(counts, json_type_object) || json_object_object_length(counts) < 1)
		return;
	show_label(out, "Gaps");
	json_object_object_foreach(counts, kind, count)
	{
		if (n++ >= MAX_KINDS)
			continue;
		fputs(n > 1 ? ", " : "", out);
		text_puts(out, kind, 24);
		fprintf(out, " %s", figure_field_count(count, "").text);
	}
	if (n > MAX_KINDS)
		fprintf(out, ", and %zu more kinds", n - MAX_KINDS);
	fputc('\n', out);
}

/* The lists that the decoder cut to keep the report small. */
static void show_cut(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cut");

	if (n == 0)
		return;
	show_label(out, "Cut");
	for (size_t i = 0; i < n && i < MAX_KINDS; i++) {
		struct json_object *cut = field_at(r, "cut", i);

		fputs(i > 0 ? ", " : "", out);
		text_puts(out, field_text(cut, "what"), 24);
		fprintf(out, " %s of %s", figure_field_count(cut, "kept").text,
			figure_field_count(cut, "total").text);
	}
	fputc('\n', out);
}

void show_report(FILE *out, struct json_object *report)
{
	show_report_and_host(out, report);
	show_trigger(out, report);
	show_recording(out, report);
	show_processes(out, report);
	show_window(out, report);
	show_coverage(out, report);
	show_returns(out, report);
	show_events(out, report);
	show_gap_counts(out, report);
	show_cut(out, report);
	show_names(out, report);
	show_table_cpus(out, report);
	show_turns(out, report);
	show_table_threads(out, report);
	show_table_stack(out, report);
	show_table_branches(out, report);
	show_table_functions(out, report);
	show_table_gaps(out, report);
}
