/*
 * The summary of a report: what happened, how much of it is known, and where the traced threads
 * were. Called by deliver.c. The tables are show_table.c's.
 */
#include "ctl/show/show.h"

#include "ctl/base/field.h"
#include "ctl/base/figure.h"
#include "ctl/base/text.h"
#include "ctl/show/show_events.h"
#include "ctl/show/show_table.h"
#include "ctl/show/show_turns.h"

#define MAX_PROCESSES 2
#define MAX_KINDS     5
#define MAX_UNTRACED  4

static void label(FILE *out, const char *name)
{
	fprintf(out, "%-10s", name);
}

/* ", TEXT" or, at the BEGIN, "TEXT"; nothing when it is absent. */
static void item(FILE *out, struct json_object *o, const char *path, bool begin)
{
	const char *text = field_text(o, path);

	if (!text)
		return;
	if (!begin)
		fputs(", ", out);
	text_puts(out, text, 48);
}

static void show_identity(FILE *out, struct json_object *r)
{
	label(out, "Report");
	text_puts(out, field_text(r, "id"), 48);
	fputs(" (schema ", out);
	text_puts(out, field_text(r, "schemaVersion"), 12);
	item(out, r, "generator.name", false);
	fputs(" ", out);
	text_puts(out, field_text(r, "generator.version"), 20);
	fputs(")\n", out);
}

static void show_host(FILE *out, struct json_object *r)
{
	uint64_t family, model, stepping = 0;

	label(out, "Host");
	text_puts(out, field_text(r, "host.hostname"), 48);
	item(out, r, "host.kernel", false);
	item(out, r, "host.machine", false);
	item(out, r, "host.cpu.name", false);
	if (field_u64(r, "host.cpu.family", &family) && field_u64(r, "host.cpu.model", &model)) {
		field_u64(r, "host.cpu.stepping", &stepping);
		fprintf(out, " (%ju/%ju/%ju)", (uintmax_t)family, (uintmax_t)model,
			(uintmax_t)stepping);
	}
	fputc('\n', out);
}

static void show_trigger(FILE *out, struct json_object *r)
{
	const char *reason = field_text(r, "trigger.reason");
	uint64_t pid, uid;

	label(out, "Trigger");
	text_puts(out, field_text(r, "trigger.kind"), 24);
	item(out, r, "trigger.name", false);
	if (reason) {
		fputs(", \"", out);
		text_puts(out, reason, 60);
		fputc('"', out);
	}
	if (field_u64(r, "trigger.sender.pid", &pid))
		fprintf(out, ", by pid %ju", (uintmax_t)pid);
	if (field_u64(r, "trigger.sender.uid", &uid))
		fprintf(out, " uid %ju", (uintmax_t)uid);
	item(out, r, "trigger.unit", false);
	fprintf(out, ", %s\n", figure_field_date(r, "trigger.realtimeUSec").text);
	if (!field_text(r, "trigger.coredump"))
		return;
	label(out, "Core dump");
	text_puts(out, field_text(r, "trigger.coredump"), 160);
	fputc('\n', out);
}

/* A report that was made for one user says little of anything else. */
static void show_only(FILE *out, struct json_object *r)
{
	uint64_t uid;

	if (!field_u64(r, "onlyUid", &uid))
		return;
	label(out, "Only");
	fprintf(out, "what is certainly of uid %ju\n", (uintmax_t)uid);
}

static void show_source(FILE *out, struct json_object *r)
{
	label(out, "Source");
	text_puts(out, field_text(r, "configuration.source"), 24);
	if (field_true(r, "trace.degraded")) { /* what would have been traced does not matter */
		fputs(", nothing was traced\n", out);
		return;
	}
	item(out, r, "configuration.attr.terms", false);
	if (field_get(r, "configuration.attr.excludeKernel"))
		fputs(field_true(r, "configuration.attr.excludeKernel") ? ", user space only"
									: ", user and kernel",
		      out);
	if (field_true(r, "configuration.returnCompression"))
		fputs(", compressed returns", out);
	fputc('\n', out);
}

/* CPUs of which the report says why they were not traced. */
static void show_untraced(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cpus"), shown = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *cpu = field_at(r, "cpus", i);

		if (!field_text(cpu, "why") || shown++ >= MAX_UNTRACED)
			continue;
		label(out, "Untraced");
		fprintf(out, "CPU %s: ", figure_field_id(cpu, "cpu").text);
		text_puts(out, field_text(cpu, "state"), 24);
		fputs(", ", out);
		text_puts(out, field_text(cpu, "why"), 120);
		fputc('\n', out);
	}
	if (shown > MAX_UNTRACED)
		fprintf(out, "%-10sand %zu CPUs more\n", "", shown - MAX_UNTRACED);
}

static void show_trace(FILE *out, struct json_object *r)
{
	if (field_true(r, "trace.degraded")) {
		fputs("degraded: no trace: ", out);
		text_puts(out, field_text(r, "trace.why"), 160);
		fputc('\n', out);
	} else {
		show_untraced(out, r);
	}
	if (!field_text(r, "trace.sizesNote"))
		return;
	label(out, "Rings");
	text_puts(out, field_text(r, "trace.sizesNote"), 120);
	fputc('\n', out);
}

/* The worst of all CPUs; false: none has FIELD. */
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

static void show_freeze(FILE *out, struct json_object *r)
{
	uint64_t skew, dark;

	if (!worst_of(r, "skewNSec", &skew) || !worst_of(r, "darkNSec", &dark))
		return;
	label(out, "Freeze");
	fprintf(out, "all CPUs stopped within %s, dark for %s at most\n", figure_nsec(skew).text,
		figure_nsec(dark).text);
}

static void show_processes(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "processes");
	struct json_object *p;

	for (size_t i = 0; i < n && i < MAX_PROCESSES; i++) {
		const char *command;

		p = field_at(r, "processes", i);
		command = field_text(p, "cmdline");
		label(out, "Process");
		fprintf(out, "%s ", figure_field_id(p, "pid").text);
		text_puts(out, command ? command : field_text(p, "exe"), 70);
		fputc('\n', out);
	}
	if (n > MAX_PROCESSES)
		fprintf(out, "%-10sand %zu more\n", "", n - MAX_PROCESSES);
}

/* How long before the end of what was decoded AT is. */
static bool span_to_end(struct json_object *r, const char *at, uint64_t *ret)
{
	int64_t begin, end;

	if (!field_i64(r, at, &begin) || !field_i64(r, "decoded.untilNSec", &end) || begin > end)
		return false;
	*ret = (uint64_t)end - (uint64_t)begin;
	return true;
}

/* Of a decode that had a deadline: which part of the trace it is. */
static void show_decoded(FILE *out, struct json_object *r)
{
	uint64_t part, whole, bytes = 0, left;

	if (!field_get(r, "decoded"))
		return;
	label(out, "Window");
	if (field_true(r, "decoded.complete"))
		fputs("all of it", out);
	else if (!field_u64(r, "decoded.bytes", &bytes) || bytes == 0)
		fputs("nothing", out);
	else if (span_to_end(r, "decoded.sinceNSec", &part) &&
		 span_to_end(r, "decoded.traceSinceNSec", &whole))
		fprintf(out, "the last %s of %s", figure_nsec(part).text, figure_nsec(whole).text);
	else
		fprintf(out, "the newest %s of %s", figure_bytes(bytes).text,
			figure_field_bytes(r, "decoded.traceBytes").text);
	fprintf(out, " decoded (deadline %s)", figure_field_nsec(r, "decoded.deadlineNSec").text);
	if (field_u64(r, "decoded.lastStretches", &left) && left > 0)
		fprintf(out, ", and the last of %s threads before",
			figure_field_count(r, "decoded.lastStretches").text);
	if (field_u64(r, "decoded.lastStretchesLeft", &left) && left > 0)
		fprintf(out, "; %s more not looked for",
			figure_field_count(r, "decoded.lastStretchesLeft").text);
	fputc('\n', out);
}

static void show_coverage(FILE *out, struct json_object *r)
{
	uint64_t uid;

	/* For one user it is not told. */
	if (!field_u64(r, "onlyUid", &uid)) {
		label(out, "Coverage");
		fprintf(out, "%s: %s of %s, %s of %s\n",
			figure_field_percent(r, "coverage.percent").text,
			figure_field_bytes(r, "coverage.bytesDecoded").text,
			figure_field_bytes(r, "coverage.bytes").text,
			figure_field_nsec(r, "coverage.nsecDecoded").text,
			figure_field_nsec(r, "coverage.nsec").text);
	}
	label(out, "Decoded");
	fprintf(out, "%s instructions, %s branches, %s gaps\n",
		figure_field_count(r, "totals.instructions").text,
		figure_field_count(r, "totals.branches").text,
		figure_field_count(r, "totals.gaps").text);
}

static void show_gap_counts(FILE *out, struct json_object *r)
{
	struct json_object *counts = field_get(r, "gapCounts");
	size_t n = 0;

	if (!json_object_is_type(counts, json_type_object) || json_object_object_length(counts) < 1)
		return;
	label(out, "Gaps");
	json_object_object_foreach(counts, kind, count)
	{
		if (n++ >= MAX_KINDS)
			continue;
		fputs(n > 1 ? ", " : "", out);
		text_puts(out, kind, 24);
		fprintf(out, " %s", figure_field_count(count, "").text);
	}
	if (n > MAX_KINDS)
		fprintf(out, ", and %zu kinds more", n - MAX_KINDS);
	fputc('\n', out);
}

/* What the report itself leaves out. */
static void show_cut(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cut");
	struct json_object *cut;

	if (n == 0)
		return;
	label(out, "Cut");
	for (size_t i = 0; i < n && i < MAX_KINDS; i++) {
		cut = field_at(r, "cut", i);
		fputs(i > 0 ? ", " : "", out);
		text_puts(out, field_text(cut, "what"), 24);
		fprintf(out, " %s of %s", figure_field_count(cut, "kept").text,
			figure_field_count(cut, "total").text);
	}
	fputc('\n', out);
}

/* The second attempt of a decoder whose first one failed. */
static void show_names_left_out(FILE *out, struct json_object *r)
{
	if (!field_true(r, "namesLeftOut"))
		return;
	label(out, "Names");
	fputs("left out, the decoder failed with them\n", out);
}

void show_report(FILE *out, struct json_object *report)
{
	show_identity(out, report);
	show_host(out, report);
	show_trigger(out, report);
	show_only(out, report);
	show_source(out, report);
	show_trace(out, report);
	show_freeze(out, report);
	show_processes(out, report);
	show_decoded(out, report);
	show_names_left_out(out, report);
	show_coverage(out, report);
	show_events(out, report);
	show_gap_counts(out, report);
	show_cut(out, report);
	show_table_cpus(out, report);
	show_turns(out, report);
	show_table_threads(out, report);
	show_table_stack(out, report);
	show_table_branches(out, report);
	show_table_functions(out, report);
	show_table_gaps(out, report);
}
