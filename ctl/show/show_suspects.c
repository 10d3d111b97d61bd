/*
 * Says what stands out, out of the report's list of suspects; equal waits are one suspect there.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/page.h"
#include "ctl/show/show_private.h"
#include "ctl/show/suspect_words.h"
#include "proto/base.h"

#define MAX_SUSPECTS	6
#define MAX_LINES	5  /* of a suspect */
#define MAX_COMPARED	64 /* suspects among which equal waits are found */
#define MOST_OF_PROCESS 4  /* waits of one kind that the report has (ptsnap-report(5)) */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_number(struct json_object *a, struct json_object *b, const char *path)
{
	uint64_t va = 0, vb = 0;

	return field_u64(a, path, &va) == field_u64(b, path, &vb) && va == vb;
}

/* Whether A and B are threads of one process that wait in the same function for the same. */
static bool waits_like(const struct page *p, struct json_object *a, struct json_object *b)
{
	const char *kind = field_text(a, "kind"), *name = suspect_function(p, a);

	if (!kind || !name || (strcmp(kind, "lock-wait") != 0 && strcmp(kind, "wait") != 0))
		return false;
	return same_text(kind, field_text(b, "kind")) && same_text(name, suspect_function(p, b)) &&
	       same_number(a, b, "pid") && same_number(a, b, "ownerTid") &&
	       strcmp(suspect_waited_for(a), suspect_waited_for(b)) == 0;
}

/* How many frames, MAX at most, have the same names in A and B, from the innermost on. */
static size_t common_frames(const struct page *p, struct json_object *a, struct json_object *b,
			    size_t max)
{
	size_t n = 0;

	while (n < max && n < field_count(a, "stack") && n < field_count(b, "stack") &&
	       same_text(place_name(place_of_frame(p->report, a, n)),
			 place_name(place_of_frame(p->report, b, n))))
		n++;
	return n;
}

/* Several suspects that are one on the page. */
struct waits {
	struct json_object *longest;
	uint64_t ns; /* of the longest */
	size_t n;
	size_t frames; /* that all have */
};

/* The suspects from number I on, among the first END, that wait like number I. */
static struct waits waits_of(const struct page *p, size_t i, size_t end)
{
	struct json_object *first = field_at(p->report, "suspects", i);
	struct waits w = {.longest = first, .n = 1, .frames = SUSPECT_CALLERS + 1};

	page_age(first, "sinceNSec", &w.ns);
	for (size_t k = i + 1; k < end; k++) {
		struct json_object *s = field_at(p->report, "suspects", k);
		uint64_t ns = 0;

		if (!waits_like(p, first, s))
			continue;
		w.n++;
		w.frames =
			common_frames(p, suspect_thread(p, first), suspect_thread(p, s), w.frames);
		if (page_age(s, "sinceNSec", &ns) && ns > w.ns) {
			w.ns = ns;
			w.longest = s;
		}
	}
	return w;
}

static bool is_repeated(const struct page *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (waits_like(p, field_at(p->report, "suspects", k),
			       field_at(p->report, "suspects", i)))
			return true;
	return false;
}

static void put_waits(const struct page *p, FILE *out, const struct waits *w)
{
	const bool lock = strcmp(field_text(w->longest, "kind"), "lock-wait") == 0;

	fprintf(out, "%zu%s threads of process %s have waited up to %s for %s, in ", w->n,
		w->n >= MOST_OF_PROCESS ? " or more" : "", figure_field_id(w->longest, "pid").text,
		figure_nsec(w->ns).text, lock ? "a lock" : suspect_waited_for(w->longest));
	if (w->frames > 0)
		page_stack(p, out, suspect_thread(p, w->longest), 0, w->frames);
	else
		suspect_put_function(p, out, w->longest);
	if (lock)
		suspect_put_owner(p, out, w->longest);
}

static void put_suspect(const struct page *p, const struct waits *w)
{
	struct page_text text;

	page_begin(&text);
	if (text.out && w->n > 1)
		put_waits(p, text.out, w);
	else if (text.out)
		suspect_put(p, text.out, w->longest);
	page_end(p, &text, "!", 2, MAX_LINES);
}

void page_suspects(const struct page *p)
{
	const size_t n = field_count(p->report, "suspects"), end = MIN_OF(n, (size_t)MAX_COMPARED);
	size_t lines = 0, told = 0;

	page_heading(p, "What stands out");
	if (!field_get(p->report, "suspects")) {
		fputs("  not known: the report was made by an older ptsnap; decode its bundle\n",
		      p->out);
		return;
	}
	for (size_t i = 0; i < end && lines < MAX_SUSPECTS; i++) {
		struct waits w;

		if (is_repeated(p, i))
			continue;
		w = waits_of(p, i, end);
		put_suspect(p, &w);
		told += w.n;
		lines++;
	}
	show_more(p->out, n, told);
	if (n == 0)
		fprintf(p->out, "  nothing%s, by the rules in ptsnap-report(5), SUSPECTS\n",
			field_get(p->report, "selected") ? " of the selected threads" : "");
}

/* When it was: what a rule says, or else from its begin until the trigger. */
static void find_time(struct json_object *s, struct show_suspect *to)
{
	const char *kind = field_text(s, "kind");
	uint64_t max;

	to->has_time = field_i64(s, "sinceNSec", &to->since_ns);
	to->until_ns = MAX_OF(to->since_ns, INT64_C(0));
	if (kind && strcmp(kind, "crash") == 0)
		to->until_ns = to->since_ns;
	if (kind && strcmp(kind, "slow-calls") == 0 && field_u64(s, "maxNSec", &max) &&
	    max <= INT64_MAX && __builtin_add_overflow(to->since_ns, (int64_t)max, &to->until_ns))
		to->has_time = false;
	field_i64(s, "untilNSec", &to->until_ns);
	to->until_ns = MAX_OF(to->since_ns, to->until_ns);
}

static uint32_t number_or_none(struct json_object *s, const char *path)
{
	uint64_t v;

	return field_u64(s, path, &v) && v < SHOW_NONE ? (uint32_t)v : SHOW_NONE;
}

static int tell(const struct page *p, struct json_object *s, show_suspect_fn fn, void *userdata)
{
	const char *function = suspect_function(p, s);
	struct show_suspect suspect = {.kind = field_text(s, "kind"),
				       .function = function ? function : "",
				       .tid = number_or_none(s, "tid"),
				       .cpu = number_or_none(s, "cpu")};
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	suspect_put(p, out, s);
	if (fclose(out) == EOF)
		return -ENOMEM;
	suspect.text = text;
	suspect.kind = suspect.kind ? suspect.kind : "";
	if (suspect.tid == SHOW_NONE)
		suspect.tid = number_or_none(field_at(s, "tids", 0), "");
	find_time(s, &suspect);
	return fn(userdata, &suspect);
}

int show_each_suspect(struct json_object *report, show_suspect_fn fn, void *userdata)
{
	const struct show_style style = {.columns = 80, .utf8 = true};
	const struct page p = {.style = &style, .report = report};
	bool before;
	int r = 0;

	if (!field_get(report, "suspects"))
		return SHOW_NO_SUSPECTS;
	before = text_escape_all(false);
	for (size_t i = 0; i < field_count(report, "suspects") && r == 0; i++)
		r = tell(&p, field_at(report, "suspects", i), fn, userdata);
	text_escape_all(before);
	return r;
}
