/*
 * The lists of a report, and their columns.
 *
 * A number that does not fit its column has three digits and a unit (12.3M); on a wide line it
 * fits. Numbers that the report does not have are "-".
 */
#include "ctl/show/list.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

static const struct figure NONE = {.text = "-"};

/* --- Numbers --- */

/* VALUE with three digits, in the greatest unit that keeps it above 1; the last of UNITS is NULL.
 */
static struct figure three_digits(double value, double factor, const char *const *units)
{
	bool whole = true;
	struct figure f;
	int digits;

	for (; value >= factor - 0.5 && units[1]; units++) {
		value /= factor;
		whole = false;
	}
	digits = whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(f.text, sizeof(f.text), "%.*f%s", digits, value, *units);
	return f;
}

/* Figure EXACT of VALUE, or three digits of it where EXACT is wider than the cell. */
static struct figure fit(const struct list_cell *c, struct figure exact, double value,
			 double factor, const char *const *units)
{
	return strlen(exact.text) <= c->width ? exact : three_digits(value, factor, units);
}

static struct figure of_id(const struct list_cell *c)
{
	return figure_field_id(c->row, c->path);
}

static struct figure of_count(const struct list_cell *c)
{
	static const char *const units[] = {"", "k", "M", "G", "T", "P", "E", NULL};
	uint64_t n;

	if (!field_u64(c->row, c->path, &n))
		return NONE;
	return fit(c, figure_count(n), (double)n, 1000, units);
}

static struct figure of_ratio(const struct list_cell *c)
{
	struct figure f = NONE;
	double v;

	if (field_double(c->row, c->path, &v))
		snprintf(f.text, sizeof(f.text), "%.2f", v);
	return f;
}

static struct figure of_bytes(const struct list_cell *c)
{
	static const char *const units[] = {"", "K", "M", "G", "T", "P", "E", NULL};
	uint64_t n;

	if (!field_u64(c->row, c->path, &n))
		return NONE;
	return fit(c, figure_bytes(n), (double)n, 1024, units);
}

static struct figure time_figure(const struct list_cell *c, uint64_t ns)
{
	static const char *const units[] = {"ns", "us", "ms", "s", NULL};
	struct figure days;

	/* More than five digits of seconds, such as those of a thread that blocked long ago. */
	if (ns >= UINT64_C(100000) * 1000000000 && c->width < 10) {
		snprintf(days.text, sizeof(days.text), "%jud",
			 (uintmax_t)MIN_OF(ns / (UINT64_C(86400) * 1000000000), 99999u));
		return days;
	}
	return fit(c, figure_nsec(ns), (double)ns, 1000, units);
}

static struct figure of_nsec(const struct list_cell *c)
{
	uint64_t ns;

	return field_u64(c->row, c->path, &ns) ? time_figure(c, ns) : NONE;
}

/* How long before the trigger. */
static struct figure of_age(const struct list_cell *c)
{
	int64_t at;

	if (!field_i64(c->row, c->path, &at) || at > 0)
		return NONE;
	return time_figure(c, 0 - (uint64_t)at);
}

/* From the time at PATH to untilNSec. */
static struct figure of_length(const struct list_cell *c)
{
	int64_t at, until;

	if (!field_i64(c->row, c->path, &at) || !field_i64(c->row, "untilNSec", &until) ||
	    until < at)
		return NONE;
	return time_figure(c, (uint64_t)until - (uint64_t)at);
}

/* Microseconds from the trigger, with all digits. */
static struct figure of_at(const struct list_cell *c)
{
	struct figure f;
	uint64_t ns;
	int64_t at;

	if (!field_i64(c->row, c->path, &at))
		return NONE;
	ns = at < 0 ? 0 - (uint64_t)at : (uint64_t)at;
	snprintf(f.text, sizeof(f.text), "%s%.24s.%03u", at < 0 ? "-" : "",
		 figure_count(ns / 1000).text, (unsigned)(ns % 1000));
	return f;
}

/* Percent of all decoded instructions, rounded down: only the whole is 100. */
static struct figure of_share(const struct list_cell *c)
{
	struct figure f;
	uint64_t n, all;

	if (!field_u64(c->row, c->path, &n) || !field_u64(c->report, "totals.instructions", &all) ||
	    all == 0 || n > all)
		return NONE;
	snprintf(f.text, sizeof(f.text), "%.2f",
		 n == all ? 100 : MIN_OF(floor((double)n / (double)all * 1e4) / 100, 99.99));
	return f;
}

/* --- Texts --- */

static size_t put_text(FILE *out, const struct list_cell *c)
{
	return text_puts(out, field_text(c->row, c->path), c->width);
}

/* The end of a path says more than its beginning. */
static size_t put_path(FILE *out, const struct list_cell *c)
{
	return name_puts_source(out, field_text(c->row, c->path), c->width);
}

static size_t put_function(FILE *out, const struct list_cell *c)
{
	return name_puts(out, place_name(c->row), c->width);
}

static const char *path_of_image(struct json_object *report, struct json_object *owner)
{
	uint64_t index;

	if (!field_u64(owner, "image", &index) || index > SIZE_MAX)
		return NULL;
	return field_text(field_at(report, "images", (size_t)index), "path");
}

static size_t put_image(FILE *out, const struct list_cell *c)
{
	return text_puts(out, show_file_name(path_of_image(c->report, c->row)), c->width);
}

static size_t put_stack_top(FILE *out, const struct list_cell *c)
{
	return name_puts(out, place_name(place_of_frame(c->report, c->row, 0)), c->width);
}

static size_t put_caller(FILE *out, const struct list_cell *c)
{
	return name_puts(out, place_name(place_of_frame(c->report, c->row, 1)), c->width);
}

static size_t put_address(FILE *out, const struct list_cell *c)
{
	return text_puts(out, field_text(place_at(c->report, c->row, c->path), "address"),
			 c->width);
}

/* "?" stands for a state that lost records could contradict. */
static size_t put_state(FILE *out, const struct list_cell *c)
{
	struct json_object *certain = field_get(c->row, "state.certain");
	size_t used = text_puts(out, field_text(c->row, c->path), c->width - 1);

	if (!certain || field_true(c->row, "state.certain"))
		return used;
	fputc('?', out);
	return used + 1;
}

static size_t put_system_call(FILE *out, const struct list_cell *c)
{
	const char *name = field_text(c->row, "state.systemCall.name");

	if (name)
		return text_puts(out, name, c->width);
	return text_puts(out, figure_field_id(c->row, "state.systemCall.number").text, c->width);
}

static size_t put_command(FILE *out, const struct list_cell *c)
{
	const char *text = field_text(c->row, "cmdline");

	return text_puts(out, text ? text : field_text(c->row, "exe"), c->width);
}

static size_t put_turn_comm(FILE *out, const struct list_cell *c)
{
	struct json_object *certain = field_get(c->row, "certain");

	if (certain && !field_true(c->row, "certain"))
		return text_puts(out, "(not certain)", c->width);
	return put_text(out, c);
}

/* --- Places --- */

/* Whether the function or place O is of the selection. */
static enum list_fits place_fits(struct json_object *report, struct json_object *o,
				 const struct show_select *s)
{
	enum list_fits name = list_text_fits(o, "name", s->function), image = LIST_YES;
	const char *path = path_of_image(report, o);

	if (name == LIST_NO && list_text_fits(o, "linkage", s->function) == LIST_YES)
		name = LIST_YES;
	if (s->image)
		image = list_pattern_fits(path, s->image);
	return list_both(name, image);
}

static enum list_fits stack_fits(struct json_object *report, struct json_object *thread,
				 const struct show_select *s)
{
	const size_t n = field_count(thread, "stack");
	enum list_fits fits = n == 0 ? LIST_UNKNOWN : LIST_NO;

	if (!s->function && !s->image)
		return LIST_YES;
	for (size_t i = 0; i < n && fits != LIST_YES; i++) {
		enum list_fits frame = place_fits(report, place_of_frame(report, thread, i), s);

		if (frame != LIST_NO)
			fits = frame;
	}
	return fits;
}

/* Whether PROCESS has a thread that is selected by its number, its name or its CPU. */
static enum list_fits threads_fit(struct json_object *report, struct json_object *process,
				  const struct show_select *s)
{
	struct show_select one = {.has_cpu = s->has_cpu,
				  .has_pid = true,
				  .has_tid = s->has_tid,
				  .cpu = s->cpu,
				  .tid = s->tid,
				  .comm = s->comm};
	enum list_fits fits = list_cut(report, "threads") ? LIST_UNKNOWN : LIST_NO;
	uint64_t pid;

	if (!s->has_cpu && !s->has_tid && !s->comm)
		return LIST_YES;
	if (!field_u64(process, "pid", &pid) || pid > UINT32_MAX)
		return LIST_UNKNOWN;
	one.pid = (uint32_t)pid;
	for (size_t i = 0; i < field_count(report, "threads") && fits != LIST_YES; i++) {
		enum list_fits thread = list_row_fits(show_list_find("threads"), report,
						      field_at(report, "threads", i), &one);

		if (thread != LIST_NO)
			fits = thread;
	}
	return fits;
}

static enum list_fits process_fits(struct json_object *report, struct json_object *process,
				   const struct show_select *s)
{
	return list_both(list_text_fits(process, "exe", s->image), threads_fit(report, process, s));
}

static enum list_fits path_fits(struct json_object *report, struct json_object *image,
				const struct show_select *s)
{
	(void)report;
	return list_text_fits(image, "path", s->image);
}

/* --- The lists --- */

static const struct list_column FUNCTIONS[] = {
	{"SELF", "insn", "selfInstructions", 5, 15, 0, of_count, NULL},
	{"SELF", "% all", "selfInstructions", 6, 6, 0, of_share, NULL},
	{"SELF", "time", "selfNSec", 0, 9, 0, of_nsec, NULL},
	{"IPC", "insn/cy", "instructionsPerCycle", 0, 7, 0, of_ratio, NULL},
	{"TOTAL", "insn", "totalInstructions", 5, 15, 0, of_count, NULL},
	{"CALLS", "number", "calls", 6, 13, 0, of_count, NULL},
	{"P50", "time", "durations.p50NSec", 6, 9, 0, of_nsec, NULL},
	{"P90", "time", "durations.p90NSec", 6, 9, 0, of_nsec, NULL},
	{"P99", "time", "durations.p99NSec", 6, 9, 0, of_nsec, NULL},
	{"MAX", "time", "durations.maxNSec", 6, 9, 0, of_nsec, NULL},
	{"FUNCTION", "", "", 8, 8, 2, NULL, put_function},
	{"IMAGE", "", "", 5, 5, 1, NULL, put_image},
};
static const struct list_column THREADS[] = {
	{"PID", "", "pid", 7, 7, 0, of_id, NULL},
	{"TID", "", "tid", 7, 7, 0, of_id, NULL},
	{"COMM", "", "comm", 10, 15, 0, NULL, put_text},
	{"STATE", "at trigger", "state.kind", 10, 10, 0, NULL, put_state},
	{"IN CALL", "system", "state", 0, 14, 0, NULL, put_system_call},
	{"FOR", "time", "state.sinceNSec", 6, 9, 0, of_age, NULL},
	{"CPU", "", "state.cpu", 3, 4, 0, of_id, NULL},
	{"ON CPU", "time", "cpuNSec", 6, 9, 0, of_nsec, NULL},
	{"RAN", "insn", "instructions", 5, 15, 0, of_count, NULL},
	{"IPC", "insn/cy", "instructionsPerCycle", 0, 7, 0, of_ratio, NULL},
	{"STACK TOP", "", "stack", 9, 9, 1, NULL, put_stack_top},
	{"CALLED BY", "", "stack", 0, 9, 1, NULL, put_caller},
};
static const struct list_column PROCESSES[] = {
	{"PID", "", "pid", 7, 7, 0, of_id, NULL},
	{"PPID", "", "ppid", 7, 7, 0, of_id, NULL},
	{"UID", "", "uid", 6, 10, 0, of_id, NULL},
	{"UNIT", "", "unit", 18, 28, 0, NULL, put_text},
	{"CONTAINER", "", "containerId", 0, 12, 0, NULL, put_text},
	{"COMMAND", "", "cmdline", 20, 20, 2, NULL, put_command},
	{"FILE", "", "exe", 0, 20, 1, NULL, put_path},
};
static const struct list_column IMAGES[] = {
	{"RAN", "insn", "instructions", 5, 15, 0, of_count, NULL},
	{"RAN", "% all", "instructions", 6, 6, 0, of_share, NULL},
	{"NO NAME", "insn", "unnamedInstructions", 7, 15, 0, of_count, NULL},
	{"SIZE", "bytes", "bytes", 5, 10, 0, of_bytes, NULL},
	{"BUILD ID", "", "buildId", 8, 40, 0, NULL, put_text},
	{"PATH", "", "path", 20, 20, 3, NULL, put_path},
	{"MISSING", "why", "missing", 7, 7, 1, NULL, put_text},
};
static const struct list_column GAPS[] = {
	{"N", "", "n", 5, 5, 0, of_id, NULL},
	{"KIND", "", "kind", 17, 22, 0, NULL, put_text},
	{"CPU", "", "cpu", 3, 4, 0, of_id, NULL},
	{"AT", "us, trigger 0", "atNSec", 14, 18, 0, of_at, NULL},
	{"LENGTH", "time", "atNSec", 6, 9, 0, of_length, NULL},
	{"LENGTH", "bytes", "bytes", 0, 10, 0, of_bytes, NULL},
	{"TIMES", "number", "count", 0, 11, 0, of_count, NULL},
	{"ADDRESS", "", "place", 0, 18, 0, NULL, put_address},
	{"WHY", "", "why", 10, 10, 1, NULL, put_text},
};
static const struct list_column TURNS[] = {
	{"CPU", "", "cpu", 3, 4, 0, of_id, NULL},
	{"FROM", "us, trigger 0", "atNSec", 15, 20, 0, of_at, NULL},
	{"UNTIL", "us, trigger 0", "untilNSec", 15, 20, 0, of_at, NULL},
	{"LENGTH", "time", "atNSec", 8, 10, 0, of_length, NULL},
	{"PID", "", "pid", 7, 7, 0, of_id, NULL},
	{"TID", "", "tid", 7, 7, 0, of_id, NULL},
	{"COMM", "", "comm", 16, 16, 1, NULL, put_turn_comm},
};

static const char *const OF_FUNCTIONS[] = {"from", "to",       "cpu",	"pid", "tid",
					   "comm", "function", "image", NULL};
static const char *const OF_THREADS[] = {"from", "to",	     "cpu",   "pid", "tid",
					 "comm", "function", "image", NULL};
static const char *const OF_PROCESSES[] = {"from", "to",   "cpu",   "pid",
					   "tid",  "comm", "image", NULL};
static const char *const OF_IMAGES[] = {"from", "to", "cpu", "pid", "tid", "comm", "image", NULL};
static const char *const OF_GAPS[] = {"from", "to", "cpu", NULL};
static const char *const OF_TURNS[] = {"from", "to", "cpu", "pid", "tid", "comm", NULL};

#define COLUMNS(list) .columns = (list), .n_columns = ARRAY_SIZE(list)

static const struct show_list LISTS[] = {
	{.name = "functions",
	 .unlisted = "functionsUnlisted",
	 .options = OF_FUNCTIONS,
	 .counted = true,
	 .place = place_fits,
	 COLUMNS(FUNCTIONS)},
	{.name = "threads",
	 .unlisted = "threadsUnlisted",
	 .options = OF_THREADS,
	 .cpu = "state.cpu",
	 .pid = "pid",
	 .tid = "tid",
	 .comm = "comm",
	 .place = stack_fits,
	 COLUMNS(THREADS)},
	{.name = "processes",
	 .options = OF_PROCESSES,
	 .pid = "pid",
	 .of_threads = true,
	 .place = process_fits,
	 COLUMNS(PROCESSES)},
	{.name = "images",
	 .options = OF_IMAGES,
	 .counted = true,
	 .place = path_fits,
	 COLUMNS(IMAGES)},
	{.name = "gaps", .options = OF_GAPS, .cpu = "cpu", COLUMNS(GAPS)},
	{.name = "turns",
	 .options = OF_TURNS,
	 .cpu = "cpu",
	 .pid = "pid",
	 .tid = "tid",
	 .comm = "comm",
	 .newest = true,
	 COLUMNS(TURNS)},
};

const struct show_list *show_list_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
		if (strcmp(LISTS[i].name, name) == 0)
			return &LISTS[i];
	return NULL;
}

bool show_list_is_counted(const struct show_list *list)
{
	return list->counted;
}

const char *const *show_list_options(const struct show_list *list)
{
	return list->options;
}
