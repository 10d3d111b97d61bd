/*
 * The page of `ptsnapctl info': the head, what stands out, where each thread was at the trigger,
 * where the instructions were, and what is missing.
 */
#include "ctl/show/show.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/page.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define COLUMNS_MIN   80u
#define COLUMNS_MAX   400u
#define MAX_THREADS   6
#define MANY_SUSPECTS 3 /* and more take so much room that fewer threads are shown: */
#define FEW_THREADS   3
#define MAX_FRAMES    8
#define MAX_FUNCTIONS 5
#define MAX_GAPS      4
#define THREAD_LINES  2 /* of a stack */
#define STATE_COLUMN  25u

struct show_style show_style_of_stdout(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	struct show_style style = {.columns = COLUMNS_MIN};
	struct winsize size;

	style.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!isatty(STDOUT_FILENO))
		return style;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		style.columns = MIN_OF(MAX_OF((unsigned)size.ws_col, COLUMNS_MIN), COLUMNS_MAX);
	style.color = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	return style;
}

/* --- The head --- */

static void put_optional(FILE *out, const char *before, const char *text, const char *behind)
{
	if (!text)
		return;
	fputs(before, out);
	text_puts(out, text, 120);
	fputs(behind, out);
}

static void put_trigger(FILE *out, struct json_object *r)
{
	uint64_t n;

	show_trigger_kind(out, r);
	put_optional(out, ", ", field_text(r, "trigger.name"), "");
	put_optional(out, ", \"", field_text(r, "trigger.reason"), "\"");
	if (field_u64(r, "trigger.sender.pid", &n))
		fprintf(out, ", by pid %ju", (uintmax_t)n);
	if (field_u64(r, "trigger.sender.uid", &n))
		fprintf(out, " uid %ju", (uintmax_t)n);
	put_optional(out, ", ", field_text(r, "trigger.unit"), "");
	put_optional(out, ", core dump ", field_text(r, "trigger.coredump"), "");
}

/* For how long the CPU with the longest window was traced. */
static uint64_t longest_window(struct json_object *r)
{
	uint64_t longest = 0, ns;

	for (size_t i = 0; i < field_count(r, "cpus"); i++)
		if (field_u64(field_at(r, "cpus", i), "gotNSec", &ns))
			longest = MAX_OF(longest, ns);
	return longest;
}

/* Whether R is about a slice that ends before the trigger. */
static bool ends_before(struct json_object *r)
{
	return field_get(r, "slice.toNSec") != NULL;
}

static void put_traced(FILE *out, struct json_object *r)
{
	const size_t cpus = field_count(r, "cpus");
	double exact;
	uint64_t uid;

	if (field_true(r, "trace.degraded")) {
		fputs("nothing: ", out);
		text_puts(out, field_text(r, "trace.why"), 160);
		return;
	}
	if (field_u64(r, "onlyUid", &uid))
		fprintf(out, "what certainly belongs to uid %ju: ", (uintmax_t)uid);
	else
		fprintf(out, "%s%s of %s, %s of trace, %s of it decoded; ",
			ends_before(r) ? "" : "the last ", figure_nsec(longest_window(r)).text,
			figure_things(cpus, "CPU").text,
			figure_field_bytes(r, "coverage.bytes").text,
			figure_field_percent(r, "coverage.percent").text);
	fputs(figure_field_things(r, "totals.instructions", "instruction").text, out);
	if (field_double(r, "coverage.exactPercent", &exact) && exact < 100)
		fprintf(out, " (%s of them exact)",
			figure_field_percent(r, "coverage.exactPercent").text);
	fprintf(out, ", %s, %s", figure_field_things(r, "totals.branches", "branch").text,
		figure_field_things(r, "totals.gaps", "gap").text);
}

static void put_process(FILE *out, struct json_object *r)
{
	const size_t n = field_count(r, "processes");
	struct json_object *p = field_at(r, "processes", 0);
	const char *command = field_text(p, "cmdline");

	fprintf(out, "%s ", figure_field_id(p, "pid").text);
	text_puts(out, command ? command : field_text(p, "exe"), 120);
	if (n > 1)
		fprintf(out, ", and %zu more", n - 1);
}

static void page_line(const struct page *p, const char *label,
		      void (*put)(FILE *out, struct json_object *r))
{
	struct page_text text;

	page_begin(&text);
	if (text.out)
		put(text.out, p->report);
	page_end(p, &text, label, PAGE_LABEL, 3);
}

static void put_snapshot(FILE *out, struct json_object *r)
{
	text_puts(out, field_text(r, "id"), 48);
	fprintf(out, ", %s, host ", figure_field_date(r, "trigger.realtimeUSec").text);
	text_puts(out, field_text(r, "host.hostname"), 48);
	put_optional(out, " (", field_text(r, "host.kernel"), ")");
}

static void put_part(FILE *out, struct json_object *r)
{
	uint64_t from, to = 0;

	if (field_get(r, "slice")) {
		if (page_age(r, "slice.fromNSec", &from))
			fprintf(out, "from %s before the trigger", figure_nsec(from).text);
		else
			fputs("from the begin of the trace", out);
		if (page_age(r, "slice.toNSec", &to))
			fprintf(out, " to %s before it", figure_nsec(to).text);
		else
			fputs(", to the end", out);
	}
	if (!field_get(r, "selected"))
		return;
	fprintf(out, "%s%s of %s, %s of %s that stand out", field_get(r, "slice") ? "; " : "",
		figure_field_count(r, "selected.threads").text,
		figure_field_things(r, "selected.threadsTotal", "thread").text,
		figure_field_count(r, "selected.suspects").text,
		figure_field_count(r, "selected.suspectsTotal").text);
}

int show_occasion(struct json_object *report, char **ret)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool before;

	if (!out)
		return -ENOMEM;
	before = text_escape_all(false);
	put_optional(out, "host ", field_text(report, "host.hostname"), ", ");
	fprintf(out, "%s, trigger: ", figure_field_date(report, "trigger.realtimeUSec").text);
	put_trigger(out, report);
	text_escape_all(before);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

static void page_head(const struct page *p)
{
	page_line(p, "Snapshot", put_snapshot);
	page_line(p, "Trigger", put_trigger);
	if (field_get(p->report, "slice") || field_get(p->report, "selected"))
		page_line(p, "Part", put_part);
	page_line(p, "Traced", put_traced);
	if (field_count(p->report, "processes") > 0)
		page_line(p, "Process", put_process);
}

/* --- A window in which nothing ran --- */

/* The thread that had a CPU last, if it is known when. */
static struct json_object *last_to_run(struct json_object *r, uint64_t *ret_ns)
{
	struct json_object *last = NULL;
	uint64_t ns;

	for (size_t i = 0; i < field_count(r, "threads"); i++) {
		struct json_object *t = field_at(r, "threads", i);

		if (!page_age(t, "state.sinceNSec", &ns) || (last && ns >= *ret_ns))
			continue;
		*ret_ns = ns;
		last = t;
	}
	return last;
}

static void put_empty(const struct page *p, FILE *out)
{
	struct json_object *r = p->report, *last;
	uint64_t ns, before = 0;

	if (field_get(r, "slice"))
		fputs("No traced thread ran in this part.", out);
	else if (field_u64(r, "window.askedNSec", &ns))
		fprintf(out, "In the %s before the trigger no traced thread ran.",
			figure_nsec(ns).text);
	else
		fputs("Nothing that was executed could be decoded.", out);
	if (page_age(r, "window.ringsSinceNSec", &ns))
		fprintf(out, " The rings go back %s.", figure_nsec(ns).text);
	last = last_to_run(r, &before);
	if (!last)
		return;
	fputs(" The last to run was ", out);
	page_who(p, out, last, "tid");
	fprintf(out, ", until %s before the trigger.", figure_nsec(before).text);
}

static void page_empty(const struct page *p)
{
	struct page_text text;
	uint64_t n;

	if (!field_u64(p->report, "totals.instructions", &n) || n > 0)
		return;
	fputc('\n', p->out);
	page_begin(&text);
	if (text.out)
		put_empty(p, text.out);
	page_end(p, &text, "", 2, 0);
}

/* --- Threads --- */

/* Threads with code in the window come first, as in the report, unless they are gone while others
 * are not. */
static bool is_shown_first(struct json_object *t)
{
	const char *kind = field_text(t, "state.kind");

	return !kind || strcmp(kind, "exited") != 0;
}

static void put_state(FILE *out, struct json_object *t)
{
	const char *kind = field_text(t, "state.kind"),
		   *call = field_text(t, "state.systemCall.name");
	uint64_t ns, number;

	if (!kind) {
		fputs("state not known", out);
		return;
	}
	text_puts(out, kind, 10);
	if (field_true(t, "state.uninterruptible"))
		fputs(" (uninterruptible)", out);
	if (!field_true(t, "state.certain") && strcmp(kind, "unknown") != 0)
		fputs(" (uncertain)", out);
	if (page_age(t, "state.sinceNSec", &ns))
		fprintf(out, strcmp(kind, "exited") == 0 ? " %s ago" : " for %s",
			figure_nsec(ns).text);
	if (call) {
		fputs(strcmp(kind, "exited") == 0 ? ", by " : ", in ", out);
		text_puts(out, call, 20);
	} else if (field_u64(t, "state.systemCall.number", &number)) {
		fprintf(out, ", in system call %ju", (uintmax_t)number);
	}
}

/* "   TID COMM", the caller's; NULL: no memory. */
static char *thread_mark(struct json_object *t)
{
	struct page_text mark;

	page_begin(&mark);
	if (!mark.out)
		return NULL;
	fprintf(mark.out, "%8s ", figure_field_id(t, "tid").text);
	text_puts(mark.out, field_text(t, "comm"), 15);
	return fclose(mark.out) == EOF ? NULL : mark.text;
}

static void page_thread_lines(const struct page *p, struct json_object *t)
{
	CLEANUP_FREE char *mark = thread_mark(t);
	const char *window = field_text(t, "window");
	struct json_object *known;
	struct page_text text;
	uint64_t insns = 0;

	page_begin(&text);
	if (text.out && !ends_before(p->report))
		put_state(text.out, t);
	if (text.out && window && strcmp(window, "last-stretch") == 0)
		fputs(", did not run", text.out);
	else if (text.out && field_u64(t, "instructions", &insns) && insns > 0)
		fprintf(text.out, "%sexecuted for %s", ends_before(p->report) ? "" : ", ",
			figure_field_nsec(t, "cpuNSec").text);
	page_end(p, &text, mark ? mark : "", STATE_COLUMN, 2);
	if (field_count(t, "stack") == 0)
		return;
	known = field_get(t, "state.codeKnown");
	page_begin(&text);
	if (text.out)
		page_stack(p, text.out, t, 0, MAX_FRAMES);
	if (text.out && known && !json_object_get_boolean(known))
		fputs(" (as of an earlier time on a CPU)", text.out);
	page_end(p, &text, "", PAGE_LABEL + 2, THREAD_LINES);
}

static void page_threads(const struct page *p)
{
	const size_t n = field_count(p->report, "threads");
	const size_t max =
		field_count(p->report, "suspects") < MANY_SUSPECTS ? MAX_THREADS : FEW_THREADS;
	size_t shown = 0;

	if (n == 0)
		return;
	page_heading(p, ends_before(p->report) ? "Threads where the part ends"
					       : "Threads at the trigger");
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < n && shown < max; i++) {
			struct json_object *t = field_at(p->report, "threads", i);

			if (is_shown_first(t) != (round == 0))
				continue;
			page_thread_lines(p, t);
			shown++;
		}
	show_more(p->out, n, shown);
}

/* --- Functions and gaps --- */

static void page_functions(const struct page *p)
{
	const size_t n = field_count(p->report, "functions");
	uint64_t all = 0;

	if (n == 0)
		return;
	field_u64(p->report, "totals.instructions", &all);
	page_heading(p, "Functions by their own instructions, in percent of all instructions");
	for (size_t i = 0; i < n && i < MAX_FUNCTIONS; i++) {
		struct json_object *f = field_at(p->report, "functions", i);
		uint64_t self = 0, image;
		const char *file = NULL;

		field_u64(f, "selfInstructions", &self);
		if (field_u64(f, "image", &image))
			file = field_text(field_at(p->report, "images", (size_t)image), "path");
		fprintf(p->out, "  %5.1f %% ",
			all > 0 && self <= all ? (double)self * 100 / (double)all : 0.0);
		name_puts(p->out, field_text(f, "name"), p->style->columns - 45);
		fprintf(p->out, ", calls %s", figure_field_count(f, "calls").text);
		put_optional(p->out, ", in ", show_file_name(file), "");
		fputc('\n', p->out);
	}
	show_more(p->out, n, MIN_OF(n, (size_t)MAX_FUNCTIONS));
}

static void put_gaps(FILE *out, struct json_object *r)
{
	struct json_object *counts = field_get(r, "gapCounts");
	size_t n = 0;

	json_object_object_foreach(counts, kind, count)
	{
		if (n++ >= MAX_GAPS)
			continue;
		fputs(n > 1 ? ", " : "", out);
		text_puts(out, kind, 24);
		fprintf(out, " %s", figure_field_count(count, "").text);
	}
	if (n > MAX_GAPS)
		fprintf(out, ", and %zu more kinds", n - MAX_GAPS);
	fputs("; see `ptsnapctl gaps'", out);
}

static void put_cut(FILE *out, struct json_object *r)
{
	const size_t n = field_count(r, "cut");

	for (size_t i = 0; i < n && i < MAX_GAPS; i++) {
		struct json_object *cut = field_at(r, "cut", i);

		fputs(i > 0 ? ", " : "", out);
		text_puts(out, field_text(cut, "what"), 24);
		fprintf(out, " %s of %s", figure_field_count(cut, "kept").text,
			figure_field_count(cut, "total").text);
	}
}

static void page_missing(const struct page *p)
{
	struct json_object *counts = field_get(p->report, "gapCounts");
	const bool gaps = json_object_is_type(counts, json_type_object) &&
			  json_object_object_length(counts) > 0;
	const bool names = page_names(p);

	if (!names && (gaps || field_count(p->report, "cut") > 0))
		fputc('\n', p->out);
	if (gaps)
		page_line(p, "Gaps", put_gaps);
	if (field_count(p->report, "cut") > 0)
		page_line(p, "Listed", put_cut);
}

void show_info(FILE *out, struct json_object *report, const struct show_style *style)
{
	const struct page p = {out, style, report};

	page_head(&p);
	page_suspects(&p);
	page_empty(&p);
	page_threads(&p);
	page_functions(&p);
	page_missing(&p);
}
