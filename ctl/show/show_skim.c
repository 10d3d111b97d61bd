/*
 * The map of a skim for a terminal: the most sampled functions, the threads, the CPUs, and for each
 * slice of time the thread and the function with most samples.
 */
#include "ctl/show/show.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define MAX_FUNCTIONS 10
#define MAX_THREADS   8
#define MAX_SLICES    60
#define BAR	      10 /* columns, as many as "##########" */

/* The field's time from the trigger, negative before the trigger. */
static struct figure when(struct json_object *o, const char *path)
{
	struct figure f = {"-"}, size;
	int64_t ns;

	if (!field_i64(o, path, &ns))
		return f;
	size = figure_nsec(ns < 0 ? -(uint64_t)ns : (uint64_t)ns);
	snprintf(f.text, sizeof(f.text), "%s%.30s", ns < 0 ? "-" : "", size.text);
	return f;
}

static void show_totals(FILE *out, struct json_object *map)
{
	uint64_t n;

	fputs("Skim      ", out);
	text_puts(out, field_text(map, "id"), 48);
	fputs(", by ", out);
	text_puts(out, field_text(map, "skim"), 8);
	fprintf(out, ": %s samples, %s PSBs in %s\n", figure_field_count(map, "samples").text,
		figure_field_count(map, "psbs").text, figure_field_bytes(map, "traceBytes").text);
	if (field_text(map, "contents"))
		fprintf(out, "Contents  %s: recorded without %s\n",
			strcmp(field_text(map, "contents"), "targets") == 0 ? "targets" : "events",
			strcmp(field_text(map, "contents"), "targets") == 0
				? "TNT packets, so no code can be followed"
				: "branches");
	fprintf(out, "Time      %s to %s from the trigger\n", when(map, "fromNSec").text,
		when(map, "untilNSec").text);
	fprintf(out, "Faults    %s overflows, %s bad packets (%s skipped)",
		figure_field_count(map, "overflows").text,
		figure_field_count(map, "badPackets").text,
		figure_field_bytes(map, "badBytes").text);
	if (field_u64(map, "timeBackwards", &n) && n > 0)
		fprintf(out, ", %s times time runs backwards (%s skipped)",
			figure_field_count(map, "timeBackwards").text,
			figure_field_bytes(map, "timeBackwardsBytes").text);
	if (field_u64(map, "seams", &n) && n > 0)
		fprintf(out, ", %s places where the trace does not go on",
			figure_field_count(map, "seams").text);
	fprintf(out, ", head %s\n", figure_field_bytes(map, "headBytes").text);
}

static void show_functions(FILE *out, struct json_object *map)
{
	size_t n = field_count(map, "functions");

	if (n > 0)
		fputs("\n     TRACE      SAMPLES FUNCTION\n", out);
	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		struct json_object *f = field_at(map, "functions", i);

		fprintf(out, "%10s %12s ", figure_field_bytes(f, "bytes").text,
			figure_field_count(f, "samples").text);
		show_cell(out, field_text(f, "name"), 40);
		text_puts(out, show_file_name(field_text(f, "image")), 24);
		fputc('\n', out);
	}
	show_more(out, n, MAX_FUNCTIONS);
}

/* The name of the first element of LIST, NULL when LIST is empty. */
static const char *first_name(struct json_object *o, const char *list, const char *name)
{
	return field_count(o, list) > 0 ? field_text(field_at(o, list, 0), name) : NULL;
}

static void show_threads(FILE *out, struct json_object *map)
{
	size_t n = field_count(map, "threads");

	if (n > 0)
		fputs("\n     TRACE      SAMPLES      PID      TID COMM            MOST IN\n", out);
	for (size_t i = 0; i < n && i < MAX_THREADS; i++) {
		struct json_object *t = field_at(map, "threads", i);

		fprintf(out, "%10s %12s %8s %8s ", figure_field_bytes(t, "bytes").text,
			figure_field_count(t, "samples").text, figure_field_id(t, "pid").text,
			figure_field_id(t, "tid").text);
		show_cell(out, field_text(t, "comm"), 15);
		text_puts(out, first_name(t, "functions", "name"), 40);
		fputc('\n', out);
	}
	show_more(out, n, MAX_THREADS);
}

static void show_cpus(FILE *out, struct json_object *map)
{
	size_t n = field_count(map, "cpus");

	if (n > 1)
		fputs("\nCPU      TRACE      SAMPLES     PSBS       FROM      UNTIL MOST IN\n",
		      out);
	for (size_t i = 0; n > 1 && i < SHOW_CPUS(n); i++) {
		struct json_object *c = field_at(map, "cpus", i);

		fprintf(out, "%3s %10s %12s %8s %10s %10s ", figure_field_id(c, "cpu").text,
			figure_field_bytes(c, "traceBytes").text,
			figure_field_count(c, "samples").text, figure_field_count(c, "psbs").text,
			when(c, "fromNSec").text, when(c, "untilNSec").text);
		text_puts(out, first_name(c, "functions", "name"), 40);
		fputc('\n', out);
	}
	show_more(out, n, n > 1 ? SHOW_CPUS(n) : n);
}

/* A bar beside each slice compares its bytes with those of the slice that has most. */
static void show_slices(FILE *out, struct json_object *map)
{
	size_t n = field_count(map, "slices");
	uint64_t bytes, most = 1;

	for (size_t i = 0; i < n; i++)
		if (field_u64(field_at(map, "slices", i), "bytes", &bytes))
			most = MAX_OF(most, bytes);
	if (n > 0)
		fputs("\n      FROM      TRACE            COMM            MOST IN\n", out);
	for (size_t i = 0; i < n && i < MAX_SLICES; i++) {
		struct json_object *s = field_at(map, "slices", i);
		uint64_t columns;

		bytes = 0;
		field_u64(s, "bytes", &bytes);
		columns = (uint64_t)((double)bytes / (double)most * BAR + 0.5);
		fprintf(out, "%10s %10s %-*.*s ", when(s, "fromNSec").text,
			figure_field_bytes(s, "bytes").text, BAR, (int)MIN_OF(columns, BAR),
			"##########");
		show_cell(out, first_name(s, "threads", "comm"), 15);
		text_puts(out, first_name(s, "functions", "name"), 40);
		fputc('\n', out);
	}
}

void show_skim(FILE *out, struct json_object *map)
{
	show_totals(out, map);
	show_functions(out, map);
	show_threads(out, map);
	show_cpus(out, map);
	show_slices(out, map);
}
