/*
 * The page of `ptsnapctl diff': what A and B are, and what differs; and what differs from a
 * baseline, for the end of the page of `info'.
 */
#include "ctl/show/show.h"

#include <math.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/page.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define NAME_COLUMNS 60
#define INDENT	     22u
#define ROW_LINES    3
#define PATH_FRAMES  8u

/* --- The head --- */

static void put_percent(FILE *out, struct json_object *o, const char *path)
{
	double v;

	if (field_double(o, path, &v))
		fprintf(out, "%.2f %%", fmin(v, 1e6));
	else
		fputs("-", out);
}

static void put_side(FILE *out, struct json_object *o)
{
	text_puts(out, field_text(o, "id"), 48);
	fprintf(out, ", %s, host ", figure_field_date(o, "realtimeUSec").text);
	text_puts(out, field_text(o, "hostname"), 48);
	fprintf(out, ": %s for %s, ", figure_field_things(o, "cpus", "CPU").text,
		figure_field_nsec(o, "windowNSec").text);
	put_percent(out, o, "cpuPercent");
	fprintf(out, " of a CPU used, %s, %s of the trace decoded, %s",
		figure_field_things(o, "instructions", "instruction").text,
		figure_field_percent(o, "coveragePercent").text,
		figure_field_things(o, "gaps", "gap").text);
}

static void page_side(const struct page *p, const char *label, const char *key)
{
	struct page_text text;

	page_begin(&text);
	if (text.out)
		put_side(text.out, field_get(p->report, key));
	page_end(p, &text, label, 3, 4);
}

static void page_notes(const struct page *p)
{
	static const struct {
		const char *note, *text;
	} notes[] = {
		{"other-settings", "A and B were recorded with different settings; times and "
				   "shares may differ for that reason."},
		{"other-host", "A and B are of different hosts."},
		{"other-processor", "A and B are of different processors."},
		{"other-user", "A and B show the code of different users."},
		{"no-times", "A or B has no times; costs are shares of all instructions."},
		{"functions-cut", "A list of functions is cut; a function that is not in it is "
				  "not listed as new or gone."},
	};

	for (size_t i = 0; i < field_count(p->report, "notes"); i++) {
		struct json_object *o = field_at(p->report, "notes", i);
		const char *note = field_text(o, "");
		struct page_text text;

		page_begin(&text);
		for (size_t k = 0; text.out && note && k < ARRAY_SIZE(notes); k++)
			if (strcmp(note, notes[k].note) == 0)
				fputs(notes[k].text, text.out);
		page_end(p, &text, "!", 3, 0);
	}
}

/* --- Tables --- */

static void put_image(FILE *out, struct json_object *row)
{
	const char *file = show_file_name(field_text(row, "image"));

	if (!file)
		return;
	fputs(" in ", out);
	text_puts(out, file, 40);
}

/* "1.20 -> 13.54 % WHAT" of the numbers at KEY of A and B. */
static void put_change(const struct page *p, FILE *out, struct json_object *row, const char *key,
		       const char *format, const char *what)
{
	const char *sides[] = {"a", "b"};

	for (size_t i = 0; i < 2; i++) {
		struct json_object *side = field_get(row, sides[i]);
		double v;

		if (i > 0)
			fputs(p->style->utf8 ? " \u2192 " : " -> ", out);
		if (!side || !field_double(side, key, &v))
			fputs("-", out);
		else if (strcmp(format, "percent") == 0)
			fprintf(out, "%.2f", fmin(v, 1e6));
		else if (v < 100 && strcmp(format, "members") != 0)
			fprintf(out, "%.1f", v);
		else
			fputs(figure_count((uint64_t)fmin(v, 1e15)).text, out);
	}
	fputs(what, out);
}

static void put_cost_row(const struct page *p, FILE *out, struct json_object *row, bool threads)
{
	double v;

	if (threads)
		text_puts(out, field_text(row, "comm"), 16);
	else
		name_puts(out, field_text(row, "name"), NAME_COLUMNS);
	put_image(out, row);
	fputs(": ", out);
	if (field_double(row, "a.cpuPercent", &v) || field_double(row, "b.cpuPercent", &v)) {
		put_change(p, out, row, "cpuPercent", "percent", " % of a CPU, ");
		put_change(p, out, row, "perSec", "count", threads ? " turns/s, " : " calls/s, ");
	}
	put_change(p, out, row, "instructionsPercent", "percent", " % of instructions");
	if (threads) {
		fputs(", ", out);
		put_change(p, out, row, "members", "members", " threads");
	}
	if (field_true(row, "fewCounts"))
		fputs(threads ? "; few turns, may be chance" : "; few calls, may be chance", out);
}

static void page_cost_row(const struct page *p, struct json_object *row, bool threads)
{
	const char *kind = field_text(row, "kind");
	char mark[64];
	struct page_text text;
	double cost = 0;

	field_double(row, "costPercent", &cost);
	snprintf(mark, sizeof(mark), "%+9.2f %% %-10.10s", fmax(fmin(cost, 99999), -99999),
		 kind ? kind : "-");
	page_begin(&text);
	if (text.out)
		put_cost_row(p, text.out, row, threads);
	page_end(p, &text, mark, INDENT + 1, ROW_LINES);
}

static void put_quantiles(const struct page *p, FILE *out, struct json_object *row)
{
	static const struct {
		const char *key, *name;
	} quantiles[] = {
		{"p50NSec", "median "},
		{"p90NSec", ", 90 % within "},
		{"p99NSec", ", 99 % within "},
		{"maxNSec", ", the longest "},
	};
	struct json_object *a = field_get(row, "a"), *b = field_get(row, "b");

	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		fprintf(out, "%s%s%s%s", quantiles[i].name,
			figure_field_nsec(a, quantiles[i].key).text,
			p->style->utf8 ? " \u2192 " : " -> ",
			figure_field_nsec(b, quantiles[i].key).text);
	fprintf(out, " (%s and %s)", figure_field_count(a, "ended").text,
		figure_field_things(b, "ended", "call").text);
}

static void page_duration(const struct page *p, struct json_object *row)
{
	const char *kind = field_text(row, "kind");
	char mark[32];
	struct page_text text;

	snprintf(mark, sizeof(mark), "  %-8.8s", kind ? kind : "-");
	page_begin(&text);
	if (text.out) {
		name_puts(text.out, field_text(row, "name"), NAME_COLUMNS);
		put_image(text.out, row);
		fputs(": ", text.out);
		put_quantiles(p, text.out, row);
	}
	page_end(p, &text, mark, 11, ROW_LINES);
}

static void put_threads(FILE *out, struct json_object *side)
{
	fprintf(out, "%s of %s", figure_field_count(side, "threads").text,
		figure_field_count(side, "of").text);
}

static void page_path(const struct page *p, struct json_object *row)
{
	const char *kind = field_text(row, "kind");
	const size_t n = field_count(row, "frames");
	struct page_text text;
	char mark[32];

	snprintf(mark, sizeof(mark), "  %-10.10s", kind ? kind : "-");
	page_begin(&text);
	if (text.out) {
		text_puts(text.out, field_text(row, "comm"), 16);
		fputs(": ", text.out);
		for (size_t i = 0; i < n && i < PATH_FRAMES; i++) {
			if (i > 0)
				fputs(p->style->utf8 ? " \u2190 " : " <- ", text.out);
			name_puts(text.out, field_text(field_at(row, "frames", i), "name"),
				  NAME_COLUMNS);
		}
		if (n > PATH_FRAMES)
			fputs(p->style->utf8 ? " \u2190 ..." : " <- ...", text.out);
		fputs("; threads: ", text.out);
		put_threads(text.out, field_get(row, "a"));
		fputs(p->style->utf8 ? " \u2192 " : " -> ", text.out);
		put_threads(text.out, field_get(row, "b"));
	}
	page_end(p, &text, mark, 13, ROW_LINES);
}

static void page_gap(const struct page *p, struct json_object *row)
{
	fputs("  ", p->out);
	text_puts(p->out, field_text(row, "kind"), 24);
	fprintf(p->out, ": %s in %s%s%s in %s\n", figure_field_count(row, "a").text,
		figure_field_nsec(p->report, "a.windowNSec").text,
		p->style->utf8 ? " \u2192 " : " -> ", figure_field_count(row, "b").text,
		figure_field_nsec(p->report, "b.windowNSec").text);
}

static void page_function(const struct page *p, struct json_object *row)
{
	page_cost_row(p, row, false);
}

static void page_thread_row(const struct page *p, struct json_object *row)
{
	page_cost_row(p, row, true);
}

/* Returns how many rows there are, shown or not. */
static uint64_t page_table(const struct page *p, const char *key, const char *total_key,
			   const char *heading,
			   void (*show)(const struct page *p, struct json_object *row))
{
	const size_t n = field_count(p->report, key);
	uint64_t total = n;

	field_u64(p->report, total_key, &total);
	if (n == 0)
		return total;
	page_heading(p, heading);
	for (size_t i = 0; i < n; i++)
		show(p, field_at(p->report, key, i));
	show_more(p->out, (size_t)total, n);
	return total;
}

/* Returns how many rows there are, shown or not. */
static uint64_t page_tables(const struct page *p)
{
	const char *is = field_text(p->report, "costIs");
	const bool cpu = is && strcmp(is, "cpu") == 0;
	uint64_t n;

	n = page_table(p, "functions", "functionsTotal",
		       cpu ? "Functions, by their difference of CPU time, in percent of one CPU"
			   : "Functions, by their difference in percent of all instructions",
		       page_function);
	n += page_table(p, "durations", "durationsTotal",
			"Calls that take longer or shorter, by the time of all calls",
			page_duration);
	n += page_table(p, "threads", "threadsTotal", "Threads, by name", page_thread_row);
	n += page_table(p, "paths", "pathsTotal", "Call stacks at the trigger", page_path);
	return n + page_table(p, "gaps", "gapsTotal", "Gaps", page_gap);
}

void show_diff(FILE *out, struct json_object *diff, const struct show_style *style)
{
	const struct page p = {out, style, diff};

	page_side(&p, "A", "a");
	page_side(&p, "B", "b");
	page_notes(&p);
	if (page_tables(&p) == 0)
		fputs("\nNothing differs by more than counting noise (ptsnapctl(1), diff).\n", out);
}

void show_difference(FILE *out, struct json_object *diff, const struct show_style *style)
{
	const struct page p = {out, style, diff};

	page_heading(&p, "Different from the baseline (A) in this snapshot (B)");
	page_side(&p, "A", "a");
	page_notes(&p);
	if (page_tables(&p) == 0)
		fputs("   Nothing differs by more than counting noise (ptsnapctl(1), diff).\n",
		      out);
}
