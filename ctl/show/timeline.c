/*
 * The events of a report, one a line, in the order of time over all CPUs.
 */
#include "ctl/show/timeline.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define RED   "\033[1;31m"
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

static const struct {
	const char *key;  /* of the report */
	const char *name; /* of the event in JSON */
} KINDS[TIMELINE_KINDS_N] = {
	[TIMELINE_RUN] = {"turns", "run"},
	[TIMELINE_GAP] = {"gaps", "gap"},
	[TIMELINE_FREQUENCY] = {"frequencies", "frequency"},
	[TIMELINE_PTWRITE] = {"ptwrites", "ptwrite"},
	[TIMELINE_POWER] = {"power", "power"},
	[TIMELINE_INTERRUPT] = {"interrupts", "interrupt"},
	[TIMELINE_ABORT] = {"aborts", "abort"},
	[TIMELINE_TRIGGER] = {"trigger", "trigger"},
};

/* --- Collecting --- */

void timeline_done(struct timeline_events *e)
{
	free(e->list);
	*e = (struct timeline_events){0};
}

static bool number_fits(struct json_object *row, const char *key, bool wanted, uint32_t n)
{
	uint64_t v;

	return !wanted || (field_u64(row, key, &v) && v == n);
}

/* Whether the thread of ROW is not known, though the selection asks for it. */
static bool is_unowned(struct json_object *row, const struct show_select *s)
{
	uint64_t v;

	return (s->has_pid && !field_u64(row, "pid", &v)) ||
	       (s->has_tid && !field_u64(row, "tid", &v)) ||
	       (s->comm && !field_text(row, "comm")) || (s->has_cpu && !field_u64(row, "cpu", &v));
}

static bool fits(struct json_object *row, const struct show_select *s)
{
	const char *comm = field_text(row, "comm");

	return number_fits(row, "cpu", s->has_cpu, s->cpu) &&
	       number_fits(row, "pid", s->has_pid, s->pid) &&
	       number_fits(row, "tid", s->has_tid, s->tid) &&
	       (!s->comm || (comm && fnmatch(s->comm, comm, 0) == 0));
}

static int append(struct timeline_events *e, enum timeline_kind kind, struct json_object *row)
{
	struct timeline_event event = {
		.kind = kind, .row = row, .order = e->n, .cpu = TIMELINE_NO_CPU};

	if (kind != TIMELINE_TRIGGER && !field_i64(row, "atNSec", &event.at)) {
		e->timeless++;
		return 0;
	}
	event.until = event.at;
	field_i64(row, "untilNSec", &event.until);
	event.until = MAX_OF(event.at, event.until);
	field_u64(row, "cpu", &event.cpu);
	if (ARRAY_RESERVE(e->list, e->capacity, e->n + 1) < 0)
		return -ENOMEM;
	e->list[e->n++] = event;
	return 0;
}

static int collect(struct json_object *report, const struct show_select *select,
		   struct timeline_events *e)
{
	int r = 0;

	for (int kind = 0; kind < TIMELINE_TRIGGER; kind++)
		for (size_t i = 0; i < field_count(report, KINDS[kind].key) && r == 0; i++) {
			struct json_object *row = field_at(report, KINDS[kind].key, i);

			if (is_unowned(row, select))
				e->unowned++;
			else if (fits(row, select))
				r = append(e, (enum timeline_kind)kind, row);
		}
	if (r == 0 && field_get(report, "trigger"))
		r = append(e, TIMELINE_TRIGGER, field_get(report, "trigger"));
	return r;
}

/* What the report does not have: its lists keep the newest. */
static void count_cut(struct json_object *report, struct timeline_events *e)
{
	for (size_t i = 0; i < field_count(report, "cut"); i++) {
		struct json_object *cut = field_at(report, "cut", i);
		const char *what = field_text(cut, "what");
		uint64_t kept = 0, total = 0;

		field_u64(cut, "kept", &kept);
		field_u64(cut, "total", &total);
		for (int kind = 0; what && kind < TIMELINE_TRIGGER; kind++)
			if (strcmp(what, KINDS[kind].key) == 0 && total > kept) {
				e->kept += kept;
				e->missing += total - kept;
			}
	}
}

/* The window: of the CPUs, or else of the events. */
static void find_window(struct json_object *report, struct timeline_events *e)
{
	bool begun = false, ended = false;

	for (size_t i = 0; i < field_count(report, "cpus"); i++) {
		struct json_object *cpu = field_at(report, "cpus", i);
		int64_t at;

		if (field_i64(cpu, "begin.atNSec", &at)) {
			e->first = begun ? MIN_OF(e->first, at) : at;
			begun = true;
		}
		if (field_i64(cpu, "end.atNSec", &at)) {
			e->last = ended ? MAX_OF(e->last, at) : at;
			ended = true;
		}
	}
	for (size_t i = 0; i < e->n && (!begun || !ended); i++) {
		e->first = begun || i > 0 ? MIN_OF(e->first, e->list[i].at) : e->list[i].at;
		e->last = MAX_OF(e->last, e->list[i].until);
	}
	e->last = MAX_OF(e->first, e->last);
}

static int64_t resolve(const struct show_time *t, int64_t first, int64_t otherwise)
{
	int64_t ns = t->ns > INT64_MAX ? INT64_MAX : (int64_t)t->ns, at;

	if (!t->given)
		return otherwise;
	if (t->before_trigger)
		return -ns;
	return __builtin_add_overflow(first, ns, &at) ? INT64_MAX : at;
}

/* Leaves out what lies outside of the selected time, and cuts what reaches over its ends. */
static int cut_span(const struct show_select *select, struct timeline_events *e)
{
	const int64_t from = resolve(&select->from, e->first, e->first);
	const int64_t to = resolve(&select->to, e->first, MAX_OF(e->last, 0));
	size_t n = 0;

	if (from > to)
		return -EINVAL;
	for (size_t i = 0; i < e->n; i++) {
		struct timeline_event event = e->list[i];

		if ((select->from.given && event.until < from) ||
		    (select->to.given && event.at > to))
			continue;
		e->list[n++] = event;
	}
	e->n = n;
	e->first = from;
	e->last = MAX_OF(from, select->to.given ? to : e->last);
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct timeline_event *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int timeline_collect(struct json_object *report, const struct show_select *select,
		     struct timeline_events *ret)
{
	int r;

	*ret = (struct timeline_events){0};
	r = collect(report, select, ret);
	if (r < 0)
		return r;
	count_cut(report, ret);
	find_window(report, ret);
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return cut_span(select, ret);
}

/* --- Lines --- */

/* WORDS of the number or text at KEY, or nothing. */
static void put_text(FILE *out, struct json_object *row, const char *words, const char *key)
{
	const char *text = field_text(row, key);

	if (!text)
		return;
	fputs(words, out);
	text_puts(out, text, 0);
}

static void put_number(FILE *out, struct json_object *row, const char *words, const char *key)
{
	uint64_t n;

	if (field_u64(row, key, &n))
		fprintf(out, "%s%" PRIu64, words, n);
}

static void put_run(FILE *out, const struct timeline_event *e)
{
	if (!field_true(e->row, "certain"))
		fputs("a thread that is not known runs", out);
	else
		fputs("runs", out);
	if (e->until > e->at)
		fprintf(out, " for %s", figure_nsec((uint64_t)e->until - (uint64_t)e->at).text);
}

static void put_gap(FILE *out, const struct timeline_event *e)
{
	uint64_t count = 0;

	put_text(out, e->row, "# gap ", "kind");
	if (e->until > e->at)
		fprintf(out, " of %s", figure_nsec((uint64_t)e->until - (uint64_t)e->at).text);
	if (field_u64(e->row, "count", &count) && count > 1)
		fprintf(out, ", %s times", figure_count(count).text);
	put_text(out, e->row, ": ", "why");
}

static void put_place(FILE *out, struct json_object *report, struct json_object *row)
{
	CLEANUP_FREE char *text = place_text(place_at(report, row, "place"));

	if (!text)
		return;
	fputs(" in ", out);
	text_puts(out, text, 0);
}

static void put_frequency(FILE *out, struct json_object *row)
{
	uint64_t mhz;

	if (field_u64(row, "mhz", &mhz))
		fprintf(out, "frequency %s MHz", figure_count(mhz).text);
	else
		put_number(out, row, "frequency, ratio ", "ratio");
}

static void put_event(FILE *out, struct json_object *report, const struct timeline_event *e)
{
	switch (e->kind) {
	case TIMELINE_RUN: put_run(out, e); break;
	case TIMELINE_GAP: put_gap(out, e); break;
	case TIMELINE_FREQUENCY: put_frequency(out, e->row); break;
	case TIMELINE_PTWRITE:
		put_text(out, e->row, "ptwrite ", "payload");
		put_place(out, report, e->row);
		break;
	case TIMELINE_POWER: put_text(out, e->row, "power ", "kind"); break;
	case TIMELINE_INTERRUPT:
		put_text(out, e->row, "interrupt ", "kind");
		put_number(out, e->row, ", vector ", "vector");
		put_place(out, report, e->row);
		break;
	case TIMELINE_ABORT:
		fputs("a transaction aborts", out);
		put_place(out, report, e->row);
		break;
	default:
		fputs("trigger", out);
		put_text(out, e->row, " ", "kind");
		put_text(out, e->row, " ", "name");
		break;
	}
}

/* Time, CPU, and thread. */
static void put_begin(FILE *out, const struct timeline_event *e)
{
	const char *comm = field_text(e->row, "comm");
	uint64_t tid;

	fprintf(out, "%13.6f ", (double)e->at / 1e6);
	if (e->cpu != TIMELINE_NO_CPU)
		fprintf(out, "%3" PRIu64 " ", e->cpu);
	else
		fprintf(out, "%3s ", "-");
	if (field_u64(e->row, "tid", &tid))
		fprintf(out, "%7" PRIu64 " ", tid);
	else
		fprintf(out, "%7s ", "-");
	fprintf(out, "%*s", (int)(16 - text_puts(out, comm, 15)), "");
}

/* One line, as wide as the style says. 0 or -ENOMEM. */
static int put_line(FILE *out, struct json_object *report, const struct timeline_event *e,
		    const struct show_style *style)
{
	CLEANUP_FREE char *text = NULL;
	const char *color = "";
	size_t size = 0;
	FILE *line = open_memstream(&text, &size);

	if (!line)
		return -ENOMEM;
	put_begin(line, e);
	put_event(line, report, e);
	if (fclose(line) == EOF)
		return -ENOMEM;
	if (style->color && e->kind == TIMELINE_GAP)
		color = RED;
	if (style->color && e->kind == TIMELINE_TRIGGER)
		color = BOLD;
	fputs(color, out);
	text_puts(out, text, style->columns);
	fputs(*color ? PLAIN "\n" : "\n", out);
	return 0;
}

/* What the lines do not tell. */
static void put_remarks(FILE *out, const struct timeline_events *e, size_t shown)
{
	if (shown < e->n)
		fprintf(out, "%s of %s events are shown.\n", figure_count(shown).text,
			figure_count(e->n).text);
	if (e->timeless > 0)
		fprintf(out, "Events without a time: %s; see `ptsnapctl gaps'.\n",
			figure_count(e->timeless).text);
	if (e->unowned > 0)
		fprintf(out,
			"Events left out because nobody knows their thread or their CPU: %s.\n",
			figure_count(e->unowned).text);
	if (e->missing > 0)
		fprintf(out,
			"The report has the newest %s of %s turns and other events; decode the "
			"bundle for all.\n",
			figure_count(e->kept).text, figure_count(e->kept + e->missing).text);
}

/* The events [*ret_first, *ret_end) of E: the last or the first ones, if SELECT says so. */
static void choose(const struct timeline_events *e, const struct show_select *select,
		   size_t *ret_first, size_t *ret_end)
{
	*ret_first = select->last > 0 && select->last < e->n ? e->n - select->last : 0;
	*ret_end = select->limit > 0 && select->limit < e->n ? select->limit : e->n;
}

int show_timeline(FILE *out, struct json_object *report, const struct show_select *select,
		  const struct show_style *style, bool picture)
{
	CLEANUP(timeline_done) struct timeline_events e;
	size_t first, end;
	int r = timeline_collect(report, select, &e);

	if (r < 0)
		return r;
	choose(&e, select, &first, &end);
	if (picture) {
		r = timeline_draw(out, &e, style);
		first = 0;
		end = e.n;
	} else {
		fprintf(out, "%13s CPU %7s %-16s%s\n", "TRIGGER +ms", "TID", "COMM", "EVENT");
		for (size_t i = first; i < end && r == 0; i++)
			r = put_line(out, report, &e.list[i], style);
	}
	if (r == 0)
		put_remarks(out, &e, end - first);
	return r;
}

int show_timeline_json(struct json_object *report, const struct show_select *select,
		       struct json_object **ret)
{
	CLEANUP(timeline_done) struct timeline_events e;
	struct json_object *array;
	size_t first, end;
	int r = timeline_collect(report, select, &e);

	if (r < 0)
		return r;
	choose(&e, select, &first, &end);
	array = json_object_new_array();
	for (size_t i = first; i < end; i++) {
		struct json_object *o = place_expand(report, e.list[i].row);

		if (!o) {
			json_object_put(array);
			return -ENOMEM;
		}
		if (e.list[i].kind == TIMELINE_TRIGGER)
			json_object_object_add(o, "atNSec", json_object_new_int64(0));
		json_object_object_add(o, "event",
				       json_object_new_string(KINDS[e.list[i].kind].name));
		json_object_array_add(array, o);
	}
	*ret = array;
	return 0;
}
