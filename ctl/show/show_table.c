/*
 * Tables of the summary. Called by show.c.
 */
#include "ctl/show/show_table.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/figure.h"
#include "ctl/base/text.h"
#include "ctl/show/name.h"
#include "ctl/show/show_turns.h"

#define MAX_THREADS   5
#define MAX_FRAMES    6
#define MAX_INLINED   6 /* of all those frames together */
#define MAX_BRANCHES  4
#define MAX_FUNCTIONS 6
#define MAX_GAPS      6 /* one of a kind */

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

static size_t begin(FILE *out, struct json_object *r, const char *name, const char *head)
{
	size_t n = field_count(r, name);

	if (n > 0)
		fprintf(out, "\n%s\n", head);
	return n;
}

/* The file name of images[INDEX], without its directories. */
static const char *image_name(struct json_object *r, struct json_object *owner)
{
	const char *path, *slash;
	uint64_t index;

	if (!field_u64(owner, "image", &index) || index > SIZE_MAX)
		return NULL;
	path = field_text(field_at(r, "images", (size_t)index), "path");
	slash = path ? strrchr(path, '/') : NULL;
	return slash && slash[1] ? slash + 1 : path;
}

void show_table_cpus(FILE *out, struct json_object *r)
{
	size_t n = begin(out, r, "cpus",
			 "CPU        GOT       TIME  INSTRUCTIONS    COVERED       DARK   LOST");

	for (size_t i = 0; i < SHOW_CPUS(n); i++) {
		struct json_object *c = field_at(r, "cpus", i);

		fprintf(out, "%3s %10s %10s %13s %10s %10s %6s\n", figure_field_id(c, "cpu").text,
			figure_field_bytes(c, "gotBytes").text,
			figure_field_nsec(c, "gotNSec").text,
			figure_field_count(c, "instructions").text,
			figure_field_percent(c, "coveragePercent").text,
			figure_field_nsec(c, "darkNSec").text,
			figure_field_count(c, "lostRecords").text);
	}
	show_more(out, n, SHOW_CPUS(n));
}

/* It did not run within the part that was decoded. */
static bool is_before(struct json_object *thread)
{
	const char *window = field_text(thread, "window");

	return window && strcmp(window, "last-stretch") == 0;
}

void show_table_threads(FILE *out, struct json_object *r)
{
	size_t n = begin(
		out, r, "threads",
		"     PID      TID COMM              INSTRUCTIONS      BRANCHES   CPU TIME  CPUS");

	for (size_t i = 0; i < n && i < MAX_THREADS; i++) {
		struct json_object *t = field_at(r, "threads", i);
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
			is_before(t) ? " (last stretch)" : "");
	}
	show_more(out, n, MAX_THREADS);
}

/* The first thread whose array NAME has elements, with a heading; NULL: none. */
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
	if (!field_text(o, "source"))
		return;
	fputs(" at ", out);
	name_puts_source(out, field_text(o, "source"), 40);
}

/* What was inlined in a frame, innermost first; *LEFT lines more may be printed. */
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

static void show_frame(FILE *out, struct json_object *r, struct json_object *f, size_t i)
{
	uint64_t offset;

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

void show_table_stack(FILE *out, struct json_object *r)
{
	struct json_object *t = thread_with(out, r, "stack", "Call stack");
	size_t n = field_count(t, "stack"), inlined = MAX_INLINED;

	for (size_t i = 0; i < n && i < MAX_FRAMES; i++) {
		struct json_object *f = field_at(t, "stack", i);

		show_inlined(out, f, &inlined);
		show_frame(out, r, f, i);
	}
	show_more(out, n, MAX_FRAMES);
	if (field_true(t, "olderFrames"))
		fputs("  ... and what called it before what was decoded\n", out);
}

/* NAME or, without, the address. */
static const char *end_of(struct json_object *o, const char *name, const char *address)
{
	const char *text = field_text(o, name);

	return text ? text : field_text(o, address);
}

/* Where a branch led, and the lines of both ends. */
static void show_end(FILE *out, struct json_object *b)
{
	const char *from = field_text(b, "fromSource"), *to = field_text(b, "toSource");

	if (!from && !to) {
		name_puts(out, end_of(b, "toName", "to"), 30);
		return;
	}
	show_name(out, end_of(b, "toName", "to"), 30);
	fputs("at ", out);
	name_puts_line(out, from, 24);
	fputs(" -> ", out);
	name_puts_line(out, to, 24);
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
		show_name(out, end_of(b, "fromName", "from"), 30);
		fputs("-> ", out);
		show_end(out, b);
		fputc('\n', out);
	}
}

void show_table_functions(FILE *out, struct json_object *r)
{
	size_t n =
		begin(out, r, "functions", "  SELF INSTRUCTIONS         TOTAL      CALLS FUNCTION");

	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		struct json_object *f = field_at(r, "functions", i);

		fprintf(out, "%19s %13s %10s ", figure_field_count(f, "selfInstructions").text,
			figure_field_count(f, "totalInstructions").text,
			figure_field_count(f, "calls").text);
		show_name(out, end_of(f, "name", "address"), 36);
		text_puts(out, image_name(r, f), 24);
		if (field_text(f, "source")) {
			fputs(" at ", out);
			name_puts_line(out, field_text(f, "source"), 30);
		}
		fputc('\n', out);
	}
	show_more(out, n, MAX_FUNCTIONS);
}

/* Whether an element of gaps before INDEX has the same kind. */
static bool kind_is_known(struct json_object *r, size_t index)
{
	const char *kind = field_text(field_at(r, "gaps", index), "kind");

	for (size_t i = 0; kind && i < index; i++) {
		const char *other = field_text(field_at(r, "gaps", i), "kind");

		if (other && strcmp(kind, other) == 0)
			return true;
	}
	return false;
}

static void show_gap(FILE *out, struct json_object *g)
{
	fprintf(out, "%5s ", figure_field_id(g, "n").text);
	show_cell(out, field_text(g, "kind"), 17);
	fprintf(out, "%3s %10s ", figure_field_id(g, "cpu").text,
		figure_field_bytes(g, "bytes").text);
	show_cell(out, field_text(g, "address"), 18);
	text_puts(out, field_text(g, "why"), 180);
	fputc('\n', out);
}

/* It has a place in the bytes of a trace, and a number to find it by. */
static bool is_in_trace(struct json_object *g)
{
	uint64_t n, offset;

	return field_u64(g, "n", &n) && field_u64(g, "offset", &offset);
}

/* The first one of each kind: a thousand of one kind must not hide the only one of another. */
void show_table_gaps(FILE *out, struct json_object *r)
{
	size_t n = begin(out, r, "gaps",
			 "    N GAP               CPU      BYTES ADDRESS            WHY");
	bool numbered = false;
	size_t shown = 0;

	for (size_t i = 0; i < n && shown < MAX_GAPS; i++) {
		if (kind_is_known(r, i))
			continue;
		show_gap(out, field_at(r, "gaps", i));
		numbered |= is_in_trace(field_at(r, "gaps", i));
		shown++;
	}
	show_more(out, n, shown);
	if (numbered)
		fputs("The packets before gap N: ptsnapctl decode --view=packets --gap=N BUNDLE\n",
		      out);
}
