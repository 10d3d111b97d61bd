/*
 * The tables of the summary of a report.
 */
#include "ctl/show/show_private.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define MAX_THREADS   5
#define MAX_FRAMES    6
#define MAX_INLINED   6 /* of all shown frames together */
#define MAX_BRANCHES  4
#define MAX_FUNCTIONS 6
#define MAX_GAPS      6 /* one of each kind */

void show_cell(FILE *out, const char *text, size_t width)
{
	size_t used = text_puts(out, text, width);

	for (; used <= width; used++)
		fputc(' ', out);
}

static void show_name(FILE *out, const char *text, size_t width)
{
	size_t used = name_puts(out, text, width);

	for (; used <= width; used++)
		fputc(' ', out);
}

void show_more(FILE *out, size_t n, size_t shown)
{
	if (n > shown)
		fprintf(out, "  ... and %zu more\n", n - shown);
}

/* Prints the heading of a table unless array NAME is empty, and returns the array's length. */
static size_t begin(FILE *out, struct json_object *r, const char *name, const char *head)
{
	size_t n = field_count(r, name);

	if (n > 0)
		fprintf(out, "\n%s\n", head);
	return n;
}

const char *show_file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path;
}

/* The file name of the image whose index OWNER has. */
static const char *image_name(struct json_object *r, struct json_object *owner)
{
	uint64_t index;

	if (!field_u64(owner, "image", &index) || index > SIZE_MAX)
		return NULL;
	return show_file_name(field_text(field_at(r, "images", (size_t)index), "path"));
}

void show_table_cpus(FILE *out, struct json_object *r)
{
	size_t n = begin(
		out, r, "cpus",
		"CPU        GOT       TIME  INSTRUCTIONS    COVERED      EXACT       DARK   LOST");

	for (size_t i = 0; i < SHOW_CPUS(n); i++) {
		struct json_object *c = field_at(r, "cpus", i);

		fprintf(out, "%3s %10s %10s %13s %10s %10s %10s %6s\n",
			figure_field_id(c, "cpu").text, figure_field_bytes(c, "gotBytes").text,
			figure_field_nsec(c, "gotNSec").text,
			figure_field_count(c, "instructions").text,
			figure_field_percent(c, "coveragePercent").text,
			figure_field_percent(c, "exactPercent").text,
			figure_field_nsec(c, "darkNSec").text,
			figure_field_count(c, "lostRecords").text);
	}
	show_more(out, n, SHOW_CPUS(n));
}

void show_table_threads(FILE *out, struct json_object *r)
{
	size_t n = begin(
		out, r, "threads",
		"     PID      TID COMM              INSTRUCTIONS      BRANCHES   CPU TIME  CPUS");

	for (size_t i = 0; i < n && i < MAX_THREADS; i++) {
		struct json_object *t = field_at(r, "threads", i);
		const char *window = field_text(t, "window");
		bool only_last_stretch = window && strcmp(window, "last-stretch") == 0;
		char cpus[24] = "";
		uint64_t tid;

		if (field_u64(t, "tid", &tid))
			show_turns_cpus_of(r, tid, cpus, sizeof(cpus));
		fprintf(out, "%8s %8s ", figure_field_id(t, "pid").text,
			figure_field_id(t, "tid").text);
		show_cell(out, field_text(t, "comm"), 15);
		fprintf(out, "%14s %13s %10s  %s%s\n", figure_field_count(t, "instructions").text,
			figure_field_count(t, "branches").text,
			figure_field_nsec(t, "cpuNSec").text, *cpus ? cpus : "-",
			only_last_stretch ? " (last stretch)" : "");
	}
	show_more(out, n, MAX_THREADS);
}

/* Prints a heading and returns the first thread whose array NAME has elements, NULL if none has. */
static struct json_object *thread_with(FILE *out, struct json_object *r, const char *name,
				       const char *head)
{
	size_t n = field_count(r, "threads");
	uint64_t tid = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *t = field_at(r, "threads", i);

		if (field_count(t, name) == 0)
			continue;
		field_u64(t, "tid", &tid);
		fprintf(out, "\n%s of thread %ju\n", head, (uintmax_t)tid);
		return t;
	}
	return NULL;
}

/* " at FILE:LINE" */
static void show_source(FILE *out, struct json_object *o)
{
	CLEANUP_FREE char *source = place_source(o);

	if (!source)
		return;
	fputs(" at ", out);
	name_puts_source(out, source, 40);
}

/* The functions inlined in a frame, innermost first. Prints and counts down at most *LEFT lines. */
static void show_inlined(FILE *out, struct json_object *frame, size_t *left)
{
	size_t n = field_count(frame, "inlined"), i;

	for (i = 0; i < n && *left != 0; i++, (*left)--) {
		struct json_object *f = field_at(frame, "inlined", i);

		fprintf(out, "%25s", "");
		name_puts(out, field_text(f, "name"), 48);
		fputs(" (inlined)", out);
		show_source(out, f);
		fputc('\n', out);
	}
	if (i < n)
		fprintf(out, "%25s... and %zu more inlined\n", "", n - i);
}

void show_table_stack(FILE *out, struct json_object *r)
{
	struct json_object *t = thread_with(out, r, "stack", "Call stack");
	size_t n = field_count(t, "stack"), inlined = MAX_INLINED;

	for (size_t i = 0; i < n && i < MAX_FRAMES; i++) {
		struct json_object *f = place_of_frame(r, t, i);
		uint64_t offset;

		show_inlined(out, f, &inlined);
		fprintf(out, "  #%-2zu ", i);
		show_cell(out, field_text(f, "address"), 18);
		name_puts(out, field_text(f, "name"), 48);
		if (field_text(f, "name") && field_u64(f, "offset", &offset))
			fprintf(out, "+0x%jx", (uintmax_t)offset);
		fputs("  ", out);
		text_puts(out, image_name(r, f), 24);
		show_source(out, f);
		fputc('\n', out);
	}
	show_more(out, n, MAX_FRAMES);
	if (field_true(t, "olderFrames"))
		fputs("  ... and callers from before the decoded part of the trace\n", out);
}

static void show_branch(FILE *out, struct json_object *r, struct json_object *b)
{
	struct json_object *from = place_at(r, b, "from"), *to = place_at(r, b, "to");
	CLEANUP_FREE char *from_text = place_text(from), *to_text = place_text(to);
	CLEANUP_FREE char *from_line = place_line(from), *to_line = place_line(to);

	show_name(out, from_text, 30);
	fputs("-> ", out);
	if (!from_line && !to_line) {
		name_puts(out, to_text, 30);
		return;
	}
	show_name(out, to_text, 30);
	fputs("at ", out);
	name_puts_line(out, from_line, 24);
	fputs(" -> ", out);
	name_puts_line(out, to_line, 24);
}

void show_table_branches(FILE *out, struct json_object *r)
{
	struct json_object *t = thread_with(out, r, "lastBranches", "Last branches");
	size_t n = field_count(t, "lastBranches"), first = n > MAX_BRANCHES ? n - MAX_BRANCHES : 0;

	if (first > 0)
		fprintf(out, "  ... %zu before\n", first);
	for (size_t i = first; i < n; i++) {
		struct json_object *b = field_at(t, "lastBranches", i);

		fputs("  ", out);
		show_cell(out, field_text(b, "kind"), 9);
		if (field_text(b, "gap")) {
			text_puts(out, field_text(b, "gap"), 30);
		} else {
			show_branch(out, r, b);
		}
		fputc('\n', out);
	}
}

void show_table_functions(FILE *out, struct json_object *r)
{
	size_t n =
		begin(out, r, "functions", "  SELF INSTRUCTIONS         TOTAL      CALLS FUNCTION");

	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		struct json_object *f = field_at(r, "functions", i);
		CLEANUP_FREE char *source = place_source(f);

		fprintf(out, "%19s %13s %10s ", figure_field_count(f, "selfInstructions").text,
			figure_field_count(f, "totalInstructions").text,
			figure_field_count(f, "calls").text);
		show_name(out, place_name(f), 36);
		text_puts(out, image_name(r, f), 24);
		if (source) {
			fputs(" at ", out);
			name_puts_line(out, source, 30);
		}
		fputc('\n', out);
	}
	show_more(out, n, MAX_FUNCTIONS);
}

/* Whether a gap before INDEX has the same kind as the gap at INDEX. */
static bool kind_was_shown(struct json_object *r, size_t index)
{
	const char *kind = field_text(field_at(r, "gaps", index), "kind");

	for (size_t i = 0; kind && i < index; i++) {
		const char *other = field_text(field_at(r, "gaps", i), "kind");

		if (other && strcmp(kind, other) == 0)
			return true;
	}
	return false;
}

void show_table_gaps(FILE *out, struct json_object *r)
{
	size_t n = begin(out, r, "gaps",
			 "    N GAP               CPU      BYTES ADDRESS            WHY");
	bool numbered = false;
	size_t shown = 0;

	for (size_t i = 0; i < n && shown < MAX_GAPS; i++) {
		struct json_object *g = field_at(r, "gaps", i);
		uint64_t number, offset;

		if (kind_was_shown(r, i))
			continue;
		fprintf(out, "%5s ", figure_field_id(g, "n").text);
		show_cell(out, field_text(g, "kind"), 17);
		fprintf(out, "%3s %10s ", figure_field_id(g, "cpu").text,
			figure_field_bytes(g, "bytes").text);
		show_cell(out, field_text(place_at(r, g, "place"), "address"), 18);
		text_puts(out, field_text(g, "why"), 180);
		fputc('\n', out);
		/* Only a gap with an offset lies between packets. */
		numbered |= field_u64(g, "n", &number) && field_u64(g, "offset", &offset);
		shown++;
	}
	show_more(out, n, shown);
	if (numbered)
		fputs("The packets before gap N: ptsnapctl decode --view=packets --gap=N BUNDLE\n",
		      out);
}
